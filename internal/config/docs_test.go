package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsTools loads the example of docs/tools.md as signalbox.yaml.
func TestDocsTools(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, mark := range map[string]string{"signalbox.yaml": "```yaml\n", ".mcp.json": "```json\n"} {
		_, text, _ := strings.Cut(string(data), mark)
		text, _, _ = strings.Cut(text, "```")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return "t0ken", name == "TRACKER_TOKEN" || name == "HOME" }
	c, err := Load(Sources{File: "signalbox.yaml", Dir: dir, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tools.Servers) != 4 || len(c.Tools.Rest) != 1 || len(c.Tools.OpenAPI) != 1 || c.Tools.Queues["default"].Concurrent != 64 || c.Tools.Queues["search"].MaxWait == 0 {
		t.Errorf("%+v", c.Tools)
	}
}

// TestDocs keeps docs/configuration.md complete: every key with its variables,
// and no key that does not exist.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(data), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	path := filepath.Join(t.TempDir(), "example.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "/home/ada", name == "CODER_TOKEN" || name == "HOME" }
	if c, err := Load(Sources{File: path, Env: env}); err != nil || len(c.Agents) != 1 || len(c.Priorities) != 2 {
		t.Errorf("the example: %v %+v", err, c)
	}
	_, list, _ := strings.Cut(string(data), "what can do no harm: ")
	list, _, _ = strings.Cut(list, ".\n")
	if got := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune("`, \n", r) }); !slices.Equal(got, harmless) {
		t.Errorf("the page calls %q harmless, want %q", got, harmless)
	}
	documented := map[string]string{} // key → its row
	name := regexp.MustCompile("`([A-Za-z_.]+)`")
	for _, line := range strings.Split(string(data), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
				documented[m[1]] = line
			}
		}
	}
	for _, x := range settings(new(Config)) {
		row, ok := documented[x.key]
		if !ok {
			t.Errorf("%s is not in docs/configuration.md", x.key)
		}
		for _, env := range x.env {
			if !strings.Contains(row, "`"+env+"`") {
				t.Errorf("%s: its variable %s is not in docs/configuration.md", x.key, env)
			}
		}
	}
	for key := range documented {
		if settings(new(Config)).find(key) == nil {
			t.Errorf("docs/configuration.md has the key %s, which does not exist", key)
		}
	}
}
