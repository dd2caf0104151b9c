package agentd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// longAgo is a time well before any test.
var longAgo = time.Now().Add(-48 * time.Hour)

// landsFrom configures an agent with worktrees of a repository whose user has another branch
// checked out, with uncommitted changes.
func landsFrom(t *testing.T) agentd.Config {
	t.Helper()
	cfg := repository(t)
	cfg.Name = "helper"
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	cfg.Workspace = agentd.Workspace{Kind: "worktree", Base: "main"}
	git(t, cfg, "checkout", "-q", "-b", "user")
	put(t, cfg, "a.txt", "of the user, not committed\n")
	put(t, cfg, "staged.txt", "x\n")
	git(t, cfg, "add", "staged.txt")
	t.Cleanup(func() {
		if got := git(t, cfg, "status", "--porcelain", "--branch"); got != "## user\n M a.txt\nA  staged.txt" {
			t.Errorf("the user's checkout is %q", got)
		}
	})
	return cfg
}

// works runs a task in its own worktree.
func (a *agent) works(n int, prompt string) string {
	a.t.Helper()
	id := fmt.Sprintf("queue-%08d", n)
	a.run(api.AgentTask{Prompt: prompt, QueueID: id, Fence: int64(n)}, "completed")
	return id
}

// landTask is a task that lands the work of another task on main.
func landTask(id string, fence int64) api.AgentTask {
	return api.AgentTask{Isolated: true, QueueID: "queue-land-" + id, Fence: fence, Land: &api.AgentLand{Task: id, Onto: "main"}}
}

func (a *agent) land(t api.AgentTask) api.AgentTaskStatus {
	a.t.Helper()
	return a.end(a.submit(t).TaskID)
}

func check(run string) []api.TaskCheck { return []api.TaskCheck{{Name: "test", Run: run}} }

func TestLanding(t *testing.T) {
	cfg := landsFrom(t)
	cfg.Workspace.Setup, cfg.Workspace.Carry = []string{"cat .env > installed"}, []string{".env"}
	put(t, cfg, ".env", "KEY=1\n")
	a := start(t, cfg)
	id := a.works(1, "echo two >> a.txt; git commit -qam two; echo new > new.txt")
	other := a.works(2, "echo b2 > sub/b.txt")
	task := landTask(id, 10)
	task.Checks = check("grep KEY=1 installed && grep two a.txt && test ! -e staged.txt && echo checked in $PWD")
	acc := a.submit(task)
	s := a.end(acc.TaskID)
	if s.State != "completed" || s.Landed == nil || s.Landed.Commits != 2 || s.Landed.Checked != "passed" || s.Landed.Onto != "main" || s.Landed.Commit != git(t, cfg, "rev-parse", "main") || s.Landed.Was != git(t, cfg, "rev-parse", "main~2") {
		t.Fatalf("%+v %+v %+v", s, s.Landed, s.Error)
	}
	if out := a.says(acc.TaskID, "checked in "); !strings.Contains(out, "main is at "+s.Landed.Commit) {
		t.Errorf("the log is %q", out)
	}
	if again := a.land(landTask(id, 11)); again.Landed == nil || *again.Landed != *s.Landed {
		t.Errorf("%+v", again)
	}
	next := landTask(other, 12)
	next.Checks, next.Land.Method, next.Land.Title = check("grep b2 sub/b.txt && grep two a.txt"), "squash", "B is two"
	if s := a.land(next); s.Landed == nil || s.Landed.Commits != 1 {
		t.Errorf("%+v", s)
	}
	want := "B is two|Signalbox-Task: queue-00000002,Co-authored-by: helper <helper@signalbox.local>\n" +
		"Work of helper on queue-00000001|Signalbox-Task: queue-00000001,Co-authored-by: helper <helper@signalbox.local>\n" +
		"two|Signalbox-Task: queue-00000001,Co-authored-by: helper <helper@signalbox.local>\nfirst|"
	if got := git(t, cfg, "log", "--format=%s|%(trailers:separator=%x2C)", "main"); got != want {
		t.Errorf("%s", got)
	}
	nothingLeft(t, cfg)
}

// nothingLeft fails the test if a landing left a worktree or a git lock
// behind.
func nothingLeft(t *testing.T, cfg agentd.Config) {
	t.Helper()
	if got := git(t, cfg, "worktree", "list", "--porcelain"); strings.Contains(got, "landings") || strings.Contains(got, "prunable") {
		t.Errorf("worktrees are left: %s", got)
	}
	if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "landings")); err == nil && len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v %v", left, err)
	}
	err := filepath.WalkDir(filepath.Join(cfg.WorkDir, ".git"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") || filepath.Base(path) == "locked" {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The turns of a conversation land one after another, each exactly once.
func TestLandingOfConversation(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	turn := func(n int, prompt string) {
		t.Helper()
		a.run(api.AgentTask{Prompt: prompt, QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n), SessionID: "talk"}, "completed")
	}
	land := func(n int, commits int) {
		t.Helper()
		task := landTask(fmt.Sprintf("queue-%08d", n), int64(10+n))
		task.Land.SessionID, task.Land.Method = "talk", "squash"
		if s := a.land(task); s.Landed == nil || s.Landed.Commits != commits || s.Landed.Commit != git(t, cfg, "rev-parse", "main") {
			t.Fatalf("%+v %+v %+v", s, s.Landed, s.Error)
		}
	}
	turn(1, "echo 1 > n.txt; git add -A; git commit -qm 1; echo 2 > n.txt")
	land(1, 1)
	turn(2, "echo 3 > n.txt")
	land(2, 1)
	land(2, 1)
	if got := git(t, cfg, "log", "--format=%s", "main", "--", "n.txt"); got != "Work of helper on queue-00000002\nWork of queue-00000001" || git(t, cfg, "show", "main:n.txt") != "3" {
		t.Errorf("%s", got)
	}
}

func TestLandingThatFails(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	first := a.works(1, "echo mine > a.txt")
	second := a.works(2, "echo yours > a.txt")
	if s := a.land(landTask(first, 10)); s.Landed == nil {
		t.Fatalf("%+v", s.Error)
	}
	tip := git(t, cfg, "rev-parse", "main")
	s := a.land(landTask(second, 11))
	wantError(t, s, "failed", "conflict", "conflict with main at "+tip[:12]+" in a.txt")
	if !strings.Contains(s.Output, "++<<<<<<<") || !strings.Contains(s.Output, "git merge main") {
		t.Errorf("%q", s.Output)
	}
	third := a.works(3, "echo x > x.txt")
	red := landTask(third, 12)
	red.Checks = check("echo it is red; exit 3")
	red.Checks = append(red.Checks, api.TaskCheck{Name: "none", Run: "no-such-program"})
	s = a.land(red)
	wantError(t, s, "failed", "checks", "on main as it is now the work was checked once, and does not pass: test (exit status 3): it is red")
	if !strings.Contains(s.Output, "was to land on main") || !strings.Contains(s.Output, "it is red") || s.Checks == nil || s.Checks.State != "failed" || s.Checks.Results[1].State != "unavailable" {
		t.Errorf("%q %+v", s.Output, s.Checks)
	}
	red.Checks, red.Fence = red.Checks[1:], 13
	red.Land.Onto = "spare"
	git(t, cfg, "branch", "spare", "main~1")
	if s = a.land(red); s.Landed == nil || s.Landed.Checked != "unavailable" || s.Landed.Commit != git(t, cfg, "rev-parse", "spare") {
		t.Errorf("%+v %+v", s, s.Error)
	}
	for text, change := range map[string]func(*api.AgentTask){
		`no branch "none"`:                     func(t *api.AgentTask) { t.Land.Onto = "none" },
		`"x.lock" is not the name of a branch`: func(t *api.AgentTask) { t.Land.Onto = "x.lock" },
		"has no worktree of queue-nobody":      func(t *api.AgentTask) { t.Land.Task = "queue-nobody" },
		"has no worktree of queue-..-etc":      func(t *api.AgentTask) { t.Land.Task = "queue-..-etc" },
		"land with --fast-forward":             func(t *api.AgentTask) { t.Land.Onto = "user" },
		"changes that are not committed":       func(t *api.AgentTask) { t.Land.Onto, t.Land.FastForward = "user", true },
	} {
		task := landTask(third, 14)
		change(&task)
		task.Fence, task.QueueID = 0, ""
		wantError(t, a.land(task), "failed", "land_refused", text)
	}
	for text, l := range map[string]api.AgentLand{
		"land.task":       {Task: "../x", Onto: "main"},
		"land: onto":      {Task: third},
		"onto must be":    {Task: third, Onto: "--force"},
		"land: method":    {Task: third, Onto: "main", Method: "merge"},
		"land.title":      {Task: third, Onto: "main", Title: "a\nb"},
		"land.session_id": {Task: third, Onto: "main", SessionID: "../x"},
	} {
		if ref := a.refused(api.AgentTask{Isolated: true, Land: &l}, 400, "validation_error"); !strings.Contains(ref.Message, text) {
			t.Errorf("%s: %+v", text, ref)
		}
	}
	a.refused(api.AgentTask{Land: &api.AgentLand{Task: third, Onto: "main"}}, 400, "validation_error")
	if git(t, cfg, "rev-parse", "main") != tip {
		t.Error("main has moved")
	}
	nothingLeft(t, cfg)
}

// A repository that a run created within its worktree could not be fetched by others: it
// stays in the worktree, and the rest lands.
func TestNestedRepositoriesDoNotLand(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	id := a.works(1, "git init -q lib/inner; cd lib/inner; git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m one; cd ..; echo new > new.txt")
	if s := a.land(landTask(id, 10)); s.Landed == nil || git(t, cfg, "ls-tree", "-r", "--name-only", s.Landed.Commit, "lib") != "lib/new.txt" {
		t.Errorf("%+v %+v", s.Landed, s.Error)
	}
	if w := a.workspaces()["00000001"]; w.NestedCount != 1 {
		t.Errorf("%+v", w)
	}
}

// The reported checks are those of the last commit, even if an earlier commit did not pass and
// the work landed as one commit.
func TestLandingChecksEachCommit(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	task := landTask(a.works(1, "echo 1 > first.txt; git add -A; git commit -qm first; echo 2 > second.txt"), 10)
	task.Checks = check("test -e second.txt")
	acc := a.submit(task)
	s := a.end(acc.TaskID)
	if s.Landed == nil || s.Landed.Commits != 1 || s.Landed.Checked != "passed" || s.Checks == nil || s.Checks.State != "passed" {
		t.Errorf("%+v %+v %+v", s.Landed, s.Checks, s.Error)
	}
	a.says(acc.TaskID, "not on commit 1 of 2 by itself: the work lands as one commit")
	nothingLeft(t, cfg)
}

// Cancelling a landing during its checks leaves no files and no process.
func TestLandingIsCancelled(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	id := a.works(1, "echo x > x.txt")
	task := landTask(id, 10)
	task.Checks = check("echo checking; sleep 600")
	acc := a.submit(task)
	a.says(acc.TaskID, "checking\n")
	var cancelled api.AgentCancelled
	if code := a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, &cancelled); code != 200 || cancelled.State != "cancelled" {
		t.Errorf("%d %+v", code, cancelled)
	}
	gone(t, acc.TaskID)
	if git(t, cfg, "rev-list", "--count", "main") != "1" {
		t.Error("it has landed")
	}
	nothingLeft(t, cfg)
	task.TimeoutSeconds, task.Fence = 1, 11
	wantError(t, a.land(task), "failed", "timeout", "stopped at its run timeout of 1s")
	nothingLeft(t, cfg)
}

// killingGit makes git kill the daemon that runs it, before or after the branch is
// moved.
func killingGit(t *testing.T, when string) (armed string) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	armed = filepath.Join(dir, "armed")
	script := fmt.Sprintf(`#!/bin/sh
case " $* " in
*" update-ref "*" refs/heads/main "*)
	if rm %[2]q 2>/dev/null; then
		test %[3]s = after && %[1]q "$@"
		kill -9 $PPID
		exit 1
	fi;;
esac
exec %[1]q "$@"
`, real, armed, when)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700), os.WriteFile(armed, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return armed
}

// A daemon that is killed just before or after it moves the branch lands once: at its next start
// it finds that the landing took place, or it is offered the landing again.
func TestLandingAfterKill(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			cfg := landsFrom(t)
			killingGit(t, when)
			a, cmd := process(t, cfg)
			id := a.works(1, "echo x > x.txt")
			task := landTask(id, 10)
			task.Checks = check("test -e x.txt")
			a.submit(task)
			_ = cmd.Wait()
			b := start(t, cfg)
			nothingLeft(t, cfg)
			s := b.get(task.QueueID)
			if when == "before" {
				wantError(t, s, "failed", "interrupted", "restarted")
			} else if s.State != "completed" || s.Landed == nil || s.Landed.Commit != git(t, cfg, "rev-parse", "main") || s.Landed.Checked != "passed" {
				t.Errorf("%+v %+v", s, s.Error)
			}
			task.Fence = 11
			again := b.land(task)
			if again.Landed == nil || again.Landed.Commit != git(t, cfg, "rev-parse", "main") || again.Landed.Commits != 1 || git(t, cfg, "rev-list", "--count", "main") != "2" {
				t.Fatalf("%+v %+v", again, again.Error)
			}
			if s.Landed != nil && *s.Landed != *again.Landed {
				t.Errorf("%+v and %+v", s.Landed, again.Landed)
			}
			nothingLeft(t, cfg)
		})
	}
}

// A landing waits for the running turn of the worktree, and includes its work.
func TestLandingWaitsForTurn(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	a.run(api.AgentTask{Prompt: "echo 1 > n.txt", QueueID: "queue-00000001", Fence: 1, SessionID: "talk"}, "completed")
	gate := filepath.Join(t.TempDir(), "go")
	turn := a.submit(api.AgentTask{Prompt: fmt.Sprintf("echo 2 > n.txt; echo here; while ! test -e %s; do sleep 0.01; done", gate), QueueID: "queue-00000002", Fence: 2, SessionID: "talk"})
	a.says(turn.TaskID, "here\n")
	task := landTask("queue-00000001", 10)
	task.Land.SessionID = "talk"
	acc := a.submit(task)
	a.says(acc.TaskID, "which another run is using")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := a.end(acc.TaskID); s.Landed == nil || git(t, cfg, "show", "main:n.txt") != "2" || s.Landed.Commits != 2 {
		t.Errorf("%+v %+v", s, s.Error)
	}
}

// A worktree whose work has landed, squashed or not, can be removed without loss.
func TestLandedWorktreesAreRemoved(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	for n := range 11 {
		id := a.works(n+1, fmt.Sprintf("echo a > %d.txt; git add -A; git commit -qm 1; echo b > %d.txt", n, n))
		if n%5 == 4 {
			continue // 2 do not land
		}
		task := landTask(id, int64(100+n))
		task.Land.Method = []string{"rebase", "squash"}[n%2]
		if s := a.land(task); s.Landed == nil {
			t.Fatalf("%+v", s.Error)
		}
	}
	a.stop()
	count := func() int {
		t.Helper()
		dirs, err := filepath.Glob(filepath.Join(cfg.DataDir, "worktrees", "*", "tree"))
		if err != nil {
			t.Fatal(err)
		}
		return len(dirs)
	}
	again := func(n int) {
		t.Helper()
		a := start(t, cfg)
		a.works(n, "true")
		a.stop()
	}
	again(50)
	if n := count(); n != 12 {
		t.Errorf("%d worktrees are left, though all of them have only just landed", n)
	}
	old, err := filepath.Glob(filepath.Join(cfg.DataDir, "worktrees", "*", "landed-*.json"))
	if err != nil || len(old) != 9 {
		t.Fatalf("%v %v", old, err)
	}
	for _, f := range old {
		if err := os.Chtimes(f, longAgo, longAgo); err != nil {
			t.Fatal(err)
		}
	}
	again(51)
	if n := count(); n != 9 { // the 8 most recently used ones, and one that has not landed
		t.Errorf("%d worktrees are left", n)
	}
	branches := git(t, cfg, "branch", "--format=%(refname:short)")
	for _, name := range []string{"signalbox/00000005", "signalbox/00000010"} {
		if !strings.Contains(branches, name) {
			t.Errorf("%s, which has not landed, is gone: %s", name, branches)
		}
	}
	if strings.Contains(branches, "signalbox/00000001") || strings.Contains(branches, "signalbox/00000002") {
		t.Errorf("what has landed is left: %s", branches)
	}
}

// forge is a fake gh or glab that stores its calls and pull requests in files.
func forge(t *testing.T, cfg *agentd.Config, kind string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
cd %q
echo "$@" >> calls
case "$2" in
list) cat open 2>/dev/null || echo '[]';;
create)
	if test -e broken; then echo 'HTTP 401: Bad credentials' >&2; exit 4; fi
	cat > body
	echo '[{"url":"https://forge.example/7","web_url":"https://forge.example/7"}]' > open
	echo Creating pull request
	echo https://forge.example/7;;
esac
`, dir)
	if err := os.WriteFile(filepath.Join(dir, kind), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, kv := range cfg.Environ {
		if strings.HasPrefix(kv, "PATH=") {
			cfg.Environ[i] = "PATH=" + dir + string(os.PathListSeparator) + strings.TrimPrefix(kv, "PATH=")
		}
	}
	return func() string {
		b, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		return string(b)
	}
}

// remote adds a remote with this URL to the repository; the URL maps to a folder.
func remote(t *testing.T, cfg agentd.Config, address string) (bare agentd.Config) {
	t.Helper()
	bare = cfg
	bare.WorkDir = t.TempDir()
	git(t, bare, "init", "-q", "--bare", "-b", "main")
	git(t, cfg, "config", "url."+bare.WorkDir+".insteadOf", address)
	git(t, cfg, "remote", "add", "origin", address)
	git(t, cfg, "push", "-q", "-u", "origin", "main")
	return bare
}

// If neither the task nor the agent has checks, those of the repository apply, in the user's
// version: changes to them by the work do not count.
func TestLandingRunsChecksOfAgentOrRepository(t *testing.T) {
	cfg := landsFrom(t)
	cfg.Checks.Repository = func(top string) ([]api.TaskCheck, error) {
		if top != cfg.WorkDir {
			t.Errorf("asked for %s", top)
		}
		return check("test -e sub/b.txt && ! test -e bad.txt"), nil
	}
	a := start(t, cfg)
	id := a.works(1, "echo x > x.txt")
	if s := a.land(landTask(id, 10)); s.Landed == nil || s.Landed.Checked != "passed" || s.Checks == nil || len(s.Checks.Results) != 1 {
		t.Errorf("%+v %+v", s, s.Error)
	}
	a.stop()
	cfg.Checks.Repository = func(string) ([]api.TaskCheck, error) { return nil, errors.New("its checks are not trusted") }
	a = start(t, cfg)
	id = a.works(2, "echo y > y.txt")
	if s := a.land(landTask(id, 20)); s.Landed == nil || s.Landed.Checked != "unavailable" || s.Checks == nil || s.Checks.Message != "its checks are not trusted" {
		t.Errorf("%+v %+v", s, s.Error)
	}
	id = a.works(3, "echo z > z.txt")
	a.stop()
	cfg.Checks.List = check("exit 1")
	a = start(t, cfg)
	wantError(t, a.land(landTask(id, 30)), "failed", "checks", "does not pass: test (exit status 1)")
}
