package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

// mcpOf configures each coding CLI, as its user would, for the MCP server at a
// URL, and returns their command lines.
func (b *box) mcpOf(url string) map[string][]string {
	b.t.Helper()
	codex, opencode := filepath.Join(b.home, ".codex/config.toml"), filepath.Join(b.home, ".config/opencode/opencode.json")
	b.file(codex, b.read(codex)+"[mcp_servers.signalbox]\nurl = \""+url+"\"\n", 0o600)
	b.file(opencode, strings.Replace(b.read(opencode), "{", `{"mcp": {"signalbox": {"type": "remote", "url": "`+url+`"}},`, 1), 0o600)
	claude := b.toolFile("claude-mcp.json", object{"mcpServers": object{"signalbox": object{"type": "http", "url": url}}})
	b.vars["ENABLE_TOOL_SEARCH"] = "false" // the model is offered all tools at once
	return map[string][]string{
		"claude": {
			"-p", "use your tool", "--mcp-config", claude, "--strict-mcp-config", "--allowedTools", "mcp__signalbox__scarce__work",
			"--output-format", "stream-json", "--verbose",
		},
		"codex":    {"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "use your tool"},
		"opencode": {"run", "--format", "json", "use your tool"},
	}
}

// The three coding CLIs are pointed at /mcp, each in its way, and their models
// ask for the same tool of capacity 1: they stand in one line, and each model
// reads its own answer.
func TestCodingCLIsShareATool(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	models := b.withCLIs()
	director := b.director("--tools", b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": d.server("scarce")}}))
	b.toolsReady(director.url, "scarce")
	first := b.over(director.url, modernEra).begin("scarce__work", workArgs{Name: "first", Hold: true}, "")
	d.arrived("first")
	runs := map[string]*process{}
	for kind, args := range b.mcpOf(director.url + "/mcp") {
		models[kind].Use(func(r model.Request) model.Reply {
			at := slices.IndexFunc(r.Tools, func(name string) bool { return strings.HasSuffix(name, "scarce__work") })
			if r.Turn > 0 || at < 0 {
				return model.Reply{Text: "It is done."}
			}
			return model.Reply{Tool: &model.Tool{Name: r.Tools[at], Input: object{"name": "of-" + kind, "ms": 20}}}
		})
		work := filepath.Join(b.root, "work-"+kind)
		b.file(filepath.Join(work, "README"), "", 0o600)
		runs[kind] = launchProgram(t, filepath.Join(b.bin, kind), work, b.environ(), args...)
	}
	b.depth(director.url, "scarce", len(runs))
	d.open("first")
	first.answers("did first")
	for kind, p := range runs {
		if code := p.exits(); code != 0 || !strings.Contains(p.out.text(), "It is done.") {
			t.Errorf("%s: exit code %d: %s", kind, code, tail(p.out.text()))
		}
		told := func(r model.Request) bool { return strings.Contains(r.Text, "did of-"+kind) }
		if !slices.ContainsFunc(models[kind].Requests(), told) {
			t.Errorf("the model of %s was not told the answer: %s", kind, tail(p.out.text()))
		}
	}
	if n := most(t, d.moments()); n != 1 {
		t.Errorf("%d calls at once: %v", n, d.moments())
	}
	b.nothingHeld(director.url)
}
