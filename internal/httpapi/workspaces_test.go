package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func TestWorkspaces(t *testing.T) {
	b := apitest.New(t, func(o *apitest.Options) { o.Config.Token = "the-static-token" })
	admin := apitest.Bearer("the-static-token")
	b.AddAgent("coder", 1)
	b.AddAgent("writer", 1)
	far := b.AddAgent("far", 1)
	far.Source, far.URL = signalbox.AgentPull, signalbox.PullURL("0123456789abcdef")
	if _, err := b.Engine.PutAgent(t.Context(), far, ""); err != nil {
		t.Fatal(err)
	}
	b.Runs.Answering = map[string]bool{"coder": true}
	b.Runs.Worktrees = map[string]api.AgentWorkspaces{"coder": {Bytes: 300, Mirrors: []api.AgentMirror{{Repo: "https://git.example/shop"}}, Workspaces: []api.AgentWorkspace{
		{Name: "one", State: api.WorkspaceUnlanded, Branch: "signalbox/one", Commits: []string{"1234567 x"}, CommitsCount: 1, Seen: "abc", Bytes: 200},
		{Name: "two", State: api.WorkspaceEmpty, Branch: "signalbox/two", Bytes: 100},
	}}}
	var all api.Workspaces
	b.Do("GET", "/api/workspaces", "", admin).Want(t, 200, &all)
	if len(all.Workspaces) != 2 || all.Workspaces[0].Agent != "coder" || all.Workspaces[0].Name != "one" || all.Workspaces[0].Commits[0] != "1234567 x" {
		t.Errorf("%+v", all.Workspaces)
	}
	if a := all.Agents; len(a) != 3 || a[0].Bytes != 300 || len(a[0].Mirrors) != 1 || a[0].Message != "" || a[1].Agent != "far" || !strings.Contains(a[1].Message, "pulls its tasks") || !strings.Contains(a[2].Message, "writer did not list its worktrees") {
		t.Errorf("%+v", all.Agents)
	}
	b.Do("GET", "/api/workspaces?agent=writer", "", admin).Want(t, 200, &all)
	if len(all.Agents) != 1 || len(all.Workspaces) != 0 {
		t.Errorf("%+v", all)
	}
	for _, name := range []string{"nobody", "no%20name", strings.Repeat("x", 300)} {
		b.Do("GET", "/api/workspaces?agent="+name, "", admin).WantError(t, 404, signalbox.CodeNotFound)
	}
	narrow := apitest.Bearer(b.AddToken(identity.NewToken{Name: "narrow", Scopes: []signalbox.Scope{signalbox.ScopeRead}, Agents: []string{"writer"}}))
	b.Do("GET", "/api/workspaces", "", narrow).Want(t, 200, &all)
	if len(all.Agents) != 1 || all.Agents[0].Agent != "writer" {
		t.Errorf("%+v", all)
	}
	b.Do("GET", "/api/workspaces?agent=coder", "", narrow).WantError(t, 404, signalbox.CodeNotFound)

	refused := func(path string, status int, code signalbox.Code) {
		t.Helper()
		b.Do("DELETE", path, "", admin).WantError(t, status, code)
	}
	refused("/api/agents/coder/workspaces/one", http.StatusConflict, signalbox.CodeConflict)
	refused("/api/agents/coder/workspaces/three", http.StatusNotFound, signalbox.CodeNotFound)
	refused("/api/agents/nobody/workspaces/one", http.StatusNotFound, signalbox.CodeNotFound)
	refused("/api/agents/far/workspaces/one", http.StatusNotImplemented, signalbox.CodeUnsupported)
	refused("/api/agents/coder/workspaces/one?delete_branch=maybe", http.StatusBadRequest, signalbox.CodeValidation)
	var done api.WorkspaceDiscarded
	b.Do("DELETE", "/api/agents/coder/workspaces/one?seen=abc&delete_branch=true", "", admin).Want(t, 200, &done)
	if done.Name != "one" || !done.BranchDeleted || done.Bytes != 200 {
		t.Errorf("%+v", done)
	}
	var log api.AuditLog
	b.Do("GET", "/api/audit?action=discard_workspace", "", admin).Want(t, 200, &log)
	if len(log.Rows) != 1 || log.Rows[0].AgentName != "coder" || log.Rows[0].Resource != "one" || log.Rows[0].Result != signalbox.AuditSuccess {
		t.Errorf("%+v", log.Rows)
	}
	b.Runs.Answering["coder"] = false
	b.Do("GET", "/api/workspaces?agent=coder", "", admin).Want(t, 200, &all)
	if all.Agents[0].Message == "" {
		t.Errorf("%+v", all)
	}
}

// workspaceStory lists worktrees and discards one.
func (s *session) workspaceStory() {
	at := s.clock.Now().UTC()
	s.Runs.Worktrees = map[string]api.AgentWorkspaces{"coder": {Bytes: 58 << 20, Workspaces: []api.AgentWorkspace{{
		Name: "sd7k2m9x", Kind: "worktree", Dir: "/home/ann/.signalbox/agents/coder/worktrees/sd7k2m9x/tree", Repo: "/home/ann/src/shop", Branch: "signalbox/sd7k2m9x",
		Base: "4be1c6d00f6c21e2b2a0b9a29f2ea7a2a3c1d5aa", BaseBranch: "main", QueueID: "queue-01jhqb3r0000000000sd7k2m9x", SessionID: "talk-1",
		CreatedAt: at, LastUsedAt: at, Bytes: 58 << 20, State: api.WorkspaceUnlanded, Commits: []string{"9fceb02 Round half up"}, CommitsCount: 1, Seen: "5f0c8a2b9d31e674",
	}}}}
	before := s.Runs.Answering
	s.Runs.Answering = map[string]bool{"coder": true}
	s.ask("workspaces", "", "/api/workspaces", "")
	s.ask("discardWorkspace", "A worktree with something that the caller has not seen", "/api/agents/coder/workspaces/sd7k2m9x?delete_branch=true", "")
	s.ask("discardWorkspace", "", "/api/agents/coder/workspaces/sd7k2m9x?seen=5f0c8a2b9d31e674&delete_branch=true", "")
	s.Runs.Answering = before
}
