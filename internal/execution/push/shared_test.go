package push_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// fixturePair is two directors over one store. The test decides who holds which agent.
type fixturePair struct {
	t     *testing.T
	world *peerstest.World
	a, b  *fixture
	books [2]*holding
}

// holding is the set of agents that a director holds.
type holding struct {
	mu    sync.Mutex
	names map[string]bool
	lapse func() bool // reports that the lease has expired; nil: it never does
}

func (h *holding) has(agent string) bool {
	h.mu.Lock()
	held, lapse := h.names[agent], h.lapse
	h.mu.Unlock()
	return held && (lapse == nil || !lapse())
}

func (h *holding) lapses(over func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lapse = over
}

func (h *holding) set(agent string, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[agent] = held
}

func newFixturePair(t *testing.T, settings ...setting) *fixturePair {
	t.Helper()
	s := &fixturePair{t: t, world: peerstest.New(memory.New(memory.Options{ID: "pair"}))}
	for i := range s.books {
		s.books[i] = &holding{names: map[string]bool{}}
		view := s.world.View()
		all := append([]setting{on(view), func(h *fixture, _ *engine.Options) { h.opts.Holds, h.opts.Generation = s.books[i].has, view.Generation }}, settings...)
		h := newFixture(t, all...)
		h.start()
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(stop)
		d := h.d
		if err := h.engine.Follow(ctx, view, engine.FollowOptions{NeedsRow: d.NeedsRow, OnGap: d.Resync}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.a = h
		} else {
			s.b = h
		}
	}
	t.Cleanup(func() { s.a.stop(); s.b.stop() }) // before either checks the store, since the other one writes to it
	return s
}

// agent starts an agent that both know and a holds.
func (s *fixturePair) agent(o agenttest.Options) *agenttest.Agent {
	s.t.Helper()
	a := s.a.agent(o)
	name := a.Row().Name
	s.b.await("the agent is known", func() bool { return s.b.live(name).Name == name })
	s.a.await("the agent is known", func() bool { return s.a.live(name).Name == name })
	s.give(s.a, name)
	s.a.untilUp(name)
	s.b.untilUp(name)
	return a
}

func (s *fixturePair) bookOf(h *fixture) *holding {
	if h == s.a {
		return s.books[0]
	}
	return s.books[1]
}

func (s *fixturePair) give(to *fixture, agent string) {
	s.bookOf(to).set(agent, true)
	to.d.Gained([]string{agent})
}

func (s *fixturePair) take(from *fixture, agent string) {
	s.bookOf(from).set(agent, false)
	from.d.Lost([]string{agent})
}

// goOver hands an agent over from one director to the other.
func (s *fixturePair) goOver(from, to *fixture, agent string) {
	s.take(from, agent)
	s.give(to, agent)
}

func TestOnlyHolderOffersToAgent(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	id := s.b.submit(engine.NewTask{}) // at the one that does not hold it
	run := agent.AwaitStart(1)
	s.b.untilState(id, signalbox.Working)
	s.b.await("what it runs is seen from there, too", func() bool { return s.b.live("one").InUse == 1 && !s.b.live("one").Held })
	if n := s.b.d.Busy(); n != 0 {
		t.Errorf("the director that does not hold it has %d runs", n)
	}
	agent.Finish(run.TaskID, agenttest.End{})
	s.b.ends(id, signalbox.ReasonCompleted) // a waiter at the other one is notified
}

// Runs in progress while an agent moves to another director are followed to their end there, and nothing
// happens twice.
func TestRunContinuesWhileAgentMovesToOtherDirector(t *testing.T) {
	for name, o := range map[string]agenttest.Options{
		"daemon": {Name: "one"}, "plain": {Name: "one", Plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixturePair(t)
			agent := s.agent(o)
			id := s.a.submit(engine.NewTask{})
			run := agent.AwaitStart(1)
			s.a.untilState(id, signalbox.Working)
			rev := s.a.task(id).Rev
			s.take(s.a, "one")
			if n := s.a.d.Busy(); n != 0 {
				t.Errorf("%d runs are left where it was given up", n)
			}
			if got := s.a.task(id); got.Rev != rev {
				t.Errorf("giving it up changed the task: %+v", got)
			}
			s.give(s.b, "one")
			agent.Finish(run.TaskID, agenttest.End{})
			if got := s.a.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 || got.Claims != 1 {
				t.Errorf("%d attempts, %d claims", got.Attempts, got.Claims)
			}
			again := s.a.submit(engine.NewTask{})
			agent.Finish(agent.AwaitStart(2).TaskID, agenttest.End{})
			s.a.ends(again, signalbox.ReasonCompleted)
		})
	}
}

// An agent that moves back and forth between directors while tasks are submitted runs each of them once, one
// at a time.
func TestAgentMovingBetweenDirectorsRunsEachTaskOnce(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one", Auto: true})
	ids := make([]string, 60)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range ids {
			ids[i] = []*fixture{s.a, s.b}[i%2].submit(engine.NewTask{})
		}
	}()
	holder, other := s.a, s.b
	for range 30 {
		s.goOver(holder, other, "one")
		holder, other = other, holder
		time.Sleep(2 * time.Millisecond)
	}
	<-done
	for _, id := range ids {
		if got := s.a.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 {
			t.Errorf("task %s took %d attempts: %s", id, got.Attempts, got.LastError)
		}
	}
	if over := agent.Overlaps(); len(over) > 0 {
		t.Errorf("executions overlapped: %v", over)
	}
	if n := len(agent.Executions()); n != len(ids) {
		t.Errorf("%d executions of %d tasks", n, len(ids))
	}
}

// An offer in flight of a director that died is followed up by another director, which asks the agent.
func TestOffersOfDeadDirectorAreChecked(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	hold := make(chan struct{})
	agent.Script(agenttest.Offer, agenttest.Taking(func(x *agenttest.Exchange) { <-hold }))
	id := s.a.submit(engine.NewTask{})
	run := agent.AwaitStart(1)
	s.a.stop() // it dies, and the answer is lost
	close(hold)
	s.give(s.b, "one")
	s.b.untilState(id, signalbox.Working)
	agent.Finish(run.TaskID, agenttest.End{})
	if got := s.b.ends(id, signalbox.ReasonCompleted); got.Claims != 1 || len(agent.Executions()) != 1 {
		t.Errorf("%d claims, %d executions", got.Claims, len(agent.Executions()))
	}
}

// If the lease of an agent expires just before its probe, the agent is offered tasks when the director has
// the lease again.
func TestAgentIsRetriedAfterLeaseLapsed(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one", Auto: true})
	agent.Script(agenttest.Offer, agenttest.Say(503, nil))
	id := s.a.submit(engine.NewTask{})
	agent.AwaitRequest(agenttest.Offer, 1)
	var asked atomic.Int32
	s.books[0].lapses(func() bool { return asked.Add(1) == 1 })
	s.a.ends(id, signalbox.ReasonCompleted)
	if asked.Load() < 2 {
		t.Errorf("the lease was asked for %d times: it did not lapse before a try", asked.Load())
	}
}

// TestIncidentPausedDirectorOffersNothingLate: a director that was paused between its claim and its offer
// does not make the offer when it resumes: the task may run elsewhere.
func TestIncidentPausedDirectorOffersNothingLate(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	s.books[0].lapses(func() bool { // after its claim
		tasks, err := s.a.store.InFlight(context.Background())
		return err == nil && len(tasks) > 0
	})
	id := s.a.submit(engine.NewTask{})
	s.a.until(id, "claimed", func(t signalbox.Task) bool { return t.State == signalbox.Dispatching })
	s.a.await("the run has let go", func() bool { return s.a.d.Busy() == 0 })
	if n := len(agent.Requests(agenttest.Offer)); n != 0 {
		t.Fatalf("%d offers were made", n)
	}
	s.goOver(s.a, s.b, "one")
	agent.Finish(agent.AwaitStart(1).TaskID, agenttest.End{})
	if got := s.b.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 {
		t.Errorf("%d attempts", got.Attempts)
	}
}

func TestCancelAtOtherDirectorReachesAgent(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	id := s.a.submit(engine.NewTask{})
	agent.AwaitStart(1)
	s.b.untilState(id, signalbox.Working)
	s.b.cancel(id)
	agent.AwaitRequest(agenttest.Cancel, 1)
	s.b.ends(id, signalbox.ReasonCancelled)
}

func TestReleaseAtOtherDirectorFreesAgent(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	id := s.a.submit(engine.NewTask{})
	agent.AwaitStart(1)
	s.b.untilState(id, signalbox.Working)
	next := s.b.submit(engine.NewTask{})
	s.b.release("one")
	s.b.ends(id, signalbox.ReasonReleased)
	agent.AwaitRequest(agenttest.Cancel, 1) // it is told to stop
	agent.Finish(agent.AwaitStart(2).TaskID, agenttest.End{})
	s.b.ends(next, signalbox.ReasonCompleted)
}

// An agent that is held because it said busy is offered tasks again when it is released at another director.
func TestReleaseAtOtherDirectorResumesOffers(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one", Plain: true})
	foreign := agent.RunForeign("somebody's")
	id := s.a.submit(engine.NewTask{})
	s.a.await("it is held, and the task waits again", func() bool { // otherwise the release would be that of the task
		return s.a.live("one").Held && s.a.task(id).State == signalbox.Pending
	})
	offers := len(agent.Requests(agenttest.Offer))
	s.b.release("one")
	s.a.await("offers go again", func() bool { return len(agent.Requests(agenttest.Offer)) > offers })
	agent.Finish(foreign, agenttest.End{})
	s.a.await("it runs it", func() bool { return s.a.task(id).State != signalbox.Pending })
	s.b.cancel(id)
}

// If an agent announces its stop to one director, the director that dispatches to it makes no offers.
func TestStoppingAgentIsKnownToOtherDirectors(t *testing.T) {
	s := newFixturePair(t)
	s.agent(agenttest.Options{Name: "one"})
	if !s.b.d.Heartbeat("one", api.Heartbeat{State: "stopping"}) {
		t.Fatal("the beat was not taken")
	}
	s.a.await("it is not offered anything", func() bool { return !s.a.live("one").Up })
}

// A due retry is taken by the director that holds the agent, whichever of them woke the task.
func TestDueTaskIsTakenWhicheverDirectorWokeIt(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one", Auto: true})
	for range 20 {
		id := s.b.submit(engine.NewTask{NotBefore: time.Now().Add(50 * time.Millisecond)})
		s.b.ends(id, signalbox.ReasonCompleted)
	}
	if n := len(agent.Executions()); n != 20 {
		t.Errorf("%d executions", n)
	}
}

// The turns of a session continue if they end at one director and are submitted at another.
func TestSessionTurnsContinueAcrossDirectors(t *testing.T) {
	s := newFixturePair(t, noTick)
	agent := s.agent(agenttest.Options{Name: "one", Slots: 3, Auto: true})
	var ids []string
	for i := range 9 {
		ids = append(ids, []*fixture{s.a, s.b}[i%2].submit(engine.NewTask{SessionID: "talk", Agent: "one"}))
	}
	for _, id := range ids {
		s.b.ends(id, signalbox.ReasonCompleted)
	}
	if over := agent.Overlaps(); len(over) > 0 {
		t.Errorf("turns overlapped: %v", over)
	}
}

// TestIncidentStoreLostItsLastSecond: agents may run tasks that the store no longer knows. They are offered
// nothing until they report that they are idle.
func TestIncidentStoreLostItsLastSecond(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	foreign := agent.RunForeign("what the store forgot")
	s.a.d.OnDataLoss()
	id := s.a.submit(engine.NewTask{})
	s.a.await("it is held", func() bool { return s.a.live("one").Held })
	if n := len(agent.Requests(agenttest.Offer)); n != 0 {
		t.Errorf("%d offers", n)
	}
	agent.Finish(foreign, agenttest.End{})
	agent.Finish(agent.AwaitStart(2).TaskID, agenttest.End{})
	s.a.ends(id, signalbox.ReasonCompleted)
}

// Nor is the task of the claim that discovers the loss offered.
func TestIncidentClaimThatFindsLossIsNotSent(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	foreign := agent.RunForeign("what the store forgot")
	s.world.Forget()
	id := s.a.submit(engine.NewTask{})
	s.a.await("it is held", func() bool { return s.a.live("one").Held })
	s.a.untilState(id, signalbox.Pending)
	if n := len(agent.Requests(agenttest.Offer)); n != 0 {
		t.Errorf("%d offers", n)
	}
	agent.Finish(foreign, agenttest.End{})
	agent.Finish(agent.AwaitStart(2).TaskID, agenttest.End{})
	s.a.ends(id, signalbox.ReasonCompleted)
}

// An execution that the store lost is told to stop.
func TestRunLostByStoreIsStopped(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one"})
	id := s.a.submit(engine.NewTask{})
	agent.AwaitStart(1)
	s.a.untilState(id, signalbox.Working)
	task := s.a.task(id)
	s.b.d.Stop() // it must not report what is done without the directors
	plain := s.world.View()
	e := newFixture(t, on(plain)).engine
	s.a.stop()
	s.a.start() // without observers
	s.give(s.a, "one")
	s.a.await("it is followed again", func() bool { return s.a.d.Busy() == 1 })
	if _, err := e.Lose(t.Context(), task, signalbox.ReasonLost, "forgotten", false, nil); err != nil {
		t.Fatal(err)
	}
	s.a.d.OnDataLoss()
	agent.AwaitRequest(agenttest.Cancel, 1)
	s.a.await("it is not followed any more", func() bool { return s.a.d.Busy() == 0 })
}

// A fleet limit holds over all directors, and a slot that becomes free at one of them can be used by another.
func TestFleetCeilingHoldsOverAllDirectors(t *testing.T) {
	s := newFixturePair(t, func(_ *fixture, eo *engine.Options) { eo.Fleet = 1 })
	one := s.agent(agenttest.Options{Name: "one"})
	two := s.agent(agenttest.Options{Name: "two"})
	s.goOver(s.a, s.b, "two")
	first := s.a.submit(engine.NewTask{Agent: "one"})
	run := one.AwaitStart(1)
	second := s.a.submit(engine.NewTask{Agent: "two"})
	s.a.untilState(first, signalbox.Working)
	if n := len(two.Executions()); n != 0 {
		t.Errorf("%d executions above the ceiling", n)
	}
	one.Finish(run.TaskID, agenttest.End{})
	two.Finish(two.AwaitStart(1).TaskID, agenttest.End{})
	s.a.ends(second, signalbox.ReasonCompleted)
}

// Lost waits for a claim in progress, and its task is given back.
func TestClaimInFlightIsReturned(t *testing.T) {
	s := newFixturePair(t)
	agent := s.agent(agenttest.Options{Name: "one", Auto: true})
	view, _ := s.a.store.(*peerstest.View)
	for range 10 {
		goOn := view.Hang()
		id := s.b.submit(engine.NewTask{})
		time.Sleep(time.Millisecond) // the claim may or may not have begun: both must work
		lost := make(chan struct{})
		go func() { s.take(s.a, "one"); close(lost) }()
		goOn()
		<-lost
		s.give(s.b, "one")
		if got := s.b.ends(id, signalbox.ReasonCompleted); got.Attempts != 0 {
			t.Errorf("%d attempts: %s", got.Attempts, got.LastError)
		}
		s.goOver(s.b, s.a, "one")
	}
	if over := agent.Overlaps(); len(over) > 0 {
		t.Errorf("executions overlapped: %v", over)
	}
}

// A busy answer to an offer of an earlier term does not hold the agent: if another director has it, this one
// would never ask whether it is free.
func TestBusyAnswerOfEarlierTermIsIgnored(t *testing.T) {
	if theirs, anew := push.HoldsLate(); theirs || anew {
		t.Errorf("held where another director has it: %v, where this one has it again: %v", theirs, anew)
	}
}
