package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// landTarget is a branch on which work lands.
type landTarget struct {
	ref      string // in the repository with the branch
	at       string
	checkout *Repo // checkout of the branch; nil: none
}

// LockDir creates the folder whose lock serializes landings onto one branch, for all agents
// of this host.
func (r *Repo) LockDir(onto, remote string) (string, error) {
	dir := filepath.Join(r.common, "signalbox", "landing-"+BranchKey(onto, remote))
	return dir, os.MkdirAll(dir, 0o700)
}

// BranchKey encodes a branch for file names.
func BranchKey(onto, remote string) string {
	sum := sha256.Sum256([]byte(remote + "\x00" + onto))
	return hex.EncodeToString(sum[:8])
}

// Tip returns the commit of a branch on which work may land; for a remote, its last known
// commit.
func (r *Repo) Tip(ctx context.Context, onto, remote string) (string, error) {
	if remote != "" {
		return r.Commit(ctx, r.fetched(onto, remote))
	}
	to, err := r.target(ctx, Landing{Onto: onto})
	return to.at, err
}

// target finds the branch by its exact name, even on file systems that ignore case.
func (r *Repo) target(ctx context.Context, l Landing) (landTarget, error) {
	to := landTarget{ref: "refs/heads/" + l.Onto}
	if _, err := r.git(ctx, "check-ref-format", to.ref); err != nil {
		return to, refuse("%q is not the name of a branch", l.Onto)
	}
	if l.Remote != "" {
		return r.remoteTarget(ctx, l, to)
	}
	out, err := r.git(ctx, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", to.ref)
	if err != nil {
		return to, err
	}
	for line := range strings.SplitSeq(out, "\n") {
		if f := strings.Split(line, "\x00"); len(f) == 3 && f[0] == "refs/heads/"+l.Onto {
			to.at = f[1]
			if f[2] != "" {
				to.ref = f[2]
			}
		}
	}
	if to.at == "" {
		return to, refuse("the repository of %s has no branch %q: create it, or name another one", r.Dir, l.Onto)
	}
	return to, nil
}

// freeToMove returns the checkout that is fast-forwarded with the branch; nil if the branch
// is not checked out.
func (r *Repo) freeToMove(ctx context.Context, l Landing, to landTarget) (*Repo, error) {
	if l.Remote != "" {
		return nil, nil
	}
	if err := r.notRebased(to.ref); err != nil {
		return nil, err
	}
	dirs, err := r.checkouts(ctx, to.ref)
	switch {
	case err != nil || len(dirs) == 0:
		return nil, err
	case len(dirs) > 1:
		return nil, refuse("%s is checked out in %s: in one folder at most it could go forward", l.Onto, strings.Join(dirs, " and "))
	case !l.FastForward:
		return nil, refuse("%s is checked out in %s: land with --fast-forward, and that folder goes forward too if nothing in it is changed; or check out another branch there", l.Onto, dirs[0])
	}
	w, err := OpenTree(ctx, dirs[0], r.env)
	if err != nil {
		return nil, err
	}
	w.hooks = r.hooks
	for _, p := range slices.Backward(l.Past) {
		if p.Checkout == w.Dir && p.Was == to.at {
			if err := w.takeBack(ctx, p); err != nil {
				return nil, err
			}
			break
		}
	}
	return w, w.clean(ctx, l.Onto)
}

// clean refuses a checkout with changes or with an unfinished operation.
func (r *Repo) clean(ctx context.Context, branch string) error {
	if r.unfinished() {
		return refuse("%s is checked out in %s, in the middle of a merge or rebase: finish it, then land again", branch, r.Dir)
	}
	if _, err := os.Lstat(filepath.Join(r.gitDir, "index.lock")); err == nil {
		return refuse("git works in %s, where %s is checked out, or was killed there: try again; if no git runs there, remove %s", r.Dir, branch, filepath.Join(r.gitDir, "index.lock"))
	}
	out, err := r.git(ctx, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=dirty", "--no-renames")
	if err != nil || out == "" {
		return err
	}
	var names []string
	for entry := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		names = append(names, entry[min(3, len(entry)):])
	}
	return refuse("%s is checked out in %s, with changes that are not committed in %s: commit or stash them, then land again", branch, r.Dir, some(names))
}

// some quotes the first of several names.
func some(names []string) string {
	const most, long = 10, 80
	var list []string
	for _, name := range names[:min(len(names), most)] {
		if len(name) > long {
			name = "…" + strings.ToValidUTF8(name[len(name)-long:], "")
		}
		list = append(list, name)
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more files", strings.Join(list, ", "), len(names)-most)
	}
	return strings.Join(list, ", ")
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// checkouts returns the folders in which a branch is checked out.
func (r *Repo) checkouts(ctx context.Context, ref string) ([]string, error) {
	dirs, err := r.worktreesOn(ctx, ref)
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Lstat(dir)
		return errors.Is(err, os.ErrNotExist)
	}), err
}

// FreeBranch returns a name for the branch of a new worktree: name, or name-2 and so on if
// another worktree uses that branch, even if its folder is gone.
func (r *Repo) FreeBranch(ctx context.Context, name string) (string, error) {
	for n, free := 2, name; ; n++ {
		if dirs, err := r.worktreesOn(ctx, "refs/heads/"+free); err != nil || len(dirs) == 0 {
			return free, err
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// notRebased refuses a branch that is being rebased somewhere: it does not count as
// checked out, and the end of the rebase would reset it.
func (r *Repo) notRebased(ref string) error {
	for _, pattern := range []string{"rebase-*/head-name", "worktrees/*/rebase-*/head-name"} {
		files, err := filepath.Glob(filepath.Join(escapeGlob(r.common), pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(b)) == ref {
				return refuse("%s is being rebased (%s): finish that, then land again", strings.TrimPrefix(ref, "refs/heads/"), filepath.Dir(f))
			}
		}
	}
	return nil
}

// escapeGlob escapes a path for filepath.Glob.
func escapeGlob(path string) string {
	if os.PathSeparator == '\\' { // Windows has no escape character
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// takeBack restores a checkout after git was killed during its fast-forward: the branch has
// not moved, but files have the content of the landing. If anything else was changed,
// takeBack leaves all files alone.
func (r *Repo) takeBack(ctx context.Context, p Landed) error {
	if _, err := os.Lstat(filepath.Join(r.gitDir, "index.lock")); err == nil || r.unfinished() || r.clean(ctx, p.Onto) == nil {
		return nil
	}
	split := func(out string, err error) ([]string, error) {
		return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), err
	}
	changed, err := split(r.git(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "-z", "HEAD"))
	if err != nil {
		return err
	}
	landing, err := split(r.git(ctx, "diff-tree", "-r", "--name-only", "--no-renames", "-z", p.Was, p.Commit))
	if err != nil {
		return err
	}
	added, err := split(r.git(ctx, "diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=A", "-z", p.Was, p.Commit))
	if err != nil {
		return err
	}
	for _, name := range changed {
		if !slices.Contains(landing, name) || !r.has(ctx, p.Commit, name) && !r.has(ctx, p.Was, name) {
			return nil // a change by someone else: the landing will refuse it
		}
	}
	var mine []string
	for _, name := range added {
		if _, err := os.Lstat(filepath.Join(r.Dir, filepath.FromSlash(name))); err == nil {
			if !r.has(ctx, p.Commit, name) {
				return nil
			}
			mine = append(mine, name)
		}
	}
	if _, err := r.git(context.WithoutCancel(ctx), "reset", "--hard", "--quiet", p.Was); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range mine {
		if err := root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// has reports whether a file is the same as in a commit.
func (r *Repo) has(ctx context.Context, commit, name string) bool {
	want, err := r.line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+":"+name)
	path := filepath.Join(r.Dir, filepath.FromSlash(name))
	st, serr := os.Lstat(path)
	if err != nil || serr != nil {
		return err != nil && errors.Is(serr, os.ErrNotExist)
	}
	if st.Mode()&os.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		if err != nil {
			return false
		}
		cmd := r.command(ctx, "hash-object", "--stdin")
		cmd.Stdin = strings.NewReader(to)
		got, err := output(cmd)
		return err == nil && strings.TrimSpace(got) == want
	}
	got, err := r.line(ctx, "hash-object", "--", name)
	return err == nil && got == want
}

// move moves the branch if it has not moved since the landing began; otherwise it returns
// errMoved. It is not interrupted, because a killed git leaves locks.
func (r *Repo) move(ctx context.Context, l Landing, to landTarget, done Landed) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	switch {
	case l.Remote != "":
		if err = r.push(ctx, l, done.Commit, done.Was); err == nil {
			_, err = r.git(ctx, "update-ref", r.fetched(l.Onto, l.Remote), done.Commit)
		}
	case to.checkout != nil:
		options := "branch." + strings.TrimPrefix(to.ref, "refs/heads/") + ".mergeOptions="
		_, err = to.checkout.git(ctx, "-c", options, "-c", "merge.autoStash=false", "merge", "--ff-only", "--quiet", "--no-stat", "--no-overwrite-ignore", "--no-verify-signatures", done.Commit)
	default:
		_, err = r.git(ctx, "update-ref", "-m", "signalbox: land the work of "+l.Task, to.ref, done.Commit, done.Was)
	}
	if err == nil {
		return nil
	}
	switch now, terr := r.target(ctx, l); {
	case terr != nil:
		return errors.Join(err, terr)
	case r.Contains(ctx, now.at, done.Commit):
		return nil
	case now.at != done.Was:
		return errMoved
	case l.Remote != "":
		return refuse("%s does not take it: %s; if the branch is protected, land as a pull request", l.Remote, oneLine(err))
	case to.checkout != nil:
		return refuse("%s, where %s is checked out, cannot go forward: %s", to.checkout.Dir, l.Onto, oneLine(err))
	}
	return err
}

// remoteTarget fetches the branch of a remote.
func (r *Repo) remoteTarget(ctx context.Context, l Landing, to landTarget) (landTarget, error) {
	here := r.fetched(l.Onto, l.Remote)
	_, err := output(r.remotely(ctx, l, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--end-of-options", l.address(), "+"+to.ref+":"+here))
	switch {
	case err != nil && strings.Contains(err.Error(), "couldn't find remote ref"):
		return to, refuse("%s has no branch %q: create it, or name another one", l.Remote, l.Onto)
	case err != nil:
		return to, err
	}
	to.at = r.commit(ctx, here)
	if l.Address != "" { // for conversations that merge the branch; another fetch may be writing it
		_, _ = r.git(ctx, "update-ref", "refs/remotes/"+l.Remote+"/"+l.Onto, to.at)
	}
	return to, nil
}

// fetched is the reference to the last known commit of a remote's branch.
func (r *Repo) fetched(branch, remote string) string {
	return "refs/signalbox/landing/" + BranchKey(branch, remote)
}

func (l *Landing) address() string { return cmp.Or(l.Address, l.Remote) }

// remotely is a command that talks to the remote.
func (r *Repo) remotely(ctx context.Context, l Landing, args ...string) *exec.Cmd {
	if l.Address == "" {
		return r.command(ctx, args...)
	}
	return r.talking(ctx, l.Address, args...)
}

// push makes the branch of the remote point to a commit if it points to was; "" means that the
// branch must not exist.
func (r *Repo) push(ctx context.Context, l Landing, commit, was string) error {
	if err := r.pushLFS(ctx, l, commit); err != nil {
		return err
	}
	ref := "refs/heads/" + l.Onto
	_, err := output(r.remotely(ctx, l, "push", "--quiet", "--no-follow-tags", "--recurse-submodules=no", "--force-with-lease="+ref+":"+was, "--end-of-options", l.address(), commit+":"+ref))
	return err
}

// pushLFS uploads the large files of a commit, because the hook of git-lfs does
// not run.
func (r *Repo) pushLFS(ctx context.Context, l Landing, commit string) error {
	if r.hooks {
		return nil
	}
	attributes, err := r.git(ctx, "grep", "--no-color", "-I", "-h", "-e", "filter=lfs", commit, "--", ".gitattributes", "**/.gitattributes")
	if err != nil || attributes == "" {
		return nil // grep fails if there are none
	}
	_, err = output(r.remotely(ctx, l, "lfs", "push", l.address(), commit))
	return err
}
