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

// OwnServer is an MCP server that a CLI is configured with by its user.
type OwnServer struct {
	Name  string
	Stdio bool // it is a program that the CLI starts
}

// OwnServers lists the MCP servers that a CLI starts by itself in a folder, by
// name: what its user configured, as far as that can be read.
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

// own merges what several files configure. A name that is switched off counts
// as not there.
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

// OwnServers reads opencode's files, the user's and those of the folder.
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

// readJSON reads a file that may have comments; one that does not exist is
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

// withoutComments makes JSON of JSON with comments and trailing commas.
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
