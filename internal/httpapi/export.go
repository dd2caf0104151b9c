package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/resources"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	maxImportBytes = 32 << 20
	maxImportTasks = 1000
	importsAtOnce  = 64
	// exportBytes ends a page of an export early: tasks can be large.
	exportBytes = 8 << 20
)

// The parts of an export, in their order: the prefixes of cursors.
const (
	partWaiting = "waiting"
	partRunning = "running"
	partEnded   = "ended"
	partUsage   = "usage"
)

// transferHandlers export tasks, and import tasks of another queue.
type transferHandlers struct{ engine *engine.Engine }

// export is GET /api/export.
func (h *transferHandlers) export(w http.ResponseWriter, r *http.Request) error {
	limit, err := httpio.Limit(r)
	if err != nil {
		return err
	}
	p := exporter{engine: h.engine, r: r, limit: limit, out: api.Export{Tasks: []api.ExportedTask{}}}
	part, after, _ := strings.Cut(httpio.Param(r, "after"), ":")
	switch part {
	case "", partWaiting:
		err = p.waiting(after)
	case partRunning:
		err = p.running(after)
	case partEnded:
		err = p.ended(after)
	case partUsage:
		err = p.usage(after)
	default:
		err = signalbox.Invalid("after", "%q is not the cursor of an earlier page", part)
	}
	return httpio.AnswerOr(w, p.out, err)
}

// exporter makes one page of an export.
type exporter struct {
	engine *engine.Engine
	r      *http.Request
	limit  int
	out    api.Export
	size   int
}

func (p *exporter) waiting(after string) error {
	var at store.Cursor
	if after != "" {
		key, place, _ := strings.Cut(after, ":")
		var errKey, errPlace error
		at.OrderKey, errKey = strconv.ParseInt(key, 10, 64)
		at.Place, errPlace = strconv.ParseInt(place, 10, 64)
		if errKey != nil || errPlace != nil {
			return signalbox.Invalid("after", "%q is not the cursor of an earlier page", after)
		}
	}
	tasks, err := p.engine.Read().Waiting(p.r.Context(), "", at, p.limit)
	if err != nil {
		return err
	}
	n, err := p.add(tasks)
	p.out.Next = partRunning
	if n > 0 && (n < len(tasks) || n == p.limit) {
		at = store.CursorOf(&tasks[n-1])
		p.out.Next = partWaiting + ":" + strconv.FormatInt(at.OrderKey, 10) + ":" + strconv.FormatInt(at.Place, 10)
	}
	return err
}

// running lists the tasks in flight, ordered by fence, which a task keeps.
func (p *exporter) running(after string) error {
	var fence int64
	if after != "" {
		var err error
		if fence, err = strconv.ParseInt(after, 10, 64); err != nil {
			return signalbox.Invalid("after", "%q is not the cursor of an earlier page", after)
		}
	}
	flying, err := p.engine.Read().InFlight(p.r.Context())
	if err != nil {
		return err
	}
	var tasks []signalbox.Task
	for i := range flying {
		if flying[i].Fence > fence && len(tasks) < p.limit {
			tasks = append(tasks, flying[i])
		}
	}
	n, err := p.add(tasks)
	p.out.Next = partEnded
	if n > 0 && (n < len(tasks) || n == p.limit) {
		p.out.Next = partRunning + ":" + strconv.FormatInt(tasks[n-1].Fence, 10)
	}
	return err
}

func (p *exporter) ended(before string) error {
	q := store.HistoryQuery{Limit: p.limit, Before: before}
	page, err := p.engine.Read().History(p.r.Context(), q)
	if err != nil {
		return err
	}
	n, err := p.add(page.Tasks)
	if err != nil {
		return err
	}
	if p.out.Next = partUsage; page.Next != "" {
		p.out.Next = partEnded + ":" + page.Next
	}
	if n < len(page.Tasks) { // too large for one page: read the cursor of the cut
		q.Limit = n
		if page, err = p.engine.Read().History(p.r.Context(), q); err == nil && page.Next != "" {
			p.out.Next = partEnded + ":" + page.Next
		}
	}
	return err
}

// exportedDays is how many days of usage are on one page.
const exportedDays = 40

// usage lists the sums of some days; the next page has the days before.
func (p *exporter) usage(before string) error {
	today := signalbox.DayOf(p.engine.Now())
	to := today + 1 // the clock of another director may be ahead
	if before != "" {
		var err error
		if to, err = signalbox.ParseDay(before); err != nil {
			return signalbox.Invalid("after", "%q is not the cursor of an earlier page", before)
		}
	}
	from := to - exportedDays + 1
	rows, err := p.engine.Read().Usage(p.r.Context(), store.UsageQuery{From: from, To: to})
	for i := range rows {
		p.out.Usage = append(p.out.Usage, exportedUsage(&rows[i]))
	}
	if from > today-signalbox.UsageDays {
		p.out.Next = partUsage + ":" + (from - 1).String()
	}
	return err
}

// add adds tasks to the page until it is full, at least one.
func (p *exporter) add(tasks []signalbox.Task) (n int, err error) {
	for i := range tasks {
		t, err := p.transfer(tasks[i])
		if signalbox.CodeOf(err) == signalbox.CodeNotFound {
			continue // pruned meanwhile
		}
		if err != nil {
			return i, err
		}
		out, err := exported(&t)
		if err != nil {
			return i, err
		}
		size := len(out.Request) + len(out.Result)
		if i > 0 && p.size+size > exportBytes {
			return i, nil
		}
		p.size += size
		p.out.Tasks = append(p.out.Tasks, out)
	}
	return len(tasks), nil
}

// transfer reads the other parts of a task. Env values and the trace are not exported.
func (p *exporter) transfer(t signalbox.Task) (engine.Transfer, error) {
	all, err := p.engine.Read().Whole(p.r.Context(), t.ID)
	if err != nil {
		return engine.Transfer{}, err
	}
	out := engine.Transfer{Task: t, Request: all.Request}
	out.Request.SealedEnv, out.Request.Trace = nil, ""
	if t.State.Terminal() {
		out.Result = &all.Result
	}
	return out, nil
}

func exported(x *engine.Transfer) (api.ExportedTask, error) {
	t := &x.Task
	out := api.ExportedTask{
		QueueID: t.ID, State: string(t.State), Reason: string(t.Reason), Message: t.Message, Queue: t.Queue, Limit: t.Limit,
		Mode: string(t.Mode), Priority: t.Priority, BiasMS: t.Bias.Milliseconds(), EnqueuedAt: t.EnqueuedAt, CreatedAt: t.CreatedAt,
		NotBefore: view.Time(t.NotBefore), WaitUntil: view.Time(t.WaitUntil), SessionID: t.SessionID, Session: string(t.SessionMode),
		OnLost: string(t.OnLost), MaxAttempts: t.MaxAttempts, HadEnv: t.HasEnv, RetryOf: t.RetryOf, Source: string(t.Source),
		SourceJob: t.SourceJob, Preview: t.Preview, Key: t.IdempotencyKey, KeyHash: t.IdempotencyHash, Tool: t.Tool,
		Owner: t.Owner, OwnerEmail: t.OwnerEmail, ParentID: t.ParentID, Depth: t.Depth,
		DispatchedAt: view.Time(t.DispatchedAt), StartedAt: view.Time(t.StartedAt), EndedAt: view.Time(t.EndedAt), Agent: t.Agent,
		AgentURL: t.AgentURL, TaskID: t.TaskID, Attempts: t.Attempts, Claims: t.Claims, LastError: t.LastError, CancelledBy: t.CancelledBy,
		InputTokens: t.Spent.InputTokens, OutputTokens: t.Spent.OutputTokens, NanoUSD: t.Spent.NanoUSD, Budget: view.Budget(t.Budget),
		Needs: resources.Units(t.Needs), Workplace: string(t.Workplace),
	}
	if k := t.Parking; k != nil {
		out.Parking = &api.ExportedParking{
			Kind: string(k.Kind), Name: k.Name, Text: k.Text, Until: view.Time(k.Until), At: k.At, Count: k.Count, Next: k.Next, Began: k.Began,
		}
	}
	if l := t.Landing; l != nil {
		out.Landing = &api.ExportedLanding{
			State: string(l.State), Text: l.Text, Onto: l.Onto, Method: l.Method, FastForward: l.FastForward, LandTask: l.LandTask, Turn: l.Turn,
			Commit: l.Commit, Was: l.Was, URL: l.URL, AskedBy: l.By, AskedAt: l.At, Since: l.Since,
		}
	}
	var err error
	if out.Request, err = json.Marshal(x.Request); err == nil && x.Result != nil {
		out.Result, err = json.Marshal(x.Result)
	}
	return out, err
}

// importTasks is POST /api/import.
func (h *transferHandlers) importTasks(w http.ResponseWriter, r *http.Request) error {
	var req api.ImportRequest
	if err := httpio.DecodeUpTo(w, r, maxImportBytes, &req, false); err != nil {
		return err
	}
	if len(req.Tasks) > maxImportTasks {
		return signalbox.Invalid("tasks", "an import of %d tasks: at most %d are allowed at a time", len(req.Tasks), maxImportTasks)
	}
	if len(req.Usage) > maxImportTasks {
		return signalbox.Invalid("usage", "an import of %d rows of usage: at most %d are allowed at a time", len(req.Usage), maxImportTasks)
	}
	if req.Running != "" && req.Running != "interrupt" && req.Running != "requeue" {
		return signalbox.Invalid("running", "running must be interrupt or requeue, not %q", req.Running)
	}
	out := api.Imported{Refused: []api.ImportedRefusal{}}
	requeue := req.Running == "requeue"
	for tasks := req.Tasks; len(tasks) > 0; {
		n := parallelImports(tasks)
		for i, err := range h.restore(r.Context(), tasks[:n], requeue) {
			switch code := signalbox.CodeOf(err); {
			case err == nil:
				out.Imported++
			case code == signalbox.CodeConflict && h.knows(r, tasks[i].QueueID):
				out.Known++
			case code == signalbox.CodeValidation || code == signalbox.CodeConflict || code == signalbox.CodeTooLarge:
				out.Refused = append(out.Refused, api.ImportedRefusal{QueueID: tasks[i].QueueID, Message: err.Error()})
			default:
				return err // a store error: earlier tasks are stored, and recognized at the next try
			}
		}
		tasks = tasks[n:]
	}
	var err error
	out.Usage, err = h.importUsage(r.Context(), req.Usage)
	return httpio.AnswerOr(w, out, err)
}

// parallelImports returns how many of the next tasks may be stored concurrently, in one
// commit: those that have ended. Waiting tasks are stored one by one, to keep their order.
func parallelImports(tasks []api.ExportedTask) int {
	n := 0
	for n < min(len(tasks), importsAtOnce) && signalbox.State(tasks[n].State).Terminal() {
		n++
	}
	return max(n, 1)
}

// restore stores tasks concurrently.
func (h *transferHandlers) restore(ctx context.Context, tasks []api.ExportedTask, requeue bool) []error {
	errs := make([]error, len(tasks))
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			t, err := imported(&tasks[i])
			if err == nil {
				_, err = h.engine.Restore(ctx, t, requeue)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

func (h *transferHandlers) knows(r *http.Request, id string) bool {
	_, err := h.engine.Read().Task(r.Context(), id)
	return err == nil
}

func imported(in *api.ExportedTask) (engine.Transfer, error) {
	x := engine.Transfer{Task: signalbox.Task{
		ID: in.QueueID, State: signalbox.State(in.State), Reason: signalbox.Reason(in.Reason), Message: in.Message, Queue: in.Queue,
		Limit: in.Limit, Mode: signalbox.Mode(in.Mode), Priority: in.Priority, Bias: time.Duration(in.BiasMS) * time.Millisecond,
		EnqueuedAt: milli(&in.EnqueuedAt), CreatedAt: milli(&in.CreatedAt), NotBefore: milli(in.NotBefore), WaitUntil: milli(in.WaitUntil),
		SessionID: in.SessionID, SessionMode: signalbox.SessionMode(in.Session), OnLost: signalbox.OnLost(in.OnLost),
		MaxAttempts: in.MaxAttempts, HasEnv: in.HadEnv, RetryOf: in.RetryOf, Source: signalbox.Source(in.Source), SourceJob: in.SourceJob,
		Preview: in.Preview, IdempotencyKey: in.Key, IdempotencyHash: in.KeyHash, Tool: in.Tool, Owner: in.Owner, OwnerEmail: in.OwnerEmail,
		ParentID: in.ParentID, Depth: in.Depth, DispatchedAt: milli(in.DispatchedAt), StartedAt: milli(in.StartedAt), EndedAt: milli(in.EndedAt),
		Agent: in.Agent, AgentURL: in.AgentURL, TaskID: in.TaskID, Attempts: in.Attempts, Claims: in.Claims, LastError: in.LastError,
		CancelledBy: in.CancelledBy,
		Spent:       signalbox.Spent{InputTokens: max(0, in.InputTokens), OutputTokens: max(0, in.OutputTokens), NanoUSD: max(0, in.NanoUSD)},
		Needs:       resources.Needs(in.Needs), Workplace: signalbox.Workplace(in.Workplace),
	}}
	if k := in.Parking; k != nil {
		x.Task.Parking = &signalbox.Parking{
			Gate: signalbox.Gate{Kind: signalbox.GateKind(k.Kind), Name: k.Name, Text: k.Text, Until: milli(k.Until)},
			At:   milli(&k.At), Count: k.Count, Next: k.Next, Began: k.Began,
		}
	}
	if l := in.Landing; l != nil {
		x.Task.Landing = &signalbox.Landing{
			LandWish: signalbox.LandWish{Onto: l.Onto, Method: l.Method, FastForward: l.FastForward}, State: signalbox.LandingState(l.State), Text: l.Text,
			LandTask: l.LandTask, Turn: l.Turn, Commit: l.Commit, Was: l.Was, URL: l.URL, By: l.AskedBy, At: milli(&l.AskedAt), Since: milli(&l.Since),
		}
	}
	var err error
	if x.Task.Budget, err = budgetOf(in.Budget); err != nil {
		return x, err
	}
	x.Env = in.Env
	if err := json.Unmarshal(in.Request, &x.Request); err != nil {
		return x, signalbox.Invalid("request", "request cannot be read: %v", err)
	}
	if err := x.Request.Checking.Validate(); err != nil {
		return x, err
	}
	if len(in.Result) > 0 {
		x.Result = &signalbox.Result{}
		if err := json.Unmarshal(in.Result, x.Result); err != nil {
			return x, signalbox.Invalid("result", "result cannot be read: %v", err)
		}
		x.Result.LogTimes = latest(x.Result.LogTimes, signalbox.MaxLogTimes)
		x.Result.Calls = latest(x.Result.Calls, signalbox.MaxToolCalls)
		if x.Result.Changes != nil {
			x.Result.Changes.Sanitize()
		}
		if x.Result.Checked != nil {
			x.Result.Checked.Sanitize()
		}
		if x.Result.Landed != nil {
			x.Result.Landed.Sanitize()
		}
	}
	return x, nil
}

// latest returns the last n values of a list.
func latest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// milli truncates a time to the precision of stores; nil is the zero time.
func milli(t *time.Time) time.Time {
	if t == nil || t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
