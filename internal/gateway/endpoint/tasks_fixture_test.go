package endpoint_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// memoryTasks is a gateway.Tasks that keeps its tasks in memory and runs each at once.
type memoryTasks struct {
	gw    *gateway.Gateway
	full  bool               // Submit refuses every task
	slow  bool               // CallOrPromote and Submit return only after the caller disconnected
	calls chan gateway.Call  // calls that became tasks
	ended chan string        // callers of Cancel
	life  context.Context    //nolint:containedctx // of the runs
	stop  context.CancelFunc // ends the runs
	runs  sync.WaitGroup
	mu    sync.Mutex
	all   map[string]*gateway.ToolTask
	end   map[string]context.CancelFunc
}

func newMemoryTasks() *memoryTasks {
	b := &memoryTasks{all: map[string]*gateway.ToolTask{}, end: map[string]context.CancelFunc{}, calls: make(chan gateway.Call, 100), ended: make(chan string, 100)}
	b.life, b.stop = context.WithCancel(context.Background())
	return b
}

func (b *memoryTasks) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	if b.full {
		return gateway.ToolTask{}, signalbox.Errorf(signalbox.CodeQueueFull, "10 tasks wait already")
	}
	if err := b.gw.Check(c.Call); err != nil {
		return gateway.ToolTask{}, err
	}
	id, err := signalbox.NewID(time.Now(), rand.Reader)
	if err != nil {
		return gateway.ToolTask{}, err
	}
	t := b.put(id, c.Call)
	b.runs.Go(func() {
		res, err := b.gw.Call(b.life, c.Call)
		b.finish(id, res, err)
	})
	b.calls <- c.Call
	if b.slow {
		<-ctx.Done()
	}
	return t, nil
}

func (b *memoryTasks) put(id string, c gateway.Call) gateway.ToolTask {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &gateway.ToolTask{Poll: 750 * time.Millisecond, TTL: time.Hour, Task: signalbox.Task{
		ID: id, Tool: c.Tool, State: signalbox.Working, Owner: c.Caller.Principal, Mode: signalbox.ModeTool,
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), StartedAt: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
	}}
	b.all[id] = t
	return *t
}

func (b *memoryTasks) finish(id string, res gateway.Result, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.all[id]
	if t.Task.State.Terminal() {
		return
	}
	t.Task.State, t.Task.Reason = signalbox.Completed, signalbox.ReasonCompleted
	if err != nil || res.IsError {
		t.Task.State, t.Task.Reason, t.Task.Message = signalbox.Failed, signalbox.ReasonExitNonzero, "it failed"
	}
	if err == nil {
		t.Result = &res
	}
}

// CallOrPromote turns a call that has not ended after the grace into a task.
func (b *memoryTasks) CallOrPromote(ctx context.Context, c gateway.TaskCall, grace time.Duration) (gateway.Result, *gateway.ToolTask, error) {
	for _, tool := range b.gw.Tools() {
		if tool.Name == c.Tool && tool.Async {
			t, err := b.Submit(ctx, c)
			if err != nil {
				return gateway.Result{}, nil, err
			}
			return gateway.Result{}, &t, nil
		}
	}
	if err := b.gw.Check(c.Call); err != nil {
		return gateway.Result{}, nil, err
	}
	type end struct {
		res gateway.Result
		err error
	}
	ended := make(chan end, 1)
	during, cancel := context.WithCancel(b.life)
	b.runs.Go(func() {
		res, err := b.gw.Call(during, c.Call)
		ended <- end{res, err}
	})
	select {
	case e := <-ended:
		cancel()
		return e.res, nil, e.err
	case <-ctx.Done():
		cancel()
		return gateway.Result{}, nil, ctx.Err()
	case <-time.After(grace):
	}
	id, err := signalbox.NewID(time.Now(), rand.Reader)
	if err != nil {
		cancel()
		return gateway.Result{}, nil, err
	}
	t := b.put(id, c.Call)
	b.mu.Lock()
	b.end[id] = cancel
	b.mu.Unlock()
	b.runs.Go(func() {
		e := <-ended
		cancel()
		b.finish(id, e.res, e.err)
	})
	b.calls <- c.Call
	return gateway.Result{}, &t, nil
}

func (b *memoryTasks) Task(_ context.Context, id string) (gateway.ToolTask, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.all[id]; t != nil {
		return *t, nil
	}
	return gateway.ToolTask{}, signalbox.Errorf(signalbox.CodeNotFound, "no task %s", id)
}

func (b *memoryTasks) Cancel(_ context.Context, id, by string) (gateway.ToolTask, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.all[id]
	if t.Task.State.Terminal() {
		return *t, signalbox.Errorf(signalbox.CodeAlreadyEnded, "it has ended")
	}
	t.Task.State, t.Task.Reason, t.Task.Message = signalbox.Cancelled, signalbox.ReasonCancelled, "cancelled by "+by
	if end := b.end[id]; end != nil {
		end()
	}
	b.ended <- by
	return *t, nil
}

// Wait polls the task.
func (b *memoryTasks) Wait(ctx context.Context, id string, wait time.Duration) (t gateway.ToolTask, err error) {
	testkit.Within(wait, func() bool {
		t, err = b.Task(ctx, id)
		return err != nil || ctx.Err() != nil || t.Task.State.Terminal()
	})
	return t, err
}

func (b *memoryTasks) List(context.Context, gateway.TaskQuery) (gateway.TaskPage, error) {
	return gateway.TaskPage{}, nil
}

// set changes a task.
func (b *memoryTasks) set(id string, f func(*gateway.ToolTask)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.all[id])
}

// only returns the ID of the only task.
func (b *memoryTasks) only(t *testing.T) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) != 1 {
		t.Fatalf("%d tasks", len(b.all))
	}
	for id := range b.all {
		return id
	}
	return ""
}

// newTaskFixture returns a fixture with an async tool s__job, which does what s__hold
// does, and an async tool s__quick, which ends at once.
func newTaskFixture(t *testing.T, o endpoint.Options) (*fixture, *memoryTasks) {
	t.Helper()
	b := newMemoryTasks()
	o.Tasks = b
	r := newFixture(t, o, func(s *scripted) {
		s.add("s__job", toolqueue.Default, s.hold)
		s.tools[len(s.tools)-1].Async = true
		s.add("s__quick", toolqueue.Default, func(context.Context, gateway.Call) (gateway.Result, error) {
			return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"quick"}]`), Metadata: json.RawMessage(`{"agent":"s__quick"}`)}, nil
		})
	})
	b.gw = r.gateway
	t.Cleanup(func() { // before the gateway closes
		b.stop()
		b.runs.Wait()
	})
	return r, b
}

const declaring = `,"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// about sends a request about a task, from a client that declared tasks.
func (r *fixture) about(method, id string, headers ...string) reply {
	r.t.Helper()
	return r.sendModern(method, `"taskId":"`+id+`"`, declaring, append([]string{"Mcp-Name", id}, headers...)...)
}

// wire is the part of an answer that the tests check.
type wire struct {
	Result struct {
		Type    string          `json:"resultType"`
		TaskID  string          `json:"taskId"`
		Status  string          `json:"status"`
		Message string          `json:"statusMessage"`
		Created string          `json:"createdAt"`
		Updated string          `json:"lastUpdatedAt"`
		TTL     *int64          `json:"ttlMs"`
		Poll    int64           `json:"pollIntervalMs"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Content  json.RawMessage `json:"content"`
		IsError  bool            `json:"isError"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"result"`
	Error *struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// read parses an answer, which is a stream or a single message.
func (r *fixture) read(got reply) wire {
	r.t.Helper()
	text := got.body
	if at := strings.LastIndex(text, "data: "); at >= 0 {
		text = text[at+len("data: "):]
	}
	var w wire
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		r.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return w
}
