package toolconf_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// TestMCPConfig reads a mcp-config.json as that program writes it.
func TestMCPConfig(t *testing.T) {
	text, err := os.ReadFile("testdata/mcp-config.json")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, map[string]string{"sub/mcp-config.json": string(text), "sub/tools/index-refresh.sh": "#!/bin/sh\n", "bin/node": ""})
	sub := filepath.Join(w.dir, "sub")
	chmod(t, filepath.Join(w.dir, "bin", "node"))
	w.env["PATH"] = "bin:" + filepath.Join(w.dir, "bin")
	c := w.mustLoad(t, "sub/mcp-config.json")
	keep := toolconf.Restart{Pending: "keep", Running: "fail"}
	want := []toolconf.CommandTool{
		{
			Name: "docs_search", Title: "Search documents", Description: "Search the documents. A pattern such as ${name}.md works too.",
			Command: "node", Args: []string{"tools/docs-search.mjs", "--limit", "20", "true"}, Cwd: "/srv/start", Timeout: time.Minute, Queue: "default",
			InputSchema: []byte(`{"type":"object","properties":{"query":{"type":"string","description":"What to look for","minLength":1},"type":{"type":"string","enum":["page","file"]},` +
				`"limit":{"type":"number","minimum":1,"maximum":20},"tags":{"type":"array","items":{"type":"string"},"maxItems":5},"folder":{"type":"string"}},"required":["query","folder"]}`),
			Where: "sub/mcp-config.json:5",
		},
		{
			Name: "index_refresh", Title: "Refresh the index", Description: "Takes some minutes.",
			Command: filepath.Join(sub, "tools", "index-refresh.sh"), Cwd: filepath.Join(sub, "index"), Timeout: 15 * time.Minute, Async: true,
			Env: map[string]string{"LOG_LEVEL": "warn", "INDEX_TOKEN": "s3same", "WORKERS": "2"}, Values: []string{"s3same"},
			InputSchema: []byte(`{"type":"object","properties":{"scope":{"type":"string","enum":["changed","full"]},"password":{"type":"string","writeOnly":true}},` +
				`"required":["scope"],"additionalProperties":false}`),
			Secrets: []string{"password"}, Where: "sub/mcp-config.json:22",
		},
		{
			Name: "report.build", Description: "Builds the weekly report", Command: "/opt/tools/report", Cwd: sub, Async: true,
			InputSchema: []byte(`{"type":"object","properties":{}}`), Where: "sub/mcp-config.json:42",
		},
	}
	for i := range want {
		want[i].Restart, want[i].Limits.Output, want[i].Sandbox.Mode = keep, toolconf.DefaultOutput, "off"
		if i < len(c.Commands) && !reflect.DeepEqual(c.Commands[i], want[i]) {
			t.Errorf("%+v\nwant %+v", c.Commands[i], want[i])
		}
	}
	if len(c.Commands) != len(want) || c.MaxConcurrent != 4 || c.Queues["default"].Concurrent != 64 || c.Empty() {
		t.Errorf("%+v", c)
	}
	equal(t, "notes", notes(c), []string{
		"info sub/mcp-config.json:10: tools.docs_search.args[3]: it is empty and left out",
		"info sub/mcp-config.json:10: tools.docs_search.args[4]: it is empty and left out",
		"warn sub/mcp-config.json:20: tools.docs_search.tags: it means nothing here (ignored)",
		"info sub/mcp-config.json:29: tools.index_refresh.timeout: 900000 is taken for milliseconds: timeoutMs leaves no doubt",
		"warn sub/mcp-config.json:40: tools.index_refresh.capabilities: it means nothing here (ignored)",
		"warn sub/mcp-config.json:26: tools.index_refresh.command: it is not a program that can be run: calls fail until it is",
		"warn sub/mcp-config.json:45: tools.report.build.command: there is no such file now: calls fail until it is",
		"warn sub/mcp-config.json:49: tools.model_pull: it is run by a provider of that program, which there is none of here (left out)",
		"warn sub/mcp-config.json:55: tools.not_yet: it has no command (left out)",
		"warn sub/mcp-config.json:3: taskLogTailBytes: the last 128 KiB of what a run prints are kept (ignored)",
		"warn sub/mcp-config.json:57: resources: the gateway hands on tools only (ignored)",
		"warn sub/mcp-config.json:60: prompts: the gateway hands on tools only (ignored)",
	})
}

func chmod(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestCommandTools has all keys of a command tool in signalbox.yaml.
func TestCommandTools(t *testing.T) {
	w := newWorld(t, map[string]string{"sub/tools.yaml": `queues:
  default: {concurrent: 2}
  builds: {concurrent: 1}
commandTools:
  build:
    title: Build
    description: Builds ${that}
    command: ~/bin/build
    args: ["--token=${TOKEN}", "", 5]
    cwd: work
    cwdRoot: .
    cwdFrom: project
    env: {PATH: "${PATH}", KEY: "${SECOND:-plain}"}
    inputSchema: {project: string, key: {type: string, optional: true}}
    secrets: [key]
    async: true
    queue: builds
    timeout: 48h
    restart: requeue
    limits: {memory: 512MiB, cpus: 1.5, cpuTime: 90, processes: 64, fileSize: 1.5GB, openFiles: 256, output: 1000}
    sandbox: {mode: required, kind: landlock, read: [/usr/share, lib], write: [work], network: true}
  echo: {command: cat}
  snake: {command: [/bin/sh, -c], args: [x], cwd_from: d, timeoutMs: 1500, restart: fail, limits: {cpu_time: 1m, file_size: 1KiB, open_files: 8}, sandbox: auto, input_schema: {type: object}}
  kept: {command: cat, async: true, restart: {running: requeue, pending: fail}, sandbox: "off", queue: default}
  keep: {command: cat, restart: keep, limits: }
  off: {command: 5, enabled: false}
maxConcurrent: 3
`})
	w.env["PATH"] = "/bin"
	c := w.mustLoad(t, "sub/tools.yaml")
	sub := filepath.Join(w.dir, "sub")
	limits, keep, off := toolconf.CommandLimits{Output: toolconf.DefaultOutput}, toolconf.Restart{Pending: "keep", Running: "fail"}, toolconf.Sandbox{Mode: "off"}
	want := []toolconf.CommandTool{
		{
			Name: "build", Title: "Build", Description: "Builds ${that}", Command: "/home/ada/bin/build", Args: []string{"--token=s3same", "", "5"},
			Cwd: filepath.Join(sub, "work"), CwdRoot: sub, CwdFrom: "project", Env: map[string]string{"PATH": "/bin", "KEY": "plain"}, Values: []string{"s3same"},
			InputSchema: []byte(`{"type":"object","properties":{"project":{"type":"string"},"key":{"type":"string"}},"required":["project"]}`), Secrets: []string{"key"},
			Async: true, Queue: "builds", Timeout: 48 * time.Hour, Restart: toolconf.Restart{Pending: "keep", Running: "requeue"},
			Limits: toolconf.CommandLimits{
				Memory: 512 << 20, CPUs: 1.5, CPUTime: 90 * time.Second, Processes: 64, FileSize: 1_500_000_000, OpenFiles: 256, Output: 1000,
			},
			Sandbox: toolconf.Sandbox{Mode: "required", Kind: "landlock", Read: []string{"/usr/share", filepath.Join(sub, "lib")}, Write: []string{filepath.Join(sub, "work")}, Network: true},
			Where:   "sub/tools.yaml:5",
		},
		{Name: "echo", Command: "cat", Cwd: sub, Queue: "default", Restart: keep, Limits: limits, Sandbox: off, Where: "sub/tools.yaml:22"},
		{Name: "keep", Command: "cat", Cwd: sub, Queue: "default", Restart: keep, Limits: limits, Sandbox: off, Where: "sub/tools.yaml:25"},
		{
			Name: "kept", Command: "cat", Cwd: sub, Async: true, Queue: "default", Restart: toolconf.Restart{Pending: "fail", Running: "requeue"},
			Limits: limits, Sandbox: off, Where: "sub/tools.yaml:24",
		},
		{
			Name: "snake", Command: "/bin/sh", Args: []string{"-c", "x"}, Cwd: sub, CwdRoot: sub, CwdFrom: "d", Timeout: 1500 * time.Millisecond, Queue: "default",
			Restart: toolconf.Restart{Pending: "fail", Running: "fail"}, Limits: toolconf.CommandLimits{CPUTime: time.Minute, FileSize: 1024, OpenFiles: 8, Output: toolconf.DefaultOutput},
			Sandbox: toolconf.Sandbox{Mode: "auto"}, InputSchema: []byte(`{"type":"object"}`), Where: "sub/tools.yaml:23",
		},
	}
	for i := range want {
		if i < len(c.Commands) && !reflect.DeepEqual(c.Commands[i], want[i]) {
			t.Errorf("%+v\nwant %+v", c.Commands[i], want[i])
		}
	}
	if len(c.Commands) != len(want) || c.MaxConcurrent != 3 {
		t.Errorf("%+v", c)
	}
	equal(t, "notes", notes(c), []string{
		"warn sub/tools.yaml:8: commandTools.build.command: there is no such file now: calls fail until it is",
		"info sub/tools.yaml:26: commandTools.off: it is switched off and left out",
	})
}

// TestExampleOfCommands reads the example of docs/tools.md.
func TestExampleOfCommands(t *testing.T) {
	w := newWorld(t, map[string]string{"tools.yaml": example(t, "tools.yaml"), "wordcount": ""})
	chmod(t, filepath.Join(w.dir, "wordcount"))
	c := w.mustLoad(t, "tools.yaml")
	want := []toolconf.CommandTool{{
		Name: "wordcount", Description: "Counts the words of a text", Command: filepath.Join(w.dir, "wordcount"), Cwd: w.dir,
		Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}, Async: true, Timeout: 5 * time.Minute,
		InputSchema: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Restart:     toolconf.Restart{Pending: "keep", Running: "fail"}, Sandbox: toolconf.Sandbox{Mode: "off"},
		Limits: toolconf.CommandLimits{Memory: 256 << 20, Processes: 16, Output: toolconf.DefaultOutput}, Where: "tools.yaml:2",
	}}
	if !reflect.DeepEqual(c.Commands, want) || len(c.Notes) > 0 {
		t.Errorf("%+v\nwant %+v\n%v", c.Commands, want, c.Notes)
	}
}

// TestShortSchemas: the forms of a field, and how fields are distinguished
// from JSON Schema.
func TestShortSchemas(t *testing.T) {
	for _, test := range []struct{ in, want, note string }{
		{`{}`, `{"type":"object","properties":{}}`, ""},
		{`{"a": "String"}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, ""},
		{`{"a": {}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, ""},
		{`{"a": "any"}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`, ""},
		{`{"a": {"type": "file", "optional": true}}`, `{"type":"object","properties":{"a":{}}}`, "want one of string, number"},
		{`{"a": {"type": "array"}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"required":["a"]}`, ""},
		{`{"a": {"isArray": true, "maxItems": 2, "maxLength": 3}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":3},"maxItems":2}},"required":["a"]}`, ""},
		{`{"a": {"type": "number", "nullable": true, "required": false}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"number"},{"type":"null"}]}}}`, ""},
		{
			`{"a": {"type": "object", "properties": {"b": "integer", "c": {"optional": true}}, "additionalProperties": true}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"},"c":{"type":"string"}},"required":["b"],"additionalProperties":true}},"required":["a"]}`, "",
		},
		{`{"a": {"type": "object"}, "properties": {"type": "string"}}`, `{"type":"object","properties":{"a":{"type":"object"},"properties":{"type":"string"}},"required":["a","properties"]}`, ""},
		{`{"a": {"colour": 1}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "there is no such key"},
		{`{"type": "string", "required": "boolean"}`, `{"type":"object","properties":{"type":{"type":"string"},"required":{"type":"boolean"}},"required":["type","required"]}`, ""},
		{`{"type": {"enum": ["a"]}}`, `{"type":"object","properties":{"type":{"type":"string","enum":["a"]}},"required":["type"]}`, ""},
		{`{"type": "object", "name": "string"}`, `{"type":"object","properties":{"type":{"type":"object"},"name":{"type":"string"}},"required":["type","name"]}`, ""},
		{`{"type": "object"}`, `{"type":"object"}`, ""},
		{`{"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"pattern": "(?=x)"}}}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"pattern":"(?=x)"}}}`, ""},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]}`, `{"$schema":"http://json-schema.org/draft-07/schema#","required":["a"]}`, ""},
		{`{"additionalProperties": false}`, `{"additionalProperties":false}`, ""},
	} {
		w := newWorld(t, map[string]string{"t.json": `{"commandTools": {"x": {"command": "/bin/sh", "inputSchema": ` + test.in + `}}}`})
		c := w.mustLoad(t, "t.json")
		if got := string(c.Commands[0].InputSchema); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.in, got, test.want)
		}
		if got := strings.Join(notes(c), "\n"); (got == "") != (test.note == "") || !strings.Contains(got, test.note) {
			t.Errorf("%s: notes %q", test.in, got)
		}
	}
}

// TestSecretProperties: they are named or marked, at the top or below.
func TestSecretProperties(t *testing.T) {
	w := newWorld(t, map[string]string{"t.yaml": `commandTools:
  x:
    command: /bin/sh
    secrets: [plain]
    inputSchema:
      type: object
      properties:
        plain: {type: string}
        password: {type: string, format: password}
        deep: {type: object, properties: {list: {type: array, items: {type: string, writeOnly: true}}}}
        open: {type: string, writeOnly: false, format: uri}
  y: {command: /bin/sh, secrets: [whatever, a, a]}
`})
	c := w.mustLoad(t, "t.yaml")
	equal(t, "x", c.Commands[0].Secrets, []string{"deep", "password", "plain"})
	equal(t, "y", c.Commands[1].Secrets, []string{"a", "whatever"})
}

// TestListedTools: what a list can contain that a section cannot.
func TestListedTools(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.json": `{"maxConcurrent": 2, "tools": [
{"name": "a", "command": " /bin/sh ", "cwd": "./workspace", "timeout": 1500, "timeoutMs": 1500},
{"name": "b", "command": "/bin/sh", "timeout": "90s", "disabled": true}, {"command": "x"}, {"name": "c", "command": "/bin/sh", "timeoutMs": 0}]}`,
		"b.json": `{"maxParallelTasks": 7, "tools": [], "mcpServers": {"s": {"command": "x"}}}`,
		"c.json": `{"tools": ["x", "y"], "mcpServers": {"t": {"command": "x"}}}`,
		"d.json": `{"tools": [{"name": "c", "command": "/bin/sh", "timeoutMs": 0}]}`,
		"e.json": `{"tools": {}, "mcpServers": {"u": {"command": "x"}}}`,
	})
	c := w.mustLoad(t, "a.json", "b.json", "c.json")
	if len(c.Commands) != 2 || c.Commands[0].Cwd != filepath.Join(w.dir, "workspace") || c.Commands[0].Command != "/bin/sh" ||
		c.Commands[0].Timeout != 1500*time.Millisecond || c.MaxConcurrent != 7 {
		t.Errorf("%+v", c)
	}
	equal(t, "notes", notes(c), []string{
		"info a.json:2: tools.a.timeout: 1500 is taken for milliseconds: timeoutMs leaves no doubt",
		"info a.json:3: tools.b: it is switched off and left out",
		"warn a.json:3: tools[2]: it has no name (left out)",
		"warn c.json:1: tools: there is no such key (ignored)",
	})
	equal(t, "notes", notes(w.mustLoad(t, "e.json")), []string{
		"warn e.json:1: tools: want a list of tools, each a section with a name and a command, got a section (ignored)",
	})
	if c := w.mustLoad(t, "a.json", "d.json"); len(c.Commands) != 2 {
		t.Errorf("the same tool in two files: %+v", c.Commands)
	}
}

// TestHostileCommands: hostile files are processed quickly, whatever the
// result.
func TestHostileCommands(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("commandTools:\n  a:\n    command: x\n    inputSchema:\n      a0: &a0 {type: object, properties: {x: string, y: string}}\n")
	for i := 1; i < 10; i++ {
		at, last := string(rune('0'+i)), string(rune('0'+i-1))
		bomb.WriteString("      a" + at + ": &a" + at + " {type: object, properties: {")
		for j := range 10 {
			bomb.WriteString("f" + string(rune('0'+j)) + ": *a" + last + ", ")
		}
		bomb.WriteString("}}\n")
	}
	w := newWorld(t, map[string]string{
		"bomb.yaml":  bomb.String(),
		"loop.yaml":  "commandTools:\n  a:\n    command: x\n    inputSchema: &s {b: *s}\n",
		"deep.json":  `{"tools": [{"name": "a", "command": "x", "inputSchema": ` + strings.Repeat(`{"type": "object", "properties": {"a": `, 45) + `"x"` + strings.Repeat("}}", 45) + `, "timeoutMs": -1}]}`,
		"many.json":  `{"tools": [` + strings.Repeat(`{"name": "a", "command": "x"}, `, 20_000) + `{"name": "a"}]}`,
		"items.yaml": "commandTools:\n  a:\n    command: x\n    inputSchema: {a: {type: array, items: " + strings.Repeat("{type: array, items: ", 40) + "5" + strings.Repeat("}", 40) + "}}\n",
	})
	for _, name := range []string{"bomb.yaml", "loop.yaml", "deep.json", "many.json", "items.yaml"} {
		begin := time.Now()
		_, bad := w.load(name)
		if len(bad) == 0 {
			t.Errorf("%s: no mistake", name)
		}
		for _, p := range bad {
			if len(p.String()) > 2000 {
				t.Errorf("%s: a message of %d bytes", name, len(p.String()))
			}
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

// FuzzCommands looks for texts that make the reading of command tools panic, or
// give an invalid tool.
func FuzzCommands(f *testing.F) {
	if text, err := os.ReadFile("testdata/mcp-config.json"); err == nil {
		f.Add(string(text))
	}
	for _, seed := range []string{
		`{"tools": [{"name": "a", "command": "x", "inputSchema": {"a": {"type": "array", "items": {"nullable": true}}}}]}`,
		"commandTools: {a: {command: x, limits: {memory: 1e3MiB, cpus: .5}, inputSchema: &a {b: *a}}}",
		"commandTools: {a: {command: [x, y], restart: {pending: fail}, sandbox: {mode: auto, read: [~/x]}, cwdFrom: x}}",
		`{"tools": [null, 5, {"name": 5}], "maxParallelTasks": 1.5}`,
	} {
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
			for _, tool := range c.Commands {
				_, queue := c.Queues[tool.Queue]
				if tool.Command == "" || !filepath.IsAbs(tool.Cwd) || tool.Timeout < 0 || tool.Limits.Output <= 0 || tool.Limits.Memory < 0 ||
					tool.Restart.Pending == "" || tool.Restart.Running == "" || tool.Sandbox.Mode == "" || !queue && tool.Queue != "" || tool.Queue == "" && !tool.Async {
					t.Errorf("%+v", tool)
				}
			}
		}
	})
}
