package agentd_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/filelock"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// workspaces returns GET /workspaces, by name.
func (a *agent) workspaces() map[string]api.AgentWorkspace {
	a.t.Helper()
	var list api.AgentWorkspaces
	if code := a.do("GET", "/workspaces", nil, &list); code != 200 {
		a.t.Fatalf("GET /workspaces: %d", code)
	}
	all := map[string]api.AgentWorkspace{}
	for _, w := range list.Workspaces {
		all[w.Name] = w
	}
	return all
}

// discard discards a worktree, and returns the answer or the refusal.
func (a *agent) discard(name string, query url.Values) (int, api.WorkspaceDiscarded, string) {
	a.t.Helper()
	var answer struct {
		api.WorkspaceDiscarded
		Error, Message string
	}
	code := a.do("DELETE", "/workspaces/"+url.PathEscape(name)+"?"+query.Encode(), nil, &answer)
	return code, answer.WorkspaceDiscarded, answer.Error + ": " + answer.Message
}

// worked runs a task of its own in a worktree, whose name is this number.
func (a *agent) worked(n int, prompt string) string {
	a.t.Helper()
	a.run(api.AgentTask{Prompt: prompt, QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n)}, "completed")
	return fmt.Sprintf("%08d", n)
}

func worktreeConfig(t *testing.T) agentd.Config {
	t.Helper()
	cfg := repository(t)
	cfg.Workspace.Kind = "worktree"
	return cfg
}

func TestWorkspacesAreListed(t *testing.T) {
	cfg := worktreeConfig(t)
	cfg.Slots = 2
	base := git(t, cfg, "rev-parse", "HEAD")
	a := start(t, cfg)
	if all := a.workspaces(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	empty := a.worked(1, "true")
	unlanded := a.worked(2, `git commit -q --allow-empty -m "the first of them"; head -c 300000 /dev/urandom > big.bin`)
	landed := a.worked(3, "echo x > landed.txt")
	git(t, cfg, "merge", "-q", "signalbox/"+landed)
	left := a.worked(4, "true")
	if err := os.WriteFile(filepath.Join(cfg.DataDir, "worktrees", left, "tree", "later.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	acc := a.submit(api.AgentTask{Prompt: "echo hanging; sleep 600", QueueID: "queue-00000005", Fence: 5, Slot: 1})
	a.says(acc.TaskID, "hanging\n")
	all := a.workspaces()
	for name, state := range map[string]string{empty: "empty", unlanded: "unlanded", landed: "landed", left: "uncommitted", "00000005": "in_use"} {
		w := all[name]
		if w.State != state || w.Kind != "worktree" || w.Repo != a.daemon.Status().WorkDir || w.Branch != "signalbox/"+name || w.BaseBranch != "main" || w.QueueID != "queue-"+name || w.SessionID == "" ||
			w.CreatedAt.IsZero() || w.LastUsedAt.IsZero() || w.Bytes < 4096 || w.Bytes > 10<<20 || (w.Seen == "") != (state != "unlanded" && state != "uncommitted") {
			t.Errorf("%s, which is %s, is reported as %+v", name, state, w)
		}
	}
	if w := all[unlanded]; w.CommitsCount != 2 || len(w.Commits) != 2 || !strings.HasSuffix(w.Commits[1], " the first of them") || w.Base != base || w.Bytes < 300000 {
		t.Errorf("%+v", w)
	}
	if w := all[left]; w.Files != 1 || !slices.Equal(w.Uncommitted, []string{"later.txt"}) {
		t.Errorf("%+v", w)
	}
	a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, nil)
	gone(t, acc.TaskID)
}

func TestWorktreeIsDiscarded(t *testing.T) {
	cfg := worktreeConfig(t)
	a := start(t, cfg)
	dir := func(name string) string { return filepath.Join(cfg.DataDir, "worktrees", name) }
	has := func(name string) bool { _, err := os.Lstat(dir(name)); return err == nil }
	for _, name := range []string{"none", "..", ".", "../records", "", "a/b", "\x00"} {
		if code, _, said := a.discard(name, nil); code != 404 && code != 405 && code != 301 && code != 307 {
			t.Errorf("%q: %d %s", name, code, said)
		}
	}
	empty := a.worked(1, "true")
	if code, done, said := a.discard(empty, nil); code != 200 || !done.BranchDeleted || done.Branch != "signalbox/"+empty || done.Bytes < 4096 || has(empty) {
		t.Errorf("%d %+v %s", code, done, said)
	}
	if code, _, said := a.discard(empty, nil); code != 404 {
		t.Errorf("twice: %d %s", code, said)
	}
	// The branch stays with its commits; a conversation continues from there.
	kept := a.worked(2, "echo work > w.txt")
	if code, done, said := a.discard(kept, nil); code != 200 || done.BranchDeleted || has(kept) || git(t, cfg, "show", "signalbox/"+kept+":w.txt") != "work" {
		t.Errorf("%d %+v %s", code, done, said)
	}
	// Work that was added after the list was made is not lost.
	left := a.worked(3, "true")
	late := func(text string) {
		if err := os.WriteFile(filepath.Join(dir(left), "tree", "late.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	late("one")
	seen := a.workspaces()[left].Seen
	if code, _, said := a.discard(left, nil); code != 409 || !strings.HasPrefix(said, "workspace_has_work: 1 uncommitted file would be lost") {
		t.Errorf("%d %s", code, said)
	}
	late("two, which is longer")
	if code, _, said := a.discard(left, url.Values{"seen": {seen}}); code != 409 || !strings.Contains(said, "has changed since") || !has(left) {
		t.Errorf("%d %s", code, said)
	}
	if code, _, said := a.discard(left, url.Values{"seen": {a.workspaces()[left].Seen}}); code != 200 || has(left) {
		t.Errorf("%d %s", code, said)
	}
	// The branch is deleted only if the caller has seen its current state.
	branch := a.worked(4, "git commit -q --allow-empty -m one")
	seen = a.workspaces()[branch].Seen
	a.discard(branch, url.Values{"delete_branch": {"maybe"}})
	if code, _, said := a.discard(branch, url.Values{"delete_branch": {"true"}}); code != 409 || !strings.Contains(said, "1 commit would be lost") {
		t.Errorf("%d %s", code, said)
	}
	a2 := cfg
	a2.WorkDir = filepath.Join(dir(branch), "tree")
	git(t, a2, "commit", "-q", "--allow-empty", "-m", "two")
	if code, _, said := a.discard(branch, url.Values{"delete_branch": {"true"}, "seen": {seen}}); code != 409 || !strings.Contains(said, "now 2 commits would be lost") || !has(branch) {
		t.Errorf("%d %s", code, said)
	}
	if code, done, said := a.discard(branch, url.Values{"delete_branch": {"true"}, "seen": {a.workspaces()[branch].Seen}}); code != 200 || !done.BranchDeleted || has(branch) {
		t.Errorf("%d %+v %s", code, done, said)
	}
	if got := git(t, cfg, "branch", "--format=%(refname:short)"); got != "main\nsignalbox/"+kept {
		t.Errorf("branches %q", got)
	}
	acc := a.submit(api.AgentTask{Prompt: "echo hanging; sleep 600", QueueID: "queue-00000005", Fence: 5})
	a.says(acc.TaskID, "hanging\n")
	if code, _, said := a.discard("00000005", nil); code != 409 || !strings.HasPrefix(said, "workspace_in_use: ") || !has("00000005") {
		t.Errorf("%d %s", code, said)
	}
	a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, nil)
	// Commits that are on no branch are kept too.
	detached := a.worked(6, "true")
	a2.WorkDir = filepath.Join(dir(detached), "tree")
	git(t, a2, "checkout", "-q", "--detach")
	git(t, a2, "commit", "-q", "--allow-empty", "-m", "detached")
	at := git(t, a2, "rev-parse", "HEAD")
	if code, done, said := a.discard(detached, nil); code != 200 || done.BranchDeleted || git(t, cfg, "rev-parse", "signalbox/"+detached) != at {
		t.Errorf("%d %+v %s", code, done, said)
	}
	if got := git(t, cfg, "worktree", "list", "--porcelain"); strings.Contains(got, "prunable") {
		t.Errorf("%s", got)
	}
}

// A conversation whose worktree was discarded continues in a new one.
func TestConversationGoesOnAfterDiscard(t *testing.T) {
	cfg := repository(t)
	a := start(t, cfg)
	s, first := a.run(api.AgentTask{Prompt: "echo work > w.txt", Workspace: "worktree"}, "completed")
	name := filepath.Base(filepath.Dir(first.Dir))
	if code, _, said := a.discard(name, nil); code != 200 {
		t.Fatalf("%d %s", code, said)
	}
	if _, c := a.run(api.AgentTask{Prompt: "grep -q work w.txt", SessionID: s.SessionID}, "completed"); c.Dir != first.Dir || c.Branch != first.Branch {
		t.Errorf("%+v after %+v", c, first)
	}
}

// What a run left behind when its agent was killed is committed at the agent's next start,
// and its processes have ended by then.
func TestWorkOfKilledAgentIsCommitted(t *testing.T) {
	cfg := worktreeConfig(t)
	cfg.Slots = 2
	a, cmd := process(t, cfg)
	var tasks []string
	for slot := range 2 {
		acc := a.submit(api.AgentTask{
			Prompt:  "echo work > w.txt; git add w.txt; for locked in index HEAD $(git symbolic-ref HEAD); do : > $(git rev-parse --git-path $locked).lock; done; trap '' TERM; echo hanging; while :; do sleep 1; done",
			QueueID: fmt.Sprintf("queue-%08d", slot+1), Fence: int64(slot + 1), Slot: slot, Director: "store-1",
		})
		a.says(acc.TaskID, "hanging\n")
		tasks = append(tasks, acc.TaskID)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(proc.Alive(proc.Ident{Mark: tasks[0]})) == 0 {
		t.Fatal("the run did not outlive the daemon; the test proves nothing")
	}
	b := start(t, cfg)
	for n, id := range tasks {
		gone(t, id)
		name := fmt.Sprintf("%08d", n+1)
		if got := git(t, cfg, "log", "-1", "--format=%(trailers:key=Signalbox-Task,valueonly)", "signalbox/"+name); got != "queue-"+name {
			t.Errorf("the last commit is of %q", got)
		}
		if got := git(t, cfg, "show", "signalbox/"+name+":w.txt"); got != "work" {
			t.Errorf("%q", got)
		}
		if w := b.workspaces()[name]; w.State != "unlanded" || w.CommitsCount != 1 {
			t.Errorf("%+v", w)
		}
		s := b.get(id)
		wantError(t, s, "failed", "interrupted", "the agent was restarted")
		if c := s.Changes; c == nil || c.Workspace != "worktree" || c.Branch != "signalbox/"+name || c.BaseBranch != "main" || c.Base != git(t, cfg, "rev-parse", "main") ||
			c.Head != git(t, cfg, "rev-parse", "signalbox/"+name) || c.Commits != 1 || c.FilesChanged != 1 || !c.Uncommitted || !strings.Contains(c.Patch, "+work") {
			t.Errorf("%+v", c)
		}
		if code, patch := b.patch(id); code != 200 || !strings.Contains(patch, "+work") {
			t.Errorf("%d %q", code, patch)
		}
		if left, _ := filepath.Glob(filepath.Join(cfg.DataDir, "runs/*/objects")); len(left) > 0 {
			t.Errorf("%s is left", left)
		}
	}
}

// The changes of a later turn whose agent was killed are counted from the beginning of that
// turn, and land with the rest.
func TestChangesOfKilledTurn(t *testing.T) {
	cfg := landsFrom(t)
	a, cmd := process(t, cfg)
	turn := func(n int, prompt string) api.AgentTask {
		return api.AgentTask{Prompt: prompt, QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n), SessionID: "talk"}
	}
	_, first := a.run(turn(1, "echo one > one.txt"), "completed")
	acc := a.submit(turn(2, "echo two > two.txt; git add -A; git commit -qm two; echo three > three.txt; echo hanging; sleep 600"))
	a.says(acc.TaskID, "hanging\n")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b := start(t, cfg)
	gone(t, acc.TaskID)
	if c := b.get(acc.TaskID).Changes; c == nil || c.Base != first.Head || c.Commits != 2 || c.FilesChanged != 2 || strings.Contains(c.Patch, "one.txt") || c.Dir != first.Dir {
		t.Errorf("%+v", c)
	}
	again := turn(2, "echo four > four.txt")
	again.Fence = 3
	if _, c := b.run(again, "completed"); c == nil || c.Base != first.Head || c.Commits != 3 || c.FilesChanged != 3 || !strings.Contains(c.Patch, "two.txt") {
		t.Errorf("the next attempt: %+v", c)
	}
	if _, c := b.run(turn(4, "true"), "completed"); c == nil || c.FilesChanged != 0 {
		t.Errorf("the next task: %+v", c)
	}
	task := landTask("queue-00000004", 5)
	task.Land.SessionID = "talk"
	if s := b.land(task); s.Landed == nil || s.Landed.Commits != 4 || git(t, cfg, "show", "main:three.txt") != "three" {
		t.Errorf("%+v %+v", s, s.Error)
	}
}

// A committed repository within a worktree configures programs. Neither the next turn nor the
// commit of its leftovers runs them.
func TestNoProgramOfRepositoryWithinRuns(t *testing.T) {
	cfg := landsFrom(t)
	a := start(t, cfg)
	ran := filepath.Join(t.TempDir(), "ran")
	turn := func(n int, prompt string) {
		t.Helper()
		a.run(api.AgentTask{Prompt: prompt, QueueID: fmt.Sprintf("queue-%08d", n), Fence: int64(n), SessionID: "talk"}, "completed")
		if _, err := os.Lstat(ran); err == nil {
			t.Fatalf("turn %d: a program ran", n)
		}
	}
	lay := "git config user.name x; git config user.email x@example.org; echo '* filter=x' > .gitattributes; git add -A; git commit -qm one; touch -d 2001-01-01 .gitattributes; git config filter.x.clean 'touch " + ran + "; cat'; git config core.fsmonitor 'touch " + ran + "'"
	link := func(path string) string { // as a submodule, without reading its content
		return "; cd ..; git update-index --add --cacheinfo 160000,$(git -C " + path + " rev-parse HEAD)," + path
	}
	turn(1, "git init -q a=b; cd a=b; "+lay+link("a=b"))
	turn(2, "git config -f .gitmodules submodule.x=y.path 'a=b'; git config -f .gitmodules submodule.x=y.url ./x; git config -f .gitmodules submodule.x=y.ignore none; git init -q c; cd c; "+lay+link("c"))
	turn(3, "touch -d 2002-01-01 a=b/.gitattributes c/.gitattributes; echo more > d.txt")
	turn(4, "true")
	if w := a.workspaces()["00000001"]; w.NestedCount != 2 || w.CommitsCount != 3 {
		t.Errorf("%+v", w)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program ran")
	}
}

// If the worktree is removed as empty while a run waits for it, the run creates it again.
func TestWorktreeIsRemovedWhileRunWaitsForIt(t *testing.T) {
	cfg := worktreeConfig(t)
	a := start(t, cfg)
	for n, again := range []bool{false, true} { // another folder may take its place at once
		name := fmt.Sprintf("%08d", n+1)
		dir := filepath.Join(cfg.DataDir, "worktrees", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := filelock.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := filelock.Take(lock); err != nil {
			t.Fatal(err)
		}
		acc := a.submit(api.AgentTask{Prompt: "echo work > w.txt", QueueID: "queue-" + name, Fence: int64(n + 1)})
		a.says(acc.TaskID, "waiting for "+dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if again {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		lock.Close()
		if s := a.end(acc.TaskID); s.State != "completed" || s.Changes == nil || s.Changes.FilesChanged != 1 {
			t.Errorf("%+v %+v", s, s.Error)
		}
	}
}

// content returns everything in a folder: names with modes and contents.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = e.Type().String() + string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// If a run replaces its worktree by a symbolic link, nothing follows it: neither the commit
// of leftovers nor the next turn, the list, a landing or a discard.
func TestNothingFollowsLinksOutOfWorktree(t *testing.T) {
	for what, prompt := range map[string]string{
		"a .git that leads to the checkout":        `rm -f .git; echo "gitdir: $OUT/.git" > .git`,
		"a .git that is a link to the checkout's":  `rm -f .git; ln -s $OUT/.git .git`,
		"a .git that leads to another worktree":    `d=$(git rev-parse --git-common-dir)/worktrees; rm -f .git; echo "gitdir: $(ls -d $d/tree)" > .git`,
		"a repository of its own":                  `rm -f .git; git init -q . && git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m x`,
		"a link to the checkout":                   `cd ..; rm -rf tree; ln -s $OUT tree`,
		"a link to the root":                       `cd ..; rm -rf tree; ln -s / tree`,
		"a link to another worktree":               `cd ..; rm -rf tree; ln -s ../00000001/tree tree`,
		"a link to itself":                         `cd ..; rm -rf tree; ln -s tree tree`,
		"a link in the place of the folder around": `cd ../..; n=$OLDPWD; d=$(basename $(dirname $n)); mv $d ../away; ln -s ../away $d`,
		"links in it":                              `ln -s / root; ln -s $OUT checkout; ln -s . loop; mkdir d; ln -s ../.. d/up; ln -s $OUT/a.txt file`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := worktreeConfig(t)
			cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
			put(t, cfg, "mine.txt", "not committed\n")
			a := start(t, cfg)
			other := a.worked(1, "echo other > o.txt")
			before := content(t, cfg.WorkDir)
			tip := git(t, cfg, "rev-parse", "signalbox/"+other)
			const name = "00000002"
			s := a.end(a.submit(api.AgentTask{Prompt: "export OUT=" + cfg.WorkDir + "; echo w > w.txt; " + prompt, QueueID: "queue-" + name, Fence: 2, SessionID: "talk"}).TaskID)
			if s.State != "completed" {
				t.Errorf("%+v", s.Error)
			}
			unchanged := func(when string) {
				t.Helper()
				for path, was := range before {
					if strings.Contains(path, "/.git/") && !strings.HasSuffix(path, "/index") && !strings.HasSuffix(path, "/HEAD") && !strings.HasSuffix(path, "/heads/main") {
						continue // of the worktrees
					}
					if b, err := os.ReadFile(path); err != nil || !strings.HasSuffix(was, string(b)) {
						t.Errorf("%s: %s has changed (%v)", when, path, err)
					}
				}
				if got := git(t, cfg, "status", "--porcelain"); got != "?? mine.txt" {
					t.Errorf("%s: the checkout is %q", when, got)
				}
				if git(t, cfg, "rev-parse", "signalbox/"+other) != tip || git(t, cfg, "rev-list", "--count", "main") != "1" {
					t.Errorf("%s: another branch has changed", when)
				}
				if b, err := os.ReadFile(filepath.Join(cfg.DataDir, "worktrees", other, "tree", "o.txt")); err != nil || string(b) != "other\n" {
					t.Errorf("%s: the other worktree has %q, %v", when, b, err)
				}
			}
			unchanged("after the run")
			for n, w := range a.workspaces() {
				if n == name && w.Bytes > 1<<20 {
					t.Errorf("%d bytes", w.Bytes)
				}
			}
			next := a.end(a.submit(api.AgentTask{Prompt: "true", SessionID: "talk", QueueID: "queue-next", Fence: 3}).TaskID)
			if what == "links in it" {
				if next.State != "completed" {
					t.Errorf("%+v", next.Error)
				}
			} else {
				wantError(t, next, "failed", "start_error", "")
			}
			unchanged("after the next turn")
			a.end(a.submit(api.AgentTask{Prompt: "true", Isolated: true, Fence: 4, QueueID: "queue-land", Land: &api.AgentLand{Task: "queue-" + name, SessionID: "talk", Onto: "signalbox/" + other}}).TaskID)
			if what != "links in it" {
				unchanged("after landing")
			}
			tip = git(t, cfg, "rev-parse", "signalbox/"+other)
			code, _, said := a.discard(name, url.Values{"seen": {a.workspaces()[name].Seen}, "delete_branch": {"true"}})
			if code != http.StatusOK && code != http.StatusConflict && code != http.StatusNotFound {
				t.Errorf("%d %s", code, said)
			}
			unchanged("after it was discarded")
		})
	}
}

// Repositories within a worktree are listed if they have content that exists nowhere else. They
// are not removed unseen, and git runs no program that they configure.
func TestRepositoriesWithinWorktree(t *testing.T) {
	dir := t.TempDir()
	bareOf(t, dir, "lib")
	cfg := worktreeConfig(t)
	git(t, cfg, "config", "--global", "user.name", "A User")
	git(t, cfg, "config", "--global", "user.email", "user@example.org")
	put(t, cfg, ".gitignore", "tools/\n")
	git(t, cfg, "commit", "-qam", "tools are ignored")
	a := start(t, cfg)
	lib, ran := filepath.Join(dir, "lib.git"), filepath.Join(dir, "ran")
	cases := []struct {
		prompt, state, nested string
	}{
		{"git clone -q " + lib + " a", "empty", ""},
		{"git clone -q " + lib + " a; cd a; git commit -q --allow-empty -m one; git commit -q --allow-empty -m two", "uncommitted", "tools/a: 2 commits that no remote of it has"},
		{"git clone -q " + lib + " a; cd a; git commit -q --allow-empty -m one; git push -q", "empty", ""},
		{"git clone -q " + lib + " a; cd a; git checkout -q --detach; git commit -q --allow-empty -m one; echo > new.txt; git checkout -q main", "uncommitted", "tools/a: 1 file not committed"},
		{"git init -q a; cd a; git commit -q --allow-empty -m one", "uncommitted", "tools/a: 1 commit that no remote of it has"},
		{"git init -q --bare a.git; git init -q b; cd b; git commit -q --allow-empty -m one; git push -q ../a.git HEAD:main", "uncommitted", "tools/a.git: 1 commit that no remote of it has; tools/b: 1 commit that no remote of it has"},
		{"git clone -q " + lib + " a; cd a; echo x > lib.txt; git stash -q", "uncommitted", "tools/a: 2 commits that no remote of it has"},
		{"mkdir -p a/b/c; git init -q a/b/c/d; ln -s " + cfg.WorkDir + " a/link", "empty", ""},
		{"mkdir b; echo gitdir: " + cfg.WorkDir + "/.git > b/.git", "empty", ""},
		{"git init -q a; rm a/.git/HEAD", "uncommitted", "tools/a: cannot be read"},
		{"git init -q a; cd a; echo '* filter=x' > .gitattributes; git add -A; git commit -qm one; touch -d 2001-01-01 .gitattributes; " +
			"git config core.fsmonitor 'touch " + ran + "'; git config filter.x.clean 'touch " + ran + "'; git config filter.x.required true", "uncommitted", "tools/a: 1 commit that no remote of it has"},
	}
	names := make([]string, len(cases))
	for n, c := range cases {
		names[n] = a.worked(n+1, "mkdir tools; cd tools; "+c.prompt)
	}
	listed := a.workspaces()
	for n, c := range cases {
		w := listed[names[n]]
		if w.State != c.state || strings.Join(w.Nested, "; ") != c.nested || w.NestedCount != len(w.Nested) || (w.Seen != "") != (c.nested != "") {
			t.Errorf("%s: %s %q %d: not %q", c.prompt, w.State, w.Nested, w.NestedCount, c.nested)
		}
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the repository's configuration ran")
	}
	name := "00000002"
	if code, _, said := a.discard(name, nil); code != 409 || !strings.Contains(said, "workspace_has_work: the work in the repository within, tools/a: 2 commits that no remote of it has would be lost") {
		t.Errorf("%d %s", code, said)
	}
	seen := a.workspaces()[name].Seen
	within := cfg
	within.WorkDir = filepath.Join(cfg.DataDir, "worktrees", name, "tree/tools/a")
	git(t, within, "commit", "-q", "--amend", "--allow-empty", "-m", "another two")
	if code, _, said := a.discard(name, url.Values{"seen": {seen}}); code != 409 || !strings.Contains(said, "has changed since it was looked at") {
		t.Errorf("%d %s", code, said)
	}
	if code, _, said := a.discard(name, url.Values{"seen": {a.workspaces()[name].Seen}}); code != 200 {
		t.Errorf("%d %s", code, said)
	}
}
