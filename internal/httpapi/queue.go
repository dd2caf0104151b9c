package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// queueHandlers list the waiting and the ended tasks.
type queueHandlers struct {
	engine *engine.Engine
	gate   *access.Gate
	peers  forward.Peers
}

// queue is GET /api/queue: the tasks that are being dispatched, then the waiting ones in
// their order.
func (h *queueHandlers) queue(w http.ResponseWriter, r *http.Request) error {
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
	read := h.engine.Read()
	counts, err := read.Counts(r.Context())
	if err != nil {
		return err
	}
	pauses, err := read.Pauses(r.Context())
	if err != nil {
		return err
	}
	figures := view.QueueStatus(counts, h.engine.Options().MaxSize, h.engine.Now())
	out := api.Queue{
		Depth: figures.Depth, MaxSize: figures.MaxSize, OldestAgeSeconds: figures.OldestAgeSeconds,
		DispatchedCount: figures.DispatchedCount, Tasks: []api.Task{}, Paused: view.Pauses(view.VisiblePauses(pauses, access.CallerOf(r).Who)),
	}
	if out.Tools, err = toolTaskCounts(r.Context(), h.engine, h.peers, counts, h.engine.LiveAgents()); err != nil {
		return err
	}
	if after == (store.Cursor{}) {
		if out.Tasks, err = h.dispatching(r, name); err != nil {
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
	views, err := h.positioned(r.Context(), waiting, after == (store.Cursor{}))
	if err != nil {
		return err
	}
	for i := range views { // positions count tasks that the caller may not see
		if access.CallerOf(r).Who.SeesTask(&waiting[i]) {
			out.Tasks = append(out.Tasks, views[i])
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func (h *queueHandlers) dispatching(r *http.Request, queue string) ([]api.Task, error) {
	running, err := h.engine.Read().InFlight(r.Context())
	views := []api.Task{}
	for i := range running {
		t := &running[i]
		if t.State == signalbox.Dispatching && (queue == "" || t.Queue == queue) && len(views) < httpio.MaxLimit && access.CallerOf(r).Who.SeesTask(t) {
			views = append(views, view.Task(t))
		}
	}
	return views, err
}

// positioned sets the positions of the tasks of a page, each within its queue. The tasks are
// in order, so it reads the store at most once for each queue, and not for the first page.
func (h *queueHandlers) positioned(ctx context.Context, page []signalbox.Task, first bool) ([]api.Task, error) {
	views := make([]api.Task, len(page))
	next := map[string]store.Position{}
	for i := range page {
		t := &page[i]
		pos, known := next[t.Queue]
		if !known {
			pos = store.Position{N: 1}
			if !first {
				var err error
				if pos, err = h.engine.Read().Position(ctx, t.ID); err != nil && signalbox.CodeOf(err) != signalbox.CodeNotFound {
					return nil, err
				}
				pos.N = max(pos.N, 1) // it was claimed after the page was read
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
func (h *queueHandlers) find(w http.ResponseWriter, r *http.Request) error {
	const most = 20
	part := r.PathValue("part")
	if len(part) > 64 {
		return signalbox.Invalid("part", "part must have at most 64 characters")
	}
	limit := most
	if access.CallerOf(r).Who.Limited() { // it may see only a few of many
		limit = httpio.MaxLimit
	}
	ids, err := h.engine.Read().Find(r.Context(), part, limit)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		if id, err := access.ImportedID(r.Context(), h.engine, part); err != nil {
			return err
		} else if id != part {
			ids = []string{id}
		}
	}
	if ids, err = h.gate.VisibleIDs(r.Context(), ids, access.CallerOf(r)); err != nil {
		return err
	}
	ids = ids[:min(len(ids), most)]
	if ids == nil {
		ids = []string{}
	}
	return httpio.Answer(w, http.StatusOK, api.Found{QueueIDs: ids})
}

// history is GET /api/history.
func (h *queueHandlers) history(w http.ResponseWriter, r *http.Request) error {
	q, err := h.historyQuery(r)
	if err != nil {
		return err
	}
	page, err := h.engine.Read().History(r.Context(), q)
	if err != nil {
		return err
	}
	tasks := access.VisibleTasks(page.Tasks, access.CallerOf(r))
	out := api.History{Tasks: make([]api.Task, len(tasks)), Next: page.Next}
	for i := range tasks {
		out.Tasks[i] = view.Task(&tasks[i])
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func (h *queueHandlers) historyQuery(r *http.Request) (q store.HistoryQuery, err error) {
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
	now := h.engine.Now()
	if q.Since, err = httpio.When(r, "since", now); err != nil {
		return q, err
	}
	if q.Until, err = httpio.When(r, "until", now); err != nil {
		return q, err
	}
	q.Limit, err = httpio.Limit(r)
	return q, err
}
