package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// waitingCrowd is n agents with one slot each. All run a task, and all but the last wait for any other agent.
func waitingCrowd(tb testing.TB, s store.Store, n int) *engine.Engine {
	tb.Helper()
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		tb.Fatal(err)
	}
	e := engine.New(s, engine.Options{Sealer: sealer, MaxSize: 1 << 20})
	var live busyAgents
	for i := range n {
		live.agents = append(live.agents, engine.LiveAgent{
			Agent: signalbox.Agent{Name: crowdName(i), Kind: "demo", Slots: 1, Fencing: true}, Up: true, InUse: 1,
		})
	}
	e.SetLive(live)
	for i := range n {
		row, err := e.PutAgent(tb.Context(), signalbox.Agent{Name: crowdName(i), Kind: "demo", URL: "http://127.0.0.1:9", Fencing: true}, "")
		if err == nil {
			_, err = e.Submit(tb.Context(), engine.NewTask{Prompt: "x", Agent: crowdName(i)})
		}
		var c engine.Claimed
		if err == nil {
			c, _, err = e.Claim(tb.Context(), row, 0)
		}
		if err == nil {
			_, err = e.Accept(tb.Context(), c.Task, "id-"+crowdName(i), "")
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	for i := range n - 1 {
		if _, err := e.Submit(tb.Context(), askAnyone(i)); err != nil {
			tb.Fatal(err)
		}
	}
	return e
}

func crowdName(i int) string { return fmt.Sprintf("agent-%04d", i) }

func askAnyone(i int) engine.NewTask {
	return engine.NewTask{Prompt: "help", Waits: true, By: agentPrincipal(crowdName(i))}
}

// TestManyAgentsThatWait: the call that closes a cycle of 1,000 agents is refused at once. Trying every path
// took 7 s for nine agents, and hours for twelve.
func TestManyAgentsThatWait(t *testing.T) {
	const agents, bound = 1000, 100 * time.Millisecond
	e := waitingCrowd(t, memory.New(memory.Options{}), agents)
	fastest := time.Hour
	for range 10 { // take the fastest, since the machine may be busy
		begun := time.Now()
		_, err := e.Submit(t.Context(), askAnyone(agents-1))
		fastest = min(fastest, time.Since(begun))
		if code := signalbox.CodeOf(err); code != signalbox.CodeCallCycle {
			t.Fatalf("the call that closes the cycle: %v", err)
		}
	}
	t.Logf("%d agents: %s", agents, fastest)
	if fastest > bound {
		t.Errorf("the call was refused after %s, want %s", fastest, bound)
	}
}

// TestCycleIsDetectedAfterARestart: calls that waited when the director was started count, too.
func TestCycleIsDetectedAfterARestart(t *testing.T) {
	s := memory.New(memory.Options{})
	waitingCrowd(t, s, 3)
	b := newFixtureOver(t, s)
	for i := range 3 {
		b.see(engine.LiveAgent{Agent: signalbox.Agent{Name: crowdName(i), Kind: "demo", Slots: 1, Fencing: true}, Up: true, InUse: 1})
	}
	b.refused(signalbox.CodeCallCycle, askAnyone(2))
}

// stuckStore is a store in which one write hangs.
type stuckStore struct {
	store.Store
	prompt  string
	entered chan struct{}
	release chan struct{}
}

func (s *stuckStore) Submit(ctx context.Context, sub store.Submission) (store.Submitted, error) {
	if sub.Request.Prompt == s.prompt {
		close(s.entered)
		<-s.release
	}
	return s.Store.Submit(ctx, sub)
}

// TestCallBeingStoredBlocksNoOther: while one call is being stored, another is checked, and already sees the
// first.
func TestCallBeingStoredBlocksNoOther(t *testing.T) {
	s := &stuckStore{Store: memory.New(memory.Options{}), prompt: "slow", entered: make(chan struct{}), release: make(chan struct{})}
	b := newFixtureOver(t, s)
	for _, name := range []string{"one", "two", "three"} {
		a := b.talker(name, 1)
		b.submit(chat(name, "begin"))
		b.work(a)
	}
	stored := make(chan error, 1)
	go func() {
		slow := as("one", "two")
		slow.Prompt = s.prompt
		_, err := b.Submit(context.WithoutCancel(t.Context()), slow)
		stored <- err
	}()
	<-s.entered
	others := make(chan struct{})
	go func() {
		defer close(others)
		b.refused(signalbox.CodeCallCycle, as("two", "one"))
		b.submit(as("three", "two"))
	}()
	select {
	case <-others:
	case <-time.After(20 * time.Second):
		t.Error("the calls of others wait until the first is stored")
	}
	close(s.release)
	b.must(<-stored)
	<-others
}

// TestUnstoredCallIsForgotten: a call that the store refused closes no cycle.
func TestUnstoredCallIsForgotten(t *testing.T) {
	b := newFixture(t, func(o *engine.Options) { o.MaxSize = 1 })
	for _, name := range []string{"one", "two"} {
		a := b.talker(name, 1)
		b.submit(chat(name, "begin"))
		b.work(a)
	}
	b.submit(engine.NewTask{Prompt: "the only one that may wait", Kind: "other"})
	b.refused(signalbox.CodeQueueFull, queued("one", engine.NewTask{Prompt: "x", Agent: "two"}))
	b.submit(as("two", "one"))
}

// singleReadStore is a store in which a read of all tasks in flight is an error.
type singleReadStore struct {
	store.Store
	t *testing.T
}

func (s singleReadStore) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	s.t.Error("all tasks in flight were read")
	return s.Store.InFlight(ctx)
}

func TestNamedExecutionTakesOneRead(t *testing.T) {
	b := newFixtureOver(t, singleReadStore{memory.New(memory.Options{}), t})
	one := b.talker("one", 1)
	b.submit(chat("one", "begin"))
	run := b.work(one)
	id, several, err := b.ExecutionOf(t.Context(), "one", run.ID)
	b.must(err)
	if id != run.ID || several {
		t.Errorf("the execution is %q, several: %v", id, several)
	}
	if id, several, err = b.ExecutionOf(t.Context(), "one", ""); id != run.ID || several || err != nil {
		t.Errorf("the only execution is %q, several: %v: %v", id, several, err)
	}
	_, _, err = b.ExecutionOf(t.Context(), "two", run.ID)
	if signalbox.CodeOf(err) != signalbox.CodeForbidden {
		t.Errorf("an execution of another agent: %v", err)
	}
}

func BenchmarkCircle(b *testing.B) {
	const agents = 1000
	e := waitingCrowd(b, memory.New(memory.Options{}), agents)
	for b.Loop() {
		if _, err := e.Submit(b.Context(), askAnyone(agents-1)); signalbox.CodeOf(err) != signalbox.CodeCallCycle {
			b.Fatal(err)
		}
	}
}
