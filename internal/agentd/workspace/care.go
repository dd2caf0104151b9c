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

// ErrForeign says that a folder is no longer a worktree of the repository it was made from:
// a run has replaced it.
var ErrForeign = errors.New("it is no longer a worktree of its repository")

// OpenWorktree opens a worktree of the repository. It refuses a link and a folder that names
// another repository or worktree, because git would write there.
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

// stillThere returns an error if a run has replaced a working tree by a link: git would read
// files elsewhere.
func (r *Repo) stillThere() error {
	real, err := filepath.EvalSymlinks(r.Dir)
	if err == nil && real != r.Dir {
		err = fmt.Errorf("%w: %s leads to %s", ErrForeign, r.Dir, real)
	}
	return err
}

// RealFolder returns an error unless dir is a folder and not a link to one.
func RealFolder(dir string) error {
	st, err := os.Lstat(dir)
	if err == nil && !st.IsDir() {
		err = fmt.Errorf("%w: %s is a link or a file, not a folder", ErrForeign, dir)
	}
	return err
}

// maxListed and maxLine bound lists of commits and files for people.
const (
	maxListed = 50
	maxLine   = 200 // bytes of each line
)

// Lost is the content that would be lost with a worktree and its branch.
type Lost struct {
	Files   []string // neither committed nor ignored, the first 50
	FilesN  int
	Commits []string // "1234abcd subject", the newest 50
	N       int      // number of commits
	Nested  []string // repositories within that have content of their own: "tools/x: 2 commits that no remote of it has", the first 50
	NestedN int
	Tip     string // of the branch; "": there is none
	Head    string // checked-out commit
	Seen    string // hash over all of this
}

// Any reports whether anything would be lost.
func (l *Lost) Any() bool { return l.FilesN > 0 || l.N > 0 || l.NestedN > 0 }

// Lost determines what would be lost with a worktree (nil if its folder is gone) and its
// branch: everything that none of the given commits contains.
func (r *Repo) Lost(ctx context.Context, tree *Repo, branch string, commits ...string) (l Lost, err error) {
	sum := sha256.New()
	l.Tip = r.commit(ctx, "refs/heads/"+branch)
	l.Head = l.Tip
	if tree != nil {
		l.Head = tree.Head(ctx)
		// For submodules only the commit; the rest is reported with the repositories within.
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
// returns their number. It writes what identifies them to sum.
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

// commitsBeyond lists the newest commits that are in of but in none of others, and returns
// their number.
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

// shown formats a line for people.
func shown(line string) string {
	if len(line) > maxLine {
		line = line[:maxLine] + "…"
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}

// DeleteBranch deletes a branch if it still points to a commit, whatever it
// contains.
func (r *Repo) DeleteBranch(ctx context.Context, branch, at string) error {
	_, err := r.git(ctx, "update-ref", "-d", "refs/heads/"+branch, at)
	return err
}

// HasOwn reports whether a mirror has branches or a stash with commits that its remote did not
// have at the last fetch.
func (r *Repo) HasOwn(ctx context.Context) (bool, error) {
	args := []string{"rev-list", "--count", "--max-count=1", "--branches"}
	if r.commit(ctx, "refs/stash") != "" {
		args = append(args, "refs/stash")
	}
	n, err := r.line(ctx, append(args, "--not", "--remotes", "--tags")...)
	return n != "0", err
}

// Size returns the disk usage of a folder, in bytes. It follows no links. whole is false if
// the folder has more than 500,000 files, the rest of which are not counted, or if ctx has
// ended.
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
