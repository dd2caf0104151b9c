package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/internal/filelock"
)

// While git enters a worktree in its list, or is killed there, no git in the repository can read
// that list. So agents do it one at a time, note what they are about to enter, and take back
// what a git that was killed has left.

// worktrees runs a command of git worktree.
func (r *Repo) worktrees(ctx context.Context, args ...string) (out string, err error) {
	err = r.alone(ctx, func(string) error {
		out, err = r.git(ctx, append([]string{"worktree"}, args...)...)
		return err
	})
	return out, err
}

// addWorktree enters a worktree in the list, and checks its files out. args are those of git
// worktree add; dir is the folder among them.
func (r *Repo) addWorktree(ctx context.Context, dir string, args ...string) (*Repo, error) {
	err := r.alone(ctx, func(note string) error {
		err := os.MkdirAll(filepath.Dir(dir), 0o700)
		if err != nil {
			return err
		}
		parent, err := filepath.EvalSymlinks(filepath.Dir(dir)) // as git has it
		if err != nil {
			return err
		}
		if err := os.WriteFile(note, []byte(filepath.Join(parent, filepath.Base(dir))), 0o600); err != nil {
			return err
		}
		if _, err := r.git(context.WithoutCancel(ctx), append([]string{"worktree", "add", "--quiet", "--no-checkout"}, args...)...); err != nil {
			return errors.Join(err, r.dropPart(note))
		}
		return os.Remove(note)
	})
	if err != nil {
		return nil, err
	}
	w, err := OpenTree(ctx, dir, r.env)
	if err != nil {
		return nil, err
	}
	_, err = w.git(ctx, "-c", "checkout.workers=0", "reset", "--hard", "--quiet", "--no-recurse-submodules")
	return w, err
}

// alone calls do while no other agent reads or changes the list of worktrees. note is the file
// in which the folder of a worktree stands while it is entered.
func (r *Repo) alone(ctx context.Context, do func(note string) error) error {
	dir := filepath.Join(r.common, "signalbox", "worktrees")
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
	note := filepath.Join(dir, "adding")
	if err := r.dropPart(note); err != nil {
		return err
	}
	return do(note)
}

// dropPart removes what git has entered only in part of the worktree that a note names.
func (r *Repo) dropPart(note string) error {
	dir, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := filepath.Glob(filepath.Join(escapeGlob(r.common), "worktrees", "*"))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, _ := os.ReadFile(filepath.Join(entry, "gitdir"))
		if filepath.FromSlash(strings.TrimSpace(string(path))) != filepath.Join(string(dir), ".git") {
			continue
		}
		if common, _ := os.ReadFile(filepath.Join(entry, "commondir")); len(common) > 0 {
			continue // git can read it: it is removed with its folder
		}
		if err := os.RemoveAll(entry); err != nil {
			return err
		}
	}
	return os.Remove(note)
}
