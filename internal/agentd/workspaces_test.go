package agentd_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// repository configures runs that execute their prompt as shell commands, in a git repository
// with one commit.
func repository(t *testing.T) agentd.Config {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("runs shell commands")
	}
	cfg := config(t, "command")
	cfg.Runner.Command = []string{"sh", "-c", `eval "$0"`, "{prompt}"}
	git(t, cfg, "init", "-q", "-b", "main")
	git(t, cfg, "config", "user.name", "A User")
	git(t, cfg, "config", "user.email", "user@example.org")
	put(t, cfg, "a.txt", "one\n")
	put(t, cfg, "sub/b.txt", "b\n")
	put(t, cfg, ".gitignore", ".env\ninstalled\n")
	git(t, cfg, "add", "-A")
	git(t, cfg, "commit", "-q", "-m", "first")
	return cfg
}

func git(t *testing.T, cfg agentd.Config, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = cfg.WorkDir, append(cfg.Environ, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func put(t *testing.T, cfg agentd.Config, name, text string) {
	t.Helper()
	path := filepath.Join(cfg.WorkDir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a task to its end, and returns its changes.
func (a *agent) run(task api.AgentTask, state string) (api.AgentTaskStatus, *api.Changes) {
	a.t.Helper()
	s := a.end(a.submit(task).TaskID)
	if s.State != state {
		a.t.Fatalf("%q is %s: %+v", task.Prompt, s.State, s.Error)
	}
	if s.Changes == nil {
		a.t.Fatalf("%q does not report its changes", task.Prompt)
	}
	return s, s.Changes
}

// patch returns the answer of GET /task/{id}/patch.
func (a *agent) patch(id string) (int, string) {
	a.t.Helper()
	res, err := a.client.Get(a.url + "/task/" + id + "/patch")
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestFolderChangesAreReported(t *testing.T) {
	cfg := repository(t)
	a := start(t, cfg)
	put(t, cfg, "mine.txt", "of before\n")
	s, c := a.run(api.AgentTask{Prompt: "echo two >> a.txt; echo new > new.txt; exit 3"}, "failed")
	if c.Workspace != "folder" || c.Dir != a.daemon.Status().WorkDir || c.Branch != "main" || !c.Uncommitted || c.FilesChanged != 2 || c.Insertions != 2 || c.Commits != 0 {
		t.Errorf("%+v", c)
	}
	if code, text := a.patch(s.TaskID); code != 200 || text != c.Patch || c.PatchBytes != int64(len(text)) || !strings.Contains(text, "+two") || strings.Contains(text, "mine.txt") {
		t.Errorf("%d %s", code, text)
	}
	if got := git(t, cfg, "status", "--porcelain"); got != "M a.txt\n?? mine.txt\n?? new.txt" {
		t.Errorf("the folder is %q", got)
	}
	s, c = a.run(api.AgentTask{Prompt: "git commit -qam mine"}, "completed")
	if c.Commits != 1 || c.FilesChanged != 0 || c.Base == c.Head || c.Patch != "" {
		t.Errorf("%+v", c)
	}
	if code, text := a.patch(s.TaskID); code != http.StatusNotFound {
		t.Errorf("%d %s", code, text)
	}
	a.stop()
	b := start(t, cfg) // reads what is stored
	var h api.AgentHistory
	b.do("GET", "/history", nil, &h)
	if got := b.get(h.Entries[1].TaskID).Changes; got == nil || got.FilesChanged != 2 || !strings.Contains(got.Patch, "+two") {
		t.Errorf("after a restart: %+v", got)
	}
	plain := start(t, command(t, "echo", "x"))
	if s := plain.end(plain.submit(api.AgentTask{Prompt: "x"}).TaskID); s.Changes != nil || strings.Contains(s.Note, "cannot be determined") {
		t.Errorf("a folder in no repository: %+v", s)
	}
}

func TestWorktreesAreApart(t *testing.T) {
	cfg := repository(t)
	cfg.Slots = 2
	cfg.Workspace = agentd.Workspace{Kind: "worktree", Setup: []string{"cat .env > installed", "echo set up"}, Carry: []string{".env"}}
	put(t, cfg, ".env", "KEY=1\n")
	put(t, cfg, "a.txt", "the user's own, not committed\n")
	a := start(t, cfg)
	gate := filepath.Join(t.TempDir(), "go")
	var ids []string
	for i, id := range []string{"queue-00aaaaaa", "queue-00bbbbbb"} { // both at once
		acc := a.submit(api.AgentTask{
			Prompt:  fmt.Sprintf("cat installed; echo %d > a.txt; mkdir -p x; echo %d > x/new.txt; echo here; while ! test -e %s; do sleep 0.01; done", i, i, gate),
			QueueID: id, Fence: int64(i + 1), Slot: i,
		})
		a.says(acc.TaskID, "here")
		ids = append(ids, acc.TaskID)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		s := a.end(id)
		c := s.Changes
		if s.State != "completed" || c == nil || c.Workspace != "worktree" || c.Branch != []string{"signalbox/00aaaaaa", "signalbox/00bbbbbb"}[i] || !c.Uncommitted || c.Commits != 1 || c.FilesChanged != 2 {
			t.Fatalf("%+v %+v", s, c)
		}
		if !strings.Contains(s.Output, "KEY=1") {
			t.Errorf("nothing was carried over or set up: %q", s.Output)
		}
		if got := git(t, cfg, "show", c.Branch+":a.txt"); got != fmt.Sprint(i) {
			t.Errorf("%s has %q", c.Branch, got)
		}
		if got := git(t, cfg, "log", "-1", "--format=%an|%(trailers:key=Signalbox-Task,valueonly,separator=)|%H", c.Branch); got != "A User|"+s.QueueID+"|"+c.Head {
			t.Errorf("committed as %q", got)
		}
		if got := git(t, cfg, "show", "--name-only", "--format=", c.Branch); got != "a.txt\nx/new.txt" {
			t.Errorf("committed %q", got)
		}
		gone(t, id)
	}
	if got := git(t, cfg, "status", "--porcelain"); got != "M a.txt" {
		t.Errorf("the user's checkout: %q", got)
	}
}

// A task that another agent of the repository began and lost works in a worktree of its own:
// the other agent's worktree stays unchanged.
func TestTaskThatAnotherAgentHadBegun(t *testing.T) {
	cfg := repository(t)
	cfg.Workspace.Kind = "worktree"
	other := cfg
	other.DataDir = t.TempDir()
	task := api.AgentTask{Prompt: "echo first > x", QueueID: "queue-00000001", Fence: 1}
	start(t, cfg).run(task, "completed")
	task.Prompt, task.Fence = "echo second > y", 2
	_, c := start(t, other).run(task, "completed")
	if c.Branch != "signalbox/00000001-2" {
		t.Errorf("it worked on %s", c.Branch)
	}
	if got := git(t, cfg, "show", "signalbox/00000001:x", "signalbox/00000001-2:y"); got != "first\nsecond" {
		t.Errorf("%q", got)
	}
}

func TestConversationKeepsItsWorktree(t *testing.T) {
	cfg := repository(t)
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	cfg.Workspace.Kind = "worktree"
	a := start(t, cfg)
	turn := func(prompt string) *api.Changes {
		t.Helper()
		_, c := a.run(api.AgentTask{Prompt: prompt, SessionID: "talk"}, "completed")
		return c
	}
	first := turn("echo 1 > n.txt")
	put(t, cfg, "later.txt", "x\n")
	git(t, cfg, "add", "-A")
	git(t, cfg, "commit", "-qm", "second")
	second := turn("test -e n.txt && ! test -e later.txt && echo 2 > n.txt && git commit -qam two")
	if second.Dir != first.Dir || second.Branch != first.Branch || second.Base != first.Head || second.Commits != 1 || second.Uncommitted {
		t.Errorf("%+v after %+v", second, first)
	}
	a.stop()
	if err := os.RemoveAll(first.Dir); err != nil {
		t.Fatal(err)
	}
	a = start(t, cfg)
	if third := turn(`test "$(cat n.txt)" = 2`); third.Dir != first.Dir || third.Branch != first.Branch || third.Head != second.Head || third.FilesChanged != 0 {
		t.Errorf("%+v", third)
	}
	if _, other := a.run(api.AgentTask{Prompt: "test -e later.txt && ! test -e n.txt", SessionID: "other"}, "completed"); other.Branch == first.Branch || other.Dir == first.Dir {
		t.Errorf("%+v", other)
	}
}

// A conversation of a program that is not told its name keeps its worktree too,
// once the director knows the name.
func TestConversationOfCommandKeepsItsWorktree(t *testing.T) {
	cfg := repository(t)
	cfg.Workspace.Kind = "worktree"
	a := start(t, cfg)
	s, first := a.run(api.AgentTask{Prompt: "echo 1 > n.txt"}, "completed")
	_, second := a.run(api.AgentTask{Prompt: "test -e n.txt", SessionID: s.SessionID}, "completed")
	if second.Dir != first.Dir || second.Branch != first.Branch {
		t.Errorf("%+v after %+v", second, first)
	}
	if _, other := a.run(api.AgentTask{Prompt: "! test -e n.txt"}, "completed"); other.Dir == first.Dir {
		t.Errorf("another conversation works in %s too", other.Dir)
	}
}

func TestWorktreeOfPartOfRepository(t *testing.T) {
	cfg := repository(t)
	top := cfg.WorkDir
	cfg.Workspace.Kind = "worktree"
	cfg.WorkDir = filepath.Join(top, "sub")
	a := start(t, cfg)
	_, c := a.run(api.AgentTask{Prompt: "test -e b.txt && echo c >> b.txt"}, "completed")
	if len(c.Files) != 1 || c.Files[0].Path != "sub/b.txt" {
		t.Errorf("%+v", c)
	}
	if b, err := os.ReadFile(filepath.Join(top, "sub/b.txt")); err != nil || string(b) != "b\n" {
		t.Errorf("the user's file is %q, %v", b, err)
	}
}

func TestWorktreeThatCannotBeMade(t *testing.T) {
	cfg := repository(t)
	cfg.Workspace = agentd.Workspace{Kind: "worktree", Base: "no-such-branch"}
	wantError(t, startAndEnd(t, cfg), "failed", "start_error", `no commit "no-such-branch"`)
	cfg = repository(t)
	cfg.Workspace = agentd.Workspace{Kind: "worktree", Setup: []string{"echo trouble; exit 7", "touch not-reached"}}
	wantError(t, startAndEnd(t, cfg), "failed", "start_error", "workspace.setup: echo trouble; exit 7: exit status 7")
	cfg = config(t, "command")
	cfg.Runner.Command, cfg.Workspace.Kind = []string{"true"}, "worktree"
	if _, err := agentd.New(cfg); err == nil || !regexp.MustCompile(`workspace is worktree, and .*/work cannot have any: it lies in no git repository`).MatchString(err.Error()) {
		t.Errorf("a folder in no repository: %v", err)
	}
	cfg.Workspace.Kind = "branch"
	if _, err := agentd.New(cfg); err == nil || !strings.Contains(err.Error(), `workspace is "branch": folder, worktree or clone`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func startAndEnd(t *testing.T, cfg agentd.Config) api.AgentTaskStatus {
	t.Helper()
	a := start(t, cfg)
	defer a.stop()
	return a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID)
}

// A worktree that is incomplete because of a kill is created again; a stop during
// creation ends the task.
func TestWorktreeIsMadeAnewAfterKill(t *testing.T) {
	cfg := repository(t)
	dir := filepath.Join(cfg.DataDir, "worktrees", "00cccccc")
	cfg.Workspace = agentd.Workspace{Kind: "worktree"}
	base := git(t, cfg, "rev-parse", "HEAD")
	git(t, cfg, "worktree", "add", "-q", "-b", "signalbox/00cccccc", filepath.Join(dir, "tree"))
	for name, text := range map[string]string{
		"tree/half.txt":  "x",
		"workspace.json": fmt.Sprintf(`{"source":%q,"branch":"signalbox/00cccccc","base":%q}`, cfg.WorkDir, base),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, cfg)
	_, c := a.run(api.AgentTask{Prompt: "test ! -e half.txt && echo x > y.txt", QueueID: "queue-00cccccc", Fence: 1}, "completed")
	if c.Branch != "signalbox/00cccccc" || c.Base != base || c.FilesChanged != 1 {
		t.Errorf("%+v", c)
	}
	a.stop()
	cfg.Workspace.Setup = []string{"echo setting up; sleep 600"}
	a = start(t, cfg)
	acc := a.submit(api.AgentTask{Prompt: "true"})
	a.says(acc.TaskID, "setting up\n")
	var cancelled api.AgentCancelled
	if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &cancelled); code != 200 || cancelled.State != "cancelled" {
		t.Errorf("%d %+v", code, cancelled)
	}
	gone(t, acc.TaskID)
}

// Only a few empty worktrees are kept, but all those with work.
func TestEmptyWorktreesAreRemoved(t *testing.T) {
	cfg := repository(t)
	cfg.Workspace.Kind = "worktree"
	a := start(t, cfg)
	run := func(n int, prompt string) {
		t.Helper()
		a.run(api.AgentTask{Prompt: prompt, QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n)}, "completed")
	}
	run(1, "echo work > w.txt")
	run(2, "git checkout -q --detach && git commit -q --allow-empty -m detached && git tag made")
	for n := range 10 {
		run(10+n, "true")
	}
	a.stop()
	a = start(t, cfg)
	run(30, "true")
	a.stop()
	left, err := os.ReadDir(filepath.Join(cfg.DataDir, "worktrees"))
	if err != nil {
		t.Fatal(err)
	}
	branches := strings.Fields(git(t, cfg, "branch", "--format=%(refname:short)"))
	if len(left) != 10 || len(branches) != 11 { // 8, and two with work; and main
		t.Errorf("%d worktrees are left, and branches %v", len(left), branches)
	}
	if git(t, cfg, "show", "signalbox/00000001:w.txt") != "work" || git(t, cfg, "rev-parse", "made") != git(t, cfg, "rev-parse", "signalbox/00000002") {
		t.Error("work is lost")
	}
	if got := git(t, cfg, "worktree", "list", "--porcelain"); strings.Count(got, "worktree ") != 11 || strings.Contains(got, "prunable") {
		t.Errorf("%s", got)
	}
}

// A run that breaks its worktree harms nothing around it: nothing is committed elsewhere or
// removed, even if the agent's data folder is itself in a repository.
func TestBrokenWorktreeIsLeftAlone(t *testing.T) {
	cfg := repository(t)
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	cfg.Workspace.Kind = "worktree"
	around := cfg
	around.WorkDir = filepath.Dir(cfg.DataDir)
	git(t, around, "init", "-q")
	git(t, around, "-c", "user.name=A User", "-c", "user.email=user@example.org", "commit", "-q", "--allow-empty", "-m", "around")
	a := start(t, cfg)
	s := a.end(a.submit(api.AgentTask{Prompt: "echo work > w.txt; rm .git", SessionID: "talk"}).TaskID)
	if s.State != "completed" || s.Changes == nil || s.Changes.FilesChanged != 1 || git(t, cfg, "show", s.Changes.Branch+":w.txt") != "work" {
		t.Errorf("%+v %+v", s, s.Changes)
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true", SessionID: "talk"}).TaskID), "failed", "start_error", "is damaged, and what is in it is left alone")
	for n := range 10 {
		a.run(api.AgentTask{Prompt: "true", QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n + 1)}, "completed")
	}
	a.stop()
	a = start(t, cfg)
	a.run(api.AgentTask{Prompt: "true", QueueID: "queue-00000050", Fence: 50}, "completed")
	a.stop()
	if _, err := os.Stat(filepath.Join(s.Changes.Dir, "w.txt")); err != nil {
		t.Error(err)
	}
	if n := git(t, around, "rev-list", "--all", "--count"); n != "1" {
		t.Errorf("%s commits in the repository around", n)
	}
}

// The agent's data folder may be reached by a link.
func TestWorktreeBehindLink(t *testing.T) {
	cfg := repository(t)
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	cfg.Workspace.Kind = "worktree"
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(cfg.DataDir, link); err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = link
	a := start(t, cfg)
	_, first := a.run(api.AgentTask{Prompt: "touch ignored.txt && echo /ignored.txt >> $(git rev-parse --git-common-dir)/info/exclude", SessionID: "talk"}, "completed")
	_, second := a.run(api.AgentTask{Prompt: "test -e ignored.txt", SessionID: "talk"}, "completed")
	if second.Branch != first.Branch {
		t.Errorf("%+v after %+v", second, first)
	}
}
