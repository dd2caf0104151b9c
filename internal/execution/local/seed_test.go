package local_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Seed async-task-queue, "Task States": pending → running → completed or failed, by the seed's names.
func TestSeedStates(t *testing.T) {
	h := newFixtureOver(t, openStore(t), async("tool"))
	h.options.Concurrent = 1
	begun, goOn := make(chan string), make(chan bool)
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		begun <- c.Task
		if <-goOn {
			return said("out"), nil
		}
		r := said("it broke")
		r.IsError = true
		return r, nil
	})
	x := h.open()
	good, bad := h.submit(x, "tool"), h.submit(x, "tool")
	if id := got(h, begun); id != good {
		t.Errorf("task %s runs first, want %s: first come, first served", id, good)
	}
	status := func(id string) string {
		v, err := x.Task(t.Context(), id)
		h.must(err)
		return gateway.SeedStatus(v.Task.State)
	}
	if a, b := status(good), status(bad); a != "running" || b != "pending" {
		t.Errorf("%s and %s", a, b)
	}
	goOn <- true
	if id := got(h, begun); id != bad {
		t.Errorf("task %s runs second", id)
	}
	if v := h.end(x, good); status(good) != "completed" || v.Result == nil || v.Task.Reason != signalbox.ReasonCompleted {
		t.Errorf("%+v", v)
	}
	goOn <- false
	if v := h.end(x, bad); status(bad) != "failed" || v.Task.Message != "it broke" || v.Result == nil || !v.Result.IsError {
		t.Errorf("%+v", v)
	}
	h.slots(0)
}

// Seed async-task-queue, "Error Handling", and its later extensions.
func TestSeedErrorTable(t *testing.T) {
	code := 3
	ended := func(reason signalbox.Reason, message string, exit *int) func(context.Context, gateway.Call) (gateway.Result, error) {
		return func(_ context.Context, c gateway.Call) (gateway.Result, error) {
			r := said(message)
			r.IsError = reason != signalbox.ReasonCompleted
			r.Run = &gateway.RunEnd{Reason: reason, Message: message, ExitCode: exit, Took: 250 * time.Millisecond}
			return r, nil
		}
	}
	fails := func(err error) func(context.Context, gateway.Call) (gateway.Result, error) {
		return func(context.Context, gateway.Call) (gateway.Result, error) { return gateway.Result{}, err }
	}
	never := func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		<-ctx.Done()
		return gateway.Result{}, ctx.Err()
	}
	for name, c := range map[string]struct {
		play    func(context.Context, gateway.Call) (gateway.Result, error)
		limit   time.Duration
		status  string
		reason  signalbox.Reason
		message string
		exit    *int
		answer  bool
	}{
		"Command exits non-zero":       {ended(signalbox.ReasonExitNonzero, "no such file", &code), 0, "failed", signalbox.ReasonExitNonzero, "no such file", &code, true},
		"Command exits without a word": {ended(signalbox.ReasonExitNonzero, "command exited with code 3", &code), 0, "failed", signalbox.ReasonExitNonzero, "command exited with code 3", &code, true},
		"Timeout exceeded":             {ended(signalbox.ReasonRunTimeout, "Task timed out after 20ms", nil), 20 * time.Millisecond, "failed", signalbox.ReasonRunTimeout, "Task timed out after 20ms", nil, true},
		"Timeout of another tool":      {never, 20 * time.Millisecond, "failed", signalbox.ReasonRunTimeout, "Task timed out after 20ms", nil, false},
		"Execution exception":          {ended(signalbox.ReasonAgentError, "spawn ENOENT", nil), 0, "failed", signalbox.ReasonAgentError, "spawn ENOENT", nil, true},
		"the tool says isError": {func(context.Context, gateway.Call) (gateway.Result, error) {
			r := said("  bad input ")
			r.IsError = true
			return r, nil
		}, 0, "failed", signalbox.ReasonAgentError, "bad input", nil, true},
		"the server is away": {fails(signalbox.Errorf(signalbox.CodeToolDown, "the server is away")), 0, "failed", signalbox.ReasonAgentError, "the server is away", nil, false},
		"a JSON-RPC error":   {fails(&gateway.ProtocolError{Code: -32602, Message: "no such page"}), 0, "failed", signalbox.ReasonAgentError, "the tool's server answered with the error -32602: no such page", nil, false},
		"a panic": {func(context.Context, gateway.Call) (gateway.Result, error) { panic("x") }, 0, "failed", signalbox.ReasonAgentError,
			`The tool "tool" failed inside Signalbox: this is a fault of Signalbox, its log has more.`, nil, false},
		"exit 0": {ended(signalbox.ReasonCompleted, "fine", new(int)), 0, "completed", signalbox.ReasonCompleted, "completed", new(int), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixtureOver(t, openStore(t), async("tool"))
			h.play("tool", c.play)
			x := h.open()
			id := h.submit(x, "tool", func(call *gateway.TaskCall) { call.Limit = c.limit })
			v := h.end(x, id)
			if got := gateway.SeedStatus(v.Task.State); got != c.status || v.Task.Reason != c.reason || v.Task.Message != c.message {
				t.Errorf("%s, %s: %q", got, v.Task.Reason, v.Task.Message)
			}
			if (v.Result != nil) != c.answer {
				t.Errorf("result %+v", v.Result)
			}
			r := h.result(id)
			if d := cmp.Diff(c.exit, r.ExitCode); d != "" {
				t.Error(d)
			}
			h.slots(0)
		})
	}
}

// Seed async-task-queue, "Result Format", and that the result survives a restart, unlike in the seed's
// system.
func TestSeedResultFormat(t *testing.T) {
	h := newFixtureOver(t, openStore(t), async("tool"))
	want := gateway.Result{
		Content:  json.RawMessage(`[{"type":"text","text":"Command output"},{"type":"text","text":"stderr:\nWarning message"}]`),
		Metadata: json.RawMessage(`{"agent":"agent-name"}`),
	}
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) { return want, nil })
	x := h.open()
	id := h.submit(x, "tool")
	h.end(x, id)
	x.Stop()
	v := h.end(h.open(), id)
	if d := cmp.Diff(&want, v.Result); d != "" {
		t.Error(d)
	}
	r := h.result(id)
	if r.Answer != `{"content":`+string(want.Content)+`,"metadata":{"agent":"agent-name"}}` {
		t.Errorf("stored answer %s", r.Answer)
	}
	if r.Output != "Command output\nstderr:\nWarning message" || r.Tail != r.Output {
		t.Errorf("output %q, tail %q", r.Output, r.Tail)
	}
}

// Seed async-task-queue, "Agent restart": by default a running task fails with the seed's text, and a waiting
// one is kept; a tool can have the seed's policy for both.
func TestSeedRestart(t *testing.T) {
	for name, c := range map[string]struct {
		policy                        gateway.RestartPolicy
		pending, dispatching, working signalbox.State
		pendingSays, says             string
	}{
		"default":                           {gateway.RestartPolicy{}, signalbox.Pending, signalbox.Pending, signalbox.Failed, "", "Task interrupted before completion (agent restart)"},
		"as in the seed":                    {gateway.RestartPolicy{FailPending: true}, signalbox.Failed, signalbox.Failed, signalbox.Failed, "Task interrupted before completion (agent restart)", "Task interrupted before completion (agent restart)"},
		"requeue":                           {gateway.RestartPolicy{RequeueRunning: true}, signalbox.Pending, signalbox.Pending, signalbox.Pending, "", ""},
		"fail what waits, requeue what ran": {gateway.RestartPolicy{FailPending: true, RequeueRunning: true}, signalbox.Failed, signalbox.Failed, signalbox.Pending, "Task interrupted before completion (agent restart)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := func(tool *gateway.Tool) { tool.Restart = c.policy }
			h := newFixtureOver(t, openStore(t), async("tool", policy), async("lined", policy, inQueue("one")), plain("holder", "one"))
			h.options.Concurrent = 1
			begun, goOn := make(chan string, 8), make(chan struct{})
			hang := func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
				begun <- c.Tool
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return gateway.Result{}, ctx.Err()
			}
			h.play("tool", hang)
			h.play("holder", hang)
			holding, release := context.WithCancel(t.Context())
			defer release()
			go func() { _, _ = h.gateway.Call(holding, gateway.Call{Tool: "holder"}) }()
			got(h, begun)
			x := h.open()
			lined := h.submit(x, "lined")
			testkit.Wait(h.t, "it stands in its line", func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == 1 })
			working := h.submit(x, "tool")
			got(h, begun)
			h.reaches(working, signalbox.Working)
			waits := h.submit(x, "tool")
			cancelled := h.submit(x, "tool")
			h.slots(2)

			// The director is gone, as after a crash. The next one finds the rows.
			h.engine = h.newEngine(engine.Options{})
			_, err := h.engine.Cancel(t.Context(), cancelled, "me")
			h.must(err)
			h.must(h.engine.Pause(t.Context(), signalbox.QueueCommands, "", "", time.Time{}))
			h.open()
			for what, w := range map[string]struct {
				id    string
				state signalbox.State
				says  string
			}{"working": {working, c.working, c.says}, "dispatching": {lined, c.dispatching, c.pendingSays}, "pending": {waits, c.pending, c.pendingSays}, "cancelled": {cancelled, signalbox.Cancelled, "cancelled by me"}} {
				task := h.task(w.id)
				if task.State != w.state || task.Message != w.says {
					t.Errorf("%s is %s: %q, want %s: %q", what, task.State, task.Message, w.state, w.says)
				}
				if w.says == "Task interrupted before completion (agent restart)" && task.Reason != signalbox.ReasonInterrupted {
					t.Errorf("%s: reason %s", what, task.Reason)
				}
			}
			if n := h.task(working).Attempts; c.policy.RequeueRunning && n != 1 {
				t.Errorf("%d attempts", n)
			}
			h.slots(0)
		})
	}
}

// The request reaches the tool as in the seed: its input, metadata and the id of its task.
func TestSeedPayload(t *testing.T) {
	h := newFixtureOver(t, openStore(t), async("tool"))
	calls := make(chan gateway.Call, 1)
	h.play("tool", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		calls <- c
		return said("ok"), nil
	})
	x := h.open()
	id := h.submit(x, "tool", with(`{"arg": "value"}`), func(c *gateway.TaskCall) { c.Meta = json.RawMessage(`{"k":1}`) })
	h.end(x, id)
	c := got(h, calls)
	if c.Task != id || string(c.Arguments) != `{"arg": "value"}` || string(c.Meta) != `{"k":1}` || c.Mark == "" || !c.QueueTimeoutOnly {
		t.Errorf("%+v", c)
	}
}
