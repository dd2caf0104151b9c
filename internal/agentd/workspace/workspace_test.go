package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
)

// repository is a git repository for a test.
type repository struct {
	t   testing.TB
	dir string
	env []string
}

func newRepository(t testing.TB, args ...string) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t, dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}}
	r.git(append([]string{"init", "-q", "-b", "main"}, args...)...)
	r.git("config", "user.name", "A User")
	r.git("config", "user.email", "user@example.org")
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) command(args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) commit(subject string) string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", subject)
	return r.git("rev-parse", "HEAD")
}

func (r *repository) open() *Repo {
	r.t.Helper()
	repo, err := Open(r.t.Context(), r.dir, r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	return repo
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// sums returns the content of all files below a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// changed runs a function that changes a working tree, and returns the
// changes.
func changed(t *testing.T, r *Repo, work func()) (*api.Changes, string) {
	t.Helper()
	objects, patch := t.TempDir(), filepath.Join(t.TempDir(), "patch")
	before := must[Mark](t)(r.Mark(t.Context(), objects))
	work()
	after := must[Mark](t)(r.Mark(t.Context(), objects))
	c, err := r.Changes(t.Context(), before, after, objects, patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(patch)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return c, string(text)
}

func TestChangesOfFolder(t *testing.T) {
	r := newRepository(t)
	r.write("kept.txt", "1\n2\n3\n")
	r.write("old name.txt", strings.Repeat("a line that stays\n", 20))
	r.write("gone.txt", "x\n")
	r.write(".gitignore", "*.log\n")
	base := r.commit("first")
	r.write("kept.txt", "1\n2\n3\nby the user, not committed\n")
	r.write("notes.txt", "untracked, of before\n")
	repo := r.open()
	c, patch := changed(t, repo, func() {
		r.write("kept.txt", "1\nzwei\n3\nby the user, not committed\n")
		r.write("neu/größe \"x\".txt", "new\nnew\n")
		r.write("debug.log", "ignored\n")
		r.write("picture.bin", "\x00\x01\x02")
		if err := errors.Join(os.Remove(filepath.Join(r.dir, "gone.txt")), os.Rename(filepath.Join(r.dir, "old name.txt"), filepath.Join(r.dir, "new name.txt"))); err != nil {
			t.Fatal(err)
		}
	})
	want := []api.ChangedFile{
		{Path: "gone.txt", Status: "deleted", Deletions: 1},
		{Path: "kept.txt", Status: "modified", Insertions: 1, Deletions: 1},
		{Path: "neu/größe \"x\".txt", Status: "added", Insertions: 2},
		{Path: "new name.txt", From: "old name.txt", Status: "renamed"},
		{Path: "picture.bin", Status: "added", Binary: true},
	}
	slices.SortFunc(c.Files, func(a, b api.ChangedFile) int { return strings.Compare(a.Path, b.Path) })
	if !slices.Equal(c.Files, want) || c.FilesChanged != 5 || c.Insertions != 3 || c.Deletions != 2 {
		t.Errorf("%+v", c)
	}
	if c.Base != base || c.Head != base || c.Commits != 0 || !c.Uncommitted || c.Branch != "main" || c.Dir != r.dir || c.Workspace != KindFolder {
		t.Errorf("%+v", c)
	}
	if c.Patch != patch || c.PatchBytes != int64(len(patch)) || strings.Contains(patch, "ignored") || strings.Contains(patch, "of before") {
		t.Errorf("the patch has %d bytes, the report says %d:\n%s", len(patch), c.PatchBytes, patch)
	}
	// The patch turns one tree into the other.
	clone := newRepository(t)
	clone.write("kept.txt", "1\n2\n3\nby the user, not committed\n")
	clone.write("old name.txt", strings.Repeat("a line that stays\n", 20))
	clone.write("gone.txt", "x\n")
	clone.write("p.patch", patch)
	clone.git("apply", "p.patch")
	for _, name := range []string{"kept.txt", "neu/größe \"x\".txt", "new name.txt", "picture.bin"} {
		ours, _ := os.ReadFile(filepath.Join(r.dir, name))
		if theirs, err := os.ReadFile(filepath.Join(clone.dir, name)); err != nil || string(ours) != string(theirs) {
			t.Errorf("%s: %q, %q, %v", name, ours, theirs, err)
		}
	}
}

// Mark changes nothing: index, objects, branches and files stay the same.
func TestMarkLeavesTheRepositoryAlone(t *testing.T) {
	r := newRepository(t)
	r.write("a.txt", "a\n")
	r.commit("first")
	r.write("a.txt", "staged\n")
	r.git("add", "a.txt")
	r.write("a.txt", "not staged\n")
	r.write("b.txt", "untracked\n")
	repo := r.open()
	before := sums(t, r.dir)
	changed(t, repo, func() {})
	after := sums(t, r.dir)
	for path, sum := range after {
		if before[path] != sum {
			t.Errorf("%s has changed", path)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
}

func TestChangesCountCommits(t *testing.T) {
	r := newRepository(t)
	repo := r.open()
	c, _ := changed(t, repo, func() { // the first commit of a repository
		r.write("a.txt", "a\n")
		r.commit("first")
	})
	if c.Base != "" || c.Commits != 1 || c.Uncommitted || c.FilesChanged != 1 {
		t.Errorf("%+v", c)
	}
	c, _ = changed(t, repo, func() {
		r.write("a.txt", "b\n")
		r.commit("second")
		r.write("a.txt", "a\n")
		r.commit("back")
	})
	if c.Commits != 2 || c.FilesChanged != 0 || c.Patch != "" || c.PatchBytes != 0 {
		t.Errorf("%+v", c)
	}
}

func TestChangesAreBounded(t *testing.T) {
	r := newRepository(t)
	r.commit("first")
	repo := r.open()
	c, patch := changed(t, repo, func() {
		for i := range maxFiles + 5 {
			r.write(fmt.Sprintf("f%04d.txt", i), strings.Repeat("0123456789\n", 50))
		}
		r.write("huge.bin", strings.Repeat("x", maxUntrackedSize+1))
		other := filepath.Join(r.dir, "nested")
		if err := os.Mkdir(other, 0o755); err != nil {
			t.Fatal(err)
		}
		r.git("-C", other, "init", "-q")
	})
	if c.FilesChanged != maxFiles+5 || len(c.Files) != maxFiles || c.PatchBytes != int64(len(patch)) {
		t.Errorf("%d files, %d reported, patch of %d bytes, %d reported", c.FilesChanged, len(c.Files), len(patch), c.PatchBytes)
	}
	if len(c.Patch) > api.MaxPatch || len(c.Patch) < api.MaxPatch/2 || !strings.HasPrefix(patch, c.Patch) || !strings.HasPrefix(patch[len(c.Patch):], "diff --git ") {
		t.Errorf("the beginning of %d bytes does not end with a file", len(c.Patch))
	}
}

func TestOpenRefusesOtherFolders(t *testing.T) {
	r := newRepository(t)
	if _, err := Open(t.Context(), t.TempDir(), r.env); !errors.Is(err, ErrNone) {
		t.Errorf("a folder: %v", err)
	}
	bare := t.TempDir()
	r.git("init", "-q", "--bare", bare)
	if _, err := Open(t.Context(), bare, r.env); !errors.Is(err, ErrNone) {
		t.Errorf("a bare repository: %v", err)
	}
	r.env = []string{"PATH=" + os.Getenv("PATH"), "GIT_DIR=/nowhere"}
	if repo := r.open(); repo.Dir != r.dir {
		t.Errorf("%s", repo.Dir)
	}
}

// No program that the repository's configuration names is run.
func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	r := newRepository(t)
	r.write("a.txt", "a\n")
	r.write(".gitattributes", "*.txt diff=evil\n")
	r.commit("first")
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "evil.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "prepare-commit-msg"} {
		if err := os.Symlink(script, filepath.Join(r.dir, ".git/hooks", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.evil.textconv", "diff.evil.command", "core.pager", "core.editor"} {
		r.git("config", key, script)
	}
	repo := r.open()
	changed(t, repo, func() { r.write("a.txt", "b\n") })
	dir := filepath.Join(t.TempDir(), "w")
	w := must[*Repo](t)(repo.AddWorktree(t.Context(), dir, BranchPrefix+"x", ""))
	r.write("a.txt", "c\n")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("d\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.CommitAll(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository was started")
	}
}

func TestWorktree(t *testing.T) {
	r := newRepository(t)
	r.write("src/a.txt", "a\n")
	r.write(".gitignore", ".env\nlocal/\n")
	base := r.commit("first")
	r.write("src/a.txt", "the user's, not committed\n")
	r.write(".env", "KEY=1\n")
	r.write("local/x.cfg", "x\n")
	r.write("open.txt", "not ignored\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "local/link.cfg")); err != nil {
		t.Fatal(err)
	}
	repo, before := r.open(), sums(t, filepath.Join(r.dir, "src"))
	dir, branch := filepath.Join(t.TempDir(), "w"), BranchPrefix+"abc"
	w := must[*Repo](t)(repo.AddWorktree(t.Context(), dir, branch, ""))
	if w.Head(t.Context()) != base || w.branch(t.Context()) != branch {
		t.Errorf("%s on %s", w.Head(t.Context()), w.branch(t.Context()))
	}
	carried, refused, err := repo.Carry(t.Context(), w, []string{".env", "local/*.cfg", "open.txt", "src/*.txt", "../*"})
	if err == nil || !slices.Equal(carried, []string{".env", "local/x.cfg"}) || !slices.Equal(refused, []string{"open.txt"}) {
		t.Errorf("carried %v, refused %v, %v", carried, refused, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "src/a.txt")); err != nil || string(b) != "a\n" {
		t.Errorf("%q, %v", b, err)
	}
	unlanded := func() bool {
		l := must[Lost](t)(repo.Lost(t.Context(), w, branch, base))
		return l.Any()
	}
	if unlanded() {
		t.Error("a new worktree counts as changed")
	}
	if err := os.WriteFile(filepath.Join(dir, "new.txt"), []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !unlanded() {
		t.Error("an untracked file does not count as a change")
	}
	if err := w.CommitAll(t.Context(), "Work of a task", "Signalbox-Task: queue-1"); err != nil {
		t.Fatal(err)
	}
	if got := r.git("log", "-1", "--format=%an <%ae>|%s|%(trailers:key=Signalbox-Task,valueonly)", branch); got != "A User <user@example.org>|Work of a task|queue-1" {
		t.Errorf("committed as %q", got)
	}
	if got := r.git("show", "--name-only", "--format=", branch); got != "new.txt" {
		t.Errorf("committed %q", got)
	}
	if err := w.CommitAll(t.Context(), "nothing"); err != nil || r.git("rev-list", "--count", branch) != "2" {
		t.Errorf("an empty commit, %v", err)
	}
	if !unlanded() {
		t.Error("a commit does not count as a change")
	}
	if err := repo.RemoveWorktree(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	w = must[*Repo](t)(repo.AddWorktree(t.Context(), dir, branch, "")) // it continues on its branch
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err != nil || !unlanded() {
		t.Error(err)
	}
	if r.git("status", "--porcelain") != "M src/a.txt\n?? open.txt" || fmt.Sprint(sums(t, filepath.Join(r.dir, "src"))) != fmt.Sprint(before) {
		t.Errorf("the user's checkout has changed: %s", r.git("status", "--porcelain"))
	}
}

// Removing a worktree, even one that git does not know, keeps git's record of other
// worktrees whose folders are missing, such as on a drive that is not mounted.
func TestRemoveWorktreeLeavesOthers(t *testing.T) {
	r := newRepository(t)
	r.commit("first")
	repo, away, dir := r.open(), filepath.Join(t.TempDir(), "away"), filepath.Join(t.TempDir(), "w")
	r.git("worktree", "add", "-q", "-b", "mine", away)
	if err := os.Rename(away, away+".unmounted"); err != nil {
		t.Fatal(err)
	}
	must[*Repo](t)(repo.AddWorktree(t.Context(), dir, BranchPrefix+"abc", ""))
	for _, what := range []string{"whole", "removed", "made in part"} {
		if what == "made in part" {
			if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := repo.RemoveWorktree(t.Context(), dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: it is still there (%v)", what, err)
		}
	}
	if list := r.git("worktree", "list"); !strings.Contains(list, "away") || strings.Contains(list, dir) {
		t.Errorf("git knows of\n%s", list)
	}
}

// A commit on no branch is kept on the task's branch.
func TestKeepLosesNoCommit(t *testing.T) {
	r := newRepository(t)
	r.commit("first")
	repo, dir, branch := r.open(), filepath.Join(t.TempDir(), "w"), BranchPrefix+"abc"
	w := must[*Repo](t)(repo.AddWorktree(t.Context(), dir, branch, ""))
	in := func(args ...string) string { return r.git(append([]string{"-C", dir}, args...)...) }
	in("checkout", "-q", "--detach")
	in("commit", "-q", "--allow-empty", "-m", "detached")
	keep := func() {
		t.Helper()
		if err := w.Keep(t.Context(), branch); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	if r.git("rev-parse", branch) != in("rev-parse", "HEAD") {
		t.Error("the branch does not have the commit")
	}
	in("reset", "-q", "--hard", "HEAD~1")
	in("commit", "-q", "--allow-empty", "-m", "another way")
	keep()
	if head := in("rev-parse", "HEAD"); r.git("branch", "--contains", head, "--list", branch+"*") == "" || r.git("rev-parse", branch) == head {
		t.Error("one of two commits is on no branch")
	}
}

func TestWorktreeErrorsSayWhatIsMissing(t *testing.T) {
	r := newRepository(t)
	repo := r.open()
	add := func(base string) string {
		_, err := repo.AddWorktree(t.Context(), filepath.Join(t.TempDir(), "w"), BranchPrefix+"x", base)
		return fmt.Sprint(err)
	}
	if got := add(""); !strings.Contains(got, "has no commit yet") {
		t.Error(got)
	}
	r.commit("first")
	for _, base := range []string{"nope", "--upload-pack=x", "-x", "main:x"} {
		if got := add(base); !strings.Contains(got, fmt.Sprintf("has no commit %q", base)) {
			t.Error(got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := repo.Mark(ctx, t.TempDir()); err == nil {
		t.Error("a cancelled context still reads")
	}
}

// Objects with another hash can be read as well.
func TestSHA256(t *testing.T) {
	r := newRepository(t, "--object-format=sha256")
	r.commit("first")
	c, _ := changed(t, r.open(), func() { r.write("a.txt", "a\n") })
	if c.FilesChanged != 1 || len(c.Base) != 64 {
		t.Errorf("%+v", c)
	}
}
