package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// The kinds of workspaces.
const (
	KindFolder   = signalbox.WorkspaceFolder
	KindWorktree = signalbox.WorkspaceWorktree
	KindClone    = signalbox.WorkspaceClone
)

// BranchPrefix is the prefix of the branches of worktrees.
const BranchPrefix = "signalbox/"

// AddWorktree creates a worktree in a folder that does not exist yet, on a branch: an
// existing one, or a new one from base, which defaults to the checked-out commit.
func (r *Repo) AddWorktree(ctx context.Context, dir, branch, base string) (*Repo, error) {
	args := []string{dir, branch}
	if r.commit(ctx, "refs/heads/"+branch) == "" {
		at, err := r.Commit(ctx, base)
		if err != nil {
			return nil, err
		}
		args = []string{"--no-track", "-b", branch, dir, at}
	}
	w, err := r.addWorktree(ctx, dir, branch, args...)
	if err != nil {
		return nil, err
	}
	return w, w.submodules(ctx)
}

// Commit resolves a branch, tag or commit; "" resolves to the checked-out
// commit.
func (r *Repo) Commit(ctx context.Context, name string) (string, error) {
	at := r.commit(ctx, cmp.Or(name, "HEAD"))
	switch {
	case at == "" && name == "":
		return "", fmt.Errorf("the repository %s has no commit yet, from which a worktree could be made", r.Dir)
	case at == "":
		return "", fmt.Errorf("the repository %s has no commit %q, from which the worktree is to be made", r.Dir, name)
	}
	return at, nil
}

// RemoveWorktree removes a worktree with all its content, even if it was created only in
// part. It keeps its branch, and git's record of other worktrees whose folders are missing
// now.
func (r *Repo) RemoveWorktree(ctx context.Context, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_, err := r.worktrees(ctx, "remove", "--force", "--force", "--", dir)
	if err != nil && strings.Contains(err.Error(), "is not a working tree") { // there was none
		return nil
	}
	return err
}

// Unlock removes the locks that a killed git left behind: of the index, of HEAD, and of the
// branch of the working tree. No process may be running in it.
func (r *Repo) Unlock(branch string) error {
	var errs []error
	for _, path := range []string{filepath.Join(r.gitDir, "index.lock"), filepath.Join(r.gitDir, "HEAD.lock"), r.branchLock(branch)} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// branchLock is the file that git creates while it moves a branch.
func (r *Repo) branchLock(branch string) string {
	return filepath.Join(r.common, "refs", "heads", filepath.FromSlash(branch)+".lock")
}

// operations are files that show an unfinished git operation.
var operations = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}

// unfinished reports whether a merge, rebase or the like is unfinished.
func (r *Repo) unfinished() bool {
	return slices.ContainsFunc(operations, func(name string) bool {
		_, err := os.Lstat(filepath.Join(r.gitDir, name))
		return err == nil
	})
}

// CommitAll commits everything that is not committed, on the checked-out branch or commit. It
// does nothing during a merge or rebase.
func (r *Repo) CommitAll(ctx context.Context, subject string, trailers ...string) error {
	if err := r.stillThere(); err != nil || r.unfinished() {
		return err
	}
	if err := r.add(ctx, "--all", func(args ...string) *exec.Cmd { return r.command(ctx, args...) }); err != nil {
		return err
	}
	staged, err := r.git(ctx, "diff", "--cached", "--name-only", "--no-ext-diff", "-z")
	if err != nil || staged == "" {
		return err
	}
	_, err = r.git(ctx, append(r.author(ctx), "commit", "--quiet", "--no-verify", "--message", subject+"\n\n"+strings.Join(trailers, "\n"))...)
	return err
}

// author is the author of commits if git does not know the user.
func (r *Repo) author(ctx context.Context) []string {
	if _, err := r.git(ctx, "var", "GIT_COMMITTER_IDENT"); err == nil {
		if name, err := r.line(ctx, "config", "user.email"); err == nil && name != "" {
			return nil
		}
	}
	return []string{"-c", "user.name=Signalbox", "-c", "user.email=signalbox@localhost"}
}

// Keep makes a branch point to the checked-out commit, if that is on no branch and descends
// from the branch, so that no commit is lost.
func (r *Repo) Keep(ctx context.Context, branch string) error {
	head := r.commit(ctx, "HEAD")
	if head == "" || r.branch(ctx) != "" {
		return nil
	}
	ref := "refs/heads/" + branch
	was := r.commit(ctx, ref)
	if was == head {
		return nil
	}
	if was != "" {
		if _, err := r.git(ctx, "merge-base", "--is-ancestor", was, head); err != nil {
			ref += "-" + head[:7] // it went back in history
			was = r.commit(ctx, ref)
		}
	}
	_, err := r.git(ctx, "update-ref", ref, head, was)
	return err
}

// beyond reports whether a name has commits that are in none of commits.
func (r *Repo) beyond(ctx context.Context, name string, commits []string) (bool, error) {
	args := []string{"rev-list", "--count", "--max-count=1", name}
	for _, c := range commits {
		args = append(args, "^"+c)
	}
	n, err := r.line(ctx, args...)
	return n != "0", err
}

// DropBranch deletes a branch if all its commits are in one of commits.
func (r *Repo) DropBranch(ctx context.Context, branch string, commits ...string) error {
	ref := "refs/heads/" + branch
	at := r.commit(ctx, ref)
	if at == "" {
		return nil
	}
	if more, err := r.beyond(ctx, at, commits); err != nil || more {
		return err
	}
	_, err := r.git(ctx, "update-ref", "-d", ref, at)
	return err
}

// Head is the checked-out commit; "" if there is none.
func (r *Repo) Head(ctx context.Context) string { return r.commit(ctx, "HEAD") }

// maxCarried is the maximum size of a file that is copied, in bytes.
const maxCarried = 64 << 20

// Carry copies files that match a pattern, such as .env or config/*.local, from this working
// tree into a worktree, if git ignores them: other files could be committed there. It follows
// no links. It returns the copied files, and those refused because git does not ignore them.
func (r *Repo) Carry(ctx context.Context, to *Repo, patterns []string) (carried, refused []string, err error) {
	if len(patterns) == 0 {
		return nil, nil, nil
	}
	from, err := os.OpenRoot(r.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer from.Close()
	into, err := os.OpenRoot(to.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer into.Close()
	for _, pattern := range patterns {
		if !signalbox.ValidPathPattern(pattern) {
			return carried, refused, fmt.Errorf("workspace.carry: %q is not a pattern of files in the repository", pattern)
		}
		names, err := fs.Glob(from.FS(), path.Clean(pattern))
		if err != nil {
			return carried, refused, err
		}
		for _, name := range names {
			st, err := from.Lstat(name)
			if err != nil || !st.Mode().IsRegular() || slices.Contains(carried, name) {
				continue
			}
			if _, err := to.git(ctx, "check-ignore", "--quiet", "--", name); err != nil {
				if _, err := to.git(ctx, "ls-files", "--error-unmatch", "--", name); err != nil {
					refused = append(refused, name)
				}
				continue // a tracked file is already there
			}
			if err := copyFile(from, into, name, st); err != nil {
				return carried, refused, fmt.Errorf("workspace.carry: %w", err)
			}
			carried = append(carried, name)
		}
	}
	return carried, refused, nil
}

func copyFile(from, into *os.Root, name string, st fs.FileInfo) error {
	if st.Size() > maxCarried {
		return fmt.Errorf("%s has %d bytes: %d at most", name, st.Size(), maxCarried)
	}
	src, err := from.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := into.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	dst, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.LimitReader(src, maxCarried))
	return errors.Join(err, dst.Close())
}
