package e2e_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
)

// queueTool is the name of a queue tool in Claude Code.
func queueTool(name string) string { return "mcp__signalbox__" + name }

var queueIDForm = regexp.MustCompile(`queue-[0-9a-z]{26}`)

// turnsOf are the requests of the conversation's turns.
func turnsOf(m *model.Server) []model.Request {
	return slices.DeleteFunc(m.Requests(), func(r model.Request) bool { return r.Side })
}

// doScript is an agent that does what it is told, and reports it.
const doScript = `#!/bin/sh
echo "working on it"
echo "did $1, as $SIGNALBOX_AGENT"
`

// A real Claude Code plans with the queue's tools: it lists the agents, submits
// a task to one, waits for its end, and reports the result. The director has no
// configured tools.
func TestClaudeCodePlansWithTheQueue(t *testing.T) {
	b := newBox(t)
	const token = "a-token-of-some-length-0123456789"
	b.vars["SIGNALBOX_TOKEN"] = token
	d := b.director()
	script := b.file("do.sh", doScript, 0o700)
	b.agent("worker", d.url, "--", "/bin/sh", script, "{prompt}")
	b.untilState(b.client(d.url), "worker", "idle")
	c := b.claudeCode(object{"type": "http", "url": d.url + "/mcp", "headers": object{"Authorization": "Bearer " + token}})
	var id string
	c.model.Use(func(r model.Request) model.Reply {
		switch {
		case r.Turn == 0:
			return model.Reply{Tool: &model.Tool{Name: queueTool("list_agents"), Input: object{}}}
		case r.Turn == 1 && strings.Contains(r.Text, "worker"):
			return model.Reply{Tool: &model.Tool{Name: queueTool("submit_task"), Input: object{"prompt": "the points", "agent": "worker"}}}
		case id == "" && queueIDForm.MatchString(r.Text):
			id = queueIDForm.FindString(r.Text)
			fallthrough
		case r.Turn < 10 && !strings.Contains(r.Text, "did the points"):
			return model.Reply{Tool: &model.Tool{Name: queueTool("task_status"), Input: object{"task_id": id, "wait_seconds": 60}}}
		}
		return model.Reply{Text: "It is done."}
	})
	p := c.start(strings.Join([]string{queueTool("list_agents"), queueTool("submit_task"), queueTool("task_status")}, ","))
	if code := p.exits(); code != 0 || !strings.Contains(p.out.text(), "It is done.") {
		t.Fatalf("exit code %d: %s", code, tail(p.out.text()))
	}
	turns := turnsOf(c.model)
	for _, name := range queueTools {
		if !slices.Contains(turns[0].Tools, queueTool(name)) {
			t.Errorf("the model was not offered %s: %v", name, turns[0].Tools)
		}
	}
	if last := turns[len(turns)-1].Text; len(turns) != 4 || !strings.Contains(last, "completed") || !strings.Contains(last, "did the points, as worker") {
		t.Errorf("in %d turns, with %v, the model was told %s", len(turns), turns[0].Tools, tail(last))
	}
	if task := b.completed(b.client(d.url), id); task.Agent != "worker" || task.Source != "api" || task.Prompt != "the points" {
		t.Errorf("%+v", task)
	}
}

// A real Claude Code runs as an agent of the director and chats with another
// agent through the director's own tools, with its own token: the call
// belongs to its agent and its execution.
func TestClaudeCodeAsAnAgentChatsWithAnother(t *testing.T) {
	b := newBox(t)
	b.vars["SIGNALBOX_TOKEN"] = "a-token-of-some-length-0123456789"
	d := b.director()
	c := b.client(d.url)
	m, err := model.Start(model.Replies(model.Reply{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	b.quietCLIs()
	b.vars["CLAUDE_CODE_MAX_RETRIES"] = "0"
	b.vars["ANTHROPIC_BASE_URL"], b.vars["ANTHROPIC_API_KEY"] = m.URL, "test-key"
	// The model must be offered all tools at once; the agent does not pass that
	// variable on to its CLI.
	b.file("bin/claude", "#!/bin/sh\nENABLE_TOOL_SEARCH=false exec "+installed(t, "claude")+` "$@"`+"\n", 0o700)
	config := b.file("planner.yaml", "agent: {tools: director}\n", 0o600)
	script := b.file("do.sh", doScript, 0o700)
	b.agentAs(c, "coder", d.url, "--workdir", filepath.Dir(b.file("coder/README", "", 0o600)), "--", "/bin/sh", script, "{prompt}")
	b.agentAs(c, "planner", d.url, "--workdir", filepath.Dir(b.file("planner/README", "", 0o600)), "--kind", "claude", "--config", config)
	m.Use(func(r model.Request) model.Reply {
		at := slices.IndexFunc(r.Tools, func(name string) bool { return name == queueTool("chat_with_agent") })
		if r.Turn > 0 || at < 0 {
			return model.Reply{Text: "It is done."}
		}
		return model.Reply{Tool: &model.Tool{Name: r.Tools[at], Input: object{"agent": "coder", "message": "the points"}}}
	})
	got, err := c.Chat(b.ctx(), "planner", api.ChatRequest{Message: "Have coder set the points"}, client.ChatOptions{})
	if err != nil || !strings.Contains(got.Response.Response, "It is done.") {
		t.Fatalf("%+v, %v", got.Response, err)
	}
	turns := turnsOf(m)
	if last := turns[len(turns)-1].Text; len(turns) != 2 || !strings.Contains(last, "did the points, as coder") {
		t.Fatalf("in %d turns, with %v, the model was told %s", len(turns), turns[0].Tools, tail(last))
	}
	tree, err := c.Activity(b.ctx(), got.Response.Execution.ID)
	if err != nil || len(tree.Children) != 1 {
		t.Fatalf("the activity and what it called: %+v, %v", tree, err)
	}
	if child := tree.Children[0]; child.Type != "agent_collaboration" || child.TriggeredBy != "agent" || child.SourceAgent != "planner" ||
		child.AgentName != "coder" || child.ParentActivityID != tree.ID || child.Details.Depth != 1 {
		t.Errorf("the call: %+v", child)
	}
}
