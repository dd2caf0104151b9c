package runner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

const runToken = "sbxa_of-this-run-alone"

// connected is a task whose run has the director's tools.
func connected(t *testing.T, home string, environ ...string) runner.Task {
	t.Helper()
	return runner.Task{
		Prompt: "x", Home: home, Dir: t.TempDir(),
		Env:     append([]string{"PATH=" + os.Getenv("PATH"), "SIGNALBOX_DIRECTOR=http://127.0.0.1:8080"}, environ...),
		Gateway: &runner.Gateway{Servers: []string{"browser", "git"}, Dir: filepath.Join(t.TempDir(), "run")},
	}
}

// listingCodex is a codex that has these servers of its own.
func listingCodex(t *testing.T, answer string) runner.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+answer+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return runner.Options{Binary: path}
}

// The token of a run is on no command line and in no file: the CLIs take it
// from the environment.
func TestGatewayTokenIsOnlyInEnvironment(t *testing.T) {
	for _, kind := range []string{"claude", "codex", "opencode"} {
		o := runner.Options{}
		if kind == "codex" {
			o = listingCodex(t, "echo '[]'")
		}
		task := connected(t, t.TempDir(), "SIGNALBOX_TOKEN="+runToken, "SIGNALBOX_QUEUE_ID=queue-1")
		p := plan(t, must(t, kind, o), task)
		all := strings.Join(p.Argv, " ") + strings.Join(p.Env, " ")
		files, _ := filepath.Glob(filepath.Join(task.Gateway.Dir, "*"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if st, serr := os.Stat(f); err != nil || serr != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", f, err, st.Mode())
			}
			all += string(text)
		}
		if strings.Contains(all, runToken) || !strings.Contains(all, "SIGNALBOX_TOKEN") || !strings.Contains(all, "SIGNALBOX_QUEUE_ID") {
			t.Errorf("%s: %s", kind, all)
		}
		// Without a token the director accepts no execution.
		task = connected(t, t.TempDir(), "SIGNALBOX_QUEUE_ID=queue-1")
		p = plan(t, must(t, kind, o), task)
		all = strings.Join(p.Argv, " ") + strings.Join(p.Env, " ")
		if text, err := os.ReadFile(filepath.Join(task.Gateway.Dir, "mcp.json")); err == nil {
			all += string(text)
		}
		if strings.Contains(all, "SIGNALBOX_TOKEN") || strings.Contains(all, "SIGNALBOX_QUEUE_ID") || !strings.Contains(all, "/mcp") {
			t.Errorf("%s without a token: %s", kind, all)
		}
	}
}

func TestClaudeGateway(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mine.json"), `{"model": "opus", "deniedMcpServers": [{"serverName": "old"}]}`)
	for _, c := range []struct {
		name    string
		o       runner.Options
		only    []string
		allowed string
		denied  string
		none    bool
	}{
		{name: "plain", allowed: "mcp__signalbox", denied: `[{"serverName":"browser"},{"serverName":"git"}]`},
		{name: "own rules", o: runner.Options{AllowedTools: []string{"Bash(git *)"}}, allowed: "Bash(git *),mcp__signalbox", denied: `[{"serverName":"browser"},{"serverName":"git"}]`},
		{name: "own settings", o: runner.Options{ExtraArgs: []string{"--settings", "mine.json"}}, allowed: "mcp__signalbox", denied: `[{"serverName":"old"},{"serverName":"browser"},{"serverName":"git"}]`},
		{name: "narrowed to one of them", only: []string{"Read", "mcp__signalbox__git__log"}, allowed: "mcp__signalbox__git__log", denied: `[{"serverName":"browser"},{"serverName":"git"}]`},
		{name: "narrowed to others", only: []string{"Read"}, none: true},
		{name: "narrowed where nothing is asked", o: runner.Options{Permission: "bypassPermissions"}, only: []string{"mcp__signalbox__git__log"}, none: true},
	} {
		task := connected(t, t.TempDir())
		task.Dir, task.AllowedTools = dir, c.only
		p := plan(t, must(t, "claude", c.o), task)
		config := slices.ContainsFunc(p.Argv, func(a string) bool { return strings.HasPrefix(a, "--mcp-config=") })
		if config == c.none {
			t.Errorf("%s: %q", c.name, p.Argv)
		}
		if c.none {
			continue
		}
		if !slices.Contains(p.Argv, "--allowedTools="+c.allowed) || strings.Index(strings.Join(p.Argv, " "), "--settings="+task.Gateway.Dir) < 0 {
			t.Errorf("%s: %q", c.name, p.Argv)
		}
		var settings map[string]json.RawMessage
		text, err := os.ReadFile(filepath.Join(task.Gateway.Dir, "settings.json"))
		if err != nil || json.Unmarshal(text, &settings) != nil || string(settings["deniedMcpServers"]) != c.denied {
			t.Errorf("%s: %s, %v", c.name, text, err)
		}
	}
	task := connected(t, t.TempDir())
	if _, err := must(t, "claude", runner.Options{ExtraArgs: []string{"--settings={"}}).Plan(task); err == nil || !strings.Contains(err.Error(), "agent.args: --settings") {
		t.Errorf("invalid settings: %v", err)
	}
}

// codex refuses to start with an option for a server that it does not have,
// and with an entry that is both a program and a URL.
func TestCodexGateway(t *testing.T) {
	own := `echo '[{"name":"git","enabled":true,"transport":{"type":"stdio"}},{"name":"mail","enabled":true,"transport":{"type":"stdio"}},{"name":"signalbox","enabled":true,"transport":{"type":"stdio"}}]'`
	p := plan(t, must(t, "codex", listingCodex(t, own)), connected(t, t.TempDir()))
	line := strings.Join(p.Argv, " ")
	for _, want := range []string{"-c mcp_servers.git.enabled=false", "-c mcp_servers.signalbox.enabled=false", `-c mcp_servers.signalbox_gateway={url="http://127.0.0.1:8080/mcp",`} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	if strings.Contains(line, "mail") || strings.Contains(line, "browser") || len(p.Notes) > 0 {
		t.Errorf("%s %q", line, p.Notes)
	}
	p = plan(t, must(t, "codex", listingCodex(t, "echo no such command >&2; exit 2")), connected(t, t.TempDir()))
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "no such command") || !strings.Contains(strings.Join(p.Argv, " "), "mcp_servers.signalbox={") {
		t.Errorf("%q %q", p.Notes, p.Argv)
	}
}

func TestOpencodeGateway(t *testing.T) {
	given := `OPENCODE_CONFIG_CONTENT={"model": "a/b", "permission": "ask", "mcp": {"git": {"type": "local"}, "mail": {"type": "local"}}}`
	p := plan(t, must(t, "opencode", runner.Options{}), connected(t, t.TempDir(), given))
	var config struct {
		Model      string            `json:"model"`
		Permission map[string]string `json:"permission"`
		MCP        map[string]struct {
			Type    string `json:"type"`
			Enabled *bool  `json:"enabled"`
			URL     string `json:"url"`
		} `json:"mcp"`
	}
	_, text, _ := strings.Cut(p.Env[0], "=")
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	off := func(name string) bool { return config.MCP[name].Enabled != nil && !*config.MCP[name].Enabled }
	if config.Model != "a/b" || config.Permission["*"] != "ask" || config.Permission["signalbox_*"] != "allow" ||
		!off("git") || !off("browser") || off("mail") || config.MCP["git"].Type != "local" || config.MCP["signalbox"].URL != "{env:SIGNALBOX_DIRECTOR}/mcp" {
		t.Errorf("%s", text)
	}
	if _, err := must(t, "opencode", runner.Options{}).Plan(connected(t, t.TempDir(), "OPENCODE_CONFIG_CONTENT=// no")); err == nil {
		t.Error("an invalid configuration is accepted")
	}
}

func TestOwnServers(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".claude.json"), `{"mcpServers": {"user": {}}, "projects": {"`+dir+`": {"mcpServers": {"local": {"command": "x"}}}, "/other": {"mcpServers": {"else": {}}}}}`)
	write(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers": {"project": {"command": "x"}}}`)
	write(t, filepath.Join(home, ".config/opencode/opencode.jsonc"), "{ // a comment, \"quoted\"\n\"mcp\": {\"a\": {\"command\": [\"x//y\"],}, /* and \"another\" */ \"off\": {\"enabled\": false}, },\n}")
	write(t, filepath.Join(dir, "opencode.json"), `{"mcp": {"b": {}}}`)
	for kind, want := range map[string]string{"claude": "local project user", "opencode": "a b", "command": ""} {
		o := runner.Options{}
		if kind == "command" {
			o.Command = []string{"/bin/true"}
		}
		servers, err := must(t, kind, o).OwnServers(home, dir, nil)
		var names []string
		for _, s := range servers {
			names = append(names, s.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %v, %v; want %s", kind, servers, err, want)
		}
	}
	write(t, filepath.Join(dir, ".mcp.json"), `{`)
	if servers, err := must(t, "claude", runner.Options{}).OwnServers(home, dir, nil); err == nil || len(servers) != 2 {
		t.Errorf("a file that is not JSON: %v, %v", servers, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
