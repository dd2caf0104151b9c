package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// site is a repository whose user is on the branch user, with a worktree on the branch work.
type site struct {
	*repository
	repo *Repo
	work *repository
	past []Landed
}

func newSite(t *testing.T) *site {
	t.Helper()
	r := newRepository(t)
	r.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	r.write("sub/b.txt", "b\n")
	r.commit("first")
	r.git("checkout", "-q", "-b", "user")
	tree := filepath.Join(t.TempDir(), "work")
	r.git("worktree", "add", "-q", "-b", "work", tree, "main")
	real, err := filepath.EvalSymlinks(tree)
	if err != nil {
		t.Fatal(err)
	}
	return &site{r, r.open(), &repository{t, real, r.env}, nil}
}

// landing is a landing of the worktree's work.
func (s *site) landing() Landing {
	s.t.Helper()
	return Landing{
		Work: s.work.git("rev-parse", "HEAD"), Task: "queue-1", Onto: "main", Method: MethodRebase, Dir: filepath.Join(s.t.TempDir(), "landing"),
		Trailers: []string{"Signalbox-Task: queue-1", "Co-authored-by: helper <helper@signalbox.local>"}, Past: s.past,
		Prepare: func(context.Context, *Repo) error { return nil },
		Check:   func(context.Context, *Repo, bool) (string, error) { return "passed", nil },
		Intend:  func(l Landed) error { s.past = append(s.past, l); return nil },
		Log:     s.t.Logf,
	}
}

func (s *site) land(l Landing) Landed {
	s.t.Helper()
	done, err := s.repo.Land(s.t.Context(), l)
	if err != nil {
		s.t.Fatalf("%v: %+v", err, err)
	}
	if _, err := os.Lstat(l.Dir); !errors.Is(err, os.ErrNotExist) {
		s.t.Errorf("the worktree of the landing is left: %v", err)
	}
	return done
}

// wantLandError expects a landing to fail without leaving anything behind.
func (s *site) wantLandError(l Landing, kind, text string) *LandError {
	s.t.Helper()
	before := s.git("for-each-ref")
	_, err := s.repo.Land(s.t.Context(), l)
	e, ok := errors.AsType[*LandError](err)
	if !ok || e.Kind != kind || !strings.Contains(e.Text, text) {
		s.t.Fatalf("%v (%+v), want %s and %q", err, e, kind, text)
	}
	if after := s.git("for-each-ref"); after != before {
		s.t.Errorf("the branches are %s, and were %s", after, before)
	}
	if got := s.git("worktree", "list", "--porcelain"); strings.Contains(got, l.Dir) {
		s.t.Errorf("a worktree is left: %s", got)
	}
	return e
}

// on commits to main as another user.
func (s *site) on(name, text string) string {
	s.t.Helper()
	tree := filepath.Join(s.t.TempDir(), "other")
	s.git("worktree", "add", "-q", tree, "main")
	other := &repository{s.t, tree, s.env}
	other.write(name, text)
	at := other.commit("of somebody else: " + name)
	s.git("worktree", "remove", tree)
	return at
}

func (s *site) log(from string) string {
	s.t.Helper()
	return s.git("log", "--reverse", "--format=%an|%s|%(trailers:unfold,separator=%x2C)", from+"..main")
}

const trailers = "|Signalbox-Task: queue-1,Co-authored-by: helper <helper@signalbox.local>"

func TestLandByRebase(t *testing.T) {
	s := newSite(t)
	s.work.write("a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n")
	s.work.git("-c", "user.name=Other Author", "commit", "-qam", "two\n\n# no comment\n\nSigned-off-by: X <x@example.org>")
	s.work.write("new.txt", "n\n")
	s.work.commit("new")
	base := s.on("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n")
	checked := ""
	l := s.landing()
	l.Check = func(_ context.Context, tree *Repo, _ bool) (string, error) {
		b, err := os.ReadFile(filepath.Join(tree.Dir, "a.txt"))
		checked = string(b)
		return "passed", err
	}
	before := sums(t, s.dir)
	done := s.land(l)
	if done.Was != base || done.Commit != s.git("rev-parse", "main") || done.Commits != 2 || done.Checked != "passed" || done.Work != l.Work {
		t.Errorf("%+v", done)
	}
	if want := "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n"; checked != want || s.git("show", "main:a.txt")+"\n" != want {
		t.Errorf("checked %q", checked)
	}
	if got, want := s.log(base), "Other Author|two|Signed-off-by: X <x@example.org>,"+trailers[1:]+"\nA User|new"+trailers; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := s.git("log", "-1", "--format=%b", "main~1"); !strings.HasPrefix(got, "# no comment\n\nSigned-off-by: X <x@example.org>\nSignalbox-Task: queue-1\n") {
		t.Errorf("the message is %q", got)
	}
	for path, sum := range sums(t, s.dir) {
		if !strings.Contains(path, ".git") && before[path] != sum {
			t.Errorf("%s has changed", path)
		}
	}
	if s.git("status", "--porcelain") != "" || s.git("stash", "list") != "" {
		t.Error("the checkout has changed")
	}
}

// Work that has landed does not land again, whatever is requested; later work of the
// same conversation lands alone.
func TestLandOnlyWhatIsNew(t *testing.T) {
	for _, method := range []string{MethodRebase, MethodSquash} {
		t.Run(method, func(t *testing.T) {
			s := newSite(t)
			s.work.write("a.txt", "1\n2\n3\nvier\n5\n6\n7\n8\n9\n")
			s.work.commit("four")
			s.work.write("a.txt", "1\n2\n3\nquatre\n5\n6\n7\n8\n9\n")
			s.work.commit("four again")
			land := func() Landed {
				t.Helper()
				l := s.landing()
				l.Method = method
				return s.land(l)
			}
			first := land()
			if again := land(); again != first || len(s.past) != 1 {
				t.Errorf("%+v after %+v, %d landings", again, first, len(s.past))
			}
			s.on("b.txt", "x\n")
			s.work.write("a.txt", "1\n2\n3\nquattro\n5\n6\n7\n8\n9\n")
			s.work.commit("four, later")
			if done := land(); done.Commits != 1 || s.git("diff", "--name-only", "main~1", "main") != "a.txt" {
				t.Errorf("%+v", done)
			}
			s.work.git("merge", "-q", "--no-edit", "main")
			s.past[len(s.past)-1].Work = s.work.git("rev-parse", "HEAD~1") // as in that file
			s.wantLandError(s.landing(), LandRefused, "nothing to land: main has all of the work already")
			s.work.write("a.txt", "1\n2\n3\nlast\n5\n6\n7\n8\n9\n")
			s.work.commit("last")
			if done := land(); done.Commits != 1 || s.git("show", "--format=", "--name-only", "main") != "a.txt" {
				t.Errorf("%+v", done)
			}
			if got := s.git("rev-list", "--count", "main"); method == MethodSquash && got != "5" || method == MethodRebase && got != "6" {
				t.Errorf("%s commits", got)
			}
		})
	}
}

func TestLandBySquash(t *testing.T) {
	s := newSite(t)
	s.work.write("x.txt", "x\n")
	s.work.git("add", "-A")
	s.work.git("-c", "user.name=Other Author", "commit", "-qm", "one")
	s.work.write("y.txt", "y\n")
	s.work.commit("two")
	base := s.on("b.txt", "x\n")
	l := s.landing()
	l.Method, l.Title = MethodSquash, "All of it"
	if done := s.land(l); done.Commits != 1 {
		t.Errorf("%+v", done)
	}
	if got := s.log(base); got != "A User|All of it"+trailers {
		t.Errorf("%s", got)
	}
	if got := s.git("log", "-1", "--format=%b", "main"); !strings.HasPrefix(got, "- one\n- two\n\nSignalbox-Task: queue-1\n") {
		t.Errorf("%q", got)
	}
}

// A conflict names the place and what to do. Merge resolutions in the work are kept.
func TestLandAfterConflict(t *testing.T) {
	s := newSite(t)
	s.work.write("a.txt", "1\n2\n3\n4\nmine\n6\n7\n8\n9\n")
	s.work.commit("mine")
	s.on("a.txt", "1\n2\n3\n4\ntheirs\n6\n7\n8\n9\n")
	e := s.wantLandError(s.landing(), LandConflict, "conflict with main at ")
	for _, want := range []string{"in a.txt", "git merge main", "The commit that does not fit: mine", "++<<<<<<<", "theirs", "mine"} {
		if !strings.Contains(e.Detail, want) {
			t.Errorf("%q is not in %s", want, e.Detail)
		}
	}
	l := s.landing()
	l.Method = MethodSquash
	s.wantLandError(l, LandConflict, "in a.txt")
	cmd := s.work.command("merge", "-q", "main")
	if err := cmd.Run(); err == nil {
		t.Fatal("there is no conflict")
	}
	s.work.write("a.txt", "1\n2\n3\n4\nboth\n6\n7\n8\n9\n")
	s.work.commit("merged")
	s.on("sub/b.txt", "later\n")
	if done := s.land(s.landing()); done.Commits != 1 || s.git("show", "main:a.txt") != "1\n2\n3\n4\nboth\n6\n7\n8\n9" || s.git("show", "main:sub/b.txt") != "later" {
		t.Errorf("%+v", done)
	}
}

func TestLandThatIsRefused(t *testing.T) {
	s := newSite(t)
	s.wantLandError(s.landing(), LandRefused, "nothing to land")
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	for _, name := range []string{"none", "-x", "a..b", "a b", "x:y", "@{-1}", "main^", "../HEAD", "heads/main", "Main", "", "a\nb"} {
		l := s.landing()
		l.Onto = name
		s.wantLandError(l, LandRefused, "branch")
	}
	l := s.landing()
	l.Check = func(context.Context, *Repo, bool) (string, error) {
		return "", &LandError{Kind: LandChecks, Text: "red"}
	}
	s.wantLandError(l, LandChecks, "red")
	orphan := &repository{t, filepath.Join(t.TempDir(), "orphan"), s.env}
	s.git("worktree", "add", "-q", "--detach", orphan.dir)
	orphan.git("checkout", "-q", "--orphan", "other")
	orphan.commit("root")
	l = s.landing()
	l.Work = orphan.git("rev-parse", "HEAD")
	s.wantLandError(l, LandRefused, "no commit in common")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	l = s.landing()
	l.Check = func(context.Context, *Repo, bool) (string, error) { cancel(stopped); return "passed", nil }
	before := s.git("rev-parse", "main")
	if _, err := s.repo.Land(ctx, l); !errors.Is(err, stopped) || s.git("rev-parse", "main") != before {
		t.Errorf("%v", err)
	}
}

// If the branch moves during the checks, the work lands on the new tip and is
// checked again.
func TestLandOnMovingBranch(t *testing.T) {
	s := newSite(t)
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	l, tries := s.landing(), 0
	l.Check = func(_ context.Context, tree *Repo, _ bool) (string, error) {
		if tries++; tries < 3 {
			s.on("b.txt", strings.Repeat("x\n", tries))
		} else if b, err := os.ReadFile(filepath.Join(tree.Dir, "b.txt")); err != nil || string(b) != "x\nx\n" {
			t.Errorf("%q %v", b, err)
		}
		return "passed", nil
	}
	if done := s.land(l); tries != 3 || done.Was != s.git("rev-parse", "main~1") || s.git("rev-list", "--count", "main") != "4" {
		t.Errorf("%+v after %d tries", done, tries)
	}
	s.work.write("n.txt", "m\n")
	s.work.commit("more")
	l = s.landing()
	l.Check = func(context.Context, *Repo, bool) (string, error) {
		tries++
		s.on("b.txt", strings.Repeat("y\n", tries))
		return "passed", nil
	}
	if _, err := s.repo.Land(t.Context(), l); err == nil || !strings.Contains(err.Error(), "moved by others 10 times") {
		t.Errorf("%v", err)
	}
}

func TestLandOnCheckedOutBranch(t *testing.T) {
	s := newSite(t)
	s.git("checkout", "-q", "main")
	s.work.write("n.txt", "n\n")
	s.work.write("a.txt", "changed\n")
	s.work.commit("new")
	s.wantLandError(s.landing(), LandRefused, "main is checked out in "+s.dir+": land with --fast-forward")
	l := s.landing()
	l.FastForward = true
	s.write("sub/b.txt", "not committed\n")
	s.wantLandError(l, LandRefused, "changes that are not committed in sub/b.txt")
	s.git("checkout", "-q", "--", ".")
	s.write("n.txt", "mine, untracked\n")
	s.wantLandError(l, LandRefused, "cannot go forward: git merge: error: The following untracked working tree files would be overwritten by merge: n.txt ")
	if err := os.Rename(filepath.Join(s.dir, "n.txt"), filepath.Join(s.dir, "mine.txt")); err != nil {
		t.Fatal(err)
	}
	s.write("sub/lock", "")
	if err := os.WriteFile(filepath.Join(s.dir, ".git/index.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.wantLandError(l, LandRefused, "index.lock")
	if err := os.Remove(filepath.Join(s.dir, ".git/index.lock")); err != nil {
		t.Fatal(err)
	}
	l.Past = s.past
	s.git("config", "branch.main.mergeOptions", "--squash --no-ff")
	done := s.land(l)
	if done.Checkout != s.dir || s.git("rev-parse", "HEAD") != done.Commit || s.git("status", "--porcelain") != "?? mine.txt\n?? sub/lock" || s.git("show", ":a.txt") != "changed" {
		t.Errorf("%+v, and the folder is %q", done, s.git("status", "--porcelain"))
	}
	if s.git("symbolic-ref", "HEAD") != "refs/heads/main" {
		t.Error("the branch is no longer checked out")
	}
}

// A branch that its user is rebasing, or into which the user is merging, does
// not move.
func TestLandOnBranchInUse(t *testing.T) {
	s := newSite(t)
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	s.write("a.txt", "of the user\n")
	s.commit("user")
	s.on("a.txt", "of main\n")
	s.git("checkout", "-q", "main")
	if out, err := s.command("rebase", "user").CombinedOutput(); err == nil {
		t.Fatalf("there is no conflict: %s", out)
	}
	l := s.landing()
	l.FastForward = true
	s.wantLandError(l, LandRefused, "main is being rebased")
	s.git("rebase", "--abort")
	if out, err := s.command("merge", "user").CombinedOutput(); err == nil {
		t.Fatalf("there is no conflict: %s", out)
	}
	s.wantLandError(l, LandRefused, "in the middle of a merge or rebase")
	s.git("merge", "--abort")
	second := filepath.Join(t.TempDir(), "second")
	s.git("worktree", "add", "-q", "--force", second, "main")
	s.wantLandError(l, LandRefused, "in one folder at most it could go forward")
	s.git("worktree", "remove", second)
	s.land(l)
}

// If git was killed during the fast-forward of a checkout, it left files of the work there; the
// next attempt first restores the checkout. Other users' changes are kept.
func TestLandAfterKillInCheckout(t *testing.T) {
	s := newSite(t)
	s.git("checkout", "-q", "main")
	s.work.write("n/n.txt", "n\n")
	s.work.write("a.txt", "changed\n")
	s.work.git("rm", "-q", "sub/b.txt")
	s.work.commit("new")
	l := s.landing()
	l.FastForward = true
	killed := errors.New("killed")
	l.Intend = func(p Landed) error {
		s.past = append(s.past, p)
		s.write("n/n.txt", "n\n")
		s.write("a.txt", "changed\n")
		return killed
	}
	if _, err := s.repo.Land(t.Context(), l); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	s.write("mine.txt", "untracked\n")
	next := func() Landing {
		l := s.landing()
		l.FastForward = true
		return l
	}
	s.write("sub/b.txt", "by the user\n")
	s.wantLandError(next(), LandRefused, "not committed in a.txt, sub/b.txt")
	s.git("checkout", "-q", "--", "sub")
	s.write("a.txt", "changed, by the user too\n")
	s.wantLandError(next(), LandRefused, "not committed in a.txt")
	s.write("a.txt", "changed\n")
	if done := s.land(next()); s.git("rev-parse", "HEAD") != done.Commit || s.git("status", "--porcelain") != "?? mine.txt" || s.git("rev-list", "--count", "HEAD") != "2" {
		t.Errorf("%+v, and the folder is %q", done, s.git("status", "--porcelain"))
	}
}

// If git does not know the user, Signalbox is the author of commits.
func TestLandWithoutIdentity(t *testing.T) {
	s := newSite(t)
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	s.git("checkout", "-q", "main")
	s.git("config", "--unset", "user.email")
	s.git("config", "--unset", "user.name")
	s.git("config", "user.useConfigOnly", "true")
	l := s.landing()
	l.FastForward, l.Method = true, MethodSquash
	s.land(l)
	if got := s.git("log", "-1", "--format=%an|%ae|%cn|%s", "main"); got != "Signalbox|signalbox@localhost|Signalbox|new" {
		t.Errorf("%s", got)
	}
}

// Hooks run only if configured.
func TestLandRunsHooksOnlyIfAsked(t *testing.T) {
	s := newSite(t)
	hook := filepath.Join(s.dir, ".git/hooks/pre-commit")
	ran := filepath.Join(t.TempDir(), "ran")
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pre-commit", "commit-msg", "reference-transaction", "post-checkout", "post-index-change", "post-merge", "prepare-commit-msg"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(hook), name), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l := s.landing()
	if _, err := s.repo.Land(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a hook has run")
	}
	s.work.write("n.txt", "m\n")
	s.work.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "more")
	if err := os.Remove(ran); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho this is not formatted >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	l = s.landing()
	l.Hooks = true
	s.wantLandError(l, LandChecks, "this is not formatted")
}

func TestLandOnRemoteBranch(t *testing.T) {
	s := newSite(t)
	bare := newRepository(t, "--bare")
	s.git("remote", "add", "origin", bare.dir)
	s.git("push", "-q", "origin", "main")
	s.work.write("n.txt", "n\n")
	s.work.commit("new")
	base := s.on("b.txt", "only here\n")
	l, tries := s.landing(), 0
	l.Remote = "origin"
	l.Check = func(context.Context, *Repo, bool) (string, error) {
		if tries++; tries == 1 {
			s.git("push", "-q", "origin", "main")
		}
		return "passed", nil
	}
	done := s.land(l)
	if tries != 2 || bare.git("rev-parse", "main") != done.Commit || done.Was != base || s.git("rev-parse", "main") != base {
		t.Errorf("%+v after %d tries", done, tries)
	}
	l.Past = s.past
	if again := s.land(l); again != done || tries != 2 {
		t.Errorf("%+v", again)
	}
	l.Onto = "none"
	s.wantLandError(l, LandRefused, `origin has no branch "none"`)
}
