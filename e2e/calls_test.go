package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// callScript is an agent that calls others with the command line, as a coding
// CLI would within its run.
const callScript = `#!/bin/sh
case "$1" in
call*) set -- $1; who=$2; shift 2; signalbox chat "$who" "$*" 2>&1; echo "exit $?" ;;
*) echo "did $1, as $SIGNALBOX_AGENT" ;;
esac
`

// agentAs starts an agent that uses a token of its own.
func (b *box) agentAs(c *client.Client, name, director string, args ...string) (p *process, token string) {
	b.t.Helper()
	made, err := c.CreateToken(b.ctx(), api.NewToken{Name: "of-" + name, Agent: name})
	if err != nil {
		b.t.Fatal(err)
	}
	p = launch(b.t, b.work, b.environ("SIGNALBOX_TOKEN="+made.Secret), b.agentLine(name, director, args)...)
	p.says("INFO registered")
	b.untilState(c, name, "idle")
	return p, made.Secret
}

// Agents call agents with the command line, under their own identity. A call
// that would wait for itself is refused at once, and the error names the
// cycle.
func TestAgentsCallAgents(t *testing.T) {
	b := newBox(t)
	director := b.director()
	c := b.client(director.url)
	if err := os.Symlink(binary, filepath.Join(b.bin, "signalbox")); err != nil {
		t.Fatal(err)
	}
	script := b.file("call.sh", callScript, 0o700)
	for _, name := range []string{"planner", "coder"} {
		b.agentAs(c, name, director.url, "--workdir", filepath.Dir(b.file(name+"/README", "", 0o600)), "--", "/bin/sh", script, "{prompt}")
	}
	got, err := c.Chat(b.ctx(), "planner", api.ChatRequest{Message: "call coder the work"}, client.ChatOptions{})
	if err != nil || !strings.Contains(got.Response.Response, "did the work, as coder\nexit 0\n") {
		t.Fatalf("%+v, %v", got.Response, err)
	}
	tree, err := c.Activity(b.ctx(), got.Response.Execution.ID)
	if err != nil || len(tree.Children) != 1 {
		t.Fatalf("the activity and what it called: %+v, %v", tree, err)
	}
	if child := tree.Children[0]; child.Type != "agent_collaboration" || child.TriggeredBy != "agent" || child.SourceAgent != "planner" ||
		child.AgentName != "coder" || child.ParentActivityID != tree.ID || child.Details.Depth != 1 {
		t.Errorf("the call: %+v", child)
	}
	got, err = c.Chat(b.ctx(), "planner", api.ChatRequest{Message: "call coder call planner hello"}, client.ChatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := got.Response.Response
	for _, want := range []string{"wait for itself: coder (queue-", " → planner (" + got.Response.Execution.ID + ") → coder"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in the answer of the call in a circle: %s", want, said)
		}
	}
	if strings.Contains(said, "did hello") {
		t.Errorf("the call in a circle was made: %s", said)
	}
}

// Agents that call one another without waiting are stopped at a depth of
// eight.
func TestCallsEndAtDepthEight(t *testing.T) {
	b := newBox(t)
	director := b.director()
	c := b.client(director.url)
	names := []string{"a", "b"}
	tokens := map[string]string{}
	for _, name := range names {
		_, tokens[name] = b.agentAs(c, name, director.url, "--slots", "10")
	}
	begin := func(agent, body string, headers ...string) (int, string, api.ChatAccepted) {
		code, said := b.ask(http.MethodPost, director.url+"/api/agents/"+agent+"/chat", body, append(headers, "Prefer", "respond-async")...)
		if code != http.StatusAccepted {
			return code, said, api.ChatAccepted{}
		}
		return code, said, parse[api.ChatAccepted](t, said)
	}
	const message = `{"message": "sleep 10m", "new_session": true}`
	code, said, call := begin("a", message)
	for depth := 0; ; depth++ {
		if depth == 9 {
			if code != http.StatusConflict || !strings.Contains(said, "call_depth") || !strings.Contains(said, "8 agents") {
				t.Errorf("the call of depth 9: %d %s", code, said)
			}
			break
		}
		if code != http.StatusAccepted {
			t.Fatalf("the call of depth %d: %d %s", depth, code, said)
		}
		b.until("it runs", func() bool {
			task, err := c.Task(b.ctx(), call.Execution.ID)
			return err == nil && task.State == "working" && task.Depth == depth
		})
		caller, callee := names[depth%2], names[(depth+1)%2]
		code, said, call = begin(callee, message,
			"Authorization", "Bearer "+tokens[caller], "X-Source-Agent", caller, "X-Signalbox-Execution", call.Execution.ID)
	}
	// Only its token proves who the caller is.
	for name, headers := range map[string][]string{
		"the name of another agent":       {"X-Source-Agent", "b"},
		"the execution of another agent":  {"X-Signalbox-Execution", runningOf(b, c, "b")},
		"an execution that there is none": {"X-Signalbox-Execution", "queue-00000000000000000000000000"},
	} {
		code, said, _ := begin("b", message, append(headers, "Authorization", "Bearer "+tokens["a"])...)
		if code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, said)
		}
	}
}

// runningOf returns the ID of a task that an agent runs.
func runningOf(b *box, c *client.Client, agent string) string {
	b.t.Helper()
	lane, err := c.Lane(b.ctx(), agent)
	if err != nil || len(lane.Executions) == 0 {
		b.t.Fatal(fmt.Sprint(agent, " runs nothing: ", err))
	}
	return lane.Executions[0].ID
}
