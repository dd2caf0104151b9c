package workspace

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A git that was killed while adding a worktree to its list leaves an entry that keeps every git
// from reading the list, or an entry without a commit, and a lock of its branch. The next agent
// removes exactly these.
func TestWorktreeThatWasEnteredInPart(t *testing.T) {
	for name, c := range map[string]struct {
		common string   // content of commondir
		sees   []string // command that then fails
	}{
		"nobody can read it":     {"", []string{"worktree", "list"}},
		"it is on no commit yet": {"../..\n", []string{"fsck"}},
	} {
		t.Run(name, func(t *testing.T) { enteredInPart(t, c.common, c.sees) })
	}
}

func enteredInPart(t *testing.T, common string, sees []string) {
	r := newRepository(t)
	r.commit("first")
	repo, ctx := r.open(), t.Context()
	dir := filepath.Join(t.TempDir(), "sub", "tree")
	must[*Repo](t)(repo.AddWorktree(ctx, dir, "signalbox/a", ""))
	entry := filepath.Join(r.dir, ".git/worktrees/tree")
	foreign := filepath.Join(r.dir, ".git/worktrees/other")
	for at, of := range map[string]string{entry: dir, foreign: "/nowhere/tree"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"gitdir": of + "/.git\n", "locked": "initializing", "HEAD": strings.Repeat("0", 40) + "\n", "commondir": common} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".git/signalbox/worktrees/adding"), []byte(dir+"\x00signalbox/a"), 0o600); err != nil {
		t.Fatal(err)
	}
	locks := map[string]string{"of the branch": filepath.Join(r.dir, ".git/refs/heads/signalbox/a.lock"), "of somebody else": filepath.Join(r.dir, ".git/refs/heads/main.lock")}
	for _, lock := range locks {
		if err := os.WriteFile(lock, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if r.command(sees...).Run() == nil {
		t.Fatalf("git %s finds nothing: this tests nothing", sees)
	}
	_, _ = repo.FreeBranch(ctx, "signalbox/a")
	if _, err := os.Lstat(entry); err == nil {
		t.Error("the entry is still there")
	}
	if _, err := os.Lstat(foreign); err != nil {
		t.Errorf("an entry of another owner: %v", err)
	}
	for of, lock := range locks {
		if _, err := os.Lstat(lock); (err == nil) != (of == "of somebody else") {
			t.Errorf("the lock %s: %v", of, err)
		}
	}
	for _, others := range []string{foreign, locks["of somebody else"]} {
		if err := os.RemoveAll(others); err != nil {
			t.Fatal(err)
		}
	}
	r.git(sees...)
	if err := repo.RemoveWorktree(ctx, dir); err != nil {
		t.Fatal(err)
	}
	must[*Repo](t)(repo.AddWorktree(ctx, dir, "signalbox/a", ""))
}

// The files of a worktree are written without a lock of its branch: a killed git would leave it,
// or another git may hold it.
func TestWorktreeIsFilledWithoutLockingItsBranch(t *testing.T) {
	r := newRepository(t)
	r.commit("first")
	r.git("branch", "signalbox/a")
	lock := filepath.Join(r.dir, ".git/refs/heads/signalbox/a.lock")
	if err := os.WriteFile(lock, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	w := must[*Repo](t)(r.open().AddWorktree(t.Context(), dir, "signalbox/a", ""))
	if out := must[string](t)(w.git(t.Context(), "status", "--porcelain", "--branch")); strings.TrimSpace(out) != "## signalbox/a" {
		t.Errorf("it is on another branch, or its files are not there:\n%s", out)
	}
}

// A git that outlives its agent keeps the list locked until it ends.
func TestListOfWorktreesIsHeldByGit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program inherits no lock there")
	}
	r := newRepository(t)
	repo := r.open()
	var git *exec.Cmd
	var stdin io.Closer
	err := repo.alone(t.Context(), func(a *listing) (err error) {
		git = a.command(t.Context(), "list")
		cat := exec.Command("cat")
		git.Path, git.Args = cat.Path, cat.Args
		if stdin, err = git.StdinPipe(); err != nil {
			return err
		}
		return git.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := repo.Worktrees(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v while a git process holds the list", err)
	}
	if err := errors.Join(stdin.Close(), git.Wait()); err != nil {
		t.Fatal(err)
	}
	must[[]string](t)(repo.Worktrees(t.Context()))
}
