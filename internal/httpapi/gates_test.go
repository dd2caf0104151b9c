package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// closeAgent makes an agent fail until it is closed for half a minute.
func closeAgent(b *apitest.Fixture, name string) *signalbox.ClosedGate {
	b.T.Helper()
	a, known := b.Live.LiveAgent(name)
	if !known {
		b.T.Fatalf("there is no agent %s", name)
	}
	now := b.Engine.Now()
	a.Closed = &signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateAgent, Name: name, Text: "no space left", Until: now.Add(30 * time.Second)}, Since: now, Failures: 3}
	a.Held, a.BackedOff = true, true
	b.Live.Set(a)
	b.Engine.AgentChanged(name)
	return a.Closed
}

func gatesOf(t *testing.T, b *apitest.Fixture, edits ...apitest.Edit) []api.ClosedGate {
	t.Helper()
	var all api.Gates
	b.Do("GET", "/api/gates", "", edits...).Want(t, http.StatusOK, &all)
	return all.Gates
}

// A task whose agents are all closed waits at that gate, which has the form of an account's gate.
// With another agent that takes tasks it does not wait.
func TestTaskWaitsAtAClosedAgent(t *testing.T) {
	b := apitest.New(t)
	b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	until := closeAgent(b, "coder").Until
	want := "agent coder is closed until " + until.Format(time.RFC3339) + " (no space left)"
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	f := task.WaitingFor
	if f == nil || f.Kind != "agent" || f.Name != "coder" || f.Text != want || f.Since == nil || f.Until == nil || !f.Until.Equal(until) || task.ETA != nil {
		t.Fatalf("%+v %+v", task, f)
	}
	var why api.Why
	b.Do("GET", "/api/queue/"+id+"/why", "").Want(t, 200, &why)
	if why.Summary != "It waits: A"+want[1:]+"." {
		t.Errorf("%s", why.Summary)
	}
	for _, g := range why.Gates {
		if closed := g.Name == "agent_open"; closed == g.OK || closed && !strings.HasPrefix(g.Cure, "Look at its host") {
			t.Errorf("%+v", g)
		}
	}
	list := gatesOf(t, b)
	if len(list) != 1 || list[0].Kind != "agent" || list[0].Name != "coder" || list[0].State != "closed" || list[0].Text != want || list[0].Waiting != 1 || list[0].Parked != 0 || list[0].Cure == "" {
		t.Errorf("%+v", list)
	}
	var agents api.Agents
	b.Do("GET", "/api/agents", "").Want(t, 200, &agents)
	if c := agents.Agents[0].Closed; c == nil || c.Reason != "no space left" || c.Failures != 3 || !c.RetryAt.Equal(until) {
		t.Errorf("%+v", c)
	}

	b.AddAgent("other", 1)
	task = api.Task{}
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	if list = gatesOf(t, b); task.WaitingFor != nil || list[0].Waiting != 0 {
		t.Errorf("%+v %+v", task.WaitingFor, list)
	}
}

// A task that several agents may take waits at the gate that opens first.
func TestTaskWaitsAtTheGateThatOpensFirst(t *testing.T) {
	b, _, _ := parked(t) // until an hour from now
	b.AddAgent("sick", 1)
	closeAgent(b, "sick")
	id := b.Submit(`{"prompt":"p"}`).QueueID
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	if f := task.WaitingFor; f == nil || f.Kind != "agent" || f.Name != "sick" {
		t.Errorf("%+v", f)
	}
}

// One list has the closed gates of all kinds.
func TestGatesOfAllKinds(t *testing.T) {
	b, _, _ := parked(t)
	b.AddAgent("sick", 1)
	closeAgent(b, "sick")
	b.AddAgent("lost", 1)
	b.ReportAccount("lost", nil)
	if _, err := b.Engine.ChangeAccount(t.Context(), signalbox.AccountEvent{Kind: signalbox.AccountRefused, Account: "lost", Reason: "expired", Source: "event"}); err != nil {
		t.Fatal(err)
	}
	busy := b.AddAgent("busy", 2)
	for range 2 {
		b.Submit(`{"prompt":"p","agent":"busy"}`)
		if _, err := b.Engine.Finish(t.Context(), b.Claim(busy), engine.Outcome{
			Reason: signalbox.ReasonAgentError, Limit: &accounts.Limit{Kind: accounts.Overloaded, Source: "event", Text: "Overloaded"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, g := range gatesOf(t, b) {
		got = append(got, strings.TrimSpace(strings.Join([]string{g.Kind, g.Name, g.State}, " ")))
		if g.Since == nil || g.Text == "" || g.Cure == "" || (g.Until == nil) != (g.State == "signed_out") {
			t.Errorf("%+v", g)
		}
		if g.Kind == "time" && (g.Parked != 2 || !strings.HasPrefix(g.Text, "2 parked tasks go on, the first at ") || !strings.HasSuffix(g.Text, " (Overloaded)")) {
			t.Errorf("%+v", g)
		}
	}
	if text := strings.Join(got, ", "); text != "account lost signed_out, time  closed, account coder closed, agent sick closed" {
		t.Errorf("%s", text)
	}
}
