package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// fakeToolTasks makes rows of calls, as an executor would, and lets the test
// say what becomes of them.
type fakeToolTasks struct {
	mu      sync.Mutex
	store   store.Store
	engine  *engine.Engine
	random  *rand.ChaCha8
	calls   []gateway.TaskCall
	refuse  error             // of Submit
	logs    map[string]string // of those that run
	answers map[string]gateway.Result
}

func newFakeToolTasks() *fakeToolTasks {
	return &fakeToolTasks{
		random: rand.NewChaCha8([32]byte{2}), logs: map[string]string{}, answers: map[string]gateway.Result{},
	}
}

// withToolTasks gives a director tools, and tasks of them.
func withToolTasks(f *fakeToolTasks) func(*options) {
	return func(o *options) {
		withTools(newFakeTools())(o)
		o.director.ToolTasks = f
	}
}

// newToolBox is a director that makes tool calls into tasks.
func newToolBox(t *testing.T, change ...func(*options)) (*box, *fakeToolTasks) {
	t.Helper()
	f := newFakeToolTasks()
	b := newBox(t, append([]func(*options){withToolTasks(f)}, change...)...)
	f.store, f.engine = b.store, b.engine
	return b, f
}

func (f *fakeToolTasks) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	if f.refuse != nil {
		return gateway.ToolTask{}, f.refuse
	}
	if c.Tool == "nothing" {
		return gateway.ToolTask{}, signalbox.Errorf(signalbox.CodeNotFound, "There is no tool %q: signalbox tools lists those that there are", c.Tool)
	}
	now := f.engine.Now()
	id, err := signalbox.NewID(now, f.random)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	row := signalbox.Task{
		ID: id, State: signalbox.Pending, Queue: signalbox.QueueCommands, Limit: signalbox.LimitCommands, Mode: signalbox.ModeTool, Tool: c.Tool,
		Priority: c.Priority, Source: c.Source, Owner: c.Caller.Who.Key(), CreatedAt: now, MaxAttempts: 1, RetryOf: c.RetryOf,
		Preview: c.Tool + " " + string(c.Arguments), IdempotencyKey: c.IdempotencyKey, IdempotencyHash: string(c.Arguments),
	}
	got, err := f.store.Submit(ctx, store.Submission{Task: row, Now: now, Request: signalbox.Request{
		Queue: row.Queue, Arguments: c.Arguments, Metadata: c.Meta, TimeoutMS: c.Limit.Milliseconds(), HadEnv: bytes.Contains(c.Arguments, []byte("password")),
	}})
	if err != nil {
		return gateway.ToolTask{}, err
	}
	out, err := f.view(ctx, got.Task)
	out.Replayed = got.Replayed
	return out, err
}

func (f *fakeToolTasks) CallOrPromote(context.Context, gateway.TaskCall, time.Duration) (gateway.Result, *gateway.ToolTask, error) {
	panic("no way in of the director uses it")
}

func (f *fakeToolTasks) view(ctx context.Context, row signalbox.Task) (gateway.ToolTask, error) {
	t := gateway.ToolTask{Task: row}
	if !row.State.Terminal() {
		t.Poll = 2 * time.Second
	}
	if row.State == signalbox.Pending {
		pos, err := f.store.Position(ctx, row.ID)
		if err != nil {
			return t, err
		}
		t.Position, t.Wait = pos.N, "queued, position 1"
	}
	if r, ok := f.answers[row.ID]; ok {
		t.Result = &r
	}
	return t, nil
}

func (f *fakeToolTasks) Task(ctx context.Context, id string) (gateway.ToolTask, error) {
	row, err := f.store.Task(ctx, id)
	if err == nil && row.Mode != signalbox.ModeTool {
		err = signalbox.Errorf(signalbox.CodeNotFound, "task %s is none of a tool", id)
	}
	if err != nil {
		return gateway.ToolTask{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view(ctx, row)
}

func (f *fakeToolTasks) Wait(ctx context.Context, id string, wait time.Duration) (gateway.ToolTask, error) {
	if _, err := f.engine.Wait(ctx, id, wait, engine.Ended); err != nil {
		return gateway.ToolTask{}, err
	}
	return f.Task(ctx, id)
}

func (f *fakeToolTasks) Cancel(ctx context.Context, id, by string) (gateway.ToolTask, error) {
	if _, err := f.engine.Cancel(ctx, id, by); err != nil {
		return gateway.ToolTask{}, err
	}
	return f.Task(ctx, id)
}

// List has one page: what has not ended in order, then the others.
func (f *fakeToolTasks) List(ctx context.Context, q gateway.TaskQuery) (page gateway.TaskPage, err error) {
	rows, err := f.store.InFlight(ctx)
	if err != nil {
		return page, err
	}
	waiting, err := f.store.Waiting(ctx, "", store.Cursor{}, 1000)
	if err != nil {
		return page, err
	}
	past, err := f.store.History(ctx, store.HistoryQuery{Limit: 1000})
	if err != nil {
		return page, err
	}
	for _, row := range slices.Concat(rows, waiting, past.Tasks) {
		if row.Mode != signalbox.ModeTool || !q.Sees(&row) || (q.Tool != "" && row.Tool != q.Tool) || (q.Status != "" && gateway.SeedStatus(row.State) != q.Status) {
			continue
		}
		if len(page.Tasks) == q.Limit {
			page.Next = "more"
			return page, nil
		}
		f.mu.Lock()
		t, err := f.view(ctx, row)
		f.mu.Unlock()
		if err != nil {
			return page, err
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}

func (f *fakeToolTasks) Output(_ context.Context, id string, after int64, _ time.Duration) (out api.Output, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	log, ok := f.logs[id]
	after = min(after, int64(len(log)))
	return api.Output{QueueID: id, Text: log[after:], Seq: after, Next: int64(len(log))}, ok
}

// last is the call that was made last.
func (f *fakeToolTasks) last() gateway.TaskCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[len(f.calls)-1]
}

// row makes the executor's row known.
func (b *box) executor() signalbox.Agent {
	b.t.Helper()
	a := signalbox.Agent{
		Name: signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), Kind: "executor",
		Slots: 10, Fencing: true, Source: signalbox.AgentInternal,
	}
	if err := b.store.PutAgent(b.t.Context(), a, signalbox.Entry{}); err != nil {
		b.t.Fatal(err)
	}
	b.live.set(engine.LiveAgent{Agent: a, Up: true})
	return a
}

// runs has the next call run, and print.
func (b *box) runTool(f *fakeToolTasks, prints string) signalbox.Task {
	b.t.Helper()
	t := b.work(b.executor())
	f.mu.Lock()
	f.logs[t.ID] = prints
	f.mu.Unlock()
	b.live.set(engine.LiveAgent{Agent: b.executor(), Up: true, InUse: 1})
	return t
}

// answerTool has a call end with an answer; message is for one that fails.
func (b *box) answerTool(f *fakeToolTasks, t signalbox.Task, text, message string) {
	b.t.Helper()
	code := 0
	out := engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: text, Tail: text, ExitCode: &code}}
	f.mu.Lock()
	if message == "" {
		f.answers[t.ID] = gateway.Result{
			Content: json.RawMessage(`[{"type":"text","text":` + quoted(text) + `}]`), Metadata: json.RawMessage(`{"agent":` + quoted(t.Tool) + `}`),
		}
	} else {
		code = 3
		out.Reason, out.Message = signalbox.ReasonExitNonzero, message
	}
	delete(f.logs, t.ID)
	f.mu.Unlock()
	if _, err := b.engine.Finish(b.t.Context(), t, out); err != nil {
		b.t.Fatal(err)
	}
	b.live.set(engine.LiveAgent{Agent: b.executor(), Up: true})
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}
