package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// findings asks the doctor.
func (b *box) findings(edits ...edit) []string {
	b.t.Helper()
	var got api.Doctor
	b.do("GET", "/api/doctor", "", edits...).want(b.t, 200, &got)
	var out []string
	for _, c := range got.Checks {
		if (c.Cure == "") != (c.State == "ok") || c.Text == "" || c.Area == "" {
			b.t.Errorf("%+v: want a cure unless it is ok", c)
		}
		out = append(out, c.State+" "+c.Area+": "+c.Text)
	}
	return out
}

func has(t *testing.T, all []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, w) }) {
			t.Errorf("want %q among\n  %s", w, strings.Join(all, "\n  "))
		}
	}
}

func hasNot(t *testing.T, all []string, not ...string) {
	t.Helper()
	for _, n := range not {
		if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, n) }) {
			t.Errorf("%q should not be among\n  %s", n, strings.Join(all, "\n  "))
		}
	}
}

func TestDoctorOfAFreshDirector(t *testing.T) {
	b := newBox(t)
	has(t, b.findings(),
		"ok director: version 1.0.0", "warn access: it is open", "warn store: memory: nothing outlives", "ok queue: 0 of 50 places",
		"ok queue: waiting: 0, under way: 0", "warn agents: there is none",
	)
}

func TestDoctorOfAQueueInTrouble(t *testing.T) {
	b := newBox(t, func(o *options) { o.engine.MaxSize = 5 })
	submit := func() { b.do("POST", "/api/queue/task", `{"prompt": "x"}`).want(t, 201, nil) }
	for range 4 {
		submit()
	}
	has(t, b.findings(), "warn queue: 4 of 5 places", "fail queue: no agent is up, and tasks wait: 4")
	submit()
	if err := b.engine.Pause(t.Context(), "", "upgrade", "ada", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := b.engine.Pause(t.Context(), "agent:coder", "", "ada", b.engine.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.dir.SetDraining(true)
	has(t, b.findings(), "fail queue: 5 of 5 places of the backlog are taken: submits are refused",
		"warn queue: all queues are paused: upgrade", "warn queue: the queue agent:coder is paused until 2", "warn director: it is about to stop")
}

func TestDoctorOfAgents(t *testing.T) {
	b := newBox(t)
	up := engine.LiveAgent{Agent: signalbox.Agent{Name: "coder"}, Up: true}
	down := engine.LiveAgent{Agent: signalbox.Agent{Name: "writer"}, Message: "connection refused", LastHeard: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.live.set(up)
	b.live.set(down)
	b.live.set(engine.LiveAgent{Agent: signalbox.Agent{Name: signalbox.ExecutorName(signalbox.QueueCommands, signalbox.DefaultInstance)}, Up: true})
	has(t, b.findings(), "ok agents: 1 up: coder", "warn agents: agent writer is down, last heard from at 2026-01-02T03:04:05Z: connection refused")
}

// TestDoctorOfATaskThatIsPassedOver: it waits, an agent is free, and nobody
// brings them together.
func TestDoctorOfATaskThatIsPassedOver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBox(t, func(o *options) { o.engine.Now = func() time.Time { return now } })
	free := engine.LiveAgent{Agent: signalbox.Agent{Name: "coder", Kind: "demo", Slots: 1}, Up: true}
	b.live.set(free)
	b.do("POST", "/api/queue/task", `{"prompt": "x"}`).want(t, 201, nil)
	hasNot(t, b.findings(), "nobody takes it") // it has only just come
	now = now.Add(time.Minute)
	has(t, b.findings(), "fail queue: task queue-", "has waited for 1m0s in work, nothing stands in its way, and nobody takes it")
	free.InUse = 1
	b.live.set(free)
	hasNot(t, b.findings(), "nobody takes it")
}

// TestDoctorTellsAdminsMore than it tells others: paths and errors are theirs.
func TestDoctorTellsAdminsMore(t *testing.T) {
	tools := newFakeTools()
	b := newBox(t, func(o *options) {
		o.director.Token = "static-token-of-16"
		o.director.Tools = failedTools{tools}
		o.director.Doctor = []httpapi.DoctorCheck{func(_ context.Context, admin bool) []api.Check {
			return []api.Check{{Area: "data", State: "ok", Text: fmt.Sprintf("told admin=%v", admin)}}
		}}
	})
	b.live.set(engine.LiveAgent{Agent: signalbox.Agent{Name: "coder"}, Message: "down"})
	b.live.set(engine.LiveAgent{Agent: signalbox.Agent{Name: "writer"}, Message: "down"})
	var made api.TokenCreated
	admin := header("Authorization", "Bearer static-token-of-16")
	b.do("POST", "/api/tokens", `{"name": "look", "scopes": ["read"], "agents": ["coder"]}`, admin).want(t, 201, &made)
	has(t, b.findings(admin), "ok access: it is closed", "warn tools: server browser has failed: exec /srv/browser: no such file", "told admin=true", "agent writer")
	theirs := b.findings(header("Authorization", "Bearer "+made.Secret))
	has(t, theirs, "warn tools: server browser has failed", "told admin=false", "agent coder")
	hasNot(t, theirs, "/srv/browser", "writer", "4711")
	b.do("GET", "/api/doctor", "").want(t, 401, nil)
}

// TestDoctorOfAGatewayAlone says nothing of a queue that there is not.
func TestDoctorOfAGatewayAlone(t *testing.T) {
	b := newBox(t, func(o *options) { o.director.Tools, o.director.ToolsOnly = failedTools{newFakeTools()}, true })
	all := b.findings()
	has(t, all, "ok director: ", "warn access: it is open", "ok store: tasks of tools are kept in memory", "ok tools: 2 of 4 servers are ready", "warn tools: server commands is ready, with a fault: processes [4711]", "warn tools: server browser has failed: exec /srv/browser", "warn tools: server late is starting")
	hasNot(t, all, " queue:", " agents:")
}

// TestDoctorOfCommands compares what waits for a command slot with the limit, and
// says which slots nobody can free.
func TestDoctorOfCommands(t *testing.T) {
	b := newBox(t, func(o *options) { o.director.Tools, o.engine.MaxCommands = newFakeTools(), 5 })
	executor := engine.LiveAgent{Agent: signalbox.Agent{Name: signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), Slots: 10}, Up: true, InUse: 10}
	b.live.set(executor)
	wait := func(n int) {
		for range n {
			if _, err := b.engine.Submit(t.Context(), engine.NewTask{Mode: signalbox.ModeTool, Tool: "report"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait(3)
	has(t, b.findings(), "ok tools: 10 of 10 command slots are taken, 3 of at most 5 commands wait")
	wait(1)
	has(t, b.findings(), "warn tools: 10 of 10 command slots are taken, 4 of at most 5 commands wait")
	wait(1)
	executor.Message = "1 of its 10 slots stay taken by runs that cannot be killed"
	b.live.set(executor)
	has(t, b.findings(), "fail tools: 10 of 10 command slots are taken, 5 of at most 5 commands wait: calls are refused",
		"warn tools: commands: 1 of its 10 slots stay taken by runs that cannot be killed")
	hasNot(t, b.findings(), "agents: 1 up")

	b = newBox(t, func(o *options) { o.director.Tools = newFakeTools() })
	executor.Message, executor.InUse = "", 0
	b.live.set(executor)
	wait(2)
	has(t, b.findings(), "ok tools: 0 of 10 command slots are taken, 2 commands wait")
}

type failedTools struct{ *fakeTools }

func (failedTools) Servers() []gateway.Server {
	return []gateway.Server{
		{Name: "browser", State: gateway.StateFailed, Error: "exec /srv/browser: no such file"}, {Name: "search", State: gateway.StateReady},
		{Name: "late", State: gateway.StateStarting}, {Name: "commands", State: gateway.StateReady, Error: "processes [4711] of commands live on"},
	}
}

// TestDoctorOfAStoreThatDoesNotAnswer: the answer is a finding, not an error.
func TestDoctorOfAStoreThatDoesNotAnswer(t *testing.T) {
	b := newBox(t)
	broken := &brokenStore{Store: b.store}
	e := engine.New(broken, engine.Options{})
	d, err := httpapi.New(httpapi.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	b.dir = d
	has(t, b.findings(), "fail store: the store (memory) does not answer")
}

type brokenStore struct{ store.Store }

func (brokenStore) Counts(context.Context) (store.Counts, error) {
	return store.Counts{}, errors.New("input/output error")
}
