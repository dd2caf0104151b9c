package agentd_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// Real coding CLIs work in a worktree, and continue there in the next turn.
func TestCLIWorksInWorktree(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind == "opencode" { // each start takes seconds
				soak.Only(t, "that opencode finds its conversation in a worktree")
			}
			a, m := cli(t, kind, func(c *agentd.Config) {
				allowShell(c)
				git(t, *c, "init", "-q", "-b", "main")
				put(t, *c, "a.txt", "one\n")
				git(t, *c, "add", "-A")
				git(t, *c, "-c", "user.name=A User", "-c", "user.email=user@example.org", "commit", "-qm", "first")
				c.Workspace.Kind, c.Slots = "worktree", 2
			})
			turn := func(prompt, command, session string) (api.AgentTaskStatus, *api.Changes) {
				m.Use(model.Replies(model.Reply{Tool: model.Shell(command)}, model.Reply{Text: "Done."}))
				return a.run(api.AgentTask{Prompt: prompt, SessionID: session, Slot: 0}, "completed")
			}
			s, first := turn("make a file", "echo two >> a.txt && echo new > made.txt", "")
			if first.Workspace != "worktree" || first.FilesChanged != 2 || !first.Uncommitted || !strings.HasPrefix(first.Branch, "signalbox/") {
				t.Errorf("%+v", first)
			}
			_, second := turn("add a line", "test -e made.txt && echo three >> a.txt", s.SessionID)
			if second.Branch != first.Branch || second.Base != first.Head || second.FilesChanged != 1 || second.Insertions != 1 {
				t.Errorf("%+v after %+v", second, first)
			}
			if !slices.ContainsFunc(m.Requests(), func(r model.Request) bool {
				return strings.Contains(r.Text, "make a file") && strings.Contains(r.Text, "add a line")
			}) {
				t.Error("the second turn does not know the first")
			}
			if got := git(t, a.cfg, "show", second.Branch+":a.txt"); got != "one\ntwo\nthree" {
				t.Errorf("a.txt on %s is %q", second.Branch, got)
			}
			if _, err := os.Stat(filepath.Join(a.cfg.WorkDir, "made.txt")); err == nil || git(t, a.cfg, "status", "--porcelain") != "" {
				t.Error("the user's checkout has changed")
			}
		})
	}
}
