package httpapi

import (
	"context"
	"net/http"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/live"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// searchRows is how many rows one page of a search reads.
const searchRows = 10_000

// searchHandler finds tasks by a query.
type searchHandler struct {
	engine     *engine.Engine
	projection *live.Projection
}

// search is GET /api/search.
func (h *searchHandler) search(w http.ResponseWriter, r *http.Request) error {
	q, err := signalbox.ParseQuery(httpio.Param(r, "q"), h.engine.Now())
	if err != nil {
		return err
	}
	limit, err := httpio.Limit(r)
	if err != nil {
		return err
	}
	order, err := signalbox.ParseSort(httpio.Param(r, "sort"))
	if err != nil {
		return err
	}
	after := httpio.Param(r, "after")
	if order != (signalbox.Sort{}) {
		return h.sorted(w, r, &q, order, limit, after)
	}
	from, ok := store.ParseScanCursor(after, q.SingleValue("queue"))
	if !ok {
		return wrongAfter(after)
	}
	page := searchPage{limit: limit, total: from.Total, approximate: from.Approximate, counting: from.Phase == ""}
	s := scanOf(&q, access.CallerOf(r).Who, searchRows, page.wants)
	if err := s.Run(r.Context(), h.engine.Read(), from, page.take); err != nil {
		return err
	}
	out := api.Search{Query: q.String(), Tasks: h.rows(r.Context(), page.tasks), Total: page.total, Approximate: page.approximate || page.counting && s.Truncated}
	if page.next != nil || s.Truncated {
		next := s.At
		if page.next != nil {
			next = *page.next
		}
		next.Total, next.Approximate = out.Total, out.Approximate
		out.Next = next.String()
	}
	return httpio.Answer(w, http.StatusOK, out)
}

func wrongAfter(after string) error {
	return signalbox.Invalid("after", "after must be the next of the page before, not %q", httpio.Clip(after))
}

// searchPage is one page of the tasks that a scan finds.
type searchPage struct {
	limit       int
	tasks       []signalbox.Task
	total       int
	approximate bool
	counting    bool              // the first page counts all matches
	last        store.ScanCursor  // cursor of the last task of the page
	next        *store.ScanCursor // set if there are more
}

// take adds a task. It returns false if no more are needed.
func (p *searchPage) take(t *signalbox.Task, at store.ScanCursor) bool {
	if p.counting {
		p.total++
	}
	if len(p.tasks) < p.limit {
		p.tasks, p.last = append(p.tasks, *t), at
		return true
	}
	if p.next == nil {
		next := p.last
		p.next = &next
	}
	return p.counting
}

// wants is how many rows to read at once: while the page is not full, no more than it has
// room for, because the next page can continue only at the end of a read.
func (p *searchPage) wants() int {
	if lacks := p.limit - len(p.tasks); lacks > 0 {
		return lacks
	}
	return httpio.MaxLimit
}

// rows converts tasks to rows with their live state.
func (h *searchHandler) rows(ctx context.Context, tasks []signalbox.Task) []api.LiveTask {
	out := make([]api.LiveTask, len(tasks))
	seen := h.projection.EnsureFresh(ctx) == nil
	for i := range tasks {
		out[i] = view.LiveTask(&tasks[i])
		if !seen {
			continue
		}
		if row := h.projection.Task(&tasks[i]); row != nil && row.State == out[i].State {
			out[i] = *row
		}
	}
	return out
}

// scanOf scans the tasks that match a query and that a principal may see.
func scanOf(q *signalbox.Query, who signalbox.Principal, rows int, step func() int) store.Scan {
	return store.Scan{
		Match: func(t *signalbox.Task) bool { return q.Matches(t) && who.SeesTask(t) }, MayMatch: q.MatchesState,
		Queues: []string{q.SingleValue("queue")}, Ended: historyQuery(q), Budget: rows, PageSize: step,
	}
}

// historyQuery is the part of the query that the store can evaluate.
func historyQuery(q *signalbox.Query) store.HistoryQuery {
	h := store.HistoryQuery{
		Reason: signalbox.Reason(q.SingleValue("reason")), Queue: q.SingleValue("queue"), Source: signalbox.Source(q.SingleValue("source")),
		SourceJob: q.SingleValue("job"), SessionID: q.SingleValue("session"), Tool: q.SingleValue("tool"), Text: q.SingleValue(""),
	}
	if state := signalbox.State(q.SingleValue("state")); state.Valid() {
		h.State = state
	}
	if mode := q.SingleValue("mode"); mode != "queue" { // for the store, "" means all modes
		h.Mode = signalbox.Mode(mode)
	}
	h.Since, h.Until = q.Span()
	return h
}
