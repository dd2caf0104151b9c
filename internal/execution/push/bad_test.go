package push_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// fault is a way to answer badly, and the words of which one stands in the
// message that it leads to.
type fault struct {
	step  Step
	named []string
}

// late is what people read of an agent that takes too long.
const late = "timeout: no answer in time"

// faults are answers that are bounded in size and time, whatever they are the
// answer to.
var faults = map[string]fault{
	"nothing":      {Nothing(200), []string{"answer 200 is empty"}},
	"garbage":      {Garbage(200), []string{"not what an agent says"}},
	"wrong JSON":   {Say(200, []int{1, 2}), []string{"not what an agent says"}},
	"empty object": {Say(200, struct{}{}), []string{"names no state", "without a usable task_id", "not as an agent"}},
	"hang":         {Hang(), []string{late}},
	"drip":         {Drip(200), []string{late}},
	"10 GB":        {Flood(200), []string{"longer than 12582912 bytes"}},
	"redirect":     {Redirect("http://127.0.0.1:1/"), []string{"a redirect, which is not followed"}},
	"500":          {Say(500, nil), []string{"answered 500"}},
	"reset":        {Reset(), []string{"EOF", "reset"}},
}

// patience is short where the fault takes as long as it is waited for.
func (f fault) patience() setting {
	if slices.Contains(f.named, late) {
		return shortTimeouts
	}
	return func(*fixture, *engine.Options) {}
}

func (f fault) namedIn(text string) bool {
	for _, words := range f.named {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// An agent that answers badly to whatever it is asked is silent about what it
// runs: the task is lost when the lease is over, and the slot is
// given back by rule.
func TestInvalidRunStatusAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		for _, plain := range []bool{false, true} {
			t.Run(name+map[bool]string{true: "/plain"}[plain], func(t *testing.T) {
				t.Parallel()
				h := newFixture(t, f.patience(), func(h *fixture, _ *engine.Options) { h.opts.FollowWait = 50 * time.Millisecond })
				a := h.agent(Options{Plain: plain})
				h.start()
				id := h.submit(engine.NewTask{})
				task := h.untilState(id, signalbox.Working)
				for _, kind := range []Request{State, Output, Status, History, Cancel} {
					a.Always(kind, f.step)
				}
				asked := func() int { return len(a.Requests(State)) + len(a.Requests(Output)) }
				before := asked()
				a.Await("it is asked", func() bool { return asked() > before+1 })
				h.clock.silenceFor(ttl)
				got := h.ends(id, signalbox.ReasonLost)
				if !f.namedIn(got.Message) || !strings.Contains(got.Message, "the slot lease (execution_ttl) of 10m0s ran out") {
					t.Errorf("the message does not name what was wrong: %q", got.Message)
				}
				a.Calm()
				if plain { // it may still be at it, so it is told to stop, and its slot is free when it has
					a.Await("the run is stopped", func() bool { return a.Executions()[0].End != 0 })
				}
				h.await("the slot is free", func() bool { slots, _ := h.store.Slots(t.Context()); return len(slots) == 0 })
				next := h.submit(engine.NewTask{})
				h.untilState(next, signalbox.Working)
				if got := h.task(next); got.TaskID == task.TaskID {
					t.Error("the next task is the lost run")
				}
				if o := a.Overlaps(); len(o) > 0 {
					t.Error(o)
				}
			})
		}
	}
}

// An offer that is answered badly is asked about; the agent has not seen it,
// and it is offered again.
func TestInvalidOfferAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t, f.patience(), fast)
			a := h.agent(Options{Plain: true, Auto: true}) // the transport repeats no offer to a plain agent
			a.Script(Offer, f.step)
			id := h.submit(engine.NewTask{})
			h.start()
			got := h.ends(id, signalbox.ReasonCompleted)
			if got.Attempts < 1 || !f.namedIn(got.LastError) {
				t.Errorf("%d attempts, last error %q", got.Attempts, got.LastError)
			}
		})
	}
}

// An agent whose status is none is down, and its state says why.
func TestInvalidStatusAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t, f.patience())
			a := h.agent(Options{Auto: true})
			a.Always(Status, f.step)
			h.start()
			h.await("the fault is named", func() bool { return f.namedIn(h.live("fake").Message) })
			if h.live("fake").Up {
				t.Error("it is up")
			}
			a.Calm()
			h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
		})
	}
}

// Words of an agent that are stored or logged are bounded, whatever it says.
func TestOversizedAnswers(t *testing.T) {
	t.Parallel()
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.AskTimeout = time.Minute }) // a busy machine takes long to read 6 MiB
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	long := strings.Repeat("x", 2<<20)
	a.Finish(id, End{State: "failed", Output: long, Error: &api.AgentError{Type: long, Message: long}})
	got := h.ends(id, signalbox.ReasonAgentError)
	r, _ := h.store.Result(t.Context(), id)
	if len(got.Message) > 2000 || len(r.Output) > signalbox.OutputBytes || len(r.ErrorType) > 2000 {
		t.Errorf("message of %d, output of %d and error type of %d bytes are stored", len(got.Message), len(r.Output), len(r.ErrorType))
	}
}

// An agent that says that it stops is offered nothing from then on, though it
// still answers, until it beats or registers again.
func TestStoppingAgent(t *testing.T) {
	for _, back := range []string{"beats", "registers", "was gone"} {
		h := newFixture(t)
		a := h.agent(Options{Auto: true})
		h.start()
		h.untilUp("fake")
		if !h.d.Heartbeat("fake", beat("stopping")) {
			t.Fatal("the farewell was refused")
		}
		if live := h.live("fake"); live.Up || live.Message != "it said that it stops" {
			t.Fatalf("it is %+v", live)
		}
		h.await("claims that began before are over", func() bool { return h.d.Busy() == 0 })
		id := h.submit(engine.NewTask{})
		seen := len(a.Requests(Status))
		a.AwaitRequest(Status, seen+5) // it is asked and still answers
		if n := len(a.Requests(Offer)); n != 0 {
			t.Fatalf("it was offered %d tasks", n)
		}
		switch back {
		case "beats":
			h.d.Heartbeat("fake", beat("idle"))
		case "registers":
			h.put(a.Row(), "")
		case "was gone":
			a.Down()
			h.await("it is seen to be gone", func() bool { return strings.Contains(h.live("fake").Message, "refused") })
			a.Up()
		}
		h.ends(id, signalbox.ReasonCompleted)
	}
}

// What an agent that stops still runs is followed to its end.
func TestStoppingAgentLosesNoRun(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{})
	h.start()
	id := h.submit(engine.NewTask{})
	h.untilState(id, signalbox.Working)
	h.d.Heartbeat("fake", beat("stopping"))
	a.Finish(id, End{Output: "done in time"})
	h.ends(id, signalbox.ReasonCompleted)
}
