package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// While git adds a worktree to its list, or after it was killed doing so, no git in the
// repository can read that list. So agents do this one at a time, note what they are about to
// add, and undo what a killed git left behind.

// worktrees runs a command of git worktree.
func (r *Repo) worktrees(ctx context.Context, args ...string) (out string, err error) {
	err = r.alone(ctx, func(a *listing) error {
		out, err = output(a.command(ctx, args...))
		return err
	})
	return out, err
}

// entry is a worktree in the list.
type entry struct {
	dir string // may not exist
	ref string // its branch; "" for none
}

// list reads the list; the first entry is the repository itself.
func (r *Repo) list(ctx context.Context) (all []entry, err error) {
	out, err := r.worktrees(ctx, "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(out, "\x00\x00") {
		var e entry
		for line := range strings.SplitSeq(text, "\x00") {
			switch key, value, _ := strings.Cut(line, " "); key {
			case "worktree":
				e.dir = filepath.FromSlash(value)
			case "branch":
				e.ref = value
			}
		}
		if e.dir != "" {
			all = append(all, e)
		}
	}
	return all, nil
}

// Worktrees lists the folders of the worktrees that git knows of a repository, without its
// own, even if they no longer exist.
func (r *Repo) Worktrees(ctx context.Context) (dirs []string, err error) {
	all, err := r.list(ctx)
	for _, e := range all[min(1, len(all)):] {
		dirs = append(dirs, e.dir)
	}
	return dirs, err
}

// worktreesOn lists the folders of the worktrees that git knows to be on a branch, even if
// they no longer exist.
func (r *Repo) worktreesOn(ctx context.Context, ref string) (dirs []string, err error) {
	all, err := r.list(ctx)
	for _, e := range all {
		if e.ref == ref {
			dirs = append(dirs, e.dir)
		}
	}
	return dirs, err
}

// addWorktree adds a worktree to the list and checks out its files. args are those of git
// worktree add; dir is the folder among them, and branch the branch, "" for none.
func (r *Repo) addWorktree(ctx context.Context, dir, branch string, args ...string) (*Repo, error) {
	err := r.alone(ctx, func(a *listing) error {
		err := os.MkdirAll(filepath.Dir(dir), 0o700)
		if err != nil {
			return err
		}
		parent, err := filepath.EvalSymlinks(filepath.Dir(dir)) // as git stores it
		if err != nil {
			return err
		}
		if err := os.WriteFile(a.note, []byte(filepath.Join(parent, filepath.Base(dir))+"\x00"+branch), 0o600); err != nil {
			return err
		}
		if _, err := output(a.command(context.WithoutCancel(ctx), append([]string{"add", "--quiet", "--no-checkout"}, args...)...)); err != nil {
			return errors.Join(err, r.dropPart(a.note))
		}
		return os.Remove(a.note)
	})
	if err != nil {
		return nil, err
	}
	w, err := OpenTree(ctx, dir, r.env)
	if err != nil {
		return nil, err
	}
	// Unlike git reset, this does not lock the branch, whose lock would remain if it is killed.
	_, err = w.git(ctx, "-c", "checkout.workers=0", "read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD")
	return w, err
}

// listing is the list of worktrees under an exclusive lock.
type listing struct {
	repo *Repo
	lock *os.File
	note string // file with the folder and branch of a worktree while it is being added
}

// command is a git worktree command. It also holds the lock until it ends, even if it outlives
// its agent.
func (a *listing) command(ctx context.Context, args ...string) *exec.Cmd {
	return holding(a.lock, a.repo.command(ctx, append([]string{"worktree"}, args...)...))
}

// holding makes a command hold a lock, too.
func holding(lock *os.File, cmd *exec.Cmd) *exec.Cmd {
	if runtime.GOOS != "windows" { // Windows cannot pass files to programs
		cmd.ExtraFiles = []*os.File{lock}
	}
	return cmd
}

// alone calls do while no other agent reads or changes the list of worktrees.
func (r *Repo) alone(ctx context.Context, do func(*listing) error) error {
	dir := filepath.Join(r.common, "signalbox", "worktrees")
	return locked(ctx, dir, func(lock *os.File) error {
		a := &listing{r, lock, filepath.Join(dir, "adding")}
		if err := r.dropPart(a.note); err != nil {
			return err
		}
		return do(a)
	})
}

// locked calls do while holding the lock of a folder, which it creates if needed.
func locked(ctx context.Context, dir string, do func(lock *os.File) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := filelock.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if err = filelock.Take(lock); !errors.Is(err, filelock.ErrHeld) {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	if err != nil {
		return err
	}
	return do(lock)
}

// dropPart removes the unfinished entry that a note names, which no caller has got yet, and the
// lock of its branch.
func (r *Repo) dropPart(note string) error {
	text, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, branch, _ := strings.Cut(string(text), "\x00")
	if branch != "" {
		if err := os.Remove(r.branchLock(branch)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := filepath.Glob(filepath.Join(escapeGlob(r.common), "worktrees", "*"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, _ := os.ReadFile(filepath.Join(entry, "gitdir"))
		if filepath.FromSlash(strings.TrimSpace(string(path))) != filepath.Join(dir, ".git") {
			continue
		}
		if err := os.RemoveAll(entry); err != nil {
			return err
		}
	}
	return os.Remove(note)
}
