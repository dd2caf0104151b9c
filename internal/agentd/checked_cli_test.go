package agentd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/agentd"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// If the model of a real CLI says that it is done although it is not, it gets the check's output
// in the same conversation and repairs its work.
func TestCLIMendsWhatChecksFound(t *testing.T) {
	for _, kind := range clis {
		t.Run(kind, func(t *testing.T) {
			if kind == "opencode" { // each start takes seconds
				soak.Only(t, "that opencode goes on in a conversation whose work did not pass")
			}
			a, m := cli(t, kind, func(c *agentd.Config) {
				allowShell(c)
				c.Checks = agentd.Checks{List: []api.TaskCheck{{Name: "made", Run: `test -e made.txt || { echo "made.txt is missing, number $((40+2))"; exit 1; }`}}, Retries: 2}
			})
			m.Use(model.Replies(model.Reply{Text: "All is done."}, model.Reply{Tool: model.Shell("echo x > made.txt")}, model.Reply{Text: "Now it is."}))
			s := a.end(a.submit(api.AgentTask{Prompt: "make made.txt"}).TaskID)
			if s.State != "completed" || s.Output != "Now it is." || s.Checks == nil || s.Checks.State != "passed" || s.Checks.Rounds != 2 {
				t.Fatalf("%s %q %+v %+v", s.State, s.Output, s.Error, s.Checks)
			}
			if s.TokenUsage == nil || s.TokenUsage.Output < 3*model.OutputTokens {
				t.Errorf("tokens of three answers: %+v", s.TokenUsage)
			}
			if !slices.ContainsFunc(m.Requests(), func(r model.Request) bool {
				return strings.Contains(r.Text, "make made.txt") && strings.Contains(r.Text, "All is done.") && strings.Contains(r.Text, "made.txt is missing, number 42")
			}) {
				t.Error("the second turn does not contain the first turn and the output of the check")
			}
			gone(t, s.TaskID)
			if kind == "claude" { // it uses our name of the conversation as its own, so one that the task did not name is listed
				if ids := sessionIDs(a); s.SessionID == "" || !slices.Equal(ids, []string{s.SessionID}) {
					t.Errorf("conversations %q, want %q", ids, s.SessionID)
				}
			}
		})
	}
}
