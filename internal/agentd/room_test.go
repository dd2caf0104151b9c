package agentd_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

// full waits until the agent reports, or no longer reports, that it has no
// room.
func (a *agent) full(want bool) string {
	a.t.Helper()
	timeout := time.After(long)
	for {
		ch := a.daemon.Changed()
		if why := a.daemon.Status().Full; (why != "") == want && !strings.Contains(why, "being found out") {
			return why
		}
		select {
		case <-ch:
		case <-timeout:
			a.t.Fatalf("full is %q", a.daemon.Status().Full)
		}
	}
}

// Above the limit no worktree is created until one is discarded. Tasks that need none
// continue.
func TestNoWorktreeWithoutRoom(t *testing.T) {
	cfg := worktreeConfig(t)
	cfg.Workspace.MaxBytes = 1 << 20
	cfg.Slots = 2
	a := start(t, cfg)
	a.full(false)
	big := fenced("queue-00000001", 1, "head -c 2000000 /dev/urandom > big.bin")
	s, _ := a.run(big, "completed")
	if why := a.full(true); !strings.Contains(why, "they take 1.9 MiB, and workspace.max_bytes is 1.0 MiB; signalbox workspaces lists") {
		t.Errorf("%q", why)
	}
	ref := a.refused(fenced("queue-00000002", 2, "true"), 409, "workspace_full")
	if !strings.Contains(ref.Message, "signalbox workspaces discard") {
		t.Errorf("%q", ref.Message)
	}
	if code := a.do("GET", "/task/queue-00000002", nil, nil); code != 404 {
		t.Errorf("the refused task is known: %d", code)
	}
	if acc := a.submit(big); acc.TaskID != s.TaskID {
		t.Errorf("offered again it is %s, was %s", acc.TaskID, s.TaskID)
	}
	a.run(api.AgentTask{Prompt: "test -e big.bin", SessionID: s.SessionID}, "completed")
	if end := a.end(a.submit(api.AgentTask{Prompt: "true", Isolated: true}).TaskID); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	var list api.AgentWorkspaces
	a.do("GET", "/workspaces", nil, &list)
	if list.MaxBytes != 1<<20 || list.Full == "" || list.Bytes < 1<<20 {
		t.Errorf("%+v", list)
	}
	if code, _, said := a.discard("00000001", url.Values{"seen": {a.workspaces()["00000001"].Seen}}); code != 200 {
		t.Errorf("%d %s", code, said)
	}
	a.full(false)
	a.run(fenced("queue-00000002", 2, "true"), "completed")
}

// An agent removes what is not needed before it refuses tasks.
func TestRoomIsMadeOfWhatIsOfNoUse(t *testing.T) {
	cfg := worktreeConfig(t)
	put(t, cfg, "big.bin", strings.Repeat("x", 700_000))
	git(t, cfg, "add", "-A")
	git(t, cfg, "commit", "-q", "-m", "big")
	cfg.Workspace.MaxBytes = 1 << 20
	a := start(t, cfg)
	for n := range 4 {
		a.full(false)
		a.worked(n+1, "true")
	}
	a.full(false)
	if left := a.workspaces(); len(left) > 2 { // the last one may be about to be removed
		t.Errorf("%d are left", len(left))
	}
}

// An agent that works in its folder takes tasks regardless of the disk, until one of them
// needs a worktree.
func TestFolderNeedsNoRoom(t *testing.T) {
	cfg := repository(t)
	cfg.Workspace.MinFree = 1 << 60
	a := start(t, cfg)
	a.run(api.AgentTask{Prompt: "true"}, "completed")
	if why := a.full(false); why != "" {
		t.Error(why)
	}
	a.refused(api.AgentTask{Prompt: "true", Workspace: "worktree"}, 409, "workspace_full")
	if why := a.full(true); !strings.Contains(why, "free, and workspace.min_free is 1048576.0 TiB") {
		t.Errorf("%q", why)
	}
	a.run(api.AgentTask{Prompt: "true"}, "completed")
}

// Space used before the start counts once it is measured; until then the agent creates no
// worktree.
func TestRoomIsKnownBeforeTheFirstWorktree(t *testing.T) {
	cfg := worktreeConfig(t)
	cfg.Workspace.MaxBytes = 1 << 20
	a := start(t, cfg)
	a.worked(1, "head -c 2000000 /dev/urandom > big.bin")
	a.stop()
	a = start(t, cfg)
	a.refused(fenced("queue-00000002", 2, "true"), 409, "workspace_full")
	a.full(true)
}

// The mirror of a clone is listed. Without room it is removed once it is unused, unless it has
// work that its remote does not have.
func TestMirrorsAreListedAndRemoved(t *testing.T) {
	src := repository(t)
	bare := remoteOf(t, src)
	cfg := elsewhere(t)
	cfg.Workspace = agentd.Workspace{Kind: "clone", Repo: bare, MaxBytes: 1 << 40}
	a := start(t, cfg)
	kept := a.worked(1, "echo work > w.txt")
	gone := a.worked(2, "true")
	var list api.AgentWorkspaces
	a.do("GET", "/workspaces", nil, &list)
	if len(list.Mirrors) != 1 || list.Mirrors[0].Repo != bare || list.Mirrors[0].Worktrees != 2 || list.Mirrors[0].Bytes < 4096 || list.Workspaces[0].Kind != "clone" || list.Workspaces[0].Repo != bare {
		t.Errorf("%+v", list)
	}
	for _, name := range []string{kept, gone} {
		if code, _, said := a.discard(name, nil); code != 200 {
			t.Errorf("%d %s", code, said)
		}
	}
	a.stop()
	mirrors, err := filepath.Glob(filepath.Join(cfg.DataDir, "mirrors", "*", "repo"))
	if err != nil || len(mirrors) != 1 {
		t.Fatalf("%v, %v", mirrors, err)
	}
	cfg.Workspace.MaxBytes, cfg.Workspace.MinFree = 0, 1<<60 // so that it cleans up at its start
	tidied := func() {
		t.Helper()
		long := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Dir(mirrors[0]), long, long); err != nil {
			t.Fatal(err)
		}
		a := start(t, cfg)
		a.full(true)
		a.stop()
	}
	tidied()
	if _, err := os.Stat(mirrors[0]); err != nil {
		t.Errorf("the work in the mirror is lost: %v", err)
	}
	in := cfg
	in.WorkDir = mirrors[0]
	git(t, in, "push", "-q", bare, "signalbox/"+kept+":refs/heads/landed")
	git(t, in, "fetch", "-q", bare, "+refs/heads/*:refs/remotes/origin/*")
	tidied()
	if _, err := os.Stat(mirrors[0]); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	cfg.Workspace.MinFree = 0
	a = start(t, cfg)
	a.full(false)
	if s, _ := a.run(api.AgentTask{Prompt: "cat w.txt", Base: "landed"}, "completed"); !strings.Contains(s.Output, "work") {
		t.Errorf("%q", s.Output)
	}
}
