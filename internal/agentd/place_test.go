package agentd_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// remoteOf makes a bare repository of a config's folder and sets it as origin.
func remoteOf(t *testing.T, cfg agentd.Config) string {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "shop.git")
	git(t, cfg, "clone", "-q", "--bare", cfg.WorkDir, bare)
	git(t, cfg, "remote", "add", "origin", bare)
	return bare
}

// elsewhere is a config whose folder is not a repository.
func elsewhere(t *testing.T) agentd.Config {
	t.Helper()
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"sh", "-c", `eval "$0"`, "{prompt}"}
	return cfg
}

// declines submits a task and expects a refusal with this text.
func (a *agent) declines(task api.AgentTask, text string) {
	a.t.Helper()
	var ref api.AgentRefusal
	if code := a.do("POST", "/task", task, &ref); code != http.StatusBadRequest || !strings.Contains(ref.Message, text) {
		a.t.Errorf("%+v: %d %q: not %q", task, code, ref.Message, text)
	}
}

func TestTasksWorkInClones(t *testing.T) {
	src := repository(t)
	git(t, src, "branch", "old")
	git(t, src, "tag", "v1")
	put(t, src, "a.txt", "two\n")
	git(t, src, "commit", "-qam", "second")
	bare := remoteOf(t, src)
	cfg := elsewhere(t)
	cfg.Slots = 2
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: bare, Setup: []string{"echo set up > installed"}}
	a := start(t, cfg)
	if s := a.daemon.Status(); s.Workspace != "clone" {
		t.Errorf("%+v", s)
	}
	s, c := a.run(api.AgentTask{Prompt: "cat a.txt installed && echo new > n.txt", QueueID: "queue-00aaaaaa", Fence: 1}, "completed")
	if c.Workspace != "clone" || c.Branch != "signalbox/00aaaaaa" || c.Commits != 1 || c.FilesChanged != 1 || !strings.Contains(s.Output, "two") {
		t.Errorf("%+v %q", c, s.Output)
	}
	for base, want := range map[string]string{"old": "one", "v1": "one", git(t, src, "rev-parse", "v1"): "one", "main": "two"} {
		if s, _ := a.run(api.AgentTask{Prompt: `cat a.txt; test "$(git rev-parse --abbrev-ref HEAD)" != main`, Base: base}, "completed"); !strings.Contains(s.Output, want) {
			t.Errorf("from %s: %q", base, s.Output)
		}
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true", Base: "gone"}).TaskID), "failed", "start_error", bare+` has no branch, tag or commit "gone"`)
	// The next clone includes what was pushed to the remote since.
	put(t, src, "a.txt", "three\n")
	git(t, src, "commit", "-qam", "third")
	git(t, src, "push", "-q", "origin", "main", ":old")
	if s, _ := a.run(api.AgentTask{Prompt: "cat a.txt"}, "completed"); !strings.Contains(s.Output, "three") {
		t.Errorf("%q", s.Output)
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true", Base: "old"}).TaskID), "failed", "start_error", `commit "old"`)
	// Without the remote the run continues with the mirror and says so.
	if err := os.Rename(bare, bare+".away"); err != nil {
		t.Fatal(err)
	}
	s, _ = a.run(api.AgentTask{Prompt: "cat a.txt"}, "completed")
	if said := a.says(s.TaskID, "cannot be reached, so this run works with what was fetched before"); !strings.Contains(said, "three") {
		t.Errorf("%q", said)
	}
	a.stop()
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	a = start(t, cfg)
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID), "failed", "start_error", bare+" cannot be cloned: git ls-remote: fatal: ")
}

func TestClonesOverHTTP(t *testing.T) {
	src := repository(t)
	srv := hostGit(t, filepath.Dir(remoteOf(t, src)))
	cfg := elsewhere(t)
	cfg.Workspace.Repos = []string{srv.url + "/*"}
	a := start(t, cfg)
	if s, c := a.run(api.AgentTask{Prompt: "cat a.txt", Workspace: "clone", Repo: srv.url + "/shop.git"}, "completed"); c.Workspace != "clone" || !strings.Contains(s.Output, "one") {
		t.Errorf("%+v %q", c, s.Output)
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true", Workspace: "clone", Repo: srv.url + "/none.git"}).TaskID), "failed", "start_error", "/none.git/' not found")
	a.declines(api.AgentTask{Prompt: "true", Workspace: "clone", Repo: srv.url + "/deep/er.git"}, "may not clone")
}

func TestWorkspaceOfTask(t *testing.T) {
	cfg := repository(t)
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	git(t, cfg, "branch", "old")
	put(t, cfg, "a.txt", "two\n")
	git(t, cfg, "commit", "-qam", "second")
	bare := remoteOf(t, cfg)
	a := start(t, cfg)
	_, c := a.run(api.AgentTask{Prompt: "grep -q one a.txt", Workspace: "worktree", Base: "old", SessionID: "talk"}, "completed")
	if c.Workspace != "worktree" || c.Dir == cfg.WorkDir {
		t.Errorf("%+v", c)
	}
	// The same again, as if the task was offered twice, and then a turn that names no
	// place.
	for _, task := range []api.AgentTask{{Workspace: "worktree", Base: "old"}, {}} {
		task.Prompt, task.SessionID = "grep -q one a.txt", "talk"
		if _, again := a.run(task, "completed"); again.Dir != c.Dir {
			t.Errorf("%+v", again)
		}
	}
	for _, task := range []api.AgentTask{{Workspace: "folder"}, {Workspace: "worktree", Base: "main"}, {Workspace: "clone", Repo: bare}, {Workspace: "worktree", Repo: "sub"}} {
		task.Prompt, task.SessionID = "true", "talk"
		a.declines(task, "the conversation talk is held in a worktree of "+a.daemon.Status().WorkDir+", made from old, and stays there")
	}
	if _, c := a.run(api.AgentTask{Prompt: "true", Workspace: "worktree", Repo: "sub"}, "completed"); !strings.HasPrefix(c.Dir, a.daemon.Status().WorkDir) && c.Workspace != "worktree" {
		t.Errorf("%+v", c)
	}
	if _, c := a.run(api.AgentTask{Prompt: "true", Workspace: "clone", Repo: bare}, "completed"); c.Workspace != "clone" { // the origin of its folder
		t.Errorf("%+v", c)
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true", Workspace: "worktree", Base: "gone"}).TaskID), "failed", "start_error", `no commit "gone"`)
	for text, task := range map[string]api.AgentTask{
		`workspace is "branch": folder, worktree or clone`: {Workspace: "branch"},
		"repo and base need a workspace":                   {Workspace: "folder", Base: "main"},
		"base needs a workspace":                           {Base: "main"},
		"repo needs workspace":                             {Repo: "sub"},
		"says of what":                                     {Workspace: "clone"},
		"there is no folder ../.. that this agent may use": {Workspace: "worktree", Repo: "../.."},
		"both say where to work":                           {Workspace: "worktree", Repo: "sub", Project: &api.Project{Path: "sub"}},
		"cannot be used with isolated":                     {Workspace: "worktree", Isolated: true},
		"may not clone":                                    {Workspace: "clone", Repo: "/etc"},
	} {
		task.Prompt = "true"
		a.declines(task, text)
	}
	for _, repo := range []string{"ext::sh -c touch% /tmp/x", "file:///etc", "--upload-pack=touch", "-u./x", "ssh://-oProxyCommand=x/y", "git@-oProxyCommand=x:y", "https://u:secret@host/x", "https://host/a/../b", "https://host/%2e%2e/b", "host:x", "https://host/x\ny", "HTTPS://host/x"} {
		a.declines(api.AgentTask{Prompt: "true", Workspace: "clone", Repo: repo}, "of a clone it is the address of a git repository")
	}
	for _, base := range []string{"--all", "main..old", "main~1", "@{-1}", "a b", "x.lock", ":/second", "main^{tree}", strings.Repeat("x", 300)} {
		a.declines(api.AgentTask{Prompt: "true", Workspace: "worktree", Base: base}, "the name of a branch or tag, or a commit")
	}
	plain := start(t, elsewhere(t))
	wantError(t, plain.end(plain.submit(api.AgentTask{Prompt: "true", Workspace: "worktree"}).TaskID), "failed", "start_error", "it lies in no git repository; name another repo, or let the task work in the folder")
}

// The work of a clone lands on a branch of its remote.
func TestWorkOfCloneLands(t *testing.T) {
	src := repository(t)
	bare := remoteOf(t, src)
	cfg := elsewhere(t)
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: bare}
	a := start(t, cfg)
	a.run(api.AgentTask{Prompt: "echo two > a.txt", QueueID: "queue-00aaaaaa", Fence: 1}, "completed")
	s := a.end(a.submit(api.AgentTask{QueueID: "queue-00bbbbbb", Fence: 2, Isolated: true, Land: &api.AgentLand{Task: "queue-00aaaaaa", Onto: "main"}}).TaskID)
	if s.State != "completed" || s.Landed == nil || s.Landed.Onto != "main" || s.Landed.Commits != 1 {
		t.Fatalf("%+v %+v", s, s.Error)
	}
	if git(t, src, "fetch", "-q", "origin"); git(t, src, "rev-parse", "origin/main") != s.Landed.Commit || git(t, src, "show", "origin/main:a.txt") != "two" {
		t.Errorf("%+v", s.Landed)
	}
}
