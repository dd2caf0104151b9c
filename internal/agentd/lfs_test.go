package agentd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// usesLFS makes git of a config store large files with git-lfs.
func usesLFS(t *testing.T, cfgs ...agentd.Config) {
	t.Helper()
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed")
	}
	for _, cfg := range cfgs {
		git(t, cfg, "lfs", "install", "--skip-repo")
	}
}

// shopWithLFS is a repository whose remote on a host has a large file.
func shopWithLFS(t *testing.T) (src agentd.Config, dir string, host *gitHost) {
	t.Helper()
	src = repository(t)
	usesLFS(t, src)
	dir = t.TempDir()
	host = hostGit(t, dir)
	git(t, src, "init", "-q", "--bare", "-b", "main", filepath.Join(dir, "shop.git"))
	git(t, src, "remote", "add", "origin", host.url+"/shop.git")
	git(t, src, "lfs", "install", "--local")
	put(t, src, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	put(t, src, "logo.bin", "a large logo\n")
	git(t, src, "add", "-A")
	git(t, src, "commit", "-qm", "logo")
	git(t, src, "push", "-q", "origin", "main")
	if host.content("a large logo\n") == "" || !strings.HasPrefix(git(t, src, "show", "main:logo.bin"), "version https://git-lfs") {
		t.Fatal("git-lfs has not stored the file separately; the test proves nothing")
	}
	return src, dir, host
}

// Clones have their large files, which are fetched once for all worktrees. New ones land with
// the work, and a clone of the branch gets them.
func TestClonesHaveLargeFiles(t *testing.T) {
	src, dir, host := shopWithLFS(t)
	cfg := elsewhere(t)
	usesLFS(t, cfg)
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: host.url + "/shop.git"}
	a := start(t, cfg)
	// A run's changes to the configuration of the mirror do not redirect a later
	// run.
	s, c := a.run(api.AgentTask{Prompt: "cat logo.bin; git config remote.origin.url http://127.0.0.1:1/nowhere"}, "completed")
	if s.Output != "a large logo\n" && s.Output != "a large logo" || c.FilesChanged != 0 {
		t.Errorf("%q %+v", s.Output, c)
	}
	host.forget()
	a.run(api.AgentTask{Prompt: "grep -q large logo.bin && echo a new large icon > icon.bin", QueueID: "queue-00000001", Fence: 1}, "completed")
	if n := host.asked("/lfs"); n != 0 {
		t.Errorf("large files that are present were requested %d times", n)
	}
	l := a.land(landTask("queue-00000001", 2))
	if l.Landed == nil || !strings.HasPrefix(git(t, src, "-C", filepath.Join(dir, "shop.git"), "show", "main:icon.bin"), "version https://git-lfs") {
		t.Fatalf("%+v %+v", l, l.Error)
	}
	if got := host.content("a new large icon\n"); got == "" {
		t.Error("the branch names a large file that its remote does not have")
	}
	git(t, src, "pull", "-q", "origin", "main")
	if b, err := os.ReadFile(filepath.Join(src.WorkDir, "icon.bin")); err != nil || string(b) != "a new large icon\n" {
		t.Errorf("%q %v", b, err)
	}
	put(t, src, "third.bin", "a third large file\n")
	git(t, src, "add", "-A")
	git(t, src, "commit", "-qm", "third")
	git(t, src, "push", "-q", "origin", "main")
	if s, _ := a.run(api.AgentTask{Prompt: "cat third.bin"}, "completed"); strings.TrimSpace(s.Output) != "a third large file" {
		t.Errorf("%q", s.Output)
	}
	// If the remote no longer has a file that a worktree needs, the task reports
	// it.
	put(t, src, "gone.bin", "a large file that is lost\n")
	git(t, src, "add", "-A")
	git(t, src, "commit", "-qm", "gone")
	git(t, src, "push", "-q", "--no-verify", "origin", "main")
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID), "failed", "start_error", "gone.bin")
}

// In a worktree large files come from the user's repository, and land there or on a branch
// of its remote.
func TestWorktreesHaveLargeFiles(t *testing.T) {
	cfg, dir, host := shopWithLFS(t)
	git(t, cfg, "checkout", "-q", "--detach")
	cfg.Workspace.Kind = "worktree"
	host.forget()
	a := start(t, cfg)
	a.run(api.AgentTask{Prompt: "grep -q large logo.bin && echo a new large icon > icon.bin", QueueID: "queue-00000001", Fence: 1}, "completed")
	if l := a.land(landTask("queue-00000001", 2)); l.Landed == nil {
		t.Fatalf("%+v %+v", l, l.Error)
	}
	if n := host.asked("/lfs"); n != 0 {
		t.Errorf("large files that are present were requested %d times", n)
	}
	git(t, cfg, "checkout", "-q", "main")
	if b, err := os.ReadFile(filepath.Join(cfg.WorkDir, "icon.bin")); err != nil || string(b) != "a new large icon\n" {
		t.Errorf("%q %v", b, err)
	}
	calls := forge(t, &cfg, "gh")
	a.stop()
	a = start(t, cfg)
	pr := landTask("queue-00000001", 3)
	pr.Land.Onto = "pr"
	if l := a.land(pr); l.Landed == nil || git(t, cfg, "-C", filepath.Join(dir, "shop.git"), "rev-parse", "signalbox/00000001") != l.Landed.Commit || host.content("a new large icon\n") == "" {
		t.Errorf("%+v %+v %s", l, l.Error, calls())
	}
}

// A submodule has its large files too, from its own remote.
func TestSubmodulesHaveLargeFiles(t *testing.T) {
	lib, dir, host := shopWithLFS(t)
	site := bareOf(t, dir, "site")
	withSubmodule(t, site, "lib", "../shop.git", git(t, lib, "rev-parse", "main"))
	push(t, site)
	cfg := elsewhere(t)
	usesLFS(t, cfg)
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: host.url + "/site.git"}
	a := start(t, cfg)
	if s, _ := a.run(api.AgentTask{Prompt: "cat lib/logo.bin"}, "completed"); strings.TrimSpace(s.Output) != "a large logo" {
		t.Errorf("%q", s.Output)
	}
}
