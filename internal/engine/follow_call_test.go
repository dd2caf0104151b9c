package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// gatedStore is a view whose submits wait for one another.
type gatedStore struct {
	*peerstest.View
	ready func()
}

func (g *gatedStore) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	g.ready()
	return g.View.Submit(ctx, s)
}

// busyAgents are two live agents with one slot each.
type busyAgents struct{ agents []engine.LiveAgent }

func (b busyAgents) Agents() []engine.LiveAgent { return b.agents }
func (b busyAgents) LiveAgent(name string) (engine.LiveAgent, bool) {
	for _, a := range b.agents {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

// TestIncidentTwoDirectorsCloseACycle: two agents call each other through two directors at the same moment.
// Neither may wait for ever.
func TestIncidentTwoDirectorsCloseACycle(t *testing.T) {
	w := peerstest.New(memory.New(memory.Options{}))
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var both sync.WaitGroup
	both.Add(2)
	gate := func() {}
	var engines []*engine.Engine
	live := busyAgents{}
	for _, name := range []string{"one", "two"} {
		live.agents = append(live.agents, engine.LiveAgent{Agent: signalbox.Agent{Name: name, Kind: "demo", Slots: 1, Fencing: true}, Up: true, InUse: 1})
	}
	for range 2 {
		view := w.View()
		e := engine.New(&gatedStore{view, func() { gate() }}, engine.Options{Sealer: sealer})
		e.SetLive(live)
		if err := e.Follow(ctx, view, engine.FollowOptions{}); err != nil {
			t.Fatal(err)
		}
		engines = append(engines, e)
	}
	for _, name := range []string{"one", "two"} { // each runs a task
		row, err := engines[0].PutAgent(ctx, signalbox.Agent{Name: name, Kind: "demo", URL: "http://127.0.0.1:9", Fencing: true}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engines[0].Submit(ctx, engine.NewTask{Prompt: "x", Agent: name}); err != nil {
			t.Fatal(err)
		}
		c, found, err := engines[0].Claim(ctx, row, 0)
		if err != nil || !found {
			t.Fatalf("claim: %v %v", found, err)
		}
		if _, err := engines[0].Accept(ctx, c.Task, "id-"+name, ""); err != nil {
			t.Fatal(err)
		}
	}
	gate = func() { both.Done(); both.Wait() } // both have checked before either is stored
	errs := make([]error, 2)
	var calls sync.WaitGroup
	for i, from := range []string{"one", "two"} {
		to := []string{"two", "one"}[i]
		calls.Go(func() {
			_, errs[i] = engines[i].Submit(ctx, engine.NewTask{
				Prompt: "x", Agent: to, Waits: true, By: agentPrincipal(from),
			})
		})
	}
	calls.Wait()
	refused := 0
	for _, err := range errs {
		if signalbox.CodeOf(err) == signalbox.CodeCallCycle {
			refused++
		} else if err != nil {
			t.Errorf("%v", err)
		}
	}
	if refused == 0 {
		t.Error("both wait for each other")
	}
	counts, err := engines[0].Read().Counts(ctx)
	if err != nil || counts.Pending != 2-refused {
		t.Errorf("%d tasks wait, %d calls were refused: %v", counts.Pending, refused, err)
	}
}
