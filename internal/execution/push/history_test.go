package push_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/invariant"
)

// historyPlayer plays a random history: agents with random faults, and random submits, cancels, releases and
// restarts, until nothing happens any more.
type historyPlayer struct {
	*fixture
	r      *rand.Rand
	agents []*Agent
	ids    []string
	freed  map[string]bool // agents of which a slot was released by hand
}

// TestRandomHistories checks invariants: every task ends exactly once, no two executions share a slot of an
// agent because of the director, and tasks that were never sent back are claimed in the order of their
// submits.
func TestRandomHistories(t *testing.T) {
	for i := range 5 * soak.Pick(1, 100) {
		seed := uint64(i)
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			open := stores["memory"]
			if seed%5 == 4 {
				open = stores["sqlite"]
			}
			s := &historyPlayer{
				r: rand.New(rand.NewPCG(seed, 7)), freed: map[string]bool{},
				fixture: newFixture(t, fast, attempts(6), on(open(t)), func(h *fixture, _ *engine.Options) {
					h.opts.DispatchTimeout, h.opts.AskTimeout, h.opts.FollowWait = 150*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
				}, fleetOf([]int{0, 2}[seed%2]), bypassFleetOf(2)),
			}
			for n := range 3 {
				// Sloppy agents accept every offer: an overlap is our fault.
				s.agents = append(s.agents, s.agent(Options{
					Name: string(rune('a' + n)), Kind: []string{"red", "blue"}[n%2], Plain: n == 1, NeverBusy: n == 1, Slots: []int{1, 1, 2}[n],
					Isolated: []int{2, 0, 1}[n], Sessions: n == 0, IgnoresCancel: n == 2 && seed%3 == 0,
				}))
			}
			s.start()
			for range 120 {
				s.step()
			}
			s.settleDown()
			s.d.Drain(context.Background()) // a row can be read as ended before its writer knows
			s.d.Stop()                      // coming and going agents write journal entries, and the journal is checked twice
			s.check()
		})
	}
}

func (s *historyPlayer) step() {
	a := s.agents[s.r.IntN(len(s.agents))]
	switch s.r.IntN(17) {
	case 0, 1, 2, 3, 4, 5:
		s.submitOne()
	case 6, 7, 8, 9:
		s.finishOne(a)
	case 10:
		if len(s.ids) > 0 {
			_, _ = s.engine.Cancel(context.Background(), s.ids[s.r.IntN(len(s.ids))], "tester") // it may have ended
		}
	case 11:
		if s.r.IntN(4) == 0 {
			if ids := s.release(a.Name); len(ids) > 0 {
				s.freed[a.Name] = true
			}
		}
	case 12:
		if s.r.IntN(3) == 0 {
			s.restart()
		}
	case 13:
		a.Restart(s.r.IntN(2) == 0)
	case 14:
		a.Script(Offer, s.fault())
	case 16:
		s.d.Heartbeat(a.Name, beat("stopping"))
		s.d.Heartbeat(a.Name, beat("working"))
	case 15:
		a.Script(State, Say(500, nil), Reset())
		a.Script(Output, Garbage(200))
	}
	time.Sleep(time.Duration(s.r.IntN(3)) * time.Millisecond) // so that things are in progress when the next event happens
}

func (s *historyPlayer) submitOne() {
	n := engine.NewTask{Prompt: fmt.Sprint("task ", len(s.ids))}
	switch s.r.IntN(8) {
	case 6:
		n.Agent, n.Mode = s.agents[s.r.IntN(len(s.agents))].Name, signalbox.ModeBypass
	case 7:
		n.Agent, n.Mode, n.NewSession = s.agents[s.r.IntN(len(s.agents))].Name, signalbox.ModeChat, s.r.IntN(3) == 0
	case 0:
		n.Agent = s.agents[s.r.IntN(len(s.agents))].Name
	case 1:
		n.Kind = "red"
	case 2:
		n.OnLost = signalbox.LostRequeue
	}
	got, err := s.engine.Submit(context.Background(), n)
	if err == nil {
		s.ids = append(s.ids, got.Task.ID)
	} else if n.Mode == signalbox.ModeQueue {
		s.t.Fatal(err)
	}
}

func (s *historyPlayer) finishOne(a *Agent) {
	for _, e := range a.Executions() {
		if e.End == 0 {
			end := End{Output: "fine"}
			if s.r.IntN(4) == 0 {
				end = End{State: "failed", Error: &api.AgentError{Type: "claude_error", Message: "broken"}}
			}
			a.TryFinish(e.TaskID, end)
			return
		}
	}
}

// fault returns an invalid answer to an offer.
func (s *historyPlayer) fault() Step {
	faults := []Step{
		Busy(nil), Say(500, nil), Say(503, nil), Garbage(200), Taking(Garbage(201)), Reset(), Taking(Reset()), Hang(), Taking(Hang()),
		Say(400, api.AgentRefusal{Message: "no"}), Redirect("http://127.0.0.1:1/"), Drip(201),
	}
	return faults[s.r.IntN(len(faults))]
}

// settleDown lets everything end.
func (s *historyPlayer) settleDown() {
	signs, stop := s.engine.WatchJournal()
	defer stop()
	over := time.Now().Add(60 * time.Second)
	for _, a := range s.agents {
		a.ClearScripts()
	}
	for !s.allEnded(s.ids) {
		for _, a := range s.agents {
			for _, e := range a.Executions() {
				if e.End == 0 {
					a.TryFinish(e.TaskID, End{Output: "fine"})
				}
			}
		}
		select {
		case <-signs:
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(over) {
			for _, id := range s.ids {
				if t := s.task(id); !t.State.Terminal() {
					s.t.Errorf("it never ends: %+v", t)
				}
			}
			s.t.FailNow()
		}
	}
}

func (s *historyPlayer) check() {
	if err := invariant.Check(context.Background(), s.store); err != nil {
		s.t.Error(err)
	}
	for _, a := range s.agents {
		// A release by hand at an agent without fences may cause an overlap.
		if o := a.Overlaps(); len(o) > 0 && (!a.Plain || !s.freed[a.Name]) {
			s.t.Errorf("overlaps at %s: %v", a.Name, o)
		}
	}
	s.checkOnce()
	s.checkOrder()
	s.checkStale()
}

// checkStale checks that no stale report is kept of an execution whose report counted.
func (s *historyPlayer) checkStale() {
	for _, id := range s.ids {
		t := s.task(id)
		list, err := s.store.Stales(context.Background(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, w := range list {
			if w.Fence == t.Fence && (t.Reason == signalbox.ReasonCompleted || t.Reason == signalbox.ReasonAgentError) {
				s.t.Errorf("the word of fence %d is kept as stale, and ended task %s", w.Fence, id)
			}
		}
	}
}

// checkOnce checks that every task ended exactly once.
func (s *historyPlayer) checkOnce() {
	ends := map[string]int{}
	for _, e := range s.journal() {
		if e.State.Terminal() {
			ends[e.QueueID]++
		}
	}
	for _, id := range s.ids {
		if ends[id] != 1 {
			s.t.Errorf("task %s ended %d times", id, ends[id])
		}
	}
}

// checkOrder checks that tasks of a queue that were claimed once were claimed in the order of their submits.
func (s *historyPlayer) checkOrder() {
	page, err := s.store.History(context.Background(), store.HistoryQuery{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	queues := map[string][]signalbox.Task{}
	for _, t := range page.Tasks {
		if t.Claims == 1 && t.Mode == signalbox.ModeQueue { // chats wait for the previous turn, whatever their place
			queues[t.Queue] = append(queues[t.Queue], t)
		}
	}
	for queue, tasks := range queues {
		slices.SortFunc(tasks, func(a, b signalbox.Task) int { return int(a.Seq - b.Seq) })
		for i := 1; i < len(tasks); i++ {
			if tasks[i].Fence < tasks[i-1].Fence {
				s.t.Errorf("in %s task %d was claimed before task %d", queue, tasks[i].Seq, tasks[i-1].Seq)
			}
		}
	}
}
