package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// TestTaskOfASessionWhoseAgentIsGone: the explanation says what ResolveStranded and EndOverdue will do, and
// when.
func TestTaskOfASessionWhoseAgentIsGone(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{SessionID: "s1"})
	task, err := b.Accept(t.Context(), b.claim(a).Task, "t", "s1")
	b.must(err)
	b.finish(task, signalbox.ReasonCompleted)
	talk := engine.NewTask{SessionID: "s1"}
	up := b.submit(talk)
	if got := b.Trouble(&up); got != "" {
		t.Errorf("its agent is there: %q", got)
	}
	since := b.Now().Add(-15 * time.Second)
	gone := engine.LiveAgent{Agent: a, DownSince: since, StrandedAt: since.Add(time.Minute)}
	soon, late := 20*time.Second, 5*time.Minute
	for name, c := range map[string]struct {
		change func(n *engine.NewTask, a *engine.LiveAgent)
		want   string
	}{
		"require": {nil, "agent coder, which holds conversation s1, has been gone since 2025-01-17T09:59:45Z; unless it is back, the task fails at 2025-01-17T10:00:45Z (dispatch_failed)"},
		"prefer": {func(n *engine.NewTask, _ *engine.LiveAgent) { n.Session = signalbox.SessionPrefer },
			"unless it is back, the task goes at 2025-01-17T10:00:45Z to the queue work, where any agent takes it"},
		"named": {func(n *engine.NewTask, _ *engine.LiveAgent) { n.Agent = "coder" },
			"agent coder, for which the task is, has been gone since 2025-01-17T09:59:45Z; the task waits until it is back"},
		"named, for a while": {func(n *engine.NewTask, _ *engine.LiveAgent) { n.Agent, n.WaitTimeout = "coder", late },
			"the task waits for it until 2025-01-17T10:05:00Z, then ends with wait_timeout"},
		"waits shorter than the grace": {func(n *engine.NewTask, _ *engine.LiveAgent) { n.WaitTimeout = soon },
			"the task waits for it until 2025-01-17T10:00:20Z, then ends with wait_timeout"},
		"waits longer than the grace": {func(n *engine.NewTask, _ *engine.LiveAgent) { n.WaitTimeout = late }, "the task fails at 2025-01-17T10:00:45Z"},
		"grace is over":               {func(_ *engine.NewTask, a *engine.LiveAgent) { a.StrandedAt = b.Now() }, "the task fails now (dispatch_failed)"},
		"another director counts": {func(_ *engine.NewTask, a *engine.LiveAgent) { a.DownSince, a.StrandedAt = time.Time{}, time.Time{} },
			"is not connected; unless it is back, the task fails once it has been gone for session_grace"},
	} {
		t.Run(name, func(t *testing.T) {
			n, live := talk, gone
			if c.change != nil {
				c.change(&n, &live)
			}
			b.see(live)
			row := b.submit(n)
			got := b.Trouble(&row)
			if !strings.Contains(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if why := b.why(row.ID); !strings.Contains(why.Summary, c.want[1:]) {
				// The first waiting turn blocks later ones.
				g := b.gate(row.ID, "agent_connected", false, c.want[1:])
				if g.Cure == "" {
					t.Error("no cure")
				}
			}
			_, err := b.Cancel(t.Context(), row.ID, "test")
			b.must(err)
		})
	}
	b.see(gone)
	for name, n := range map[string]engine.NewTask{"no conversation": {Agent: "coder"}, "new conversation": {SessionID: "new"}} {
		if row := b.submit(n); b.Trouble(&row) != "" {
			t.Errorf("%s: %q", name, b.Trouble(&row))
		}
	}
}
