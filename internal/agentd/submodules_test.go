package agentd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// bareOf makes a repository with a file, and a bare clone of it in a folder.
func bareOf(t *testing.T, dir, name string) (src agentd.Config) {
	t.Helper()
	src = repository(t)
	put(t, src, name+".txt", name+" one\n")
	git(t, src, "add", "-A")
	git(t, src, "commit", "-qm", name)
	git(t, src, "clone", "-q", "--bare", src.WorkDir, filepath.Join(dir, name+".git"))
	git(t, src, "remote", "add", "origin", filepath.Join(dir, name+".git"))
	return src
}

// withSubmodule commits a submodule whose URL is used literally.
func withSubmodule(t *testing.T, src agentd.Config, path, address, commit string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(src.WorkDir, path), 0o755); err != nil { // otherwise git would take it for deleted
		t.Fatal(err)
	}
	git(t, src, "config", "-f", ".gitmodules", "submodule."+path+".path", path)
	git(t, src, "config", "-f", ".gitmodules", "submodule."+path+".url", address)
	git(t, src, "add", ".gitmodules")
	git(t, src, "update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
	git(t, src, "commit", "-qm", "with "+path)
}

func push(t *testing.T, src agentd.Config) { t.Helper(); git(t, src, "push", "-q", "origin", "main") }

// Clones have their submodules, and nested ones, even if their URLs are relative. Each is
// fetched only once. A changed submodule lands if its remote has the new commit.
func TestClonesHaveSubmodules(t *testing.T) {
	dir := t.TempDir()
	deep, lib, shop := bareOf(t, dir, "deep"), bareOf(t, dir, "lib"), bareOf(t, dir, "shop")
	withSubmodule(t, lib, "deep", "../deep.git", git(t, deep, "rev-parse", "main"))
	push(t, lib)
	withSubmodule(t, shop, "ext/lib", "../lib.git", git(t, lib, "rev-parse", "main"))
	push(t, shop)
	host := hostGit(t, dir)
	cfg := elsewhere(t)
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: host.url + "/shop.git"}
	a := start(t, cfg)
	s, _ := a.run(api.AgentTask{Prompt: "cat ext/lib/lib.txt ext/lib/deep/deep.txt; git submodule status --recursive; git -C ext/lib remote get-url origin", QueueID: "queue-00000009", Fence: 9}, "completed")
	for _, want := range []string{"lib one", "deep one", "\n " + git(t, lib, "rev-parse", "main") + " ext/lib", "\n " + git(t, deep, "rev-parse", "main") + " ext/lib/deep", host.url + "/lib.git"} {
		if !strings.Contains(s.Output, want) {
			t.Errorf("not %q in %q", want, s.Output)
		}
	}
	nested := func(task string) string {
		t.Helper()
		w := a.workspaces()[task[len(task)-8:]]
		return w.State + " " + strings.Join(w.Nested, "; ")
	}
	if got := nested(s.QueueID); got != "empty " {
		t.Errorf("an unchanged worktree is %q", got)
	}
	host.forget()
	change := `cd ext/lib && git checkout -q -B main && echo two > lib.txt && git -c user.name=x -c user.email=x@example.org commit -qam two`
	a.run(api.AgentTask{Prompt: change, QueueID: "queue-00000001", Fence: 10}, "completed")
	if got := nested("queue-00000001"); got != "uncommitted ext/lib: 1 commit that no remote of it has" {
		t.Errorf("a worktree with a commit in its submodule is %q", got)
	}
	if n := host.asked("/lib.git") + host.asked("/deep.git"); n != 0 {
		t.Errorf("present commits were fetched again, in %d requests", n)
	}
	task := landTask("queue-00000001", 11)
	s = a.land(task)
	wantError(t, s, "failed", "land_refused", "the submodule ext/lib is at ")
	wantError(t, s, "failed", "land_refused", "which "+host.url+"/lib.git does not have: push that commit there")
	// A git that was killed during a fetch left locks.
	caches, _ := filepath.Glob(filepath.Join(cfg.DataDir, "mirrors/*/repo/.git/signalbox/modules/*/refs/heads"))
	if len(caches) != 2 {
		t.Fatalf("%q", caches)
	}
	for _, heads := range caches {
		if err := os.WriteFile(filepath.Join(heads, "main.lock"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, _ = a.run(api.AgentTask{Prompt: change + " && git push -q origin main && git rev-parse main", QueueID: "queue-00000003", Fence: 12}, "completed")
	s2 := a.land(landTask("queue-00000003", 13))
	if at := git(t, shop, "-C", filepath.Join(dir, "shop.git"), "rev-parse", "main:ext/lib"); s2.Landed == nil || at != strings.TrimSpace(s.Output) {
		t.Fatalf("%+v %+v: lib is at %s", s2, s2.Error, at)
	}
	if got := nested("queue-00000003"); got != "landed " {
		t.Errorf("a worktree that has landed is %q", got)
	}
	s, _ = a.run(api.AgentTask{Prompt: "cat ext/lib/lib.txt"}, "completed")
	if strings.TrimSpace(s.Output) != "two" {
		t.Errorf("%q", s.Output)
	}
	// The submodule moves to another URL. The mirror has the old one.
	if err := os.Rename(filepath.Join(dir, "lib.git"), filepath.Join(dir, "moved.git")); err != nil {
		t.Fatal(err)
	}
	git(t, lib, "remote", "set-url", "origin", filepath.Join(dir, "moved.git"))
	git(t, lib, "pull", "-q", "--no-recurse-submodules", "origin", "main")
	put(t, lib, "lib.txt", "three\n")
	git(t, lib, "commit", "-qam", "three")
	push(t, lib)
	git(t, shop, "pull", "-q", "--no-recurse-submodules", "origin", "main")
	withSubmodule(t, shop, "ext/lib", "../moved.git", git(t, lib, "rev-parse", "main"))
	push(t, shop)
	if s, _ = a.run(api.AgentTask{Prompt: "cat ext/lib/lib.txt"}, "completed"); strings.TrimSpace(s.Output) != "three" {
		t.Errorf("%q", s.Output)
	}
}

// A submodule is fetched only if it is a repository that is reached over the network,
// whatever the repository's configuration allows.
func TestHostileSubmodules(t *testing.T) {
	dir := t.TempDir()
	secret, shop := bareOf(t, dir, "secret"), bareOf(t, dir, "shop")
	at := git(t, secret, "rev-parse", "main")
	host := hostGit(t, dir)
	cfg := elsewhere(t)
	git(t, cfg, "config", "--global", "protocol.file.allow", "always") // user's configuration
	git(t, cfg, "config", "--global", "protocol.ext.allow", "always")
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: host.url + "/shop.git"}
	a := start(t, cfg)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, address := range []string{
		"ext::sh -c touch% " + ran, filepath.Join(dir, "secret.git"), "file://" + filepath.Join(dir, "secret.git"), "FILE://" + filepath.Join(dir, "secret.git"),
		"--upload-pack=touch " + ran, "secret.git", "fd::3", "ssh:/x", "https://host/a\tb", "../../../../../../../.." + filepath.Join(dir, "secret.git"),
	} {
		withSubmodule(t, shop, "lib", address, at)
		push(t, shop)
		s := a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID)
		if s.State != "failed" || s.Error.Type != "start_error" || !strings.Contains(s.Error.Message, "the submodule lib ") {
			t.Errorf("%q: %s %+v", address, s.State, s.Error)
		}
	}
	git(t, shop, "config", "-f", ".gitmodules", "submodule.lib.url", "../secret.git")
	for _, name := range []string{"../../hooks", "a/../../../x", "..", "/etc"} {
		git(t, shop, "config", "-f", ".gitmodules", "--rename-section", "submodule.lib", "submodule."+name)
		git(t, shop, "commit", "-qam", "named "+name)
		push(t, shop)
		if s := a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID); s.State != "failed" || !strings.Contains(s.Error.Message, "the submodule lib has the name") {
			t.Errorf("%q: %s %+v", name, s.State, s.Error)
		}
		git(t, shop, "config", "-f", ".gitmodules", "--rename-section", "submodule."+name, "submodule.lib")
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program ran")
	}
}

// Worktrees get the submodules that are initialised in the user's repository from there,
// because its URL may be a local path or unreachable now. Nothing of the user's is changed.
func TestWorktreesHaveSubmodulesOfRepository(t *testing.T) {
	dir := t.TempDir()
	lib, other := bareOf(t, dir, "lib"), bareOf(t, dir, "other")
	cfg := repository(t)
	git(t, cfg, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(dir, "lib.git"), "lib")
	git(t, cfg, "commit", "-qm", "lib")
	withSubmodule(t, cfg, "other", filepath.Join(dir, "other.git"), git(t, other, "rev-parse", "main"))
	// A run may write this, and git would run it.
	ran := filepath.Join(t.TempDir(), "ran")
	git(t, cfg, "config", "submodule.lib.update", "!touch "+ran)
	if err := os.Rename(filepath.Join(dir, "lib.git"), filepath.Join(dir, "away.git")); err != nil {
		t.Fatal(err)
	}
	before, modules := git(t, cfg, "config", "--local", "--list"), content(t, filepath.Join(cfg.WorkDir, ".git/modules"))
	cfg.Workspace.Kind = "worktree"
	a := start(t, cfg)
	s, _ := a.run(api.AgentTask{Prompt: "cat lib/lib.txt; ls other; git submodule status; git -C lib remote get-url origin", QueueID: "queue-00000001", Fence: 1}, "completed")
	want := "lib one\n " + git(t, lib, "rev-parse", "main") + " lib (heads/main)\n-" + git(t, other, "rev-parse", "main") + " other\n" + filepath.Join(dir, "lib.git") + "\n"
	if w := a.workspaces()["00000001"]; w.State != "empty" {
		t.Errorf("%+v", w)
	}
	if s.Output != want && s.Output != strings.TrimSpace(want) {
		t.Errorf("%q, not %q", s.Output, want)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the repository's configuration ran")
	}
	if now := git(t, cfg, "config", "--local", "--list"); now != before {
		t.Errorf("the configuration was\n%s\nand is\n%s", before, now)
	}
	for path, was := range modules {
		if now := content(t, filepath.Join(cfg.WorkDir, ".git/modules"))[path]; now != was {
			t.Errorf("%s was changed", path)
		}
	}
	// A missing commit is fetched from a path only if the user's configuration
	// allows that.
	put(t, lib, "lib.txt", "two\n")
	git(t, lib, "commit", "-qam", "two")
	git(t, lib, "push", "-q", filepath.Join(dir, "away.git"), "main")
	git(t, cfg, "update-index", "--cacheinfo", "160000,"+git(t, lib, "rev-parse", "main")+",lib")
	git(t, cfg, "commit", "-qm", "newer")
	if err := os.Rename(filepath.Join(dir, "away.git"), filepath.Join(dir, "lib.git")); err != nil {
		t.Fatal(err)
	}
	wantError(t, a.end(a.submit(api.AgentTask{Prompt: "true"}).TaskID), "failed", "start_error", "git config --global protocol.file.allow always")
	git(t, cfg, "config", "--global", "protocol.file.allow", "always")
	if s, _ := a.run(api.AgentTask{Prompt: "cat lib/lib.txt"}, "completed"); strings.TrimSpace(s.Output) != "two" {
		t.Errorf("%q", s.Output)
	}
}
