package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// queue is GET /api/queue: the tasks that are being handed to an agent, then
// those that wait, in the order in which they will be taken.
func (d *Server) queue(w http.ResponseWriter, r *http.Request) error {
	limit, err := httpio.Limit(r)
	if err != nil {
		return err
	}
	name := httpio.Param(r, "queue")
	if name != "" && !signalbox.ValidQueue(name) {
		return signalbox.Invalid("queue", "%q is not a queue: use work, commands, calls, agent:NAME or pool:KIND", httpio.Clip(name))
	}
	after, err := parseCursor(httpio.Param(r, "after"))
	if err != nil {
		return err
	}
	read := d.engine.Read()
	counts, err := read.Counts(r.Context())
	if err != nil {
		return err
	}
	pauses, err := read.Pauses(r.Context())
	if err != nil {
		return err
	}
	figures := view.QueueStatus(counts, d.engine.Options().MaxSize, d.engine.Now())
	out := api.Queue{
		Depth: figures.Depth, MaxSize: figures.MaxSize, OldestAgeSeconds: figures.OldestAgeSeconds,
		DispatchedCount: figures.DispatchedCount, Tasks: []api.Task{}, Paused: view.Pauses(view.VisiblePauses(pauses, callerOf(r).who)),
	}
	if out.Tools, err = d.toolTaskCounts(r.Context(), counts, d.engine.LiveAgents()); err != nil {
		return err
	}
	if after == (store.Cursor{}) {
		if out.Tasks, err = d.dispatching(r, name); err != nil {
			return err
		}
	}
	waiting, err := read.Waiting(r.Context(), name, after, limit)
	if err != nil {
		return err
	}
	if len(waiting) == limit {
		out.Next = formatCursor(store.CursorOf(&waiting[limit-1]))
	}
	views, err := d.positioned(r.Context(), waiting, after == (store.Cursor{}))
	if err != nil {
		return err
	}
	for i := range views { // numbered with those that the caller does not see
		if callerOf(r).who.SeesTask(&waiting[i]) {
			out.Tasks = append(out.Tasks, views[i])
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func (d *Server) dispatching(r *http.Request, queue string) ([]api.Task, error) {
	running, err := d.engine.Read().InFlight(r.Context())
	views := []api.Task{}
	for i := range running {
		t := &running[i]
		if t.State == signalbox.Dispatching && (queue == "" || t.Queue == queue) && len(views) < httpio.MaxLimit && callerOf(r).who.SeesTask(t) {
			views = append(views, view.Task(t))
		}
	}
	return views, err
}

// positioned numbers the tasks of a page, each within its own queue. They
// come in order, so the store is asked at most once for each queue, and not
// at all on the first page.
func (d *Server) positioned(ctx context.Context, page []signalbox.Task, first bool) ([]api.Task, error) {
	views := make([]api.Task, len(page))
	next := map[string]store.Position{}
	for i := range page {
		t := &page[i]
		pos, known := next[t.Queue]
		if !known {
			pos = store.Position{N: 1}
			if !first {
				var err error
				if pos, err = d.engine.Read().Position(ctx, t.ID); err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
					return nil, err
				}
				pos.N = max(pos.N, 1) // it was taken since the page was read
			}
		}
		views[i] = view.Task(t)
		views[i].Position, views[i].PositionApproximate = pos.N, pos.Approximate
		pos.N++
		next[t.Queue] = pos
	}
	return views, nil
}

// A cursor is opaque to callers.
func formatCursor(c store.Cursor) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", c.OrderKey, c.Place))
}

func parseCursor(s string) (c store.Cursor, err error) {
	if s == "" {
		return c, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		_, err = fmt.Sscanf(string(plain), "%d.%d", &c.OrderKey, &c.Place)
	}
	if err != nil || formatCursor(c) != s {
		return store.Cursor{}, signalbox.Invalid("after", "after must be the next of the page before, not %q", httpio.Clip(s))
	}
	return c, nil
}

// find is GET /api/find/{part}.
func (d *Server) find(w http.ResponseWriter, r *http.Request) error {
	const most = 20
	part := r.PathValue("part")
	if len(part) > 64 {
		return signalbox.Invalid("part", "a part of an id has at most 64 characters")
	}
	limit := most
	if callerOf(r).who.Limited() { // of many it may see few
		limit = httpio.MaxLimit
	}
	ids, err := d.engine.Read().Find(r.Context(), part, limit)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if id, err := d.importedID(r.Context(), part); err != nil {
			return err
		} else if id != part {
			ids = []string{id}
		}
	}
	if ids, err = d.visibleIDs(r.Context(), ids, callerOf(r)); err != nil {
		return err
	}
	ids = ids[:min(len(ids), most)]
	if ids == nil {
		ids = []string{}
	}
	return httpio.Answer(w, http.StatusOK, api.Found{QueueIDs: ids})
}

// history is GET /api/history.
func (d *Server) history(w http.ResponseWriter, r *http.Request) error {
	q, err := d.historyQuery(r)
	if err != nil {
		return err
	}
	page, err := d.engine.Read().History(r.Context(), q)
	if err != nil {
		return err
	}
	tasks := visible(page.Tasks, callerOf(r))
	out := api.History{Tasks: make([]api.Task, len(tasks)), Next: page.Next}
	for i := range tasks {
		out.Tasks[i] = view.Task(&tasks[i])
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func (d *Server) historyQuery(r *http.Request) (q store.HistoryQuery, err error) {
	q = store.HistoryQuery{
		State: signalbox.State(httpio.Param(r, "state")), Reason: signalbox.Reason(httpio.Param(r, "reason")),
		Agent: httpio.Param(r, "agent"), Queue: httpio.Param(r, "queue"), Source: signalbox.Source(httpio.Param(r, "source")),
		SourceJob: httpio.Param(r, "source_job"), SessionID: httpio.Param(r, "session_id"), Text: httpio.Param(r, "q"), Before: httpio.Param(r, "before"),
	}
	switch {
	case q.State != "" && !q.State.Terminal():
		return q, signalbox.Invalid("state", "state must be completed, failed, cancelled or timeout, not %q", httpio.Clip(string(q.State)))
	case q.Reason != "" && !q.Reason.Valid():
		return q, signalbox.Invalid("reason", "reason must be one of %v, not %q", signalbox.Reasons(), httpio.Clip(string(q.Reason)))
	}
	now := d.engine.Now()
	if q.Since, err = httpio.When(r, "since", now); err != nil {
		return q, err
	}
	if q.Until, err = httpio.When(r, "until", now); err != nil {
		return q, err
	}
	q.Limit, err = httpio.Limit(r)
	return q, err
}

// maxPauseSeconds bounds a pause by length, 366 days; a pause without an end
// has none.
const maxPauseSeconds = 366 * 24 * 3600

// pauseEnd returns when a pause ends by itself; zero for never.
func (d *Server) pauseEnd(req api.PauseRequest) (time.Time, error) {
	switch {
	case req.Until != nil && req.Seconds != 0:
		return time.Time{}, signalbox.Invalid("seconds", "until and seconds both say when the pause ends: give one of them")
	case req.Until != nil:
		return *req.Until, nil
	case req.Seconds < 0 || req.Seconds > maxPauseSeconds:
		return time.Time{}, signalbox.Invalid("seconds", "seconds must be 0 to %d, not %d", maxPauseSeconds, req.Seconds)
	case req.Seconds > 0:
		return d.engine.Now().Add(time.Duration(req.Seconds) * time.Second), nil
	}
	return time.Time{}, nil
}

// pauseWords is how a queue stands, for the audit log: by a pause of its own,
// not by one of all queues.
func (d *Server) pauseWords(ctx context.Context, queue string) (map[string]any, error) {
	pauses, err := d.engine.Read().Pauses(ctx)
	for _, p := range pauses {
		if p.Queue != queue {
			continue
		}
		words := map[string]any{"paused": true, "reason": p.Reason, "by": p.By}
		if p.UntilMS != 0 {
			words["until"] = time.UnixMilli(p.UntilMS).UTC()
		}
		return words, err
	}
	return map[string]any{"paused": false}, err
}

// auditPause writes down a pause or a resume that was done, with what was
// before and what is now.
func (d *Server) auditPause(r *http.Request, action string, req api.PauseRequest, before map[string]any) error {
	after, err := d.pauseWords(r.Context(), req.Queue)
	if err != nil { // it was done all the same, and is to be written down
		after = map[string]any{"paused": action == "pause"}
	}
	said := map[string]any{"before": before, "after": after}
	if req.Reason != "" {
		said["reason"] = req.Reason
	}
	return d.audit(r, signalbox.Audit{
		EventType: "queue", Action: action, Resource: orAll(req.Queue), AgentName: queueAgent(req.Queue), Details: signalbox.AuditDetails(said),
	})
}
