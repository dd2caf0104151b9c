package push_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// idlers lists tasks that wait beside a free slot that may take them.
func (h *fixture) idlers() []string {
	ctx := context.Background()
	waiting, err := h.store.Waiting(ctx, "", store.Cursor{}, 10_000)
	if err != nil {
		h.t.Fatal(err)
	}
	var found []string
	for _, w := range waiting {
		for _, a := range h.engine.LiveAgents() {
			for _, q := range a.Queues() {
				if w.Ready && q == w.Queue && a.Up && !a.Held && a.InUse < a.Slots {
					found = append(found, fmt.Sprintf("%s in %s beside %s", w.ID, q, a.Name))
				}
			}
		}
	}
	return found
}

// No task waits beside a free slot that may take it, without any tick (design §4.9).
func TestNoTaskWaitsBesideFreeSlot(t *testing.T) {
	seeds := 3 * soak.Pick(1, 50)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			h := newFixture(t, noTick)
			agents := map[string]*Agent{}
			kinds := []string{"red", "green", "red", "blue", "green"}
			for i, kind := range kinds {
				name := string(rune('a' + i))
				agents[name] = h.agent(Options{Name: name, Kind: kind, Slots: 1 + r.IntN(2)})
			}
			h.start()
			for name := range agents {
				h.untilUp(name)
			}
			var ids []string
			for range 100 {
				n := engine.NewTask{Priority: r.IntN(5) - 2}
				switch r.IntN(4) {
				case 0:
					n.Kind = kinds[r.IntN(len(kinds))]
				case 1:
					n.Agent = string(rune('a' + r.IntN(len(kinds))))
				case 2:
					n.SessionID = fmt.Sprint("talk", r.IntN(6))
				}
				switch r.IntN(6) {
				case 0: // a named agent that does not hold the session
					finishSome(agents, r)
				case 1:
					if len(ids) > 0 {
						_, _ = h.engine.Cancel(context.Background(), ids[r.IntN(len(ids))], "tester") // it may have ended
					}
				}
				got, err := h.engine.Submit(context.Background(), withPrompt(n))
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, got.Task.ID)
				h.await("nobody waits beside a free slot", func() bool { return len(h.idlers()) == 0 })
			}
			signs, stop := h.engine.WatchJournal()
			defer stop()
			for !h.allEnded(ids) {
				finishSome(agents, r)
				select {
				case <-signs:
				case <-time.After(5 * time.Millisecond): // no run was chosen to finish
				}
				h.await("nobody waits beside a free slot", func() bool { return len(h.idlers()) == 0 })
			}
		})
	}
}

func withPrompt(n engine.NewTask) engine.NewTask {
	n.Prompt = "do it"
	return n
}

func finishSome(agents map[string]*Agent, r *rand.Rand) {
	for _, a := range agents {
		if r.IntN(2) == 0 {
			continue
		}
		for _, e := range a.Executions() {
			if e.End == 0 {
				a.TryFinish(e.TaskID, End{})
				break
			}
		}
	}
}

func (h *fixture) allEnded(ids []string) bool {
	for _, id := range ids {
		if !h.task(id).State.Terminal() {
			return false
		}
	}
	return true
}

// gated is a store in which the next claim by an agent waits for a signal.
type gated struct {
	store.Store
	agent   string
	armed   atomic.Bool
	arrived chan struct{}
	sign    chan struct{}
}

func (g *gated) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	if r.Agent == g.agent && g.armed.CompareAndSwap(true, false) {
		close(g.arrived)
		<-g.sign
	}
	return g.Store.Claim(ctx, r)
}

// A wake-up that an agent did not use is passed on to another one, without a tick: here the first agent takes
// a task of higher priority from its own queue.
func TestWakeUpIsPassedOn(t *testing.T) {
	g := &gated{agent: "a", arrived: make(chan struct{}), sign: make(chan struct{})}
	h := newFixture(t, noTick, func(h *fixture, _ *engine.Options) {
		g.Store, h.store = h.store, g
	})
	h.agent(Options{Name: "a", Kind: "red", NoSession: true})
	h.agent(Options{Name: "b", Kind: "red", NoSession: true})
	h.start()
	h.untilUp("a")
	h.untilUp("b")
	// An agent that has just come up claims by itself: give both a task, so that they have done that.
	for _, name := range []string{"a", "b"} {
		id := h.submit(engine.NewTask{Agent: name})
		h.untilState(id, signalbox.Working)
		h.cancel(id)
		h.ends(id, signalbox.ReasonCancelled)
		h.await("its slot is free", func() bool { return h.live(name).InUse == 0 })
	}
	g.armed.Store(true)
	pool := h.submit(engine.NewTask{Kind: "red"})
	<-g.arrived
	own := h.submit(engine.NewTask{Agent: "a", Priority: 10})
	close(g.sign)
	h.untilState(own, signalbox.Working)
	if got := h.untilState(pool, signalbox.Working); got.Agent != "b" {
		t.Errorf("it runs at %s", got.Agent)
	}
}

func TestSlotsRunSideBySide(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Slots: 3})
	h.start()
	h.untilUp("fake")
	var ids []string
	for range 4 {
		ids = append(ids, h.submit(engine.NewTask{}))
	}
	for _, id := range ids[:3] {
		h.untilState(id, signalbox.Working)
	}
	if got := h.task(ids[3]); got.State != signalbox.Pending {
		t.Errorf("the fourth task in three slots is %s", got.State)
	}
	a.Finish(ids[1], End{})
	h.untilState(ids[3], signalbox.Working)
	if o := a.Overlaps(); len(o) > 0 {
		t.Error(o)
	}
}

func TestPauseAndResume(t *testing.T) {
	ctx := context.Background()
	h := newFixture(t, noTick)
	h.agent(Options{Slots: 2})
	h.start()
	h.untilUp("fake")
	if err := h.engine.Pause(ctx, signalbox.QueueWork, "maintenance", "tester", time.Time{}); err != nil {
		t.Fatal(err)
	}
	held := h.submit(engine.NewTask{})
	own := h.submit(engine.NewTask{Agent: "fake"})
	h.untilState(own, signalbox.Working)
	if got := h.task(held); got.State != signalbox.Pending {
		t.Errorf("a paused queue handed out a task: %s", got.State)
	}
	if err := h.engine.Resume(ctx, signalbox.QueueWork, "tester"); err != nil {
		t.Fatal(err)
	}
	h.untilState(held, signalbox.Working)
}

// A task that becomes ready wakes an agent with a free slot. If that agent is drained another must take the
// task, without the backstop; and a drained agent claims again as soon as it is resumed.
func TestDrainedAgentLeavesTasksToOthers(t *testing.T) {
	ctx := context.Background()
	h := newFixture(t, noTick)
	h.agent(Options{Name: "a", Slots: 2})
	h.agent(Options{Name: "b", Slots: 2})
	h.start()
	h.untilUp("a")
	h.untilUp("b")
	for _, drained := range []string{"a", "b"} {
		if err := h.engine.Pause(ctx, signalbox.AgentQueue(drained), "maintenance", "tester", time.Time{}); err != nil {
			t.Fatal(err)
		}
		own := h.submit(engine.NewTask{Agent: drained})
		id := h.submit(engine.NewTask{})
		h.untilState(id, signalbox.Working)
		if got := h.task(id); got.Agent == drained {
			t.Errorf("the drained agent %s took a task", drained)
		}
		if got := h.task(own); got.State != signalbox.Pending {
			t.Errorf("the drained agent %s took its own task", drained)
		}
		if err := h.engine.Resume(ctx, signalbox.AgentQueue(drained), "tester"); err != nil {
			t.Fatal(err)
		}
		h.untilState(own, signalbox.Working)
	}
}

// One turn of a session runs at a time, and the next starts when it has ended, in whatever queue it waits.
func TestSessionTurnsRunOneAtATime(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Name: "a", Slots: 3, Auto: true})
	b := h.agent(Options{Name: "b", Slots: 3, Auto: true})
	h.start()
	h.untilUp("a")
	h.untilUp("b")
	var ids []string
	for range 20 {
		ids = append(ids, h.submit(engine.NewTask{SessionID: "talk"}))
	}
	for _, id := range ids {
		h.ends(id, signalbox.ReasonCompleted)
	}
	if len(a.Executions()) != 0 && len(b.Executions()) != 0 {
		t.Error("the turns of a session ran on two agents")
	}
	runs := append(a.Executions(), b.Executions()...)
	for i, e := range runs {
		if e.QueueID != ids[i] {
			t.Errorf("turn %d is not the one that was submitted as such", i)
		}
	}
}

// If the turn that a busy agent refused is now behind the others, they start without a tick.
func TestSessionTurnAfterBusy(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Name: "a", Kind: "one", Auto: true})
	b := h.agent(Options{Name: "b", Kind: "two", Auto: true})
	first := h.submit(engine.NewTask{SessionID: "talk", Kind: "one"})
	second := h.submit(engine.NewTask{SessionID: "talk", Kind: "two", Session: signalbox.SessionRequire})
	a.Script(Offer, func(x *Exchange) {
		x.Agent.RunForeign("by hand")
		Busy(nil)(x)
	})
	h.start()
	h.ends(second, signalbox.ReasonCompleted)
	if got := b.Executions()[0].QueueID; got != second {
		t.Errorf("%s ran before it", got)
	}
	// The session is b's now, and so is the refused turn.
	if got := h.ends(first, signalbox.ReasonCompleted); got.Agent != "b" {
		t.Errorf("the turn of a session that b holds ran at %s", got.Agent)
	}
}

// A status that is older than the end of a run that it lists does not hold the agent.
func TestOutdatedStatusBlocksNoOffer(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Plain: true})
	id := h.submit(engine.NewTask{})
	h.start()
	h.untilState(id, signalbox.Working)
	task := h.until(id, "known by its id", func(t signalbox.Task) bool { return t.TaskID != "" })
	sign := make(chan struct{})
	a.Script(Status, After(sign, Say(200, api.AgentStatus{
		Type: "agent", AgentKind: "demo", State: "working", CurrentTask: &api.AgentCurrentTask{ID: task.TaskID},
	})))
	asked := len(a.Requests(Status))
	row := a.Row()
	row.Version = "2" // makes the dispatcher request the status
	h.put(row, "")
	a.AwaitRequest(Status, asked+1)
	a.Finish(task.TaskID, End{})
	h.ends(id, signalbox.ReasonCompleted)
	h.await("its slot is free", func() bool { return h.live("fake").InUse == 0 })
	before := h.live("fake").LastHeard
	close(sign)
	h.await("the old status has come", func() bool { return h.live("fake").LastHeard.After(before) })
	h.untilState(h.submit(engine.NewTask{}), signalbox.Working)
}

// A request for a fresh status while another one is in flight gets the next one, since that one may be older.
func TestStatusRequestedDuringPollIsPolledAgain(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{})
	sign := make(chan struct{})
	a.Script(Status, After(sign, Say(200, api.AgentStatus{Type: "agent", AgentKind: "demo", State: "idle"})))
	h.start()
	a.AwaitRequest(Status, 1)
	row := a.Row()
	row.Version = "2" // makes the dispatcher request the status
	h.put(row, "")
	h.await("the change is known", func() bool { return h.live("fake").Version == "2" })
	close(sign)
	a.AwaitRequest(Status, 2)
}

// A configured agent without a kind serves the pool of the kind that it reports.
func TestKindIsTakenFromAgent(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Kind: "two", Auto: true})
	row := a.Row()
	row.Kind = signalbox.KindUnknown
	h.put(row, "")
	h.start()
	h.ends(h.submit(engine.NewTask{Kind: "two"}), signalbox.ReasonCompleted)
}

// If the agent of a session has been gone for the grace, a task with require ends, one with prefer moves, and
// one that named the agent waits.
func TestSessionGrace(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Auto: true})
	h.start()
	for _, s := range []string{"one", "two"} {
		h.ends(h.submit(engine.NewTask{SessionID: s}), signalbox.ReasonCompleted)
	}
	a.Down()
	h.await("a is down", func() bool { return !h.live("a").Up })
	require := h.submit(engine.NewTask{SessionID: "one"})
	prefer := h.submit(engine.NewTask{SessionID: "two", Session: signalbox.SessionPrefer})
	named := h.submit(engine.NewTask{Agent: "a"})
	gone := h.live("a")
	if grace := gone.StrandedAt.Sub(gone.DownSince); grace != execution.DefaultSessionGrace || gone.DownSince.After(h.engine.Now()) {
		t.Errorf("gone since %s, dealt with at %s", gone.DownSince, gone.StrandedAt)
	}
	row := h.task(require)
	if got := h.engine.Trouble(&row); !strings.Contains(got, "the task fails at ") {
		t.Errorf("what happens is not told: %q", got)
	}
	b := h.agent(Options{Name: "b", Auto: true})
	h.untilUp("b")
	if got := h.task(prefer); got.State != signalbox.Pending {
		t.Errorf("it did not wait for the grace: %s", got.State)
	}
	h.clock.silenceFor(61 * time.Second)
	if got := h.ends(require, signalbox.ReasonDispatchFailed); !strings.Contains(got.Message, "session: prefer") {
		t.Errorf("the message does not say what to do: %q", got.Message)
	}
	h.ends(prefer, signalbox.ReasonCompleted)
	if n := len(b.Executions()); n != 1 {
		t.Errorf("%d executions at b", n)
	}
	if got := h.task(named); got.State != signalbox.Pending {
		t.Errorf("a task that named the agent is %s", got.State)
	}
	a.Up()
	h.ends(named, signalbox.ReasonCompleted)
	if back := h.live("a"); !back.DownSince.IsZero() || !back.StrandedAt.IsZero() {
		t.Errorf("it is up: %+v", back)
	}
}

// not_before is kept by a timer, not by the tick.
func TestNotBeforeWakesByTimer(t *testing.T) {
	h := newFixture(t, noTick)
	h.agent(Options{Auto: true})
	h.start()
	h.untilUp("fake")
	due := h.engine.Now().Add(150 * time.Millisecond)
	id := h.submit(engine.NewTask{NotBefore: due})
	if got := h.ends(id, signalbox.ReasonCompleted); got.DispatchedAt.Before(due) {
		t.Errorf("claimed %s early", due.Sub(got.DispatchedAt))
	}
}

// A turn of a session that waits for its time can become ready by the submit of another turn, whose event
// names only itself.
func TestSubmitReadiesAnotherSessionTurn(t *testing.T) {
	var still sync.Mutex // rounds wait for it
	h := newFixture(t, noTick, func(h *fixture, _ *engine.Options) {
		h.opts.Turn = func(what, _ string, _ int64) {
			if what == "maintenance" {
				still.Lock()
				defer still.Unlock()
			}
		}
	})
	h.agent(Options{Auto: true})
	h.start()
	h.untilUp("fake")
	due := h.submit(engine.NewTask{Kind: "another", NotBefore: h.engine.Now().Add(time.Millisecond)})
	h.until(due, "ready: the look at the start is over", func(t signalbox.Task) bool { return t.Ready })
	still.Lock()
	first := h.submit(engine.NewTask{SessionID: "talk", Agent: "fake", NotBefore: h.engine.Now().Add(time.Hour)})
	h.clock.jumpWall(2 * time.Hour) // the timer does not notice
	second := h.submit(engine.NewTask{SessionID: "talk", Agent: "fake"})
	still.Unlock()
	h.ends(first, signalbox.ReasonCompleted)
	h.ends(second, signalbox.ReasonCompleted)
}

func TestBackoffWakesByTimer(t *testing.T) {
	h := newFixture(t, noTick, fast, func(h *fixture, _ *engine.Options) { h.clock.scale = 4 })
	a := h.agent(Options{Auto: true})
	a.Script(Offer, Say(500, nil))
	h.start()
	h.untilUp("fake")
	h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
}

func TestWaitTimeoutEndsTask(t *testing.T) {
	h := newFixture(t)
	h.start()
	id := h.submit(engine.NewTask{WaitTimeout: time.Minute})
	h.clock.jumpWall(time.Minute)
	h.ends(id, signalbox.ReasonWaitTimeout)
}

// A task whose env cannot be decrypted fails, and the next one is claimed.
func TestUnreadableEnvDoesNotBlockLane(t *testing.T) {
	h := newFixture(t, noTick)
	h.agent(Options{Auto: true})
	id := h.submit(engine.NewTask{Env: map[string]string{"KEY": "value"}})
	next := h.submit(engine.NewTask{})
	h.rekey()
	h.start()
	h.ends(id, signalbox.ReasonRejected)
	h.ends(next, signalbox.ReasonCompleted)
}
