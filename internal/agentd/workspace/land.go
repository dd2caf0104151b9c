package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Landing methods.
const (
	MethodRebase = "rebase" // every commit of the work becomes a commit of the branch
	MethodSquash = "squash" // all of the work becomes one commit
)

// Reasons why work does not land, besides errors of git and of the disk.
const (
	LandConflict = "conflict"     // it conflicts with the branch
	LandChecks   = "checks"       // a check or a hook rejected the result
	LandRefused  = "land_refused" // it cannot be attempted
)

// LandError is the reason why work does not land.
type LandError struct {
	Kind   string // LandConflict, LandChecks or LandRefused
	Text   string // one line, with what to do
	Detail string // for fixing it: conflicts, or the output of a check
}

func (e *LandError) Error() string { return e.Text }

func refuse(format string, args ...any) error {
	return &LandError{Kind: LandRefused, Text: fmt.Sprintf(format, args...)}
}

// errMoved says that the branch has moved since the landing began.
var errMoved = errors.New("the branch has moved")

// Bounds of landing.
const (
	landTries      = 10       // if the branch moves meanwhile
	maxLandCommits = 500      // in one landing by rebase
	maxConflict    = 12 << 10 // bytes of LandError.Detail
)

// Landing describes work to land on a branch. Onto, Work, Method, Task and Dir are required.
type Landing struct {
	Work        string   // commit with all the work
	Task        string   // task that did the work
	Onto        string   // branch, without refs/heads/
	Remote      string   // remote of the branch; "": this repository's branch
	Address     string   // URL of Remote; "": as configured in git
	Method      string   // MethodRebase or MethodSquash
	FastForward bool     // a clean checkout of the branch is fast-forwarded
	Hooks       bool     // the repository's hooks run
	Dir         string   // folder for a worktree; its content is removed before and after
	Title       string   // of a squashed commit
	Trailers    []string // added to each commit that does not have them
	Past        []Landed // what Intend has stored, oldest first

	Prepare func(ctx context.Context, tree *Repo) error // prepares the worktree for the checks
	Check   Check
	Intend  func(Landed) error // stores durably what is about to land
	Log     func(format string, args ...any)
}

// Check runs the checks on a commit of a landing: the new tip of the branch, or, if earlier is
// set, a commit before it. It returns a summary, "" if there are no checks.
//
// Errors: LandError of the kind LandChecks if a check fails.
type Check func(ctx context.Context, tree *Repo, earlier bool) (string, error)

// Landed is a landing; it took place if the branch contains Commit.
type Landed struct {
	Onto     string `json:"onto"`
	Remote   string `json:"remote,omitempty"`
	Work     string `json:"work"`               // the commit of the work
	Commit   string `json:"commit"`             // commit on the branch that contains it
	Was      string `json:"was"`                // tip of the branch before
	Commits  int    `json:"commits"`            // number of added commits
	Checked  string `json:"checked,omitempty"`  // what Check returned; for every commit
	Checkout string `json:"checkout,omitempty"` // folder that was fast-forwarded
}

// Land lands work on a branch. It recreates the commits of the work on the tip of the branch, in
// a separate worktree, checks each of them there, and moves the branch by compare-and-set. If the
// branch moves meanwhile, it starts again. If only the last commit passes, the work lands as one
// commit. Work that has landed does not land twice.
//
// The caller must serialize landings onto one branch, see LockDir. If ctx ends before the branch
// was moved, nothing has happened.
//
// Errors: LandError; those of ctx, of the functions of l and of git.
func (r *Repo) Land(ctx context.Context, l Landing) (Landed, error) {
	at := *r
	at.hooks = l.Hooks
	r = &at
	for range landTries {
		done, err := r.landOnce(ctx, l)
		if !errors.Is(err, errMoved) {
			return done, err
		}
		l.Log("%s has moved meanwhile: this begins again", l.Onto)
	}
	return Landed{}, refuse("%s was moved by others %d times while this was landing: try again when fewer commit to it", l.Onto, landTries)
}

func (r *Repo) landOnce(ctx context.Context, l Landing) (Landed, error) {
	to, err := r.target(ctx, l)
	if err != nil {
		return Landed{}, err
	}
	if done, ok := r.hasLanded(ctx, l, to.at); ok {
		return done, nil
	}
	if to.checkout, err = r.freeToMove(ctx, l, to); err != nil {
		return Landed{}, err
	}
	defer r.RemoveWorktree(context.WithoutCancel(ctx), l.Dir)
	tree, err := r.detached(ctx, l.Dir, to.at)
	if err != nil {
		return Landed{}, err
	}
	done := Landed{Onto: l.Onto, Remote: l.Remote, Work: l.Work, Was: to.at}
	if to.checkout != nil {
		done.Checkout = to.checkout.Dir
	}
	if err := tree.rebuild(ctx, l, &done); err != nil {
		return Landed{}, err
	}
	l.Log("commits made on %s, which is at %s: %d", l.Onto, short(to.at), done.Commits)
	if done.Checked, err = l.check(ctx, tree, false); err != nil {
		return Landed{}, err
	}
	if done.Checked != "" && done.Commits > 1 {
		switch passed, err := r.checkEarlier(ctx, l, done); {
		case err != nil:
			return Landed{}, err
		case !passed:
			l.Method = MethodSquash
			return r.landOnce(ctx, l)
		}
	}
	if err := l.Intend(done); err != nil {
		return Landed{}, err
	}
	return done, r.move(ctx, l, to, done)
}

// check prepares a worktree and runs the checks in it. It refuses work with submodule commits
// that exist only in a worktree.
func (l *Landing) check(ctx context.Context, tree *Repo, earlier bool) (string, error) {
	err := tree.submodules(ctx)
	if missing, ok := errors.AsType[*missingError](err); ok {
		err = refuse("%s, then land again", missing)
	}
	if err != nil {
		return "", err
	}
	if err := l.Prepare(ctx, tree); err != nil {
		return "", err
	}
	said, err := l.Check(ctx, tree, earlier)
	return said, cmp.Or(err, context.Cause(ctx))
}

// checkEarlier reports whether each earlier commit of a landing has the same check result as
// the last one.
func (r *Repo) checkEarlier(ctx context.Context, l Landing, done Landed) (bool, error) {
	out, err := r.git(ctx, "rev-list", "--reverse", done.Was+".."+done.Commit+"^")
	if err != nil {
		return false, err
	}
	for n, commit := range strings.Fields(out) {
		l.Log("checks of commit %d of %d, %s", n+1, done.Commits, short(commit))
		tree, err := r.detached(ctx, l.Dir, commit)
		if err != nil {
			return false, err
		}
		said, err := l.check(ctx, tree, true)
		if e, red := errors.AsType[*LandError](err); red && e.Kind == LandChecks || err == nil && said != done.Checked {
			l.Log("the checks pass on the whole of the work, but not on commit %d of %d by itself: the work lands as one commit", n+1, done.Commits)
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// hasLanded finds the past landing of exactly this work, if the branch at a commit contains
// it.
func (r *Repo) hasLanded(ctx context.Context, l Landing, at string) (Landed, bool) {
	for _, p := range slices.Backward(l.Past) {
		if p.Work == l.Work && p.Onto == l.Onto && p.Remote == l.Remote && r.Contains(ctx, at, p.Commit) {
			return p, true
		}
	}
	return Landed{}, false
}

// Contains reports whether commit is tip or an ancestor of tip.
func (r *Repo) Contains(ctx context.Context, tip, commit string) bool {
	_, err := r.git(ctx, "merge-base", "--is-ancestor", commit, tip)
	return err == nil
}

// short abbreviates a commit ID for people.
func short(commit string) string { return commit[:min(len(commit), 12)] }

// Work returns the commit with all the work in a worktree.
//
// Errors: LandError if something is not committed.
func (r *Repo) Work(ctx context.Context) (string, error) {
	if r.unfinished() {
		return "", &LandError{Kind: LandConflict, Text: "the worktree " + r.Dir + " is in the middle of a merge or rebase", Detail: "A merge or rebase has begun in this folder and is not finished. Solve what it asks for, and commit."}
	}
	out, err := r.git(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames")
	if err != nil {
		return "", err
	}
	changed := slices.DeleteFunc(strings.Split(out, "\x00"), func(entry string) bool {
		return entry == "" || strings.HasPrefix(entry, "?? ") && strings.HasSuffix(entry, "/") // a repository within, which stays in the worktree
	})
	if len(changed) > 0 {
		return "", refuse("the worktree %s has changes that are not committed: let the conversation go on, or commit them on its branch", r.Dir)
	}
	return r.Commit(ctx, "")
}
