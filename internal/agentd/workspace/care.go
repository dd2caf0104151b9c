package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrForeign says that a folder is no worktree of the repository that it was made from: what
// ran in it has changed where it belongs.
var ErrForeign = errors.New("it is no worktree of its repository any more")

// OpenWorktree opens a worktree of the repository. It takes neither a link nor a folder that
// names another repository or worktree: git would write there.
//
// Errors: fs.ErrNotExist, ErrForeign.
func (r *Repo) OpenWorktree(ctx context.Context, dir string) (*Repo, error) {
	if err := RealFolder(dir); err != nil {
		return nil, err
	}
	t, err := OpenTree(ctx, dir, r.env)
	if err != nil {
		return nil, err
	}
	common, err := filepath.EvalSymlinks(r.common)
	if err != nil {
		return nil, err
	}
	its, err := filepath.EvalSymlinks(t.gitDir)
	if err != nil {
		return nil, err
	}
	back, err := os.ReadFile(filepath.Join(its, "gitdir"))
	if filepath.Dir(its) != filepath.Join(common, "worktrees") || err != nil {
		return nil, fmt.Errorf("%w: %s leads to %s", ErrForeign, dir, its)
	}
	at := filepath.FromSlash(strings.TrimSpace(string(back)))
	if !filepath.IsAbs(at) {
		at = filepath.Join(its, at)
	}
	if at, err = filepath.EvalSymlinks(filepath.Dir(at)); err != nil || at != t.Dir {
		return nil, fmt.Errorf("%w: %s leads to the worktree %s", ErrForeign, dir, at)
	}
	return t, nil
}

// stillThere returns an error if what ran in a working tree has put a link in its place: git
// would read what is elsewhere.
func (r *Repo) stillThere() error {
	real, err := filepath.EvalSymlinks(r.Dir)
	if err == nil && real != r.Dir {
		err = fmt.Errorf("%w: %s leads to %s", ErrForeign, r.Dir, real)
	}
	return err
}

// RealFolder returns an error unless a folder is there, and no link to one.
func RealFolder(dir string) error {
	st, err := os.Lstat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%w: %s is no folder but a link or file", ErrForeign, dir)
	}
	return err
}

// maxListed and maxLine bound lists of commits and files for people.
const (
	maxListed = 50
	maxLine   = 200 // bytes of each
)

// Lost is what would be lost with a worktree and its branch.
type Lost struct {
	Files   []string // that are neither committed nor ignored, the first 50
	FilesN  int
	Commits []string // "1234abcd subject", the newest 50
	N       int      // of commits
	Nested  []string // repositories within that have something of their own: "tools/x: 2 commits that no remote of it has", the first 50
	NestedN int
	Tip     string // of the branch; "": there is none
	Head    string // what is checked out
	Seen    string // stands for all of this
}

// Any reports whether anything would be lost.
func (l *Lost) Any() bool { return l.FilesN > 0 || l.N > 0 || l.NestedN > 0 }

// Lost finds out what would be lost with a worktree, nil if its folder is gone, and its branch:
// what none of the commits has.
func (r *Repo) Lost(ctx context.Context, tree *Repo, branch string, commits ...string) (l Lost, err error) {
	sum := sha256.New()
	l.Tip = r.commit(ctx, "refs/heads/"+branch)
	l.Head = l.Tip
	if tree != nil {
		l.Head = tree.Head(ctx)
		// Of submodules the commit; what else is in them is told with the repositories within.
		if l.Files, l.FilesN, err = tree.uncommitted(ctx, sum, "--untracked-files=all", "--ignore-submodules=dirty"); err != nil {
			return l, err
		}
		if l.Nested, l.NestedN, err = tree.nested(ctx, sum); err != nil {
			return l, err
		}
	}
	if l.Commits, l.N, err = r.commitsBeyond(ctx, []string{l.Tip, l.Head}, commits); err != nil {
		return l, err
	}
	fmt.Fprintf(sum, "%s %s %d", l.Tip, l.Head, l.N)
	l.Seen = hex.EncodeToString(sum.Sum(nil)[:8])
	return l, nil
}

// uncommitted lists the first files of a working tree that are neither committed nor ignored, and
// says how many there are. What they are is written to sum.
func (r *Repo) uncommitted(ctx context.Context, sum io.Writer, args ...string) (list []string, n int, err error) {
	out, err := r.git(ctx, append([]string{"status", "--porcelain", "--no-renames", "-z"}, args...)...)
	if err != nil {
		return nil, 0, err
	}
	for entry := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		if len(entry) < 4 {
			continue
		}
		name := entry[3:]
		if n++; n <= maxListed {
			list = append(list, shown(name))
		}
		fmt.Fprintf(sum, "%s\x00", entry)
		if st, err := os.Lstat(filepath.Join(r.Dir, filepath.FromSlash(name))); err == nil {
			fmt.Fprintf(sum, "%d %d %o\x00", st.Size(), st.ModTime().UnixNano(), st.Mode())
		}
	}
	return list, n, nil
}

// commitsBeyond lists the newest commits of some that none of the others has, and their number.
func (r *Repo) commitsBeyond(ctx context.Context, of, others []string) (list []string, n int, err error) {
	args := []string{"log", "--format=%h %s", "--no-show-signature", "--no-decorate", "--encoding=UTF-8"}
	some := false
	for _, c := range of {
		if c != "" {
			args, some = append(args, c), true
		}
	}
	if !some {
		return nil, 0, nil
	}
	for _, c := range others {
		if c != "" {
			args = append(args, "^"+c)
		}
	}
	out, err := r.git(ctx, append(args, "--")...)
	if err != nil {
		return nil, 0, err
	}
	for line := range strings.Lines(out) {
		if n++; n <= maxListed {
			list = append(list, shown(strings.TrimRight(line, "\n")))
		}
	}
	return list, n, nil
}

// shown is a line as it is told.
func shown(line string) string {
	if len(line) > maxLine {
		line = line[:maxLine] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

// DeleteBranch deletes a branch that is still at a commit, whatever it has.
func (r *Repo) DeleteBranch(ctx context.Context, branch, at string) error {
	_, err := r.git(ctx, "update-ref", "-d", "refs/heads/"+branch, at)
	return err
}

// HasOwn reports whether a mirror has branches or a stash with commits that its remote had not
// when it was fetched last.
func (r *Repo) HasOwn(ctx context.Context) (bool, error) {
	args := []string{"rev-list", "--count", "--max-count=1", "--branches"}
	if r.commit(ctx, "refs/stash") != "" {
		args = append(args, "refs/stash")
	}
	n, err := r.line(ctx, append(args, "--not", "--remotes", "--tags")...)
	return n != "0", err
}

// Size is what a folder takes on the disk. No link is followed. whole is false if it has more
// files than are counted, 500,000, or ctx has ended.
func Size(ctx context.Context, dir string) (bytes int64, whole bool) {
	files := 0
	whole = true
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if files++; files > maxCounted || ctx.Err() != nil {
			whole = false
			return fs.SkipAll
		}
		if err != nil {
			return nil // it may be gone
		}
		if st, err := e.Info(); err == nil {
			bytes += onDisk(st)
		}
		return nil
	})
	return bytes, whole
}

const maxCounted = 500_000
