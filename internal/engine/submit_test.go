package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

func manyEnv(n int) map[string]string {
	env := map[string]string{}
	for i := range n {
		env[fmt.Sprint("K", i)] = "v"
	}
	return env
}

// Every field and every rule.
func TestSubmitRefuses(t *testing.T) {
	b := newFixture(t) // shared, since nothing is stored
	long := strings.Repeat("a", 201)
	for name, c := range map[string]struct {
		task  engine.NewTask
		field string
	}{
		"no prompt":                 {engine.NewTask{}, "prompt"},
		"blank prompt":              {engine.NewTask{Prompt: " \t\n"}, "prompt"},
		"prompt not UTF-8":          {engine.NewTask{Prompt: "\xff"}, "prompt"},
		"prompt with NUL":           {engine.NewTask{Prompt: "a\x00b"}, "prompt"},
		"model too long":            {engine.NewTask{Prompt: "p", Model: long}, "model"},
		"model like a flag":         {engine.NewTask{Prompt: "p", Model: "--yes"}, "model"},
		"model with control":        {engine.NewTask{Prompt: "p", Model: "a\x1b[0m"}, "model"},
		"model with C1 control":     {engine.NewTask{Prompt: "p", Model: "a\u009bm"}, "model"},
		"tier too long":             {engine.NewTask{Prompt: "p", Tier: long}, "tier"},
		"project name":              {engine.NewTask{Prompt: "p", Project: &signalbox.Project{Name: "-x"}}, "project.name"},
		"project path":              {engine.NewTask{Prompt: "p", Project: &signalbox.Project{Path: "a\nb"}}, "project.path"},
		"project path too long":     {engine.NewTask{Prompt: "p", Project: &signalbox.Project{Path: strings.Repeat("a", 4097)}}, "project.path"},
		"agent name":                {engine.NewTask{Prompt: "p", Agent: "a/b"}, "agent"},
		"agent name with dots":      {engine.NewTask{Prompt: "p", Agent: "a..b"}, "agent"},
		"kind name":                 {engine.NewTask{Prompt: "p", Kind: "a b"}, "kind"},
		"agent and kind":            {engine.NewTask{Prompt: "p", Agent: "a", Kind: "b"}, "kind"},
		"source job":                {engine.NewTask{Prompt: "p", SourceJob: "a b"}, "source_job"},
		"session id":                {engine.NewTask{Prompt: "p", SessionID: "-x"}, "session_id"},
		"session id climbs":         {engine.NewTask{Prompt: "p", SessionID: "a..b"}, "session_id"},
		"session id too long":       {engine.NewTask{Prompt: "p", SessionID: strings.Repeat("a", 129)}, "session_id"},
		"source":                    {engine.NewTask{Prompt: "p", Source: "mars"}, "source"},
		"on_lost":                   {engine.NewTask{Prompt: "p", OnLost: "shrug"}, "on_lost"},
		"session mode":              {engine.NewTask{Prompt: "p", SessionID: "s", Session: "maybe"}, "session"},
		"session without id":        {engine.NewTask{Prompt: "p", Session: signalbox.SessionPrefer}, "session"},
		"session and agent":         {engine.NewTask{Prompt: "p", SessionID: "s", Session: signalbox.SessionPrefer, Agent: "a"}, "session"},
		"priority too high":         {engine.NewTask{Prompt: "p", Priority: 11}, "priority"},
		"priority too low":          {engine.NewTask{Prompt: "p", Priority: -11}, "priority"},
		"timeout negative":          {engine.NewTask{Prompt: "p", TimeoutSeconds: -1}, "timeout_seconds"},
		"timeout too long":          {engine.NewTask{Prompt: "p", TimeoutSeconds: signalbox.MaxTimeoutSeconds + 1}, "timeout_seconds"},
		"wait timeout negative":     {engine.NewTask{Prompt: "p", WaitTimeout: -1}, "wait_timeout"},
		"wait timeout too long":     {engine.NewTask{Prompt: "p", WaitTimeout: engine.MaxWaitTimeout + 1}, "wait_timeout"},
		"not before too far":        {engine.NewTask{Prompt: "p", NotBefore: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}, "not_before"},
		"too many env":              {engine.NewTask{Prompt: "p", Env: manyEnv(101)}, "env"},
		"env too large":             {engine.NewTask{Prompt: "p", Env: map[string]string{"A": strings.Repeat("a", 64<<10)}}, "env"},
		"env without a name":        {engine.NewTask{Prompt: "p", Env: map[string]string{"": "v"}}, "env"},
		"env name with =":           {engine.NewTask{Prompt: "p", Env: map[string]string{"A=B": "v"}}, "env"},
		"env name with control":     {engine.NewTask{Prompt: "p", Env: map[string]string{"A\n": "v"}}, "env"},
		"env name with a space":     {engine.NewTask{Prompt: "p", Env: map[string]string{"A B": "v"}}, "env"},
		"env name too long":         {engine.NewTask{Prompt: "p", Env: map[string]string{strings.Repeat("A", 129): "v"}}, "env"},
		"env value with NUL":        {engine.NewTask{Prompt: "p", Env: map[string]string{"A": "\x00"}}, "env"},
		"idempotency key too long":  {engine.NewTask{Prompt: "p", IdempotencyKey: strings.Repeat("k", 256)}, "Idempotency-Key"},
		"idempotency key unprinted": {engine.NewTask{Prompt: "p", IdempotencyKey: "a\nb"}, "Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Submit(t.Context(), c.task)
			wantCode(t, err, signalbox.CodeValidation, c.field)
			if counts, err := b.Read().Counts(t.Context()); err != nil || counts.Pending != 0 {
				t.Errorf("%d tasks were stored, %v", counts.Pending, err)
			}
		})
	}
}

func TestSubmitRefusesALargePrompt(t *testing.T) {
	b := newFixture(t)
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: strings.Repeat("a", signalbox.MaxPromptBytes+1)})
	wantCode(t, err, signalbox.CodeTooLarge, "prompt")
	b.submit(engine.NewTask{Prompt: strings.Repeat("a", signalbox.MaxPromptBytes)})
}

func TestSubmitAcceptsValuesAtTheLimits(t *testing.T) {
	b := newFixture(t)
	b.agent("coder", "demo", 1)
	yes := true
	for _, n := range []engine.NewTask{
		{TimeoutSeconds: signalbox.MaxTimeoutSeconds, WaitTimeout: engine.MaxWaitTimeout, Priority: 10, Thinking: &yes},
		{NotBefore: b.Now().Add(engine.MaxNotBefore), Priority: -10, Env: manyEnv(100)},
		{Model: strings.Repeat("m", 200), Tier: "ünï", SessionID: strings.Repeat("s", 128), Session: signalbox.SessionPrefer},
		{Agent: "coder", SessionID: "new", OnLost: signalbox.LostRequeue, Source: signalbox.SourceScheduler, SourceJob: "nightly"},
		{Kind: "nobody-yet", IdempotencyKey: strings.Repeat("k", 255)},
	} {
		b.submit(n)
	}
}

func TestSubmitFillsInDefaults(t *testing.T) {
	b := newFixture(t)
	got := b.submit(engine.NewTask{Prompt: "one\ntwo"})
	if got.Source != signalbox.SourceAPI || got.OnLost != signalbox.LostFail || got.Queue != signalbox.QueueWork || got.Limit != signalbox.LimitWork ||
		got.MaxAttempts != 3 || got.Preview != "one..." || got.SessionMode != "" || !got.CreatedAt.Equal(b.Now()) || !signalbox.ValidID(got.ID) {
		t.Errorf("%+v", got)
	}
	if got := b.submit(engine.NewTask{SessionID: "s"}); got.SessionMode != signalbox.SessionRequire {
		t.Errorf("a session is bound by %q", got.SessionMode)
	}
}

// TestOnLostHasADefault: the configuration decides about lost tasks whose caller set no policy; a bypass task
// cannot wait for another agent.
func TestOnLostHasADefault(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.OnLost = signalbox.LostRequeue })
	b.talker("one", 1)
	for _, c := range []struct {
		name string
		n    engine.NewTask
		want signalbox.OnLost
	}{
		{"task", engine.NewTask{}, signalbox.LostRequeue},
		{"task that says fail", engine.NewTask{OnLost: signalbox.LostFail}, signalbox.LostFail},
		{"chat", engine.NewTask{Mode: signalbox.ModeChat, Agent: "one"}, signalbox.LostRequeue},
		{"bypass", bypass("one"), signalbox.LostFail},
	} {
		if got := b.submit(c.n); got.OnLost != c.want {
			t.Errorf("%s: on_lost is %s, want %s", c.name, got.OnLost, c.want)
		}
	}
	if r, err := b.Submit(t.Context(), aCall()); err != nil || r.Task.OnLost != signalbox.LostFail {
		t.Errorf("tool call: on_lost is %s, want fail (%v)", r.Task.OnLost, err)
	}
}

func TestSubmitRoutes(t *testing.T) {
	b := newFixture(t)
	coder := b.agent("coder", "claude", 2)
	b.agent("other", "claude", 1)
	_, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "codr"})
	wantCode(t, err, signalbox.CodeNotFound, "agent")
	if !strings.Contains(err.Error(), "known are coder, other") {
		t.Errorf("%v", err)
	}
	b.executor(signalbox.ExecutorCalls, 1)
	_, err = b.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "codr"})
	if wantCode(t, err, signalbox.CodeNotFound, "agent"); strings.Contains(err.Error(), "@") {
		t.Errorf("an executor stands among the agents: %v", err)
	}
	for want, n := range map[string]engine.NewTask{
		"agent:coder": {Agent: "coder"}, "pool:claude": {Kind: "claude"}, "work": {},
	} {
		if got := b.submit(n).Queue; got != want {
			t.Errorf("queue %s, want %s", got, want)
		}
	}
	// From here on, coder holds session s.
	b.submit(engine.NewTask{SessionID: "s", Agent: "coder"})
	for range 4 {
		if task, found := b.next(coder); found {
			_, err := b.Accept(t.Context(), task, "t", task.SessionID)
			b.must(err)
			b.finish(b.task(task.ID), signalbox.ReasonCompleted)
		}
	}
	if got := b.submit(engine.NewTask{SessionID: "s"}).Queue; got != "agent:coder" {
		t.Errorf("the session's next turn waits in %s", got)
	}
	_, err = b.Submit(t.Context(), engine.NewTask{Prompt: "p", SessionID: "s", Agent: "other"})
	wantCode(t, err, signalbox.CodeValidation, "agent")
}

func TestIdempotency(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.MaxSize = 1 })
	n := engine.NewTask{Prompt: "p", Env: map[string]string{"A": "1", "B": "2"}, IdempotencyKey: "k"}
	first, err := b.Submit(t.Context(), n)
	b.must(err)
	b.pass(time.Hour)
	again, err := b.Submit(t.Context(), n) // although the queue is full now
	b.must(err)
	if again.Task.ID != first.Task.ID || !again.Replayed || first.Replayed || again.Position.N != 1 {
		t.Errorf("%+v", again)
	}
	for _, change := range []func(*engine.NewTask){
		func(n *engine.NewTask) { n.Prompt = "q" },
		func(n *engine.NewTask) { n.Env = map[string]string{"A": "1", "B": "3"} },
		func(n *engine.NewTask) { n.Priority = 1 },
		func(n *engine.NewTask) { n.NotBefore = b.Now() },
	} {
		other := n
		change(&other)
		_, err := b.Submit(t.Context(), other)
		wantCode(t, err, signalbox.CodeIdempotency, "")
	}
	_, err = b.Submit(t.Context(), engine.NewTask{Prompt: "p"})
	wantCode(t, err, signalbox.CodeQueueFull, "")
}

func TestConcurrentSubmitsWithOneKeyMakeOneTask(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.Random = nil })
	var wg sync.WaitGroup
	ids := make([]string, 50)
	for i := range ids {
		wg.Go(func() {
			r, err := b.Submit(t.Context(), engine.NewTask{Prompt: "p", IdempotencyKey: "k"})
			if err != nil {
				t.Error(err)
			}
			ids[i] = r.Task.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatal("one key made several tasks")
		}
	}
}

func TestPriorityOvertakesByAgeSteps(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 9)
	old := b.submit(engine.NewTask{})
	b.pass(2*time.Minute + time.Second)
	high := b.submit(engine.NewTask{Priority: 2}) // outweighs two minutes, not more
	b.pass(time.Second)
	higher := b.submit(engine.NewTask{Priority: 3})
	for i, want := range []string{higher.ID, old.ID, high.ID} {
		if got, _ := b.next(a); got.ID != want {
			t.Errorf("%d: %s is next, want %s", i, got.ID, want)
		}
	}
}

// The env of a task is encrypted in the store, passed on with the claim, and erased when the task ends.
func TestEnvIsSealedAndErased(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	task := b.submit(engine.NewTask{Env: map[string]string{"TOKEN": "s3cret-value"}})
	stored, err := b.Read().Request(t.Context(), task.ID)
	b.must(err)
	if len(stored.SealedEnv) == 0 || strings.Contains(string(stored.SealedEnv), "s3cret") || strings.Contains(string(stored.SealedEnv), "TOKEN") {
		t.Fatal("the env lies readable in the store")
	}
	c := b.claim(a)
	if c.Env["TOKEN"] != "s3cret-value" {
		t.Errorf("the claim carries %v", c.Env)
	}
	loaded, err := b.Load(t.Context(), task.ID)
	b.must(err)
	if loaded.Env["TOKEN"] != "s3cret-value" {
		t.Errorf("a claim read again carries %v", loaded.Env)
	}
	b.finish(c.Task, signalbox.ReasonCompleted)
	stored, err = b.Read().Request(t.Context(), task.ID)
	b.must(err)
	if len(stored.SealedEnv) != 0 || !stored.HadEnv || b.task(task.ID).HasEnv {
		t.Errorf("the env is still there: %+v", stored)
	}
	if strings.Contains(b.log.String(), "s3cret") {
		t.Error("the log tells the env")
	}
}

// With another key, a sealed env cannot be opened: the task ends with a message that says what to do, and
// does not loop.
func TestEnvOfALostKey(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	task := b.submit(engine.NewTask{Env: map[string]string{"A": "1"}})
	other := engine.New(b.store, engine.Options{Sealer: otherSealer(t), Now: b.clock})
	if _, found, err := other.Claim(t.Context(), a, 0); err != nil || found {
		t.Fatalf("found %v, %v", found, err)
	}
	got := b.task(task.ID)
	if got.State != signalbox.Failed || got.Reason != signalbox.ReasonRejected || !strings.Contains(got.Message, "submit the task again") || b.slotsInUse() != 0 {
		t.Errorf("%+v", got)
	}
}
