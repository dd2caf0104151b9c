package gates_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gates"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// A tool queue that its upstream closed is a closed gate until it opens. A caller that is limited to some
// agents sees it, and only the agents and accounts that it may use.
func TestListAndWhoSeesIt(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	agents := []engine.LiveAgent{
		{Agent: signalbox.Agent{Name: "a", Account: "team"}, Up: true},
		{Agent: signalbox.Agent{Name: "b"}, Up: true, Closed: &signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateAgent, Name: "b", Text: "it broke"}, Since: now}},
	}
	n := &gates.Now{
		At: now, Agents: func(yield func(*engine.LiveAgent) bool) { _ = yield(&agents[0]) && yield(&agents[1]) },
		Accounts: []signalbox.Account{{Name: "team", State: signalbox.AccountClosed}, {Name: "open", State: signalbox.AccountOpen}},
		Tools: []toolqueue.Status{
			{Name: "github", Depth: 2, Limits: []toolqueue.Limit{{Closed: toolqueue.Closing{Until: now.Add(time.Minute), Why: "429"}}}},
			{Name: "over", Limits: []toolqueue.Limit{{Closed: toolqueue.Closing{Until: now}}}}, {Name: "free"},
		},
	}
	list := gates.List(n)
	seen := func(who signalbox.Principal) string {
		var names []string
		for i := range list {
			if list[i].VisibleTo(who) {
				names = append(names, list[i].Name+" "+list[i].State)
			}
		}
		return strings.Join(names, ", ")
	}
	for _, c := range []struct {
		agents []string
		want   string
	}{
		{nil, "github closed, team closed, b trying"},
		{[]string{"a"}, "github closed, team closed"},
		{[]string{"b"}, "github closed, b trying"},
	} {
		if got := seen(signalbox.Principal{Kind: signalbox.PrincipalUser, Agents: c.agents}); got != c.want {
			t.Errorf("agents %v: %s, want %s", c.agents, got, c.want)
		}
	}
	if g := list[0]; g.Text != "tool queue github is closed until 2026-01-31T12:01:00Z (429)" || g.Waiting != 2 {
		t.Errorf("%+v", g)
	}
	if i := slices.IndexFunc(list, func(g gates.Closed) bool { return g.Name == "b" }); list[i].Text != "agent b is being tried: one task goes first (it broke)" {
		t.Errorf("%+v", list[i])
	}
}
