package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Gateway is the MCP endpoint of the run's director. The CLIs find its URL and
// the run's token in the environment (SIGNALBOX_DIRECTOR, SIGNALBOX_TOKEN,
// SIGNALBOX_QUEUE_ID): neither a command line nor a file has the token.
type Gateway struct {
	Servers []string // MCP servers behind it, which the CLI must not start itself
	Dir     string   // folder of the run, for files that the CLI reads
}

// gatewayName is the CLIs' name for the gateway: its tools are
// mcp__signalbox__SERVER__TOOL.
const gatewayName = "signalbox"

// callSeconds bounds a tool call, including the time in the queue: the
// longest wait that a tool queue can be given.
const callSeconds = 24 * 3600

// SpeaksMCP reports whether runs of a kind can use a gateway.
func SpeaksMCP(kind string) bool { return kind == "claude" || kind == "codex" || kind == "opencode" }

// endpoint is the gateway as a run finds it in its environment.
type endpoint struct {
	url, token, execution string
}

func endpointOf(environ []string) endpoint {
	e := endpoint{url: strings.TrimRight(env(environ, "SIGNALBOX_DIRECTOR"), "/") + "/mcp", token: env(environ, "SIGNALBOX_TOKEN")}
	if e.token != "" { // the director accepts an execution only from its agent, and refuses it from others
		e.execution = env(environ, "SIGNALBOX_QUEUE_ID")
	}
	return e
}

// headers are the headers of each request, with variables in the syntax that
// the CLI expands.
func (e endpoint) headers(variable func(name string) string) map[string]string {
	h := map[string]string{}
	if e.token != "" {
		h["Authorization"] = "Bearer " + variable("SIGNALBOX_TOKEN")
	}
	if e.execution != "" {
		h["X-Signalbox-Execution"] = variable("SIGNALBOX_QUEUE_ID")
	}
	return h
}

// claudeGateway returns the options that connect Claude Code to the gateway.
// A setting denies its own servers of the same names, wherever they are
// configured; the user's other servers stay.
func (c claudeRunner) claudeGateway(t Task) (args []string, err error) {
	g := t.Gateway
	entry := map[string]any{"type": "http", "url": "${SIGNALBOX_DIRECTOR}/mcp"}
	at := endpointOf(t.Env)
	if h := at.headers(func(name string) string { return "${" + name + "}" }); len(h) > 0 {
		entry["headers"] = h
	}
	config := filepath.Join(g.Dir, "mcp.json")
	if err := writeJSON(config, map[string]any{"mcpServers": map[string]any{gatewayName: entry}}); err != nil {
		return nil, err
	}
	args = []string{"--mcp-config=" + config}
	if len(g.Servers) == 0 {
		return args, nil
	}
	settings, err := claudeSettings(c.opt.ExtraArgs, t.Dir)
	if err != nil {
		return nil, err
	}
	denied, _ := settings["deniedMcpServers"].([]any)
	for _, name := range g.Servers {
		denied = append(denied, map[string]string{"serverName": name})
	}
	settings["deniedMcpServers"] = denied
	file := filepath.Join(g.Dir, "settings.json")
	if err := writeJSON(file, settings); err != nil {
		return nil, err
	}
	return append(args, "--settings="+file), nil
}

// claudeSettings returns the settings in the agent's own arguments; the CLI
// reads only the last ones.
func claudeSettings(args []string, dir string) (map[string]any, error) {
	value := ""
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--settings="); ok {
			value = v
		} else if a == "--settings" && i+1 < len(args) {
			value = args[i+1]
		}
	}
	settings := map[string]any{}
	if value == "" {
		return settings, nil
	}
	text := []byte(value)
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		if !filepath.IsAbs(value) {
			value = filepath.Join(dir, value)
		}
		var err error
		if text, err = os.ReadFile(value); err != nil {
			return nil, fmt.Errorf("agent.args: --settings: %w", err)
		}
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("agent.args: --settings: it is not JSON: %w", err)
	}
	return settings, nil
}

// offersGateway reports whether a run of Claude Code gets the gateway. A task
// that names its allowed tools gets it only if they include gateway tools,
// and not in a mode that would run the other tools without asking.
func (c claudeRunner) offersGateway(t Task) bool {
	if t.Gateway == nil || len(t.AllowedTools) == 0 {
		return t.Gateway != nil
	}
	return c.opt.Permission != "bypassPermissions" && slices.ContainsFunc(t.AllowedTools, ofGateway)
}

// ofGateway reports whether a rule of Claude Code concerns the gateway's
// tools.
func ofGateway(tool string) bool {
	return tool == "mcp__"+gatewayName || strings.HasPrefix(tool, "mcp__"+gatewayName+"__")
}

// codexGateway returns the options that connect codex to the gateway and
// switch off its own servers of the same names.
func (c codexRunner) codexGateway(t Task, bin string) (args, notes []string) {
	own, err := c.list(bin, t)
	if err != nil {
		notes = append(notes, fmt.Sprintf("the MCP servers of codex could not be listed, and any that are behind the gateway too may pass by its limits: %v", err))
	}
	name := gatewayName
	for _, s := range own {
		if s.Name == gatewayName && s.Stdio { // an entry of both kinds is invalid
			name = gatewayName + "_gateway"
		}
	}
	for _, s := range own {
		if slices.Contains(t.Gateway.Servers, s.Name) || s.Name == gatewayName && name != gatewayName {
			args = append(args, "-c", "mcp_servers."+s.Name+".enabled=false")
		}
	}
	at := endpointOf(t.Env)
	entry := []string{"url=" + tomlString(at.url), `default_tools_approval_mode="approve"`, fmt.Sprintf("tool_timeout_sec=%d", callSeconds)}
	if at.token != "" {
		entry = append(entry, `bearer_token_env_var="SIGNALBOX_TOKEN"`)
	}
	if at.execution != "" {
		entry = append(entry, `env_http_headers={"X-Signalbox-Execution"="SIGNALBOX_QUEUE_ID"}`)
	}
	return append(args, "-c", "mcp_servers."+name+"={"+strings.Join(entry, ",")+"}"), notes
}

// opencodeVar is a configuration that is merged over opencode's others.
const opencodeVar = "OPENCODE_CONFIG_CONTENT"

// opencodeGateway returns the variable that connects opencode to the gateway
// and switches off its own servers of the same names.
func opencodeGateway(t Task) (string, error) {
	config := map[string]any{}
	if given := env(t.Env, opencodeVar); given != "" {
		if err := json.Unmarshal([]byte(given), &config); err != nil {
			return "", fmt.Errorf("%s of this agent's environment is not JSON: %w", opencodeVar, err)
		}
	}
	entry := map[string]any{
		"type": "remote", "url": "{env:SIGNALBOX_DIRECTOR}/mcp", "enabled": true, "oauth": false,
		"timeout": callSeconds * 1000,
	}
	if h := endpointOf(t.Env).headers(func(name string) string { return "{env:" + name + "}" }); len(h) > 0 {
		entry["headers"] = h
	}
	servers := section(config, "mcp")
	for _, name := range t.Gateway.Servers {
		section(servers, name)["enabled"] = false
	}
	servers[gatewayName] = entry
	if all, ok := config["permission"].(string); ok {
		config["permission"] = map[string]any{"*": all}
	}
	section(config, "permission")[gatewayName+"_*"] = "allow"
	text, err := json.Marshal(config)
	return opencodeVar + "=" + string(text), err
}

// section returns the object under a key, creating it if needed.
func section(of map[string]any, key string) map[string]any {
	s, ok := of[key].(map[string]any)
	if !ok {
		s = map[string]any{}
		of[key] = s
	}
	return s
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// OwnServer is an MCP server that the user configured for a CLI.
type OwnServer struct {
	Name  string
	Stdio bool // the CLI starts it as a program
}

// OwnServers lists the MCP servers that a CLI itself starts in a folder, by
// name: what the user configured, as far as that can be read.
func (c claudeRunner) OwnServers(home, dir string, _ []string) ([]OwnServer, error) {
	type listed struct {
		MCPServers map[string]mcpEntry `json:"mcpServers"`
	}
	var user struct {
		listed
		Projects map[string]listed `json:"projects"`
	}
	var project listed
	err := errors.Join(
		readJSON(filepath.Join(home, ".claude.json"), &user),
		readJSON(filepath.Join(dir, ".mcp.json"), &project))
	return own(user.MCPServers, user.Projects[dir].MCPServers, project.MCPServers), err
}

type mcpEntry struct {
	Command json.RawMessage `json:"command"`
	Enabled *bool           `json:"enabled"`
}

// own merges the configuration of several files. A name that is switched off
// counts as missing.
func own(files ...map[string]mcpEntry) []OwnServer {
	all := map[string]OwnServer{}
	for _, f := range files {
		for name, e := range f {
			all[name] = OwnServer{Name: name, Stdio: len(e.Command) > 0}
			if e.Enabled != nil && !*e.Enabled {
				delete(all, name)
			}
		}
	}
	list := make([]OwnServer, 0, len(all))
	for _, s := range all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b OwnServer) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// OwnServers asks codex itself.
func (c codexRunner) OwnServers(home, dir string, environ []string) ([]OwnServer, error) {
	bin, err := c.binary()
	if err != nil {
		return nil, err
	}
	return c.list(bin, Task{Home: home, Dir: dir, Env: environ})
}

// list asks codex, which merges its files and profiles itself.
func (c codexRunner) list(bin string, t Task) ([]OwnServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, append(slices.Clone(c.opt.ExtraArgs), "mcp", "list", "--json")...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.Dir, append(slices.Clone(t.Env), "CODEX_HOME="+c.StateDir(t.Home)), time.Second
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, errors.New(withStderr("codex mcp list: "+err.Error(), complaint.String()))
	}
	var listed []struct {
		Name      string `json:"name"`
		Enabled   bool   `json:"enabled"`
		Transport struct {
			Type string `json:"type"`
		} `json:"transport"`
	}
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil {
		return nil, fmt.Errorf("codex mcp list: %w", err)
	}
	var servers []OwnServer
	for _, s := range listed {
		if s.Enabled {
			servers = append(servers, OwnServer{Name: s.Name, Stdio: s.Transport.Type == "stdio"})
		}
	}
	return servers, nil
}

// OwnServers reads opencode's files: the user's and those in the folder.
func (opencodeRunner) OwnServers(home, dir string, _ []string) ([]OwnServer, error) {
	var files []map[string]mcpEntry
	var errs []error
	for _, folder := range []string{filepath.Join(home, ".config", "opencode"), dir, filepath.Join(dir, ".opencode")} {
		for _, name := range []string{"config.json", "opencode.json", "opencode.jsonc"} {
			var file struct {
				MCP map[string]mcpEntry `json:"mcp"`
			}
			errs = append(errs, readJSON(filepath.Join(folder, name), &file))
			files = append(files, file.MCP)
		}
	}
	return own(files...), errors.Join(errs...)
}

// readJSON reads a file that may have comments. A missing file counts as
// empty.
func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(withoutComments(text), into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// withoutComments removes comments and trailing commas from JSON.
func withoutComments(text []byte) []byte {
	var out []byte
	inText := false
	for i := 0; i < len(text); i++ {
		c, rest := text[i], text[i:]
		switch {
		case inText && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			inText = !inText
		case inText:
		case bytes.HasPrefix(rest, []byte("//")):
			i += max(0, bytes.IndexByte(append(rest, '\n'), '\n')-1)
			continue
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i += end + 3
			continue
		case c == '}' || c == ']':
			out = bytes.TrimRight(out, " \t\r\n")
			out = bytes.TrimSuffix(out, []byte(","))
		}
		out = append(out, c)
	}
	return out
}
