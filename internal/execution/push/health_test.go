package push_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// An agent with a full disk does not spoil a backlog: each task completes at the other agent, and the failing
// one is closed and says why.
func TestFailingAgentDoesNotFailBacklog(t *testing.T) {
	h := newFixture(t)
	sick := h.agent(Options{Name: "a-full"})
	sick.Always(Offer, Say(500, api.AgentRefusal{Error: "storage_error", Message: "no space left on device"}))
	h.agent(Options{Name: "b-well", Auto: true})
	h.start()
	h.untilUp("a-full")
	h.untilUp("b-well")
	var ids []string
	for i := range 20 {
		ids = append(ids, h.submit(engine.NewTask{Prompt: fmt.Sprintf("task %d", i)}))
	}
	for _, id := range ids {
		if got := h.ends(id, signalbox.ReasonCompleted); got.Agent != "b-well" || got.Attempts != 0 {
			t.Errorf("task %s: agent %s, %d attempts", id, got.Agent, got.Attempts)
		}
	}
	if c := h.live("a-full").Closed; c == nil || !strings.Contains(c.Text, "no space left") {
		t.Errorf("the sick agent: %+v", h.live("a-full"))
	}
}

// It is opened again only by accepting a task.
func TestClosedAgentIsOpenedByAcceptedTask(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	a := h.agent(Options{Auto: true})
	a.Script(Offer, Say(507, nil), Say(507, nil))
	h.start()
	id := h.submit(engine.NewTask{})
	h.await("it is closed", func() bool { return h.live("fake").Closed != nil })
	got := h.ends(id, signalbox.ReasonCompleted)
	if got.Attempts != 0 || got.Claims != 3 {
		t.Errorf("%d attempts, %d claims", got.Attempts, got.Claims)
	}
	if c := h.live("fake").Closed; c != nil {
		t.Errorf("it is still closed: %+v", c)
	}
}

// The next attempt of a task goes to another agent if one may take it.
func TestNextAttemptGoesToAnotherAgent(t *testing.T) {
	h := newFixture(t)
	h.agent(Options{Name: "a-sick"}).Always(Offer, Say(503, nil))
	h.agent(Options{Name: "b-well", Auto: true})
	h.start()
	h.untilUp("a-sick")
	h.untilUp("b-well")
	for range 3 {
		if got := h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted); got.Agent != "b-well" {
			t.Errorf("completed at %s", got.Agent)
		}
	}
}
