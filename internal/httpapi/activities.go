package httpapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Limits for the rows that one answer reads.
const (
	maxLiveActivities  = 10_000 // waiting tasks, the first in line
	maxActivityPages   = 100    // pages of ended tasks
	maxActivityNodes   = 1000
	maxActivityDepth   = signalbox.MaxCallDepth
	activityLivePrefix = "live:" // prefix of a cursor among unended tasks
	activityPastPrefix = "past:"
)

// activityFilter selects activities.
type activityFilter struct {
	who                signalbox.Principal
	agent, kind, state string
}

func (f *activityFilter) takes(t *signalbox.Task) bool {
	return (f.agent == "" || view.AgentOf(t) == f.agent) && (f.kind == "" || activityType(t) == f.kind) &&
		(f.state == "" || activityState(t.State) == f.state) && f.who.SeesTask(t)
}

// live and past report whether unended and ended tasks can match.
func (f *activityFilter) live() bool {
	return f.state == "" || f.state == activityQueued || f.state == activityStarted
}

func (f *activityFilter) past() bool {
	return f.state == "" || f.state == activityCompleted || f.state == activityFailed
}

// activityHandlers show tasks as activities.
type activityHandlers struct{ engine *engine.Engine }

// activities is GET /api/activities: first the unended tasks, then the ended ones, each
// newest first.
func (h *activityHandlers) activities(w http.ResponseWriter, r *http.Request) error {
	f, err := activityFilterOf(r)
	if err != nil {
		return err
	}
	limit, err := httpio.Limit(r)
	if err != nil {
		return err
	}
	live, past, err := parseActivityCursor(httpio.Param(r, "before"))
	if err != nil {
		return err
	}
	out := api.Activities{Activities: []api.Activity{}}
	if past == nil && f.live() {
		if err := h.liveActivities(r.Context(), &f, live, limit, &out); err != nil {
			return err
		}
	}
	if out.Next == "" && f.past() {
		from := ""
		if past != nil {
			from = *past
		}
		if err := h.pastActivities(r.Context(), &f, from, limit, &out); err != nil {
			return err
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func activityFilterOf(r *http.Request) (activityFilter, error) {
	f := activityFilter{who: access.CallerOf(r).Who, agent: httpio.Param(r, "agent"), kind: httpio.Param(r, "type"), state: httpio.Param(r, "state")}
	types := []string{typeChat, typeTask, typeSchedule, typeCollaboration, typeTool}
	states := []string{activityQueued, activityStarted, activityCompleted, activityFailed}
	if f.kind != "" && !slices.Contains(types, f.kind) {
		return f, signalbox.Invalid("type", "type must be one of %s, not %q", strings.Join(types, ", "), httpio.Clip(f.kind))
	}
	if f.state != "" && !slices.Contains(states, f.state) {
		return f, signalbox.Invalid("state", "state must be one of %s, not %q", strings.Join(states, ", "), httpio.Clip(f.state))
	}
	return f, nil
}

// liveActivities adds running and waiting tasks that were submitted before seq (0: all). If
// the page is full, it sets a cursor.
func (h *activityHandlers) liveActivities(ctx context.Context, f *activityFilter, seq int64, limit int, out *api.Activities) error {
	tasks, err := h.unended(ctx, f.agent)
	if err != nil {
		return err
	}
	slices.SortFunc(tasks, func(a, b signalbox.Task) int { return int(b.Seq - a.Seq) })
	for i := range tasks {
		t := &tasks[i]
		if (seq != 0 && t.Seq >= seq) || !f.takes(t) {
			continue
		}
		if len(out.Activities) == limit {
			out.Next = activityCursor(activityLivePrefix, strconv.FormatInt(seq, 10))
			return nil
		}
		out.Activities = append(out.Activities, activityView(t))
		seq = t.Seq
	}
	return nil
}

// unended reads the tasks in flight and the first waiting tasks, of all agents or of one.
func (h *activityHandlers) unended(ctx context.Context, agent string) ([]signalbox.Task, error) {
	tasks, err := h.engine.Read().InFlight(ctx)
	if err != nil {
		return nil, err
	}
	queues := []string{""}
	if agent != "" {
		queues = []string{signalbox.AgentQueue(agent), signalbox.BypassQueue(agent)}
	}
	seen := map[string]bool{} // a task may be claimed or requeued between the two reads
	for i := range tasks {
		seen[tasks[i].ID] = true
	}
	for _, queue := range queues {
		for after, n := (store.Cursor{}), 0; n < maxLiveActivities; n += httpio.MaxLimit {
			page, err := h.engine.Read().Waiting(ctx, queue, after, httpio.MaxLimit)
			if err != nil {
				return nil, err
			}
			for i := range page {
				if !seen[page[i].ID] {
					tasks = append(tasks, page[i])
				}
			}
			if len(page) < httpio.MaxLimit {
				break
			}
			after = store.CursorOf(&page[len(page)-1])
		}
	}
	return tasks, nil
}

// pastActivities fills the page with ended tasks after the cursor from. It reads a limited
// number of rows, so a page may be short and still have a next one.
func (h *activityHandlers) pastActivities(ctx context.Context, f *activityFilter, from string, limit int, out *api.Activities) error {
	// The store's own filter by agent would omit tasks that never started on the agent.
	q := store.HistoryQuery{Before: from}
	if f.state == activityCompleted {
		q.State = signalbox.Completed
	}
	for range maxActivityPages {
		room := limit - len(out.Activities)
		if room == 0 {
			break
		}
		q.Limit = room
		page, err := h.engine.Read().History(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			if f.takes(&page.Tasks[i]) {
				out.Activities = append(out.Activities, activityView(&page.Tasks[i]))
			}
		}
		if q.Before = page.Next; q.Before == "" {
			return nil
		}
	}
	out.Next = activityCursor(activityPastPrefix, q.Before)
	return nil
}

// A cursor is opaque to callers.
func activityCursor(prefix, at string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(prefix + at))
}

// parseActivityCursor returns the position among the unended tasks, or the cursor of the
// history.
func parseActivityCursor(s string) (live int64, past *string, err error) {
	if s == "" {
		return 0, nil, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		if at, ok := strings.CutPrefix(string(plain), activityPastPrefix); ok {
			return 0, &at, nil
		}
		if at, ok := strings.CutPrefix(string(plain), activityLivePrefix); ok {
			if live, err = strconv.ParseInt(at, 10, 64); err == nil && live > 0 {
				return live, nil, nil
			}
		}
	}
	return 0, nil, signalbox.Invalid("before", "before must be the next of the page before, not %q", httpio.Clip(s))
}

// activity is GET /api/activities/{id}: a task, and the tree of tasks that its execution
// called.
func (h *activityHandlers) activity(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	t, err := h.engine.Read().Task(r.Context(), id)
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	if !who.SeesTask(&t) {
		return signalbox.Errorf(signalbox.CodeNotFound, "there is no task %s", id)
	}
	v := activityView(&t)
	left := maxActivityNodes - 1
	if err := h.addChildren(r.Context(), who, &v, maxActivityDepth, &left); err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, v)
}

// addChildren adds the tree below an activity, at most left nodes, level by level within
// each branch.
func (h *activityHandlers) addChildren(ctx context.Context, who signalbox.Principal, v *api.Activity, depth int, left *int) error {
	if depth == 0 || *left <= 0 {
		return nil
	}
	children, err := h.engine.Read().Children(ctx, v.ID, *left)
	if err != nil {
		return err
	}
	for i := range children {
		if who.SeesTask(&children[i]) {
			v.Children = append(v.Children, activityView(&children[i]))
			*left--
		}
	}
	for i := range v.Children {
		if err := h.addChildren(ctx, who, &v.Children[i], depth-1, left); err != nil {
			return err
		}
	}
	return nil
}

// The types and states of the seed's activities.
const (
	typeChat          = "chat_start"
	typeTask          = "task_start"
	typeSchedule      = "schedule_start"
	typeCollaboration = "agent_collaboration"
	typeTool          = "tool_call"

	activityQueued    = "queued"
	activityStarted   = "started"
	activityCompleted = "completed"
	activityFailed    = "failed"
)

// activityView is a task in the terms of the seed's activity stream.
func activityView(t *signalbox.Task) api.Activity {
	v := api.Activity{
		ID: t.ID, Type: activityType(t), State: activityState(t.State), AgentName: view.AgentOf(t), ParentActivityID: t.ParentID,
		TriggeredBy: view.SeedSource(t), RelatedExecutionID: t.ID, CreatedAt: t.CreatedAt, CompletedAt: view.Time(t.EndedAt),
		Details: api.ActivityDetails{
			ExecutionID: t.ID, QueueStatus: t.QueueStatus(), WasQueued: t.WasQueued(), Message: t.Preview,
			Tool: t.Tool, SessionID: t.SessionID, Job: t.SourceJob, Depth: t.Depth, Reason: string(t.Reason),
		},
	}
	v.UserID, _ = signalbox.OwnerUser(t.Owner)
	v.SourceAgent, _ = signalbox.OwnerAgent(t.Owner)
	if t.Mode == signalbox.ModeTool { // tool tasks are always queued, even if a slot is free
		v.Details.QueueStatus = activityQueued
	}
	if !t.State.Waiting() {
		v.StartedAt = view.Time(t.StartedAt)
	}
	if v.StartedAt != nil && v.CompletedAt != nil {
		ms := max(0, t.EndedAt.Sub(t.StartedAt).Milliseconds()) // even if a clock was set back in between
		v.DurationMS = &ms
	}
	if v.State == activityFailed {
		v.Error = t.Message
	}
	return v
}

// activityType is the type of a task's activity. A task of an agent for another agent is a
// collaboration, even if it is a chat. A tool task is a tool call, and a task of a schedule
// belongs to the schedule.
func activityType(t *signalbox.Task) string {
	_, byAgent := signalbox.OwnerAgent(t.Owner)
	switch {
	case t.Mode == signalbox.ModeTool:
		return typeTool
	case t.Source == signalbox.SourceScheduler && t.Mode == signalbox.ModeQueue: // also for the schedule of an agent, whose own calls have another source
		return typeSchedule
	case byAgent:
		return typeCollaboration
	case t.Mode == signalbox.ModeChat:
		return typeChat
	}
	return typeTask
}

func activityState(s signalbox.State) string {
	switch s {
	case signalbox.Pending, signalbox.Dispatching, signalbox.Parked:
		return activityQueued
	case signalbox.Working, signalbox.Cancelling:
		return activityStarted
	case signalbox.Completed:
		return activityCompleted
	}
	return activityFailed
}
