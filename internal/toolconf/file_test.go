package toolconf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestUnreadableFiles: the error says what names a file that cannot be read.
func TestUnreadableFiles(t *testing.T) {
	w := newWorld(t, map[string]string{"folder.json/x": "", "big.json": strings.Repeat(" ", 1<<20) + "{}", "big.yaml": strings.Repeat("#", 1<<20+1), "text.txt": "hello", "binary.json": "\x00\x01"})
	_, bad := w.load("gone.json", "folder.json", "big.json", "big.yaml", "text.txt", "binary.json")
	equal(t, "mistakes", problems(bad), []string{
		"--tools: tools: gone.json: no such file or directory",
		"--tools: tools: folder.json: it is a folder, want a file",
		"--tools: tools: big.json: it is larger than 1048576 bytes",
		"--tools: tools: big.yaml: it is larger than 1048576 bytes",
		"text.txt:1: want a section of keys and values, got a text",
		"binary.json:1: it is not JSON: invalid character '\\x00' looking for beginning of value",
	})
}

// TestFormatByContent: the content decides the format of a file whose name
// does not.
func TestFormatByContent(t *testing.T) {
	w := newWorld(t, map[string]string{"mcp": "\n {\"mcpServers\": {\"a\": {\"command\": \"x\", \"colour\": 1}}}", "tools.conf": "mcpServers:\n  b: {command: x}\n"})
	if c := w.mustLoad(t, "mcp", "tools.conf", "mcp"); len(c.Servers) != 2 || len(c.Notes) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestHostileFiles: hostile files are processed quickly, whatever the result.
func TestHostileFiles(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("restTools:\n  a:\n    url: http://h/\n    bodyTemplate:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		name := string(rune('0' + i))
		last := string(rune('0' + i - 1))
		bomb.WriteString("      a" + name + ": &a" + name + " [" + strings.Repeat("*a"+last+", ", 9) + "*a" + last + "]\n")
	}
	w := newWorld(t, map[string]string{
		"bomb.yaml":  bomb.String(),
		"loop.yaml":  "restTools:\n  a: &a {url: http://h/, bodyTemplate: *a}\n",
		"deep.yaml":  "mcpServers: " + strings.Repeat("[", 200_000),
		"deep2.yaml": strings.Repeat("{a: ", 5000),
		"deep3.yaml": strings.Repeat("- ", 100_000),
		"deep.json":  strings.Repeat(`{"a":`, 100_000),
		"keys.json":  `{"mcpServers": {` + strings.Repeat(`"x": {}, `, 50_000) + `"y": {}}}`,
		"long.yaml":  "mcpServers: {" + strings.Repeat("x", 500_000) + ": {}}",
	})
	for _, name := range []string{"bomb.yaml", "loop.yaml", "deep.yaml", "deep2.yaml", "deep3.yaml", "deep.json", "keys.json", "long.yaml"} {
		begin := time.Now()
		_, bad := w.load(name)
		if len(bad) == 0 {
			t.Errorf("%s: no mistake", name)
		}
		for _, p := range bad {
			if len(p.String()) > 1000 {
				t.Errorf("%s: a message of %d bytes", name, len(p.String()))
			}
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

// FuzzFile looks for texts that make the reader panic or hang.
func FuzzFile(f *testing.F) {
	for _, heading := range []string{"signalbox.yaml", ".mcp.json", ".ai-agent.json"} {
		f.Add(example(f, heading))
	}
	for _, seed := range []string{"mcpServers: {a: *a}", "mcpServers: &a\n  a: *a\n", "{\"queues\":{\"default\":{\"concurrent\":1e9}}}", "? [a]\n: b", "restTools: {a: {url: 'http://${parameters.a'}}", "queues: {default: {concurrent: ${A:-}}}"} {
		f.Add(seed)
	}
	env := func(name string) (string, bool) { return "x", name == "A" }
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"t.yaml", "t.json"} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, bad := toolconf.Load(toolconf.Source{Files: []toolconf.File{{Name: name, Path: path}}, Env: conffile.Env(env)})
			if len(bad) > 0 && !c.Empty() {
				t.Error("a configuration with mistakes")
			}
			for queue, q := range c.ToolQueues() {
				if q.Concurrent < 1 || q.MaxWait < 0 || q.MaxWaiters < 0 || q.Lease.Idle < 0 || q.Lease.MaxHold < 0 {
					t.Errorf("%s: %+v", queue, q)
				}
			}
			for _, s := range c.Servers {
				if _, ok := c.Queues[s.Queue]; !ok || s.Transport == "" {
					t.Errorf("%+v", s)
				}
			}
		}
	})
}
