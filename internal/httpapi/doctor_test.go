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
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// doctorFindings returns the findings of doctor.
func doctorFindings(b *apitest.Fixture, edits ...apitest.Edit) []string {
	b.T.Helper()
	var got api.Doctor
	b.Do("GET", "/api/doctor", "", edits...).Want(b.T, 200, &got)
	var out []string
	for _, c := range got.Checks {
		if (c.Cure == "") != (c.State == "ok") || c.Text == "" || c.Area == "" {
			b.T.Errorf("%+v: want a cure unless it is ok", c)
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
	b := apitest.New(t)
	has(t, doctorFindings(b),
		"ok director: version 1.0.0", "warn access: it is open", "warn store: memory: nothing outlives", "ok queue: 0 of 50 places",
		"ok queue: waiting: 0, under way: 0", "warn agents: there is none",
	)
}

func TestDoctorOfAQueueInTrouble(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 5 })
	submit := func() { b.Do("POST", "/api/queue/task", `{"prompt": "x"}`).Want(t, 201, nil) }
	for range 4 {
		submit()
	}
	has(t, doctorFindings(b), "warn queue: 4 of 5 places", "fail queue: no agent is up, and tasks wait: 4")
	submit()
	if err := b.Engine.Pause(t.Context(), "", "upgrade", "ada", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Engine.Pause(t.Context(), "agent:coder", "", "ada", b.Engine.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.Server.SetDraining(true)
	has(t, doctorFindings(b), "fail queue: 5 of 5 places of the backlog are taken: submits are refused",
		"warn queue: all queues are paused: upgrade", "warn queue: the queue agent:coder is paused until 2", "warn director: it is about to stop")
}

func TestDoctorOfAgents(t *testing.T) {
	b := apitest.New(t)
	up := engine.LiveAgent{Agent: signalbox.Agent{Name: "coder"}, Up: true}
	down := engine.LiveAgent{Agent: signalbox.Agent{Name: "writer"}, Message: "connection refused", LastHeard: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	b.Live.Set(up)
	b.Live.Set(down)
	b.Live.Set(engine.LiveAgent{Agent: signalbox.Agent{Name: signalbox.ExecutorName(signalbox.QueueCommands, signalbox.DefaultInstance)}, Up: true})
	has(t, doctorFindings(b), "ok agents: 1 up: coder", "warn agents: agent writer is down, last heard from at 2026-01-02T03:04:05Z: connection refused")
	up.Full = "no room for worktrees: they take 2 GiB"
	b.Live.Set(up)
	has(t, doctorFindings(b), "ok agents: 1 up: coder", "warn agents: agent coder takes no tasks: no room for worktrees: they take 2 GiB")
}

// TestDoctorOfATaskThatIsPassedOver has a task that waits although an agent is free.
func TestDoctorOfATaskThatIsPassedOver(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.Now = func() time.Time { return now } })
	free := engine.LiveAgent{Agent: signalbox.Agent{Name: "coder", Kind: "demo", Slots: 1}, Up: true}
	b.Live.Set(free)
	b.Do("POST", "/api/queue/task", `{"prompt": "x"}`).Want(t, 201, nil)
	hasNot(t, doctorFindings(b), "no agent takes it") // it was just submitted
	now = now.Add(time.Minute)
	has(t, doctorFindings(b), "fail queue: task queue-", "has waited for 1m0s in work, and no agent takes it although all its gates are open")
	free.InUse = 1
	b.Live.Set(free)
	hasNot(t, doctorFindings(b), "nobody takes it")
}

// TestDoctorOfAccounts checks that each account that is not open is named, with its waiting tasks.
func TestDoctorOfAccounts(t *testing.T) {
	clock := &apitest.Clock{}
	b, _, _ := parked(t, apitest.WithClock(clock))
	b.AddAgent("other", 1)
	b.ReportAccount("other", nil)
	event := func(ev signalbox.AccountEvent) {
		t.Helper()
		ev.Account = "coder"
		if _, err := b.Engine.ChangeAccount(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(30 * time.Minute)
	all := doctorFindings(b)
	has(t, all, "ok accounts: 1 open: other", "warn accounts: account coder is closed until 2025-01-17T11:00:0", "(five_hour); tasks that wait for it: 2", "ok queue: waiting: 2, under way: 0")
	hasNot(t, all, "nobody takes it", "fail ")
	clock.Advance(32 * time.Minute)
	has(t, doctorFindings(b), "fail accounts: account coder is closed until 2025-01-17T11:00:0", "which is over, and no director tries it")
	event(signalbox.AccountEvent{Kind: signalbox.AccountDue})
	has(t, doctorFindings(b), "ok accounts: account coder is being tried: one task goes first; tasks that wait for it: 2")
	event(signalbox.AccountEvent{Kind: signalbox.AccountRefused, Reason: "401 invalid key"})
	has(t, doctorFindings(b), "fail accounts: account coder is signed out: a person must log in (401 invalid key); tasks that wait for it: 2")
	event(signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Source: "ann"})
	has(t, doctorFindings(b), "warn accounts: account coder is closed until someone opens it")
	event(signalbox.AccountEvent{Kind: signalbox.AccountOpened, Source: "ann"})
	has(t, doctorFindings(b), "ok accounts: 2 open: coder, other")
}

// TestDoctorTellsAdminsMore checks that only admins see paths and errors.
func TestDoctorTellsAdminsMore(t *testing.T) {
	tools := apitest.NewTools()
	b := apitest.New(t, func(o *apitest.Options) {
		o.Config.Token = "static-token-of-16"
		o.Config.Tools = failedTools{tools}
		o.Config.Doctor = []httpapi.DoctorCheck{func(_ context.Context, admin bool) []api.Check {
			return []api.Check{{Area: "data", State: "ok", Text: fmt.Sprintf("told admin=%v", admin)}}
		}}
	})
	b.Live.Set(engine.LiveAgent{Agent: signalbox.Agent{Name: "coder"}, Message: "down"})
	b.Live.Set(engine.LiveAgent{Agent: signalbox.Agent{Name: "writer"}, Message: "down"})
	var made api.TokenCreated
	admin := apitest.Header("Authorization", "Bearer static-token-of-16")
	b.Do("POST", "/api/tokens", `{"name": "look", "scopes": ["read"], "agents": ["coder"]}`, admin).Want(t, 201, &made)
	has(t, doctorFindings(b, admin), "ok access: it is closed", "warn tools: server browser has failed: exec /srv/browser: no such file", "told admin=true", "agent writer")
	theirs := doctorFindings(b, apitest.Header("Authorization", "Bearer "+made.Secret))
	has(t, theirs, "warn tools: server browser has failed", "told admin=false", "agent coder")
	hasNot(t, theirs, "/srv/browser", "writer", "4711")
	b.Do("GET", "/api/doctor", "").Want(t, 401, nil)
}

// TestDoctorOfAGatewayAlone checks that a gateway has no findings about a queue.
func TestDoctorOfAGatewayAlone(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Tools, o.Config.ToolsOnly = failedTools{apitest.NewTools()}, true })
	all := doctorFindings(b)
	has(t, all, "ok director: ", "warn access: it is open", "ok store: tool tasks are kept in memory", "ok tools: 2 of 4 servers are ready", "warn tools: server commands is ready, with a fault: processes [4711]", "warn tools: server browser has failed: exec /srv/browser", "warn tools: server late is starting")
	hasNot(t, all, " queue:", " agents:")
}

// TestDoctorOfCommands checks the findings about waiting commands and hanging slots.
func TestDoctorOfCommands(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Tools, o.Engine.MaxCommands = apitest.NewTools(), 5 })
	executor := engine.LiveAgent{Agent: signalbox.Agent{Name: signalbox.ExecutorName(signalbox.ExecutorCommands, signalbox.DefaultInstance), Slots: 10}, Up: true, InUse: 10}
	b.Live.Set(executor)
	wait := func(n int) {
		for range n {
			if _, err := b.Engine.Submit(t.Context(), engine.NewTask{Mode: signalbox.ModeTool, Tool: "report"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait(3)
	has(t, doctorFindings(b), "ok tools: 10 of 10 command slots are taken, 3 of at most 5 commands wait")
	wait(1)
	has(t, doctorFindings(b), "warn tools: 10 of 10 command slots are taken, 4 of at most 5 commands wait")
	wait(1)
	executor.Message = "1 of its 10 slots stay taken by runs that cannot be killed"
	b.Live.Set(executor)
	has(t, doctorFindings(b), "fail tools: 10 of 10 command slots are taken, 5 of at most 5 commands wait: calls are refused",
		"warn tools: commands: 1 of its 10 slots stay taken by runs that cannot be killed")
	hasNot(t, doctorFindings(b), "agents: 1 up")

	b = apitest.New(t, func(o *apitest.Options) { o.Config.Tools = apitest.NewTools() })
	executor.Message, executor.InUse = "", 0
	b.Live.Set(executor)
	wait(2)
	has(t, doctorFindings(b), "ok tools: 0 of 10 command slots are taken, 2 commands wait")
}

type toolServers = apitest.Tools // a name that differs from its method Tools

type failedTools struct{ *toolServers }

func (failedTools) Servers() []gateway.Server {
	return []gateway.Server{
		{Name: "browser", State: gateway.StateFailed, Error: "exec /srv/browser: no such file"}, {Name: "search", State: gateway.StateReady},
		{Name: "late", State: gateway.StateStarting}, {Name: "commands", State: gateway.StateReady, Error: "processes [4711] of commands live on"},
	}
}

// TestDoctorOfAStoreThatDoesNotAnswer checks that this is a finding, not an error.
func TestDoctorOfAStoreThatDoesNotAnswer(t *testing.T) {
	b := apitest.New(t)
	broken := &brokenStore{Store: b.Store}
	e := engine.New(broken, engine.Options{})
	d, err := httpapi.New(httpapi.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = d
	has(t, doctorFindings(b), "fail store: the store (memory) does not answer")
}

type brokenStore struct{ store.Store }

func (brokenStore) Counts(context.Context) (store.Counts, error) {
	return store.Counts{}, errors.New("input/output error")
}
