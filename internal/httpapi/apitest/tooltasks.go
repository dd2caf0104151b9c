package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
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

// ToolTasks fakes the tasks of async tools: it stores each call as a task, and the test
// decides how the task runs and ends.
type ToolTasks struct {
	Mu      sync.Mutex
	Store   store.Store
	Engine  *engine.Engine
	random  *rand.ChaCha8
	Calls   []gateway.TaskCall
	Refuse  error                     // the error of Submit, if set
	logs    map[string]string         // logs of running tasks, by id
	Results map[string]gateway.Result // by task id
}

// NewToolTasks returns a ToolTasks whose Store and Engine are not set yet.
func NewToolTasks() *ToolTasks {
	return &ToolTasks{
		random: rand.NewChaCha8([32]byte{2}), logs: map[string]string{}, Results: map[string]gateway.Result{},
	}
}

// withToolTasks gives a director the tools of NewTools, and their tasks.
func withToolTasks(f *ToolTasks) func(*Options) {
	return func(o *Options) {
		WithTools(NewTools())(o)
		o.Config.ToolTasks = f
	}
}

// NewWithToolTasks creates a director with tools whose calls can be tasks.
func NewWithToolTasks(t *testing.T, change ...func(*Options)) (*Fixture, *ToolTasks) {
	t.Helper()
	f := NewToolTasks()
	b := New(t, append([]func(*Options){withToolTasks(f)}, change...)...)
	f.Store, f.Engine = b.Store, b.Engine
	return b, f
}

func (f *ToolTasks) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Calls = append(f.Calls, c)
	if f.Refuse != nil {
		return gateway.ToolTask{}, f.Refuse
	}
	if c.Tool == "nothing" {
		return gateway.ToolTask{}, signalbox.Errorf(signalbox.CodeNotFound, "There is no tool %q: signalbox tools lists those that there are", c.Tool)
	}
	now := f.Engine.Now()
	id, err := signalbox.NewID(now, f.random)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	row := signalbox.Task{
		ID: id, State: signalbox.Pending, Queue: signalbox.QueueCommands, Limit: signalbox.LimitCommands, Mode: signalbox.ModeTool, Tool: c.Tool,
		Priority: c.Priority, Source: c.Source, Owner: c.Caller.Who.Key(), CreatedAt: now, MaxAttempts: 1, RetryOf: c.RetryOf,
		Preview: c.Tool + " " + string(c.Arguments), IdempotencyKey: c.IdempotencyKey, IdempotencyHash: string(c.Arguments),
	}
	got, err := f.Store.Submit(ctx, store.Submission{Task: row, Now: now, Request: signalbox.Request{
		Queue: row.Queue, Arguments: c.Arguments, Metadata: c.Meta, TimeoutMS: c.Limit.Milliseconds(), HadEnv: bytes.Contains(c.Arguments, []byte("password")),
	}})
	if err != nil {
		return gateway.ToolTask{}, err
	}
	out, err := f.view(ctx, got.Task)
	out.Replayed = got.Replayed
	return out, err
}

func (f *ToolTasks) CallOrPromote(context.Context, gateway.TaskCall, time.Duration) (gateway.Result, *gateway.ToolTask, error) {
	panic("no way in of the director uses it")
}

func (f *ToolTasks) view(ctx context.Context, row signalbox.Task) (gateway.ToolTask, error) {
	t := gateway.ToolTask{Task: row}
	if !row.State.Terminal() {
		t.Poll = 2 * time.Second
	}
	if row.State == signalbox.Pending {
		pos, err := f.Store.Position(ctx, row.ID)
		if err != nil {
			return t, err
		}
		t.Position, t.Wait = pos.N, "queued, position 1"
	}
	if r, ok := f.Results[row.ID]; ok {
		t.Result = &r
	}
	return t, nil
}

func (f *ToolTasks) Task(ctx context.Context, id string) (gateway.ToolTask, error) {
	row, err := f.Store.Task(ctx, id)
	if err == nil && row.Mode != signalbox.ModeTool {
		err = signalbox.Errorf(signalbox.CodeNotFound, "task %s is none of a tool", id)
	}
	if err != nil {
		return gateway.ToolTask{}, err
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.view(ctx, row)
}

func (f *ToolTasks) Wait(ctx context.Context, id string, wait time.Duration) (gateway.ToolTask, error) {
	if _, err := f.Engine.Wait(ctx, id, wait, engine.Ended); err != nil {
		return gateway.ToolTask{}, err
	}
	return f.Task(ctx, id)
}

func (f *ToolTasks) Cancel(ctx context.Context, id, by string) (gateway.ToolTask, error) {
	if _, err := f.Engine.Cancel(ctx, id, by); err != nil {
		return gateway.ToolTask{}, err
	}
	return f.Task(ctx, id)
}

// List returns one page: tasks in flight, then waiting ones, then ended ones.
func (f *ToolTasks) List(ctx context.Context, q gateway.TaskQuery) (page gateway.TaskPage, err error) {
	rows, err := f.Store.InFlight(ctx)
	if err != nil {
		return page, err
	}
	waiting, err := f.Store.Waiting(ctx, "", store.Cursor{}, 1000)
	if err != nil {
		return page, err
	}
	past, err := f.Store.History(ctx, store.HistoryQuery{Limit: 1000})
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
		f.Mu.Lock()
		t, err := f.view(ctx, row)
		f.Mu.Unlock()
		if err != nil {
			return page, err
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}

func (f *ToolTasks) Output(_ context.Context, id string, after int64, _ time.Duration) (out api.Output, ok bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	log, ok := f.logs[id]
	after = min(after, int64(len(log)))
	return api.Output{QueueID: id, Text: log[after:], Seq: after, Next: int64(len(log))}, ok
}

// LastCall is the newest call.
func (f *ToolTasks) LastCall() gateway.TaskCall {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Calls[len(f.Calls)-1]
}

// AddExecutor adds the executor of commands, and returns its row.
func (b *Fixture) AddExecutor() signalbox.Agent {
	b.T.Helper()
	a := signalbox.Agent{
		Name: signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), Kind: "executor",
		Slots: 10, Fencing: true, Source: signalbox.AgentInternal,
	}
	if err := b.Store.PutAgent(b.T.Context(), a, signalbox.Entry{}); err != nil {
		b.T.Fatal(err)
	}
	b.Live.Set(engine.LiveAgent{Agent: a, Up: true})
	return a
}

// RunTool runs the next call, with prints as its output so far.
func (b *Fixture) RunTool(f *ToolTasks, prints string) signalbox.Task {
	b.T.Helper()
	t := b.Run(b.AddExecutor())
	f.Mu.Lock()
	f.logs[t.ID] = prints
	f.Mu.Unlock()
	b.Live.Set(engine.LiveAgent{Agent: b.AddExecutor(), Up: true, InUse: 1})
	return t
}

// AnswerTool ends a call: completed with text as its result, or failed if message is
// not empty.
func (b *Fixture) AnswerTool(f *ToolTasks, t signalbox.Task, text, message string) {
	b.T.Helper()
	code := 0
	out := engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: text, Tail: text, ExitCode: &code}}
	f.Mu.Lock()
	if message == "" {
		f.Results[t.ID] = gateway.Result{
			Content: json.RawMessage(`[{"type":"text","text":` + quoted(text) + `}]`), Metadata: json.RawMessage(`{"agent":` + quoted(t.Tool) + `}`),
		}
	} else {
		code = 3
		out.Reason, out.Message = signalbox.ReasonExitNonzero, message
	}
	delete(f.logs, t.ID)
	f.Mu.Unlock()
	if _, err := b.Engine.Finish(b.T.Context(), t, out); err != nil {
		b.T.Fatal(err)
	}
	b.Live.Set(engine.LiveAgent{Agent: b.AddExecutor(), Up: true})
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// CreateToolTask submits a call of the tool report as a task.
func CreateToolTask(b *Fixture, body string, edits ...Edit) api.ToolTask {
	b.T.Helper()
	var out api.ToolTask
	b.Do("POST", ReportPath, body, edits...).Want(b.T, http.StatusCreated, &out)
	return out
}

// ReportPath is where calls of the tool report are submitted as tasks.
const ReportPath = "/api/tools/report/tasks"
