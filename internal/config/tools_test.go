package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// TestTools: the ways of naming tools files; a flag overrides a variable, and
// a variable the file.
func TestTools(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.write(filepath.Join(w.dir, "sub", name+".json"), `{"mcpServers": {"`+name+`": {"command": "x"}}}`)
	}
	w.file("tools: [sub/a.json]\nmcpServers: {own: {command: x}}\n")
	names := func(c config.Config) string {
		var out []string
		for _, s := range c.Tools.Servers {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	if got := names(w.mustLoad("")); got != "a own" {
		t.Errorf("of the file: %s", got)
	}
	w.env["SIGNALBOX_TOOLS"] = "sub/b.json, " + filepath.Join(w.dir, "sub", "c.json")
	if got := names(w.mustLoad("")); got != "b c own" {
		t.Errorf("of the variable: %s", got)
	}
	if got := names(w.mustLoad("", flag("--tools", "tools", "sub/d.json"))); got != "d own" {
		t.Errorf("of the flag: %s", got)
	}
	w.env["SIGNALBOX_TOOLS"] = "sub/gone.json"
	_, err := w.load("")
	if want := "SIGNALBOX_TOOLS: tools: sub/gone.json: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	c, err := config.Load(config.Sources{Ask: trusted, Dir: w.dir, NoTools: true, Env: func(n string) (string, bool) { v, ok := w.env[n]; return v, ok }})
	if err != nil || !c.Tools.Empty() {
		t.Errorf("without tools: %v %+v", err, c.Tools)
	}
}

// TestCommands: command tools of signalbox.yaml and of a mcp-config.json, and
// the keys that configure how they run.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.dir, "sub", "mcp-config.json"), `{"maxParallelTasks": 4, "tools": [{"name": "listed", "command": "/bin/sh", "cwd": "workspace"}]}`)
	w.file("tools: [sub/mcp-config.json]\ncommandTools:\n  own: {command: /bin/sh, cwd: work}\ncommands: {max_waiting: 5, limits: rlimit, task_after: 0}\n")
	w.env["AGENT_NAME"] = "clerk"
	c := w.mustLoad("")
	var cwd []string
	for _, tool := range c.Tools.Commands {
		cwd = append(cwd, tool.Name+" "+tool.Cwd)
	}
	if got, want := strings.Join(cwd, ", "), "listed "+w.dir+", own "+filepath.Join(w.dir, "work"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := config.Commands{MaxWaiting: 5, AgentName: "clerk", Limits: "rlimit"}
	if c.Commands != want || c.Tools.MaxConcurrent != 4 {
		t.Errorf("%+v %d", c.Commands, c.Tools.MaxConcurrent)
	}
	w.file("commands: {max_concurrent: 0, limits: cgroups, task_after: 2h}\n")
	_, err := w.load("")
	for _, part := range []string{"commands.max_concurrent: want a whole number from 1", "commands.limits: want", "commands.task_after: want"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %s", err, part)
		}
	}
}

func TestTheLeastLimitOfAStepIsNotAboveTheMost(t *testing.T) {
	for text, want := range map[string]string{
		"agent: {llm: {min_parallel_tool_calls: 11}}":                            "11 is more than agent.llm.max_parallel_tool_calls, which is 10",
		"agent: {llm: {max_parallel_tool_calls: 2, min_parallel_tool_calls: 3}}": "3 is more than agent.llm.max_parallel_tool_calls, which is 2",
		"agent: {llm: {min_parallel_tool_calls: -1}}":                            "want a whole number from 0 to 1000",
		"agent: {llm: {min_parallel_tool_calls: two}}":                           "want a whole number from 0 to 1000",
	} {
		w := newWorld(t)
		w.file(text)
		if _, err := w.load(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProblemsInOneMessage(t *testing.T) {
	w := newWorld(t)
	w.file("a: 1\nbb: 2\n")
	_, err := w.load("")
	if want := "2 problems in the configuration:\n  signalbox.yaml:1: a: there is no such key\n  signalbox.yaml:2: bb: there is no such key"; err == nil || err.Error() != want {
		t.Fatalf("%v", err)
	}
}
