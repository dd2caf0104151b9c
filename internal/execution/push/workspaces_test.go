package push_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// An agent without room for worktrees is offered nothing, and tasks that wait for it say why; no attempt is
// used up. It gets tasks again when it reports room by its status or a heartbeat.
func TestAgentWithoutRoomIsOfferedNothing(t *testing.T) {
	t.Parallel()
	const why = "no room for worktrees: they take 2 GiB; signalbox workspaces lists the worktrees"
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a", Full: why})
	h.start()
	h.await("it has told that it is full", func() bool { return h.live("a").Full == why })
	id := h.submit(engine.NewTask{})
	waits := func() {
		t.Helper()
		if live := h.live("a"); !live.Up || !live.Held || live.BackedOff || live.Message != why {
			t.Errorf("%+v", live)
		}
		w, err := h.engine.Why(t.Context(), id)
		if err != nil || !strings.Contains(fmt.Sprint(w), why) {
			t.Errorf("%+v, %v", w, err)
		}
		if got := h.task(id); got.State != signalbox.Pending || got.Attempts != 0 || len(a.Requests(Offer)) != 0 {
			t.Errorf("%s after %d attempts, %d offers", got.State, got.Attempts, len(a.Requests(Offer)))
		}
	}
	waits()
	a.SetFull("")
	run := a.AwaitStart(1) // it is asked again
	a.Finish(run.TaskID, End{})
	h.untilState(id, signalbox.Completed)

	a.SetFull(why)
	h.d.Heartbeat("a", api.Heartbeat{State: "idle", Full: why})
	if h.live("a").Full != why {
		t.Error("the heartbeat does not count")
	}
	a.SetFull("")
	h.d.Heartbeat("a", api.Heartbeat{State: "idle"})
	if h.live("a").Held {
		t.Errorf("%+v", h.live("a"))
	}
	// An agent that has just become full refuses, which costs no attempt either.
	a.SetFull(why)
	a.Script(Offer, func(x *Exchange) {
		x.Answer(http.StatusConflict, api.AgentRefusal{Error: "workspace_full", Message: why})
	})
	id = h.submit(engine.NewTask{})
	h.await("it has refused", func() bool { return len(a.Requests(Offer)) == 2 && h.live("a").Message == why })
	h.until(id, "back in its queue", func(t signalbox.Task) bool { return t.State == signalbox.Pending })
	if got := h.task(id); got.Attempts != 0 {
		t.Errorf("%d attempts", got.Attempts)
	}
	a.SetFull("")
	run = a.AwaitStart(2)
	a.Finish(run.TaskID, End{})
	h.untilState(id, signalbox.Completed)
}

func TestWorkspacesAreAskedOfTheAgent(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	if got, err := h.d.Workspaces(t.Context(), "a"); err != nil || len(got.Workspaces) != 0 { // it does not support worktrees
		t.Errorf("%+v, %v", got, err)
	}
	a.Always(Workspaces, func(x *Exchange) {
		x.Answer(http.StatusOK, api.AgentWorkspaces{Bytes: 7, Workspaces: []api.AgentWorkspace{{Name: "one", State: api.WorkspaceEmpty}}})
	})
	if got, err := h.d.Workspaces(t.Context(), "a"); err != nil || got.Bytes != 7 || got.Workspaces[0].Name != "one" {
		t.Errorf("%+v, %v", got, err)
	}
	a.Always(Discard, func(x *Exchange) {
		if q := x.R.URL.Query(); q.Get("seen") != "a/b&c" || q.Get("delete_branch") != "true" || x.R.PathValue("id") != "one/../two" {
			t.Errorf("%s with %v", x.R.PathValue("id"), q)
		}
		x.Answer(http.StatusOK, api.WorkspaceDiscarded{Name: "one", Bytes: 7})
	})
	discard := func() (api.WorkspaceDiscarded, error) {
		return h.d.DiscardWorkspace(t.Context(), "a", "one/../two", api.DiscardWorkspace{Seen: "a/b&c", DeleteBranch: true})
	}
	if done, err := discard(); err != nil || done.Bytes != 7 {
		t.Errorf("%+v, %v", done, err)
	}
	for status, code := range map[int]signalbox.Code{404: signalbox.CodeNotFound, 409: signalbox.CodeConflict, 500: signalbox.CodeAgentDown} {
		a.Always(Discard, func(x *Exchange) {
			x.Answer(status, api.AgentRefusal{Error: "no", Message: "2 commits would be lost"})
		})
		if _, err := discard(); signalbox.CodeOf(err) != code || code == signalbox.CodeConflict && !strings.Contains(err.Error(), "2 commits would be lost") {
			t.Errorf("%d: %v", status, err)
		}
	}
	a.Always(Workspaces, func(x *Exchange) { x.Answer(http.StatusOK, "nonsense") })
	for range 2 {
		if _, err := h.d.Workspaces(t.Context(), "a"); signalbox.CodeOf(err) != signalbox.CodeAgentDown {
			t.Errorf("%v", err)
		}
		a.Down()
	}
	if _, err := h.d.Workspaces(t.Context(), "nobody"); signalbox.CodeOf(err) != signalbox.CodeAgentDown {
		t.Errorf("%v", err)
	}
	if _, err := h.d.DiscardWorkspace(t.Context(), "nobody", "x", api.DiscardWorkspace{}); signalbox.CodeOf(err) != signalbox.CodeAgentDown {
		t.Errorf("%v", err)
	}
}
