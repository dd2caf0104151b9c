package push_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/push"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// failingOffers is a transport to agents that answer everything but offers.
type failingOffers struct{ idle idleAgents }

func (f *failingOffers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/task" {
		return f.idle.RoundTrip(r)
	}
	body, err := json.Marshal(api.AgentRefusal{Error: "internal_error", Message: "it broke"})
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// offersFail makes every offer fail, at agents that work otherwise.
func offersFail(h *fixture, _ *engine.Options) {
	h.opts.Tick, h.opts.Probe, h.opts.Transport = time.Second, 5*time.Second, &failingOffers{}
}

// A task whose prompt makes the only agent answer 5xx ends: not within seconds, since the agent may be at
// fault, but not never.
func TestTaskFailingOnOnlyAgentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, offersFail)
		h.put(idler(0), "")
		h.start()
		id := h.submit(engine.NewTask{})
		time.Sleep(time.Minute)
		if got := h.task(id); got.State.Terminal() {
			t.Fatalf("it ended within a minute: %s", got.Message)
		}
		if c := h.live(nth(0)).Closed; c == nil || c.Failures < 3 || !strings.Contains(c.Text, "it broke") {
			t.Errorf("the agent after a minute: %+v", c)
		}
		time.Sleep(15 * time.Minute)
		got := h.task(id)
		if got.Reason != signalbox.ReasonDispatchFailed || got.Attempts != 2 || got.Claims != 2+signalbox.MaxNoAnswers {
			t.Errorf("after 16 minutes: %s %s, %d attempts, %d claims", got.State, got.Reason, got.Attempts, got.Claims)
		}
	})
}

// An idle agent whose pause is over does not show a retry time in the past.
func TestIdleClosedAgentHasNoPastRetryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, offersFail)
		h.put(idler(0), "")
		h.start()
		id := h.submit(engine.NewTask{})
		var c *signalbox.ClosedGate
		for c == nil {
			time.Sleep(10 * time.Millisecond)
			c = h.live(nth(0)).Closed
		}
		if !c.Until.After(h.engine.Now()) {
			t.Errorf("while paused: tried again at %s, now it is %s", c.Until, h.engine.Now())
		}
		if _, err := h.engine.Cancel(t.Context(), id, "test"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		c = h.live(nth(0)).Closed
		if c == nil {
			t.Fatal("nothing tried it, and it is open")
		}
		if !c.Until.IsZero() || !strings.Contains(c.String(), "is being tried: one task goes first") {
			t.Errorf("without work: %s (retry at %s)", c, c.Until)
		}
	})
}

// Among other tasks, such a task uses up its attempts, and the others complete.
func TestFailingTaskDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	a := h.agent(Options{Auto: true})
	a.Always(Offer, func(x *Exchange) {
		if strings.Contains(x.Task.Prompt, "breaks it") {
			x.Answer(http.StatusInternalServerError, nil)
			return
		}
		Well()(x)
	})
	h.start()
	h.untilUp("fake")
	bad := h.submit(engine.NewTask{Prompt: "this breaks it"})
	for range 12 {
		if got := h.ends(h.submit(engine.NewTask{Prompt: "fine"}), signalbox.ReasonCompleted); got.Attempts != 0 {
			t.Errorf("another task paid %d attempts", got.Attempts)
		}
	}
	for !h.task(bad).State.Terminal() { // other tasks come between its attempts
		h.ends(h.submit(engine.NewTask{Prompt: "fine"}), signalbox.ReasonCompleted)
	}
	if got := h.ends(bad, signalbox.ReasonDispatchFailed); got.Attempts != 3 {
		t.Errorf("%d attempts of the bad one", got.Attempts)
	}
}

// A wrong token is the agent's fault: no task is rejected for it.
func TestAgentRefusingTokenIsClosedAtOnce(t *testing.T) {
	h := newFixture(t)
	h.agent(Options{Name: "a-shut"}).Always(Offer, Say(http.StatusUnauthorized, nil))
	h.agent(Options{Name: "b-well", Auto: true})
	h.start()
	h.untilUp("a-shut")
	h.untilUp("b-well")
	for range 5 {
		if got := h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted); got.Agent != "b-well" || got.Attempts != 0 {
			t.Errorf("completed at %s after %d attempts", got.Agent, got.Attempts)
		}
	}
	if h.live("a-shut").Closed == nil {
		t.Error("it is not closed")
	}
}

// An agent that says idle but refuses every offer is offered less and less, and says why it gets nothing.
func TestRefusingAgentIsBackedOff(t *testing.T) {
	t.Parallel()
	for what, step := range map[string]Step{"busy": Busy(nil), "stale fence": Stale(1)} {
		t.Run(what, func(t *testing.T) {
			h := newFixture(t)
			a := h.agent(Options{})
			a.Always(Offer, step)
			h.start()
			id := h.submit(engine.NewTask{})
			h.await("it is closed", func() bool { return h.live("fake").Closed != nil })
			if n := len(a.Requests(Offer)); n > 5 {
				t.Errorf("offered %d times before it was closed", n)
			}
			if got := h.task(id); got.Attempts != 0 {
				t.Errorf("the task paid %d attempts", got.Attempts)
			}
		})
	}
}

// Offers that fail together start one pause, not one each.
func TestConcurrentFailuresAreOneBackoff(t *testing.T) {
	t.Parallel()
	const together = 8
	h := newFixture(t)
	a := h.agent(Options{Slots: together})
	full := Say(http.StatusInsufficientStorage, nil)
	var all sync.WaitGroup
	all.Add(together)
	for range together {
		a.Script(Offer, func(x *Exchange) {
			all.Done()
			all.Wait()
			full(x)
		})
	}
	a.Script(Offer, full, full)
	h.start()
	h.untilUp("fake")
	for range together {
		h.submit(engine.NewTask{})
	}
	a.AwaitRequest(Offer, together+1) // the one offer after a pause of 1 s; eight pauses would take more than a minute
	h.await("the second pause", func() bool {
		c := h.live("fake").Closed
		return c != nil && c.Failures == together+1
	})
}

// besidePulling is a dispatcher's agents and a pull agent.
type besidePulling struct {
	engine.Live
	pulls engine.LiveAgent
}

func (b besidePulling) Agents() []engine.LiveAgent { return append(b.Live.Agents(), b.pulls) }

// A task that a failing agent did not take is retried, and waits for that agent's pause only if no other
// agent, pull agents included, may take it.
func TestPullAgentTakesTaskThatOtherAgentFailed(t *testing.T) {
	for _, up := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := newFixture(t, offersFail)
			h.put(idler(0), "")
			h.d = push.New(h.engine, h.opts)
			far := signalbox.Agent{Name: "far", Kind: "demo", Slots: 1, Source: signalbox.AgentPull}
			h.engine.SetLive(besidePulling{h.d, engine.LiveAgent{Agent: far, Up: up}})
			if err := h.d.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			id := h.submit(engine.NewTask{})
			for h.live(nth(0)).Closed == nil {
				time.Sleep(10 * time.Millisecond)
			}
			synctest.Wait()
			wait := h.task(id).NotBefore.Sub(h.engine.Now())
			if usual := 1200 * time.Millisecond; (wait <= usual) != up { // a second, and a fifth of jitter
				t.Errorf("with one that pulls up: %v, it waits for %s", up, wait)
			}
		})
	}
}
