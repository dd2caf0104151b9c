package push_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// longPrompt is longer than the part of it that a plain agent shows.
const longPrompt = "Summarise the incident of the night and write down what each of us did"

// result is the stored answer of a task.
func (h *fixture) result(id string) string {
	h.t.Helper()
	r, err := h.store.Result(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Output
}

// A run at a plain agent that others started after the offer is not taken for the task, however similar it
// begins: a task whose offer never arrived does not end with another run's answer.
func TestForeignRunIsNotMistakenForTask(t *testing.T) {
	t.Parallel()
	for name, stranger := range map[string]string{
		"another prompt":                     "what is 2+2",
		"the same beginning":                 longPrompt[:50] + " other thing",
		"shorter than what is shown of ours": longPrompt[:20],
	} {
		for _, over := range []bool{true, false} {
			h := newFixture(t)
			a := h.agent(Options{Plain: true})
			a.Script(Offer, func(x *Exchange) {
				foreign := x.Agent.RunForeign(stranger)
				if over {
					x.Agent.Finish(foreign, End{Output: "4"})
				}
				Reset()(x)
			})
			id := h.submit(engine.NewTask{Prompt: longPrompt})
			h.start()
			if !over {
				a.AwaitRequest(Status, 3)
				if got := h.task(id); got.State == signalbox.Working || got.State.Terminal() {
					t.Fatalf("%s: while the stranger runs it is %s (%s)", name, got.State, got.Message)
				}
				a.Finish(a.Executions()[0].TaskID, End{Output: "4"})
			}
			own := a.AwaitStart(2)
			if own.Prompt != longPrompt {
				t.Fatalf("%s: the agent ran %q", name, own.Prompt)
			}
			a.Finish(own.TaskID, End{Output: "its own"})
			h.ends(id, signalbox.ReasonCompleted)
			if got := h.result(id); got != "its own" {
				t.Errorf("%s, over %v: the answer is %q", name, over, got)
			}
		}
	}
}

// A run that ended before its reply was lost, or while there was no director, is found by its whole prompt.
// Its answer is fetched, since the list has none.
func TestResultAfterLostReplyIsFetched(t *testing.T) {
	for _, prompt := range []string{"short", longPrompt, strings.Repeat("ü", 40)} {
		for _, killed := range []bool{false, true} {
			h := newFixture(t)
			a := h.agent(Options{Plain: true})
			id := h.submit(engine.NewTask{Prompt: prompt})
			finish := func(x *Exchange) { x.Agent.Finish(x.Agent.Executions()[0].TaskID, End{Output: "what it said"}) }
			if killed {
				a.Script(Offer, Taking(Hang()))
				h.start()
				a.AwaitStart(1)
				h.stop()
				finish(&Exchange{Agent: a})
			} else {
				a.Script(Offer, Taking(func(x *Exchange) { finish(x); Reset()(x) }))
			}
			h.start()
			h.ends(id, signalbox.ReasonCompleted)
			if got := h.result(id); got != "what it said" || len(a.Executions()) != 1 {
				t.Errorf("%q, killed %v: answer %q after %d executions", prompt, killed, got, len(a.Executions()))
			}
		}
	}
}

// A run that the director followed and the agent forgot may be in its history: the answer is taken from
// there.
func TestResultOfForgottenRunIsFetchedFromHistory(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true})
	id := h.submit(engine.NewTask{Prompt: longPrompt})
	h.start()
	h.untilState(id, signalbox.Working)
	ended := make(chan struct{}) // the agent forgets it only when the history has it
	a.Always(State, After(ended, Nothing(404)))
	a.Finish(a.Executions()[0].TaskID, End{Output: "what it said"})
	close(ended)
	h.ends(id, signalbox.ReasonCompleted)
	if got := h.result(id); got != "what it said" {
		t.Errorf("the answer is %q", got)
	}
}

// If an agent shows no prompts, it is unknown whether its run is the task. It is asked while that run
// continues, then on_lost decides.
func TestUnknownOutcomeIsDecidedByOnLost(t *testing.T) {
	for _, onLost := range []signalbox.OnLost{signalbox.LostFail, signalbox.LostRequeue} {
		h := newFixture(t)
		a := h.agent(Options{Plain: true, Preview: -1, NoHistory: true, NeverBusy: true})
		a.Script(Offer, Taking(Reset()))
		id := h.submit(engine.NewTask{OnLost: onLost})
		h.start()
		a.AwaitRequest(Status, 4)
		if got := h.task(id); got.State != signalbox.Dispatching || len(a.Executions()) != 1 {
			t.Fatalf("while the agent works it is %s after %d executions", got.State, len(a.Executions()))
		}
		a.Finish(a.Executions()[0].TaskID, End{Output: "no one knows of what"})
		if onLost == signalbox.LostFail {
			got := h.ends(id, signalbox.ReasonLost)
			if !strings.Contains(got.Message, "whether the task ran is not known") {
				t.Errorf("message %q", got.Message)
			}
			if got := h.result(id); got != "" {
				t.Errorf("it has the answer %q", got)
			}
			continue
		}
		a.Finish(a.AwaitStart(2).TaskID, End{})
		if got := h.ends(id, signalbox.ReasonCompleted); got.Attempts != 1 {
			t.Errorf("%d attempts", got.Attempts)
		}
	}
}

// The questions end: an agent that runs a possible candidate for longer than the slot lease is not asked any
// more, and offered nothing until it is idle.
func TestUnknownOutcomeIsBoundedByTheSlotLease(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true, Preview: -1, NoHistory: true, NeverBusy: true})
	a.Script(Offer, Taking(Reset()))
	id := h.submit(engine.NewTask{})
	h.start()
	a.AwaitRequest(Status, 4)
	h.clock.silenceFor(ttl)
	h.ends(id, signalbox.ReasonLost)
	next := h.submit(engine.NewTask{})
	a.AwaitRequest(Status, len(a.Requests(Status))+3)
	if n := len(a.Executions()); n != 1 {
		t.Fatalf("it was offered something beside the run: %d executions", n)
	}
	a.Finish(a.Executions()[0].TaskID, End{})
	h.untilState(next, signalbox.Working)
}

// Two runs of the same prompt within the time of the offer: neither is proven to be the task.
func TestTwoCandidatesProveNothing(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Plain: true, NeverBusy: true})
	a.Script(Offer, Taking(func(x *Exchange) {
		x.Agent.RunForeign("do it")
		for i, e := range x.Agent.Executions() {
			x.Agent.Finish(e.TaskID, End{Output: []string{"one", "two"}[i]})
		}
		Reset()(x)
	}))
	id := h.submit(engine.NewTask{Prompt: "do it"})
	h.start()
	h.ends(id, signalbox.ReasonLost)
}

// A run of the same prompt long after the offer proves nothing.
func TestSamePromptLongAfterTheOfferProvesNothing(t *testing.T) {
	h := newFixture(t, shortTimeouts, func(h *fixture, _ *engine.Options) { h.opts.Confirm = time.Hour })
	a := h.agent(Options{Plain: true})
	a.Script(Offer, func(x *Exchange) {
		h.clock.jumpWall(time.Minute)
		foreign := x.Agent.RunForeign("do it")
		x.Agent.Finish(foreign, End{Output: "the stranger's"})
		Reset()(x)
	})
	id := h.submit(engine.NewTask{Prompt: "do it"})
	h.start()
	a.AwaitRequest(History, 1)
	a.AwaitRequest(Past, 1)
	if got := h.task(id); got.State != signalbox.Dispatching {
		t.Errorf("it is %s: %s", got.State, got.Message)
	}
}

// A plain agent that answers each request in time gets as many as needed. Regression: all together had the
// timeout of one, so a task whose reply was lost at an agent with a long history was never resolved.
func TestManyRequestsToSlowPlainAgent(t *testing.T) {
	t.Parallel()
	const runs, answersIn = 8, 200 * time.Millisecond
	h := newFixture(t, func(h *fixture, _ *engine.Options) { h.opts.AskTimeout = time.Second })
	a := h.agent(Options{Plain: true})
	a.Script(Offer, func(x *Exchange) {
		for n := range runs {
			x.Agent.Finish(x.Agent.RunForeign(fmt.Sprint(longPrompt[:50], n)), End{Output: "4"})
		}
		Reset()(x)
	})
	a.Always(State, func(x *Exchange) {
		late := time.NewTimer(answersIn)
		defer late.Stop()
		select {
		case <-late.C:
			Well()(x)
		case <-x.R.Context().Done():
		}
	})
	id := h.submit(engine.NewTask{Prompt: longPrompt})
	h.start()
	own := a.AwaitStart(runs + 1)
	a.Finish(own.TaskID, End{Output: "its own"})
	h.ends(id, signalbox.ReasonCompleted)
}
