package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// withOwnServers configures each coding CLI, as its user would, with MCP
// servers of its own. For Claude Code that is a project's file, which it
// returns.
func (b *box) withOwnServers(servers map[string]object) (project string) {
	b.t.Helper()
	codex, opencode := filepath.Join(b.home, ".codex/config.toml"), filepath.Join(b.home, ".config/opencode/opencode.json")
	toml, mcp := b.read(codex), object{}
	for name, s := range servers {
		toml += "[mcp_servers." + name + "]\ncommand = " + tomlText(s["command"]) + "\nenv = {"
		for k, v := range s["env"].(map[string]string) {
			toml += k + " = " + tomlText(v) + ", "
		}
		toml = strings.TrimSuffix(toml, ", ") + "}\n"
		mcp[name] = object{"type": "local", "command": []any{s["command"]}, "environment": s["env"]}
	}
	b.file(codex, toml, 0o600)
	b.file(opencode, strings.Replace(b.read(opencode), "{", `{"mcp": `+encoded(b.t, mcp)+",", 1), 0o600)
	return encoded(b.t, object{"mcpServers": servers})
}

func tomlText(v any) string { return "'''" + v.(string) + "'''" }

// Claude Code, codex and opencode have a server of their own that is also
// behind the director's tool queues, and one that is not. When up starts them,
// they use the first only through its tool queue, together with all other
// callers, and the second as before.
func TestUpPutsItsCLIsBehindTheToolQueues(t *testing.T) {
	b := newBox(t)
	d := b.doors()
	models := b.withCLIs()
	project := b.withOwnServers(map[string]object{"scarce": d.server("scarce"), "mine": d.server("scarce")})
	b.vars["ENABLE_TOOL_SEARCH"] = "false" // the model must be offered all tools at once
	b.file("home/.signalbox/config.yaml", "agent: {pass_env: [ENABLE_TOOL_SEARCH]}\n", 0o600)
	b.file("work/.mcp.json", project, 0o600)
	up := b.up("--tools", b.toolFile("tools.json", object{"queues": queuesOf(map[string]int{"scarce": 1}), "mcpServers": object{"scarce": d.server("scarce")}}))
	for _, kind := range cliKinds {
		up.prints(kind + " uses scarce through the tool queues; its own mine stays outside them")
	}
	b.toolsReady(up.url, "scarce")
	first := b.over(up.url, modernEra).begin("scarce__work", workArgs{Name: "first", Hold: true}, "")
	d.arrived("first")

	c, ids := b.client(up.url), map[string]string{}
	for _, kind := range soak.Pick(cliKinds[:2], cliKinds) { // opencode takes seconds to start
		models[kind].Use(func(r model.Request) model.Reply {
			at := slices.IndexFunc(r.Tools, func(name string) bool { return strings.HasSuffix(name, "scarce__work") })
			if r.Turn > 0 || at < 0 {
				return model.Reply{Text: "It is done."}
			}
			return model.Reply{Tool: &model.Tool{Name: r.Tools[at], Input: object{"name": "of-" + kind, "ms": 20}}}
		})
		b.file(filepath.Join("work", kind, ".mcp.json"), project, 0o600)
		ids[kind] = b.submit(c, api.SubmitRequest{Prompt: "use your tool", Kind: kind, Project: &api.Project{Path: kind}})
	}
	b.depth(up.url, "scarce", len(ids))
	for kind, id := range ids {
		if why := b.want(0, "why", id).out; !strings.Contains(why, "to call scarce__work, position ") {
			t.Errorf("why does not say where the call of %s stands:\n%s", kind, why)
		}
	}
	d.open("first")
	first.answers("did first")
	for kind, id := range ids {
		b.completed(c, id)
		requests := slices.DeleteFunc(models[kind].Requests(), func(r model.Request) bool { return r.Side })
		if !slices.ContainsFunc(requests, func(r model.Request) bool { return strings.Contains(r.Text, "did of-"+kind) }) {
			t.Errorf("the model of %s was not told the answer", kind)
		}
		var mine, past bool
		for _, name := range requests[0].Tools {
			mine = mine || strings.Contains(name, "mine") && strings.HasSuffix(name, "work")
			past = past || strings.Contains(name, "scarce") && !strings.Contains(name, "signalbox")
		}
		if !mine || past {
			t.Errorf("%s is offered %v", kind, requests[0].Tools)
		}
	}
	if n := most(t, d.moments()); n != 1 {
		t.Errorf("%d calls at once: %v", n, d.moments())
	}
	b.nothingHeld(up.url)
}
