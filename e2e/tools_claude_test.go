package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

// claudeCode is a real Claude Code whose only MCP server is Signalbox, with a
// scripted model.
type claudeCode struct {
	*box
	program string
	model   *model.Server
	config  string
}

// claudeCode makes a claudeCode with the entry for Signalbox in its
// configuration.
func (b *box) claudeCode(entry object) *claudeCode {
	b.t.Helper()
	m, err := model.Start(model.Replies(model.Reply{}))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(m.Close)
	b.quietCLIs()
	b.vars["CLAUDE_CODE_MAX_RETRIES"] = "0"
	b.vars["ENABLE_TOOL_SEARCH"] = "false" // the model must be offered all tools at once
	b.vars["ANTHROPIC_BASE_URL"], b.vars["ANTHROPIC_API_KEY"] = m.URL, "test-key"
	return &claudeCode{
		box: b, program: installed(b.t, "claude"), model: m,
		config: b.toolFile("claude-mcp.json", object{"mcpServers": object{"signalbox": entry}}),
	}
}

// asks makes the model call a tool, once its request offers it, and then
// finish.
func (c *claudeCode) asks(tool string, input object) {
	c.model.Use(func(r model.Request) model.Reply {
		if r.Turn == 0 {
			return model.Reply{Tool: &model.Tool{Name: tool, Input: input}}
		}
		return model.Reply{Text: "It is done."}
	})
}

func (c *claudeCode) start(tool string) *process {
	c.t.Helper()
	return launchProgram(c.t, c.program, c.work, c.environ(), "-p", "use your tool", "--mcp-config", c.config, "--strict-mcp-config",
		"--allowedTools", tool, "--output-format", "stream-json", "--verbose")
}

// toldTheModel expects that the session ended well, and returns what the
// model was told after its tool call.
func (c *claudeCode) toldTheModel(p *process, tool string) string {
	c.t.Helper()
	if code := p.exits(); code != 0 || !strings.Contains(p.out.text(), "It is done.") {
		c.t.Fatalf("exit code %d: %s", code, tail(p.out.text()))
	}
	turns := slices.DeleteFunc(c.model.Requests(), func(r model.Request) bool { return r.Side })
	if len(turns) != 2 || !slices.Contains(turns[0].Tools, tool) {
		c.t.Fatalf("%d turns, the tools %v", len(turns), turns[0].Tools)
	}
	return turns[1].Text
}

// A real Claude Code has the tools of /mcp, and its model gets their answers.
func TestClaudeCodeCallsToolsOfTheGateway(t *testing.T) {
	b := newBox(t)
	const token = "a-token-of-some-length-0123456789"
	b.vars["SIGNALBOX_TOKEN"] = token
	e := b.everything("stdio")
	d := b.director("--tools", b.toolFile(".mcp.json", object{"mcpServers": object{"everything": e.entry}}))
	b.toolsReady(d.url, "everything")
	const tool = "mcp__signalbox__everything__echo"
	c := b.claudeCode(object{"type": "http", "url": d.url + "/mcp", "headers": object{"Authorization": "Bearer " + token}})
	c.asks(tool, object{"message": "the points are set"})
	if told := c.toldTheModel(c.start(tool), tool); !strings.Contains(told, "Echo: the points are set") {
		t.Errorf("the model was told %s", told)
	}
	// The server has the environment of its entry, and nothing of Signalbox's.
	if env := b.want(0, "tools", "call", "everything__get-env").out; !strings.Contains(env, `"GREETING": "hello"`) || strings.Contains(env, token) {
		t.Errorf("the server's environment: %s", env)
	}
	if code, said := b.ask("POST", d.url+"/mcp", "{}"); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", code, said)
	}
	b.nothingHeld(d.url)
}

// A Claude Code that starts signalbox gateway --stdio waits in the same queue
// as a client of /mcp.
func TestClaudeCodeSharesCapacityOverStdio(t *testing.T) {
	b := newBox(t)
	doors := b.doors()
	d := b.director("--tools", b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": doors.server("scarce")}}))
	b.toolsReady(d.url, "scarce")
	const tool = "mcp__signalbox__scarce__work"
	c := b.claudeCode(object{"command": binary, "args": []string{"gateway", "--stdio"}, "env": object{"HOME": b.home, "SIGNALBOX_HOME": b.vars["SIGNALBOX_HOME"]}})
	c.asks(tool, object{"name": "of-claude"})

	other := b.over(d.url, legacyEra).begin("scarce__work", workArgs{Name: "first", Hold: true}, "")
	doors.arrived("first")
	p := c.start(tool)
	b.depth(d.url, "scarce", 1)
	doors.open("first")
	other.answers("did first")
	if told := c.toldTheModel(p, tool); !strings.Contains(told, "did of-claude") {
		t.Errorf("the model was told %s", told)
	}
	if n := most(t, doors.moments()); n != 1 {
		t.Errorf("%d calls at once: %v", n, doors.moments())
	}
	b.nothingHeld(d.url)
	d.stop()
	if left := b.living(); len(left) > 0 {
		t.Errorf("processes live on: %v", left)
	}
}
