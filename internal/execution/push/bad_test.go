package push_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// fault is an invalid answer, and texts one of which must be in the resulting message.
type fault struct {
	step  Step
	named []string
}

// late is the message about an agent that takes too long.
const late = "timeout: no answer in time"

// faults are invalid answers of bounded size and duration, to any request.
var faults = map[string]fault{
	"nothing":      {Nothing(200), []string{"answer 200 is empty"}},
	"garbage":      {Garbage(200), []string{"not what an agent says"}},
	"wrong JSON":   {Say(200, []int{1, 2}), []string{"not what an agent says"}},
	"empty object": {Say(200, struct{}{}), []string{"names no state", "without a usable task_id", "not as an agent"}},
	"hang":         {Hang(), []string{late}},
	"drip":         {Drip(200), []string{late}},
	"10 GB":        {Flood(200), []string{fmt.Sprintf("longer than %d bytes", mostOfFlood)}},
	"redirect":     {Redirect("http://127.0.0.1:1/"), []string{"a redirect, which is not followed"}},
	"500":          {Say(500, nil), []string{"answered 500"}},
	"reset":        {Reset(), []string{"EOF", "reset"}},
}

// patience shortens timeouts for faults that last until the timeout, and what is read of those without an end.
func (f fault) patience() setting {
	if slices.Contains(f.named, late) {
		return shortTimeouts
	}
	return shortAnswers
}

func (f fault) namedIn(text string) bool {
	for _, words := range f.named {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// An agent that answers invalidly to all requests counts as silent about its runs: the task is lost when the
// lease is over, and the slot is freed by the usual rules.
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
				a.ClearScripts()
				if plain { // the agent may still run it, so it is told to stop, and its slot is free when it has
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

// After an invalid answer to an offer the agent is asked about the task. It has not seen it, and the task is
// offered again.
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

// An agent with an invalid status is down, and its state says why.
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
			a.ClearScripts()
			h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
		})
	}
}

// Stored or logged messages of an agent are bounded, whatever it sends.
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

// An agent that announces its stop is offered nothing, even if it still answers, until it sends a heartbeat
// or registers again.
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

// The runs of an agent that stops are followed to their end.
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
