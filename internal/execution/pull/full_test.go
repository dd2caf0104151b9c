package pull_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// An agent without room for worktrees gets only isolated tasks until it has room. Waiting tasks say why, and
// no attempt is used up.
func TestAgentWithoutRoomIsGivenNothing(t *testing.T) {
	h := newFixture(t)
	a := h.agent("far", 1)
	a.c.IsolatedSlots = 1
	a.c.Full = "no room for worktrees: they take 2 GiB\x1b; signalbox workspaces lists the worktrees"
	id := h.submit(engine.NewTask{})
	if a.given() {
		t.Fatal("it is given a task")
	}
	if live := h.live("far"); !live.Held || live.BackedOff || live.Full == "" || live.Message != live.Full {
		t.Errorf("%+v", live)
	}
	w, err := h.engine.Why(t.Context(), id)
	if err != nil || !strings.Contains(fmt.Sprint(w), "no room for worktrees") {
		t.Errorf("%+v, %v", w, err)
	}
	if got, err := h.store.Task(t.Context(), id); err != nil || got.State != signalbox.Pending || got.Attempts != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	a.c.Full = ""
	if !a.given() || h.live("far").Held {
		t.Errorf("it is given nothing: %+v", h.live("far"))
	}
}
