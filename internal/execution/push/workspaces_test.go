package push_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

func TestWorkspacesAreAskedOfTheAgent(t *testing.T) {
	t.Parallel()
	h := newFixture(t, shortTimeouts)
	a := h.agent(Options{Name: "a"})
	h.start()
	if got, err := h.d.Workspaces(t.Context(), "a"); err != nil || len(got.Workspaces) != 0 { // it knows none
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
