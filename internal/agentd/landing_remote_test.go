package agentd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

func TestLandingAsPullRequest(t *testing.T) {
	for kind, address := range map[string]string{"gh": "git@github.com:owner/shop.git", "glab": "https://gitlab.example.org/group/sub/shop"} {
		t.Run(kind, func(t *testing.T) {
			cfg := landsFrom(t)
			calls := forge(t, &cfg, kind)
			bare := remote(t, cfg, address)
			a := start(t, cfg)
			a.run(api.AgentTask{Prompt: "echo x > x.txt", QueueID: "queue-00000001", Fence: 1, SessionID: "talk"}, "completed")
			task := landTask("queue-00000001", 10)
			task.Land.Onto, task.Land.SessionID, task.Land.Title, task.Checks = "pr", "talk", "Add x; $(reboot)", check("test -e x.txt")
			s := a.land(task)
			if s.Landed == nil || s.Landed.URL != "https://forge.example/7" || s.Landed.Onto != "signalbox/00000001" || s.Landed.Commits != 1 || s.Landed.Checked != "passed" || s.Landed.Was != "" {
				t.Fatalf("%+v %+v %+v", s, s.Landed, s.Error)
			}
			head := git(t, cfg, "rev-parse", "signalbox/00000001")
			if git(t, bare, "rev-parse", "signalbox/00000001") != head || s.Landed.Commit != head {
				t.Errorf("%+v was pushed", s.Landed)
			}
			repo := map[string]string{"gh": "https://github.com/owner/shop --head=signalbox/00000001", "glab": "https://gitlab.example.org/group/sub/shop --source-branch=signalbox/00000001"}[kind]
			for _, want := range []string{"create --repo=" + repo + " ", "--title=Add x; $(reboot) ", map[string]string{"gh": "--base=main", "glab": "--target-branch=main"}[kind]} {
				if !strings.Contains(calls(), want) {
					t.Errorf("%q is not in %s", want, calls())
				}
			}
			task.Fence = 11
			if again := a.land(task); again.Landed == nil || again.Landed.URL != s.Landed.URL || strings.Count(calls(), " create ") != 1 {
				t.Errorf("%+v, %s", again, calls())
			}
			// A later turn updates the same pull request, even if it rewrites pushed commits.
			a.run(api.AgentTask{Prompt: "echo y > x.txt; git commit -qa --amend -m amended", QueueID: "queue-00000002", Fence: 2, SessionID: "talk"}, "completed")
			task.Fence = 12
			if again := a.land(task); again.Landed == nil || git(t, bare, "show", "signalbox/00000001:x.txt") != "y" || strings.Count(calls(), " create ") != 1 {
				t.Errorf("%+v %+v", again, again.Error)
			}
			// Commits that someone else pushed there are kept.
			git(t, bare, "update-ref", "refs/heads/signalbox/00000001", git(t, bare, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit-tree", "-m", "theirs", "-p", "main", "main^{tree}"))
			a.run(api.AgentTask{Prompt: "echo z > x.txt", QueueID: "queue-00000003", Fence: 3, SessionID: "talk"}, "completed")
			task.Fence = 13
			wantError(t, a.land(task), "failed", "land_refused", "has a branch signalbox/00000001 with commits that the work does not have")
			nothingLeft(t, cfg)
		})
	}
}

func TestPullRequestThatIsNotOpened(t *testing.T) {
	cfg := landsFrom(t)
	pr := func(a *agent, n int, fence int64, text string) {
		t.Helper()
		task := landTask(fmt.Sprintf("queue-%08d", n), fence)
		task.Land.Onto = "pr"
		wantError(t, a.land(task), "failed", "land_refused", text)
	}
	a := start(t, cfg)
	a.works(1, "echo x > x.txt")
	a.works(2, "true")
	pr(a, 1, 10, "the repository has no remote origin")
	bare := remote(t, cfg, "https://github.com/owner/shop")
	pr(a, 1, 11, "gh was not found on PATH, which opens pull requests at github.com: install it and log in (gh auth login), or land on a branch; nothing was pushed")
	git(t, cfg, "config", "remote.origin.url", "/somewhere/else")
	pr(a, 1, 12, "origin is /somewhere/else, where no pull requests are opened")
	git(t, cfg, "config", "remote.origin.url", "https://git.example.org/owner/shop")
	pr(a, 1, 13, `origin is at "git.example.org", where neither gh nor glab is logged in`)
	git(t, cfg, "config", "remote.origin.url", "https://github.com/owner/shop")
	a.stop()
	if got := git(t, bare, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("pushed: %s", got)
	}
	forge(t, &cfg, "gh")
	a = start(t, cfg)
	pr(a, 2, 20, "nothing to propose: main of origin has all of the work already")
	dir := strings.TrimPrefix(strings.Split(cfg.Environ[1], string(os.PathListSeparator))[0], "PATH=")
	if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pr(a, 1, 21, "the branch was pushed to origin as signalbox/00000001, and no pull request was opened: gh pr create: HTTP 401: Bad credentials; see to it, then land again")
	if git(t, bare, "rev-parse", "signalbox/00000001") != git(t, cfg, "rev-parse", "signalbox/00000001") {
		t.Error("it was not pushed")
	}
	nothingLeft(t, cfg)
}

// The work of clones lands on branches of their remote, whatever a run changed in the
// configuration of the mirror.
func TestLandingOfClones(t *testing.T) {
	src := repository(t)
	bare := remoteOf(t, src)
	address := hostGit(t, filepath.Dir(bare)).url + "/shop.git"
	cfg := elsewhere(t)
	cfg.Runner.Command = append(cfg.Runner.Command, "{session_id}")
	calls := forge(t, &cfg, "gh")
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: address}
	a := start(t, cfg)
	a.run(api.AgentTask{Prompt: "echo mine > a.txt; git config remote.origin.url /nowhere", QueueID: "queue-00000001", Fence: 1, SessionID: "one"}, "completed")
	a.run(api.AgentTask{Prompt: "echo yours > a.txt", QueueID: "queue-00000002", Fence: 2, SessionID: "two"}, "completed")
	land := func(n int, onto string) api.AgentTaskStatus {
		t.Helper()
		task := landTask(fmt.Sprintf("queue-%08d", n), 0)
		task.QueueID, task.Land.Onto, task.Land.SessionID = "", onto, []string{"", "one", "two"}[n]
		return a.land(task)
	}
	tip := func(branch string) string { t.Helper(); return git(t, src, "-C", bare, "rev-parse", branch) }
	first := land(1, "main")
	if first.Landed == nil || first.Landed.Commit != tip("main") {
		t.Fatalf("%+v %+v", first, first.Error)
	}
	if again := land(1, "main"); again.Landed == nil || *again.Landed != *first.Landed {
		t.Errorf("%+v %+v", again, again.Error)
	}
	s := land(2, "main")
	wantError(t, s, "failed", "conflict", "conflict with origin/main at ")
	if !strings.Contains(s.Output, "Run git merge origin/main ") {
		t.Errorf("%q", s.Output)
	}
	a.run(api.AgentTask{Prompt: "export EMAIL=x@example.org; git merge -q origin/main; echo both > a.txt; git commit -qam merged", QueueID: "queue-00000003", Fence: 3, SessionID: "two"}, "completed")
	if s := land(2, "main"); s.Landed == nil || s.Landed.Commits != 1 || git(t, src, "-C", bare, "show", "main:a.txt") != "both" {
		t.Fatalf("%+v %+v", s, s.Error)
	}
	wantError(t, land(2, "none"), "failed", "land_refused", `origin has no branch "none"`)
	a.run(api.AgentTask{Prompt: "echo more > more.txt", QueueID: "queue-00000004", Fence: 4, SessionID: "two"}, "completed")
	if s := land(2, "pr"); s.Landed == nil || s.Landed.URL != "https://forge.example/7" || s.Landed.Commit != tip("signalbox/00000002") {
		t.Errorf("%+v %+v", s, s.Error)
	}
	if !strings.Contains(calls(), "auth status --hostname=127.0.0.1") || !strings.Contains(calls(), "--head=signalbox/00000002") {
		t.Errorf("%s", calls())
	}
}
