package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each commit that a rebase adds to the branch has passed the checks; if one does not pass by
// itself, the work lands as one commit that does.
func TestLandChecksEachCommit(t *testing.T) {
	broken := errors.New("the disk is full")
	red := &LandError{Kind: LandChecks, Text: "red"}
	for name, c := range map[string]struct {
		said    map[string]string // by the last line of steps.txt; otherwise "passed"
		err     map[string]error
		want    string // the last lines of steps.txt in the commits of main
		checked string
		fails   error
	}{
		"each passes":          {want: "1 2 3", checked: "3 1 2"},
		"one is red":           {err: map[string]error{"2": red}, want: "3", checked: "3 1 2 3"},
		"one has other checks": {said: map[string]string{"1": ""}, want: "3", checked: "3 1 3"},
		"the last is red":      {err: map[string]error{"3": red}, fails: red, checked: "3"},
		"one breaks off":       {err: map[string]error{"1": broken}, fails: broken, checked: "3 1"},
		"without checks":       {said: map[string]string{"3": ""}, want: "1 2 3", checked: "3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for _, step := range []string{"1", "2", "3"} {
				s.work.write("steps.txt", step+"\n")
				s.work.commit("step " + step)
			}
			base := s.on("b.txt", "x\n")
			var checked []string
			l := s.landing()
			l.Check = func(_ context.Context, tree *Repo, earlier bool) (string, error) {
				b, err := os.ReadFile(filepath.Join(tree.Dir, "steps.txt"))
				if err != nil {
					return "", err
				}
				step := strings.TrimSpace(string(b))
				checked = append(checked, step)
				if earlier != (step != "3") {
					t.Errorf("earlier is %v of step %s", earlier, step)
				}
				said, ok := c.said[step]
				if !ok {
					said = "passed"
				}
				return said, c.err[step]
			}
			if c.fails != nil {
				if _, err := s.repo.Land(t.Context(), l); !errors.Is(err, c.fails) || s.git("rev-parse", "main") != base {
					t.Errorf("%v", err)
				}
			} else if done := s.land(l); done.Commits != len(strings.Fields(c.want)) {
				t.Errorf("%+v", done)
			}
			var steps []string
			for _, commit := range strings.Fields(s.git("rev-list", "--reverse", base+"..main")) {
				steps = append(steps, s.git("show", commit+":steps.txt"))
			}
			if got := strings.Join(steps, " "); got != c.want {
				t.Errorf("main has %q", got)
			}
			if got := strings.Join(checked, " "); got != c.checked {
				t.Errorf("checked were %q", got)
			}
		})
	}
}

// Submodules move forward with the work, and are present for the checks.
func TestLandWithSubmodules(t *testing.T) {
	s := newSite(t)
	s.git("config", "--global", "protocol.file.allow", "always")
	sub := newRepository(t)
	sub.write("s.txt", "1\n")
	sub.commit("one")
	s.work.git("submodule", "--quiet", "add", sub.dir, "lib")
	s.work.commit("lib")
	l := s.landing()
	l.Check = func(_ context.Context, tree *Repo, _ bool) (string, error) {
		_, err := os.Stat(filepath.Join(tree.Dir, "lib/s.txt"))
		return "passed", err
	}
	s.land(l)
	sub.write("s.txt", "2\n")
	at := sub.commit("two")
	s.work.git("-C", "lib", "fetch", "-q")
	s.work.git("-C", "lib", "checkout", "-q", at)
	s.work.git("config", "-f", ".gitmodules", "submodule.lib.ignore", "all")
	s.work.git("add", ".gitmodules")
	s.work.git("commit", "-qm", "ignored by diff")
	s.work.git("add", "-f", "lib")
	s.work.git("commit", "-q", "--allow-empty", "-m", "lib is newer")
	s.work.write("lib/built.o", "untracked in the submodule\n")
	if got := must[string](t)(must[*Repo](t)(OpenTree(t.Context(), s.work.dir, s.env)).Work(t.Context())); got != s.work.git("rev-parse", "HEAD") {
		t.Errorf("the work is %s", got)
	}
	s.on("b.txt", "x\n")
	l = s.landing()
	l.Check = func(_ context.Context, tree *Repo, earlier bool) (string, error) {
		b, err := os.ReadFile(filepath.Join(tree.Dir, "lib/s.txt"))
		if want := map[bool]string{true: "1\n", false: "2\n"}[earlier]; string(b) != want {
			t.Errorf("lib has %q, not %q", b, want)
		}
		return "passed", err
	}
	s.land(l)
	if got := s.git("rev-parse", "main:lib"); got != at {
		t.Errorf("lib is at %s", got)
	}
}

// Large files are pushed before the branch, because the hook of git-lfs does not
// run.
func TestLandPushesLargeFiles(t *testing.T) {
	s := newSite(t)
	bin := t.TempDir()
	calls := filepath.Join(bin, "calls")
	if err := os.WriteFile(filepath.Join(bin, "git-lfs"), []byte("#!/bin/sh\necho \"$@\" >> "+calls+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, kv := range s.env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			s.env[i] = "PATH=" + bin + string(os.PathListSeparator) + path
		}
	}
	s.repo = s.open()
	bare := newRepository(t, "--bare")
	s.git("remote", "add", "origin", bare.dir)
	s.git("push", "-q", "origin", "main")
	for _, set := range [][2]string{{"process", ""}, {"required", "false"}} { // overrides the system's configuration
		s.git("config", "filter.lfs."+set[0], set[1])
	}
	push := func(name string) {
		t.Helper()
		s.work.write(name, "x\n")
		s.work.commit(name)
		l := s.landing()
		l.Remote = "origin"
		s.land(l)
	}
	push("small.txt")
	if b, err := os.ReadFile(calls); err == nil {
		t.Errorf("git-lfs was called without need: %s", b)
	}
	s.work.write("media/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	push("media/large.bin")
	if b, err := os.ReadFile(calls); err != nil || string(b) != "push origin "+bare.git("rev-parse", "main")+"\n" {
		t.Errorf("%q %v", b, err)
	}
}
