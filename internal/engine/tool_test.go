package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func aCall(change ...func(*engine.NewTask)) engine.NewTask {
	n := engine.NewTask{Mode: signalbox.ModeTool, Tool: "report", Arguments: json.RawMessage(`{"a":1}`)}
	for _, f := range change {
		f(&n)
	}
	return n
}

// executor adds a row of the director's own executor and shows it as up.
func (b *fixture) executor(kind string, slots int) signalbox.Agent {
	b.t.Helper()
	a, err := b.PutExecutor(b.t.Context(), kind, signalbox.DefaultInstance, slots)
	b.must(err)
	b.see(engine.LiveAgent{Agent: a, Up: true})
	return a
}

func (b *fixture) toolTask(change ...func(*engine.NewTask)) signalbox.Task {
	b.t.Helper()
	r, err := b.Submit(b.t.Context(), aCall(change...))
	b.must(err)
	return r.Task
}

func TestToolCallIsATask(t *testing.T) {
	b := newFixture(t)
	a := b.executor(signalbox.ExecutorCommands, 2)
	task := b.toolTask(func(n *engine.NewTask) {
		n.Secrets, n.TimeoutMS, n.Metadata = map[string]string{"key": `"s3cret"`}, 1500, json.RawMessage(` {"m": 1} `)
		n.By = signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "ann"}
	})
	if task.Queue != signalbox.QueueCommands || task.Limit != signalbox.LimitCommands || task.Tool != "report" || task.Preview != "tool report" ||
		!task.HasEnv || task.Owner != "user:ann" || task.Mode != signalbox.ModeTool || task.QueueStatus() != "queued" {
		t.Errorf("%+v", task)
	}
	r, err := b.Read().Request(t.Context(), task.ID)
	b.must(err)
	if string(r.Arguments) != `{"a":1}` || string(r.Metadata) != `{"m": 1}` || r.TimeoutMS != 1500 || !r.HadEnv || strings.Contains(string(r.SealedEnv), "s3cret") {
		t.Errorf("%+v", r)
	}
	c := b.claim(a)
	if c.Env["key"] != `"s3cret"` || c.Task.Agent != "commands@local" {
		t.Errorf("%+v", c)
	}
	if !strings.Contains(b.log.String(), "queue=task_added") || !strings.Contains(b.log.String(), "in=commands") || strings.Contains(b.log.String(), "s3cret") {
		t.Errorf("%s", b.log)
	}
}

func TestToolCallRefuses(t *testing.T) {
	b := newFixture(t)
	yes := true
	for field, changes := range map[string][]func(*engine.NewTask){
		"tool":            {func(n *engine.NewTask) { n.Tool = "" }, func(n *engine.NewTask) { n.Tool = strings.Repeat("x", 257) }, func(n *engine.NewTask) { n.Tool = "a b" }},
		"arguments":       {func(n *engine.NewTask) { n.Arguments = json.RawMessage(`[]`) }, func(n *engine.NewTask) { n.Arguments = json.RawMessage(`{`) }, func(n *engine.NewTask) { n.Secrets = map[string]string{"k": "no json"} }},
		"metadata":        {func(n *engine.NewTask) { n.Metadata = json.RawMessage(`"x"`) }},
		"timeout_ms":      {func(n *engine.NewTask) { n.TimeoutMS = -1 }, func(n *engine.NewTask) { n.TimeoutMS = engine.MaxToolTimeoutMS + 1 }},
		"prompt":          {func(n *engine.NewTask) { n.Prompt = "p" }},
		"model":           {func(n *engine.NewTask) { n.Model = "m" }},
		"agent":           {func(n *engine.NewTask) { n.Agent = "coder" }},
		"kind":            {func(n *engine.NewTask) { n.Kind = "claude" }},
		"session_id":      {func(n *engine.NewTask) { n.SessionID = "s" }},
		"env":             {func(n *engine.NewTask) { n.Env = map[string]string{"A": "b"} }},
		"project":         {func(n *engine.NewTask) { n.Project = &signalbox.Project{} }},
		"thinking":        {func(n *engine.NewTask) { n.Thinking = &yes }},
		"timeout_seconds": {func(n *engine.NewTask) { n.TimeoutSeconds = 1 }},
		"overflow":        {func(n *engine.NewTask) { n.Overflow = signalbox.OverflowReject }},
		"not_before":      {func(n *engine.NewTask) { n.NotBefore = b.clock().Add(time.Hour) }},
		"id":              {func(n *engine.NewTask) { n.Waiter = true }, func(n *engine.NewTask) { n.ID = "queue-x" }},
		"priority":        {func(n *engine.NewTask) { n.Priority = 11 }},
	} {
		for _, change := range changes {
			_, err := b.Submit(t.Context(), aCall(change))
			wantCode(t, err, signalbox.CodeValidation, field)
		}
	}
	for _, change := range []func(*engine.NewTask){
		func(n *engine.NewTask) {
			n.Arguments = json.RawMessage(`{"a":"` + strings.Repeat("x", engine.MaxArgumentBytes) + `"}`)
		},
		func(n *engine.NewTask) {
			n.Metadata = json.RawMessage(`{"a":"` + strings.Repeat("x", engine.MaxMetadataBytes) + `"}`)
		},
		func(n *engine.NewTask) {
			n.Secrets = map[string]string{"k": `"` + strings.Repeat("x", engine.MaxSecretBytes) + `"`}
		},
	} {
		_, err := b.Submit(t.Context(), aCall(change))
		wantCode(t, err, signalbox.CodeTooLarge, "")
	}
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", Tool: "report"})
	wantCode(t, err, signalbox.CodeValidation, "tool")
	for _, none := range []string{"", "null", " "} {
		task := b.toolTask(func(n *engine.NewTask) { n.Arguments = json.RawMessage(none) })
		if r, err := b.Read().Request(t.Context(), task.ID); err != nil || r.Arguments != nil {
			t.Errorf("%q: %s, %v", none, r.Arguments, err)
		}
	}
}

// The limit on commands applies if it is set; calls and agents' tasks do not count.
func TestToolCallLimits(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.MaxCommands, o.MaxSize = 2, 1 })
	b.submit(engine.NewTask{})
	b.toolTask()
	b.toolTask()
	_, err := b.Submit(t.Context(), aCall())
	wantCode(t, err, signalbox.CodeQueueFull, "")
	if !strings.Contains(err.Error(), "commands.max_waiting") {
		t.Errorf("%v", err)
	}
	for range 5 {
		if task := b.toolTask(func(n *engine.NewTask) { n.Calls = true }); task.Queue != signalbox.QueueCalls || task.Limit != signalbox.LimitCalls {
			t.Errorf("%+v", task)
		}
	}
	unlimited := newFixture(t)
	for range 60 {
		unlimited.toolTask()
	}
}

// A call that already has a place in its tool queue is claimed before all others, under its existing id.
func TestWaiterIsFirst(t *testing.T) {
	b := newFixture(t)
	a := b.executor(signalbox.ExecutorCalls, 10)
	b.toolTask(func(n *engine.NewTask) { n.Calls, n.Priority = true, signalbox.MaxPriority })
	b.pass(time.Hour)
	const id = "queue-06gzxfs53gakb9vqsak886rtwc"
	if task := b.toolTask(func(n *engine.NewTask) { n.Waiter, n.ID = true, id }); task.ID != id || task.Queue != signalbox.QueueCalls {
		t.Errorf("%+v", task)
	}
	if c := b.claim(a); c.Task.ID != id {
		t.Errorf("%s was claimed first", c.Task.Preview)
	}
}

// The tool's policy is not part of the caller's request: with another policy the same call has the same
// digest.
func TestToolCallDigest(t *testing.T) {
	b := newFixture(t)
	key := func(n *engine.NewTask) { n.IdempotencyKey = "k" }
	first := b.toolTask(key)
	again, err := b.Submit(t.Context(), aCall(key, func(n *engine.NewTask) { n.OnLost = signalbox.LostRequeue }))
	b.must(err)
	if !again.Replayed || again.Task.ID != first.ID {
		t.Errorf("%+v", again)
	}
	_, err = b.Submit(t.Context(), aCall(key, func(n *engine.NewTask) { n.Tool = "other" }))
	wantCode(t, err, signalbox.CodeIdempotency, "")
}

// An agent's tool call records its execution, but is not part of a call chain.
func TestToolCallOfAnExecution(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{})
	parent := b.work(a)
	by := signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: "coder", Agents: []string{"coder"}}
	task := b.toolTask(func(n *engine.NewTask) { n.By, n.CallerID = by, parent.ID })
	if task.ParentID != parent.ID || task.Depth != 0 || task.Source != signalbox.SourceAgent || !by.SeesTask(&task) {
		t.Errorf("%+v", task)
	}
	other := signalbox.Principal{Kind: signalbox.PrincipalAgent, ID: "other", Agents: []string{"other"}}
	if other.SeesTask(&task) {
		t.Error("another agent sees it")
	}
	for _, caller := range []string{"", "queue-none"} {
		if task := b.toolTask(func(n *engine.NewTask) { n.By, n.CallerID = by, caller }); task.ParentID != "" {
			t.Errorf("%+v", task)
		}
	}
}

// The director's own executor is not shown as an agent.
func TestExecutorIsNotAnAgent(t *testing.T) {
	b := newFixture(t)
	a := b.executor(signalbox.ExecutorCommands, 2)
	if a.Source != signalbox.AgentInternal || a.Slots != 2 {
		t.Errorf("%+v", a)
	}
	again, err := b.PutExecutor(t.Context(), signalbox.ExecutorCommands, signalbox.DefaultInstance, 1)
	b.must(err)
	if again.Slots != 1 || !again.CreatedAt.Equal(a.CreatedAt) {
		t.Errorf("%+v", again)
	}
	name := a.Name
	verbs := map[string]func() error{
		"submit": func() error { _, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: name}); return err },
		"chat": func() error {
			_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: name, Mode: signalbox.ModeChat})
			return err
		},
		"clear":   func() error { _, err := b.ClearLane(t.Context(), name, "me"); return err },
		"release": func() error { _, err := b.ReleaseLane(t.Context(), name, "me"); return err },
		"remove":  func() error { return b.RemoveAgent(t.Context(), name, "me") },
		"register": func() error {
			_, err := b.PutAgent(t.Context(), signalbox.Agent{Name: name, Kind: "demo", URL: "http://127.0.0.1:1"}, "")
			return err
		},
	}
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		err := verbs[verb]()
		wantCode(t, err, signalbox.CodeUnsupported, "agent")
		if !strings.Contains(err.Error(), "signalbox cancel ID") {
			t.Errorf("%s does not say what to do: %v", verb, err)
		}
	}
	for field, call := range map[string]func() error{
		"kind":     func() error { _, err := b.PutExecutor(t.Context(), "work", "local", 1); return err },
		"instance": func() error { _, err := b.PutExecutor(t.Context(), "calls", "a@b", 1); return err },
		"slots":    func() error { _, err := b.PutExecutor(t.Context(), "calls", "local", 0); return err },
	} {
		wantCode(t, call(), signalbox.CodeValidation, field)
	}
	b.submit(engine.NewTask{})
	if _, found := b.next(a); found {
		t.Error("it was given a task of agents")
	}
	b.toolTask()
	if lane, err := b.Lane(t.Context(), name); err != nil || lane.Length != 1 || len(lane.Waiting) != 1 {
		t.Errorf("%+v, %v", lane, err)
	}
}

// A fleet limit does not count tool calls.
func TestFleetLimitExcludesToolCalls(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.Fleet = 1 })
	a, x := b.agent("coder", "demo", 1), b.executor(signalbox.ExecutorCommands, 5)
	for range 3 {
		b.toolTask()
		b.claim(x)
	}
	b.see(engine.LiveAgent{Agent: x, Up: true, InUse: 3})
	task := b.submit(engine.NewTask{})
	if why, err := b.Why(t.Context(), task.ID); err != nil || why.Summary != "It starts at once." {
		t.Errorf("%s, %v", why.Summary, err)
	}
	b.claim(a)
	b.toolTask()
	b.claim(x) // nor does it block one
}

func TestWhyOfAToolCall(t *testing.T) {
	b := newFixture(t)
	task := b.toolTask()
	says := func(id, want string) {
		t.Helper()
		why, err := b.Why(t.Context(), id)
		b.must(err)
		if why.Summary != want {
			t.Errorf("%q, want %q", why.Summary, want)
		}
	}
	says(task.ID, "It waits: No director runs tool calls now.")
	x := b.executor(signalbox.ExecutorCommands, 1)
	says(task.ID, "It starts at once.")
	first := b.claim(x).Task
	b.see(engine.LiveAgent{Agent: x, Up: true, InUse: 1})
	second := b.toolTask()
	says(second.ID, "It waits: All 1 command slots are in use.")
	says(first.ID, "It has a slot of commands@local and is about to run, for 0s.")
	first, err := b.Accept(t.Context(), first, "", "")
	b.must(err)
	b.pass(3 * time.Second)
	says(first.ID, "It is running for 3s.")
	_, err = b.Cancel(t.Context(), first.ID, "me")
	b.must(err)
	says(first.ID, "It is being cancelled; it ends when nothing of its run lives.")
	first = b.finish(b.task(first.ID), signalbox.ReasonCancelled)
	says(first.ID, "It has ended: cancelled (cancelled by me).")
}

// A waiting call can be ended as interrupted, a running one cannot.
func TestInterrupt(t *testing.T) {
	b := newFixture(t)
	x := b.executor(signalbox.ExecutorCommands, 1)
	b.toolTask()
	waits := b.toolTask()
	runs := b.work(x)
	got, err := b.Interrupt(t.Context(), waits, "restart")
	b.must(err)
	if got.State != signalbox.Failed || got.Reason != signalbox.ReasonInterrupted || got.Message != "restart" {
		t.Errorf("%+v", got)
	}
	_, err = b.Interrupt(t.Context(), runs, "restart")
	wantCode(t, err, signalbox.CodeConflict, "")
}

// Observers are notified of tasks that Wake made ready.
func TestWakeNotifiesObservers(t *testing.T) {
	b := newFixture(t)
	task := b.submit(engine.NewTask{NotBefore: b.clock().Add(time.Minute)})
	b.pass(time.Minute)
	b.seen = nil
	_, _, err := b.Wake(t.Context())
	b.must(err)
	if len(b.seen) != 1 || b.seen[0].Kind != "" || b.seen[0].Task.ID != task.ID || !b.seen[0].Task.Ready {
		t.Errorf("%+v", b.seen)
	}
}

// Long values in errors are cut at a rune boundary.
func TestErrorsAreCutAtARuneBoundary(t *testing.T) {
	b := newFixture(t)
	for _, lead := range []string{"", "a"} {
		_, err := b.PutExecutor(t.Context(), lead+strings.Repeat("é", signalbox.MaxWordBytes), signalbox.DefaultInstance, 1)
		if err == nil || !strings.Contains(err.Error(), "é...") || strings.Contains(err.Error(), `\x`) {
			t.Errorf("%v", err)
		}
	}
}
