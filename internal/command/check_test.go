//go:build unix

package command_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/command"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const orderSchema = `{
	"$schema": "http://json-schema.org/draft-07/schema#",
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
		"count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
		"mode": {"enum": ["fast", "slow"]},
		"always": {"const": 1},
		"files": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["path"], "properties": {"path": {"type": ["string", "null"]}}}},
		"tree": {"$ref": "#/definitions/tree"},
		"either": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
		"secret": {"type": "string", "maxLength": 3, "writeOnly": true}
	},
	"definitions": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/definitions/tree"}, "leaf": {"type": "boolean"}}, "additionalProperties": false}},
	"required": ["name"],
	"additionalProperties": false
}`

// A validation error names the place and what was expected, and quotes no
// value.
func TestCheckNamesTheProperty(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: "/bin/true", InputSchema: []byte(orderSchema)})
	for input, want := range map[string]string{
		`{}`:                          "name|The argument name is missing.",
		`{"name":7}`:                  "name|The argument name must be a string, not a number.",
		`{"name":"x"}`:                "name|The argument name must have at least 2 characters, not 1.",
		`{"name":"xxxxxx"}`:           "name|The argument name must have at most 5 characters, not 6.",
		`{"name":"AB"}`:               "name|The argument name must match the pattern ^[a-z]+$.",
		`{"name":"ab","count":1.5}`:   "count|The argument count must be an integer, not a number.",
		`{"name":"ab","count":0}`:     "count|The argument count must be at least 1.",
		`{"name":"ab","count":10}`:    "count|The argument count must be less than 10.",
		`{"name":"ab","mode":"soon"}`: `mode|The argument mode must be one of "fast", "slow".`,
		`{"name":"ab","always":2}`:    "always|The argument always must be 1.",
		`{"name":"ab","files":[]}`:    "files|The argument files must have at least 1 items, not 0.",
		`{"name":"ab","files":[{"path":"a"},{"path":[]}]}`:  "files[1].path|The argument files[1].path must be a string or null, not an array.",
		`{"name":"ab","files":[{}]}`:                        "files[0].path|The argument files[0].path is missing.",
		`{"name":"ab","tree":{"left":{"left":{"leaf":1}}}}`: "tree.left.left.leaf|The argument tree.left.left.leaf must be a boolean, not a number.",
		`{"name":"ab","tree":{"left":{"right":{}}}}`:        "tree.left.right|The argument tree.left.right is none that the tool takes: it takes leaf, left.",
		`{"name":"ab","either":null}`:                       "|The arguments do not fit the tool's inputSchema: see /properties/either anyOf in it.",
		`{"name":"ab","secret":"hunter2"}`:                  "secret|The argument secret must have at most 3 characters, not 7.",
		`{"name":"ab","odd":1}`:                             "odd|The argument odd is none that the tool takes: it takes always, count, either, files, mode, name, secret, tree.",
		`[]`:                                                "|The arguments must be a JSON object such as {\"name\": \"value\"}.",
		`{"name":`:                                          "|The arguments must be a JSON object such as {\"name\": \"value\"}.",
	} {
		err := tool.Check(json.RawMessage(input))
		var e *signalbox.Error
		if !errors.As(err, &e) || e.Code != signalbox.CodeValidation {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(e.Field, "arguments"), ".") + "|" + e.Message; got != want {
			t.Errorf("%s:\n got %s\nwant %s", input, got, want)
		}
	}
	for _, input := range []string{`{"name":"ab"}`, ` {"name":"ab","count":9,"either":true,"tree":{"left":{"left":{}}}}`} {
		if err := tool.Check(json.RawMessage(input)); err != nil {
			t.Errorf("%s: %v", input, err)
		}
	}
}

func TestCheckWithoutASchema(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: "/bin/true"})
	for _, input := range []string{"", "null", "{}", `{"any":["thing"]}`} {
		if err := tool.Check(json.RawMessage(input)); err != nil {
			t.Errorf("%q: %v", input, err)
		}
	}
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", command.MaxInput) + `"}`)
	if err := tool.Check(large); signalbox.CodeOf(err) != signalbox.CodeValidation || !strings.Contains(err.Error(), "4194304") {
		t.Errorf("%v", err)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	cwd := t.TempDir()
	for name, c := range map[string]struct {
		conf toolconf.CommandTool
		want string
	}{
		"no command":          {toolconf.CommandTool{}, "command: it is missing"},
		"a relative command":  {toolconf.CommandTool{Command: "bin/x"}, "want an absolute path"},
		"a relative cwd":      {toolconf.CommandTool{Command: "x", Cwd: "here"}, "cwd: here is not an absolute path"},
		"cwd outside":         {toolconf.CommandTool{Command: "x", Cwd: "/", CwdRoot: cwd}, "cwd: / lies outside of cwdRoot"},
		"schema of an array":  {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{"type":"array"}`)}, `inputSchema: its type is "array"`},
		"no schema":           {toolconf.CommandTool{Command: "x", InputSchema: []byte(`[]`)}, "inputSchema: it must be a JSON object"},
		"not even JSON":       {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{`)}, "inputSchema: it is not JSON"},
		"a bad type":          {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{"properties":{"a":{"type":7}}}`)}, "inputSchema: it is not a JSON Schema"},
		"a circle":            {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`)}, "leads back to itself"},
		"a schema elsewhere":  {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{"properties":{"x":{"$ref":"https://example.com/s"}}}`)}, "cannot be followed"},
		"a reference nowhere": {toolconf.CommandTool{Command: "x", InputSchema: []byte(`{"properties":{"x":{"$ref":"#/$defs/none"}}}`)}, "cannot be followed"},
		"a bad variable":      {toolconf.CommandTool{Command: "x", Env: map[string]string{"A=B": "c"}}, "env: the variable A=B"},
	} {
		c.conf.Name, c.conf.Where = "broken", "tools.json:7"
		if c.conf.Cwd == "" {
			c.conf.Cwd = cwd
		}
		_, err := command.New(c.conf, command.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "tools.json:7: command tool broken") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A pattern that Go does not support is left to the command; everything else
// is checked.
func TestPatternsThatGoDoesNotKnow(t *testing.T) {
	tool := open(t, toolconf.CommandTool{Command: "/bin/true", InputSchema: []byte(`{"properties":{"a":{"type":"string","pattern":"^(?!x)"}},"patternProperties":{"(?=b)":{"type":"string"}}}`)})
	if err := tool.Check(json.RawMessage(`{"a":"x","b":1}`)); err != nil {
		t.Error(err)
	}
	if err := tool.Check(json.RawMessage(`{"a":1}`)); err == nil {
		t.Error("the type does not hold")
	}
	if !strings.Contains(string(tool.Schema()), "(?!x)") || !strings.Contains(string(tool.Schema()), `"type":"object"`) {
		t.Errorf("callers are shown %s", tool.Schema())
	}
}

func TestWorkingFolderOfTheInput(t *testing.T) {
	root := t.TempDir()
	base := filepath.Join(root, "base")
	outside := t.TempDir()
	for _, dir := range []string{filepath.Join(base, "in/deep"), filepath.Join(root, "beside")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"base/out": outside, "base/link": "in/deep", "base/up": "../beside", "base/loop": "loop", "base/abs": filepath.Join(root, "beside")} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	narrow := toolconf.CommandTool{Command: sh(t, "pwd -P"), Cwd: base, CwdFrom: "dir"}
	wide := narrow
	wide.CwdRoot = root
	for _, c := range []struct {
		tool toolconf.CommandTool
		dir  any
		want string // working folder, or else part of the error
	}{
		{narrow, nil, base}, {narrow, "", base}, {narrow, ".", base}, {narrow, "in", base + "/in"}, {narrow, "in/deep/..", base + "/in"},
		{narrow, "link", base + "/in/deep"}, {narrow, base + "/in", base + "/in"},
		{narrow, "..", "lies outside"}, {narrow, "../beside", "lies outside"}, {narrow, "in/../../beside", "lies outside"},
		{narrow, "out", "lies outside"}, {narrow, "up", "lies outside"}, {narrow, "/", "lies outside"}, {narrow, outside, "lies outside"},
		{narrow, "/etc/none", "lies outside"}, {narrow, base + "x", "lies outside"},
		{narrow, "none", "is gone"}, {narrow, "file", "is not a folder"}, {narrow, "file/x", "is not a folder"}, {narrow, "loop", "cannot be entered"},
		{narrow, 7, "must be a path"}, {narrow, "a\x00b", "must be a path"},
		{wide, "../beside", root + "/beside"}, {wide, "up", root + "/beside"}, {wide, "abs", root + "/beside"}, {wide, root, root},
		{wide, "out", "lies outside"}, {wide, "../..", "lies outside"}, {wide, outside, "lies outside"},
	} {
		tool := open(t, c.tool)
		input, _ := json.Marshal(map[string]any{"dir": c.dir})
		err := tool.Check(input)
		o := run(t.Context(), t, tool, command.Run{Input: input})
		if filepath.IsAbs(c.want) {
			want, _ := filepath.EvalSymlinks(c.want)
			if err != nil || o.Stdout != want+"\n" {
				t.Errorf("%v: %v, it worked in %q (%s)", c.dir, err, o.Stdout, o.Message)
			}
			continue
		}
		var e *signalbox.Error
		if !errors.As(err, &e) || e.Field != "arguments.dir" || !strings.Contains(e.Message, c.want) {
			t.Errorf("%v: %v, want %q", c.dir, err, c.want)
		}
		if o.Reason != signalbox.ReasonAgentError || !strings.Contains(o.Message, c.want) {
			t.Errorf("%v: the run ended %s: %s", c.dir, o.Reason, o.Message)
		}
	}
}

// A working folder that was valid at the call, but leads elsewhere when its
// run begins, is checked again.
func TestWorkingFolderThatChangesBeforeTheRun(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	dir := filepath.Join(base, "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tool := open(t, toolconf.CommandTool{Command: sh(t, "pwd"), Cwd: base, CwdFrom: "dir"})
	input := json.RawMessage(`{"dir":"dir"}`)
	if err := tool.Check(input); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if o := run(t.Context(), t, tool, command.Run{Input: input}); !strings.Contains(o.Message, "is gone") {
		t.Errorf("%+v", o)
	}
	if err := os.Symlink(outside, dir); err != nil {
		t.Fatal(err)
	}
	if o := run(t.Context(), t, tool, command.Run{Input: input}); !strings.Contains(o.Message, "lies outside") || o.Stdout != "" {
		t.Errorf("%+v", o)
	}
}

func TestProgramByName(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "my-tool"), []byte("#!/bin/sh\necho found\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := open(t, toolconf.CommandTool{Command: "my-tool"})
	if o := run(t.Context(), t, tool, command.Run{}); !strings.Contains(o.Message, "no folder of PATH") {
		t.Errorf("%+v", o)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if o := run(t.Context(), t, tool, command.Run{}); o.Stdout != "found\n" {
		t.Errorf("it is looked up when a run begins: %+v", o)
	}
	chmod(t, filepath.Join(dir, "my-tool"), 0o644)
	if o := run(t.Context(), t, tool, command.Run{}); !strings.Contains(o.Message, "is not executable: chmod +x") {
		t.Errorf("%+v", o)
	}
}

// If a required sandbox is not available, the run does not start.
func TestRequiredSandboxFailsClosed(t *testing.T) {
	path, _ := fifo(t)
	tool := open(t, toolconf.CommandTool{Command: sh(t, "echo ran > "+path), Sandbox: toolconf.Sandbox{Mode: "required"}})
	if o := run(t.Context(), t, tool, command.Run{}); o.Reason != signalbox.ReasonAgentError || !strings.Contains(o.Message, "sandbox") {
		t.Errorf("%+v", o)
	}
}
