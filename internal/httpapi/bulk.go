package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	maxBulk      = 10_000 // tasks of one bulk action
	bulkParallel = 16     // concurrent ones
	// bulkRows limits the rows that are read: a query that needs more is
	// refused instead of being done in part.
	bulkRows = 100_000
)

// The actions of a bulk request.
const (
	bulkCancel = "cancel"
	bulkRetry  = "retry"
)

// bulkHandler cancels or retries all tasks that match a query.
type bulkHandler struct {
	engine *engine.Engine
	audit  *access.AuditLog
	tasks  *taskHandlers
	calls  *toolTaskHandlers
}

// bulk is POST /api/queue/bulk.
func (h *bulkHandler) bulk(w http.ResponseWriter, r *http.Request) error {
	var req api.BulkRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	q, err := h.bulkQuery(r, &req)
	if err != nil {
		return err
	}
	tasks, more, err := h.bulkTasks(r, q, req.Action)
	if err != nil {
		return err
	}
	out := api.Bulk{Query: q.String(), Action: req.Action, Count: len(tasks), More: more}
	if req.Expect != nil {
		if *req.Expect != len(tasks) {
			return httpio.Refuse(signalbox.CodeConflict, "check what matches now, and try again with that count",
				"%s can be %s now, not the %d that were expected: nothing was done", view.Counted(len(tasks), "task that matches", "tasks that match"), doneWord[req.Action], *req.Expect)
		}
		if err := h.doAll(r, tasks, &out); err != nil {
			return err
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

var doneWord = map[string]string{bulkCancel: "cancelled", bulkRetry: "retried"}

// bulkQuery checks a request.
func (h *bulkHandler) bulkQuery(r *http.Request, req *api.BulkRequest) (*signalbox.Query, error) {
	if doneWord[req.Action] == "" {
		return nil, signalbox.Invalid("action", "action must be cancel or retry, not %q", httpio.Clip(req.Action))
	}
	if who := access.CallerOf(r).Who; req.Action == bulkRetry && !who.Has(signalbox.ScopeSubmit) {
		return nil, httpio.Refuse(signalbox.CodeForbidden, "use a token that has it", "to retry needs the scope %s, and %s has %s",
			signalbox.ScopeSubmit, who.String(), access.ScopeWords(who.Scopes))
	}
	q, err := signalbox.ParseQuery(req.Query, h.engine.Now())
	var wrong *signalbox.Error
	switch {
	case errors.As(err, &wrong):
		named := *wrong
		named.Field = "query"
		return nil, &named
	case err == nil && q.String() == "": // also for an empty text in quotes
		return nil, signalbox.Invalid("query", "query must say which tasks are meant, such as agent:coder state:waiting; state:waiting,running are all that have not ended")
	}
	return &q, err
}

// bulkTasks returns the matching tasks to which the action applies, at most maxBulk, and
// whether there are more. Completed tasks are retried only if the query names that state.
func (h *bulkHandler) bulkTasks(r *http.Request, q *signalbox.Query, action string) (tasks []signalbox.Task, more bool, err error) {
	completed := q.HasValue("state", string(signalbox.Completed)) || q.HasValue("reason", string(signalbox.ReasonCompleted)) || q.SingleValue("id") != ""
	can := func(t *signalbox.Task) bool {
		if action == bulkCancel {
			return !t.State.Terminal() && !t.CancelRequested
		}
		return t.State.Terminal() && (completed || t.State != signalbox.Completed)
	}
	s := scanOf(q, access.CallerOf(r).Who, bulkRows, func() int { return httpio.MaxLimit })
	if action == bulkCancel {
		s.MayMatch = func(state signalbox.State) bool { return !state.Terminal() && q.MatchesState(state) }
	}
	err = s.Run(r.Context(), h.engine.Read(), store.ScanCursor{}, func(t *signalbox.Task, _ store.ScanCursor) bool {
		if can(t) {
			tasks = append(tasks, *t)
		}
		return len(tasks) <= maxBulk
	})
	if more = len(tasks) > maxBulk; more {
		tasks = tasks[:maxBulk]
	}
	slices.SortFunc(tasks, func(a, b signalbox.Task) int { return bulkOrder(&a, &b, action) })
	if err == nil && s.Truncated {
		return nil, false, httpio.Refuse(signalbox.CodeValidation, "narrow the query, for example with since:7d", "the query would have to read more than %d tasks", bulkRows)
	}
	return tasks, more, err
}

// bulkOrder compares two tasks: retries are oldest first, and cancels are running tasks
// last, so that a freed slot does not go to a task that is about to be cancelled.
func bulkOrder(a, b *signalbox.Task, action string) int {
	if action == bulkCancel {
		return cmp.Or(cmp.Compare(inFlight(a), inFlight(b)), cmp.Compare(b.Seq, a.Seq))
	}
	return cmp.Compare(a.Seq, b.Seq)
}

func inFlight(t *signalbox.Task) int {
	if t.State.InFlight() {
		return 1
	}
	return 0
}

// doAll applies the action to all tasks concurrently, and records it in one row of the
// audit log.
func (h *bulkHandler) doAll(r *http.Request, tasks []signalbox.Task, out *api.Bulk) error {
	outcomes := make([]api.BulkOutcome, len(tasks))
	var group sync.WaitGroup
	next := make(chan int)
	for range min(bulkParallel, len(tasks)) {
		group.Go(func() {
			for i := range next {
				outcomes[i] = h.doOne(r, &tasks[i], out.Action)
			}
		})
	}
	for i := range tasks {
		next <- i
	}
	close(next)
	group.Wait()
	for _, o := range outcomes {
		if o.Error != "" {
			out.Failed++
		} else {
			out.Done++
		}
	}
	out.Results = slices.DeleteFunc(outcomes, func(o api.BulkOutcome) bool { return o.Error == "" && o.NewID == "" })
	result := signalbox.AuditSuccess
	if out.Failed > 0 {
		result = signalbox.AuditFailed
	}
	// The action is recorded even if the caller has disconnected.
	return h.audit.Write(r.WithContext(context.WithoutCancel(r.Context())), signalbox.Audit{
		EventType: "task", Action: "bulk_" + out.Action, Resource: httpio.Clip(out.Query), Severity: signalbox.AuditWarning, Result: result,
		Details: signalbox.AuditDetails(map[string]any{"query": out.Query, "count": out.Count, "done": out.Done, "failed": out.Failed}),
	})
}

// doOne applies the action to one task, with the caller's rights.
func (h *bulkHandler) doOne(r *http.Request, t *signalbox.Task, action string) api.BulkOutcome {
	o := api.BulkOutcome{QueueID: t.ID}
	err := r.Context().Err()
	switch {
	case err != nil: // the caller has disconnected
	case action == bulkCancel:
		_, err = h.tasks.cancelTask(r.Context(), t, access.CallerOf(r).Who.String())
	default:
		o.NewID, err = h.retryTask(r, t)
	}
	if err != nil {
		body, _ := httpio.ErrorBody(err)
		o.Error, o.Message = body.Error, body.Message
	}
	return o
}

// retryTask retries an ended task unchanged.
func (h *bulkHandler) retryTask(r *http.Request, t *signalbox.Task) (id string, err error) {
	if t.Mode != signalbox.ModeTool {
		got, err := h.engine.Retry(r.Context(), t.ID, engine.RetryEdit{By: access.CallerOf(r).Who})
		return got.Task.ID, err
	}
	call, err := h.calls.callAgain(r, t, api.RetryRequest{})
	if err != nil {
		return "", err
	}
	tasks, err := h.calls.tools.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return "", err
	}
	got, err := tasks.Submit(gateway.WithTrace(r.Context(), r.Header), call)
	return got.Task.ID, err
}
