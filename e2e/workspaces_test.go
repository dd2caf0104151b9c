package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

// worktrees are those that the command line lists, by the task for which they were
// made.
func (b *box) worktrees() map[string]api.Workspace {
	b.t.Helper()
	var list api.Workspaces
	if err := json.Unmarshal([]byte(b.want(0, "workspaces", "--json").out), &list); err != nil {
		b.t.Fatal(err)
	}
	all := map[string]api.Workspace{}
	for _, w := range list.Workspaces {
		all[w.QueueID] = w
	}
	return all
}

// An agent without room for worktrees takes no tasks; they wait and say why, until a worktree
// is discarded. Work of a run that died with its agent is not lost, and nothing is discarded
// unseen.
func TestWorktreesAreCaredFor(t *testing.T) { worktreesAreCaredFor(t, false) }

func TestWorktreesAreCaredForByAnAgentThatPulls(t *testing.T) { worktreesAreCaredFor(t, true) }

func worktreesAreCaredFor(t *testing.T, pull bool) {
	b := newBox(t)
	b.withSystemPath()
	shop := filepath.Join(b.root, "shop")
	if err := os.MkdirAll(shop, 0o700); err != nil {
		t.Fatal(err)
	}
	b.git(shop, "", "init", "-q", "-b", "main")
	b.file("shop/a.txt", "one\n", 0o600)
	b.git(shop, "", "add", "-A")
	b.git(shop, "", "commit", "-qm", "Begin")
	config := b.file("agent.yaml", "workspace: {max_bytes: 1MB}\n", 0o600)
	name := map[bool]string{false: "coder", true: "far"}[pull]
	director := b.director("--addr", freePort(t))
	c := b.client(director.url)
	args := []string{"--config", config, "--workdir", shop, "--workspace", "worktree", "--", "/bin/sh", "-c", `eval "$0"`, "{prompt}"}
	if pull {
		args = append([]string{"--pull"}, args...)
	}
	agent := b.agent(name, director.url, args...)

	// Its agent dies in the middle of it.
	hanging := filepath.Join(b.root, "hanging-"+name)
	id := b.submit(c, api.SubmitRequest{Prompt: "echo work > w.txt; head -c 1200000 /dev/zero > big.bin; touch " + hanging + "; while :; do sleep 0.1; done"})
	b.until("it works", func() bool { _, err := os.Stat(hanging); return err == nil })
	agent.kill()
	b.agent(name, director.url, args...)
	if task := b.end(c, id); task.Reason != "interrupted" {
		t.Errorf("%s ended as %s (%s): %s", id, task.State, task.Reason, task.Message)
	}
	if got := b.want(0, "diff", id).out; !strings.Contains(got, "+++ b/w.txt\n@@ -0,0 +1 @@\n+work") {
		t.Errorf("diff is %q", got)
	}
	branch := "signalbox/" + id[len(id)-8:]
	if got := b.git(shop, "", "log", "-1", "--format=%(trailers:key=Signalbox-Task,valueonly)", branch); got != id {
		t.Errorf("the work is committed for %q", got)
	}

	// There is no room for another one.
	waits := b.submit(c, api.SubmitRequest{Prompt: "cat a.txt"})
	b.until("it says why it waits", func() bool {
		return strings.Contains(b.cli("why", waits).out, "MiB, and workspace.max_bytes is 976.6 KiB; signalbox workspaces lists")
	})
	if got := b.want(0, "agents").out; !strings.Contains(got, name+" is withheld: no room for worktrees") {
		t.Errorf("%s", got)
	}
	if task, err := c.Task(b.ctx(), waits); err != nil || task.State != "pending" || task.Attempts != 0 {
		t.Errorf("%+v, %v", task, err)
	}
	if pull { // the director cannot contact it
		if got := b.want(0, "workspaces"); !strings.Contains(got.err, "Agent far pulls its tasks") {
			t.Errorf("%s%s", got.out, got.err)
		}
		b.want(3, "workspaces", "discard", id[len(id)-8:], "--yes")
		return
	}
	w := b.worktrees()[id]
	if w.State != "unlanded" || w.CommitsCount != 1 || w.Branch != branch || w.Repo != shop || w.Bytes < 1200000 {
		t.Errorf("%+v", w)
	}
	b.want(2, "workspaces", "discard", w.Name) // it requires a confirmation
	if err := os.WriteFile(filepath.Join(w.Dir, "late.txt"), []byte("late\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.want(0, "workspaces", "discard", w.Name, "--yes"); !strings.Contains(got.err, "1 uncommitted file would be lost:") || !strings.Contains(got.err, "late.txt") || !strings.Contains(got.out, "its branch "+branch+" stays") {
		t.Errorf("%s%s", got.out, got.err)
	}
	if task := b.completed(c, waits); task.Attempts != 0 {
		t.Errorf("%d attempts", task.Attempts)
	}
	if got := b.git(shop, "", "show", branch+":w.txt"); got != "work" {
		t.Errorf("the branch has %q", got)
	}
	if got := b.git(shop, "", "status", "--porcelain"); got != "" {
		t.Errorf("the checkout is %q", got)
	}
}

// The agents page shows their worktrees, and discards one after saying what would be lost.
func TestWorktreesOnThePages(t *testing.T) {
	tool := axe(t)
	s := newStage(t)
	writer := agenttest.New(t, agenttest.Options{Name: "writer", Kind: "claude"})
	list := api.AgentWorkspaces{Full: "no room for worktrees: they take 3 GiB", Bytes: 3 << 30, Mirrors: []api.AgentMirror{{Repo: "https://git.example/shop", Bytes: 2048}}, Workspaces: []api.AgentWorkspace{
		{Name: "busy", State: api.WorkspaceInUse, Branch: "signalbox/busy", Repo: "/src/shop", Bytes: 10},
		{Name: "left", State: api.WorkspaceUnlanded, Branch: "signalbox/left", Repo: "/src/shop", Bytes: 3 << 30, Commits: []string{"1234567 <img src=x onerror=alert(1)>"}, CommitsCount: 2, Seen: "abc"},
		{Name: "within", State: api.WorkspaceUncommitted, Branch: "signalbox/within", Repo: "/src/shop", Bytes: 10, Nested: []string{"tools/x: 1 commit that no remote of it has"}, NestedCount: 2, Seen: "def"},
	}}
	writer.Always(agenttest.Workspaces, func(x *agenttest.Exchange) { x.Answer(http.StatusOK, list) })
	asked := make(chan string, 1)
	writer.Always(agenttest.Discard, func(x *agenttest.Exchange) {
		asked <- x.R.URL.RequestURI()
		x.Answer(http.StatusOK, api.WorkspaceDiscarded{Name: "left", Branch: "signalbox/left", BranchDeleted: true})
	})
	if _, err := s.c.RegisterAgent(s.ctx(), api.RegisterAgent{Name: "writer", Kind: "claude", URL: writer.URL()}); err != nil {
		t.Fatal(err)
	}
	p := s.ownWindow(s.d.url).tabWith("/ui/agents", tabOptions{tool: tool})
	p.showsIn("main", "Worktrees")
	if n := len(writer.Requests(agenttest.Workspaces)); n != 0 {
		t.Errorf("it was asked %d times without a viewer", n)
	}
	p.click(".workspaces button", "Show")
	p.showsIn(".listing-workspaces", "2 commits not landed")
	p.showsIn(".listing-workspaces", "3.0 GiB")
	p.showsIn(".workspaces .note", "takes no tasks: no room for worktrees: they take 3 GiB")
	p.showsIn(".workspaces", "writer keeps a mirror of https://git.example/shop: 2.0 KiB.")
	p.until("one in use cannot be discarded", `document.querySelector("button[aria-label='Discard busy of writer']").disabled`)
	p.usableIn(0, "worktrees")
	p.seenAs(look{1280, 900, "light"})
	p.showsIn(".listing-workspaces", "work in a nested repository")
	p.click(".workspaces button", "Discard within of writer")
	p.showsIn("dialog", "2 repositories inside it have work that would be lost: tools/x: 1 commit that no remote of it has and 1 more")
	p.click("dialog button", "Go back")
	p.noDialog()
	p.click(".workspaces button", "Discard left of writer")
	p.showsIn("dialog", "It has no uncommitted work, and its branch signalbox/left stays.")
	p.does("the branch is to go too", `document.querySelector("dialog input[type=checkbox]").click()`)
	p.showsIn("dialog", "2 commits of signalbox/left would be lost: 1234567 <img src=x onerror=alert(1)> and 1 more")
	p.click("dialog button", "Discard")
	if got := <-asked; got != "/workspaces/left?delete_branch=true&seen=abc" {
		t.Errorf("asked for %s", got)
	}
	p.showsIn("body", "left is discarded with its branch signalbox/left.")
	p.noDialog()
}
