package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/mcp"
)

func (h *rig) as(session, tool string) string {
	h.t.Helper()
	r, err := h.Call(h.ctx(), gateway.Call{Tool: "srv__" + tool, Arguments: json.RawMessage(do("pid", nil)), Caller: gateway.Caller{Session: session}})
	if err != nil {
		h.t.Fatal(err)
	}
	return string(r.Structured)
}

func TestUnsharedServerHasProcessPerSession(t *testing.T) {
	s := child("raw")
	s.Shared = false
	h := ready(t, s, mcp.Options{})
	if s := h.Server(); len(s.PIDs) != 0 || s.Tools != 1 {
		t.Errorf("before the first call: %+v", s)
	}
	one, two := h.as("one", "a"), h.as("two", "a")
	if one == two || h.as("one", "a") != one || h.as("two", "a") != two {
		t.Errorf("sessions one %s and two %s share a process, or one session has several", one, two)
	}
	if a, b := h.as("", "a"), h.as("", "a"); a == b {
		t.Error("calls without a session share a process")
	}
	h.until(func(s gateway.Server) bool { return len(s.PIDs) == 2 })
	h.EndSession("one")
	h.until(func(s gateway.Server) bool { return len(s.PIDs) == 1 })
	if again := h.as("one", "a"); again == one {
		t.Error("the session still uses its old process")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.call("a", "{}"); err == nil || !strings.Contains(err.Error(), "is down") {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestIdleSessionProcessIsEnded(t *testing.T) {
	s := child("raw")
	s.Shared = false
	h := ready(t, s, mcp.Options{SessionIdle: 50 * time.Millisecond})
	h.as("one", "a")
	h.until(func(s gateway.Server) bool { return len(s.PIDs) == 0 })
}

func TestSessionProcessIsRestartedAfterCrash(t *testing.T) {
	s := child("raw")
	s.Shared = false
	h := ready(t, s, mcp.Options{})
	one := h.as("one", "a")
	_, err := h.Call(h.ctx(), gateway.Call{Tool: "srv__a", Arguments: json.RawMessage(do("die", nil)), Caller: gateway.Caller{Session: "one"}})
	if err == nil || !strings.Contains(err.Error(), "went away during the call") {
		t.Errorf("%v", err)
	}
	if h.as("one", "a") == one {
		t.Error("the same process")
	}
}
