package toolconf_test

import (
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestIncidentUndefinedQueueFailsTheStart: a tool bound to a queue that is not
// configured must not run without a limit, nor in another queue.
func TestIncidentUndefinedQueueFailsTheStart(t *testing.T) {
	w := newWorld(t, map[string]string{
		"queues.yaml": "queues:\n  default: {concurrent: 2}\n  browser: {concurrent: 1}\n",
		"mcp.json":    "{\"mcpServers\": {\n\"a\": {\"command\": \"x\",\n\"queue\": \"browsr\"},\n\"b\": {\"command\": \"x\", \"toolQueues\": {\n\"click\": \"mouse\"}}},\n\"restTools\": {\"r\": {\"url\": \"http://h/\",\n\"queue\": \"rest\"}},\n\"openapiSpecs\": {\"s\": {\"spec\": \"s.json\",\n\"queue\": \"specs\"}}}",
	})
	_, bad := w.load("mcp.json", "queues.yaml")
	equal(t, "mistakes", problems(bad), []string{
		"mcp.json:3: mcpServers.a.queue: there is no tool queue named browsr: want it under queues, or one of browser, default: did you mean browser?",
		"mcp.json:5: mcpServers.b.toolQueues.click: there is no tool queue named mouse: want it under queues, or one of browser, default",
		"mcp.json:7: restTools.r.queue: there is no tool queue named rest: want it under queues, or one of browser, default",
		"mcp.json:9: openapiSpecs.s.queue: there is no tool queue named specs: want it under queues, or one of browser, default",
	})
}

// TestIncidentDefaultIsThere: the queue for tools that name none is added if
// no queues are configured, and is an error if others are.
func TestIncidentDefaultIsThere(t *testing.T) {
	w := newWorld(t, map[string]string{
		"tools.json":  `{"mcpServers": {"a": {"command": "x"}}}`,
		"queues.yaml": "\nqueues:\n  browser: {concurrent: 1}\n",
		"more.yaml":   "queues:\n  default: {concurrent: 3}\n",
		"empty.json":  `{"queues": {}}`,
	})
	if q := w.mustLoad(t, "tools.json").Queues; len(q) != 1 || q["default"].Concurrent != toolqueue.DefaultConcurrent {
		t.Errorf("%+v", q)
	}
	if q := w.mustLoad(t, "tools.json", "queues.yaml", "more.yaml").Queues; len(q) != 2 || q["default"].Concurrent != 3 {
		t.Errorf("of several files: %+v", q)
	}
	const missing = "there is no queue named default, which is for the tools that name none: want default: {concurrent: 64} beside the others"
	_, bad := w.load("tools.json", "queues.yaml")
	equal(t, "without default", problems(bad), []string{"queues.yaml:2: queues: " + missing})
	_, bad = w.load("empty.json")
	equal(t, "an empty block", problems(bad), []string{"empty.json:1: queues: " + missing})
}

// TestIncidentDuplicates: two different definitions are an error, not a
// guess.
func TestIncidentDuplicates(t *testing.T) {
	for name, text := range map[string]string{
		"t.yaml": "queues:\n  default: {concurrent: 1}\n  q: {concurrent: 1}\n  q: {concurrent: 9}\nmcpServers:\n  a: {command: x}\n  a: {command: y}\nmcpServers:\n  b: {command: z}\n",
		"t.json": "{\"queues\": {\n\"default\": {\"concurrent\": 1},\n\"q\": {\"concurrent\": 1},\n\"q\": {\"concurrent\": 9}},\n\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}},\n\"mcpServers\": {\"b\": {\"command\": \"z\"}}}",
	} {
		_, bad := newWorld(t, map[string]string{name: text}).load(name)
		equal(t, name, problems(bad), []string{
			name + ":8: mcpServers: it stands twice, first at " + name + ":5",
			name + ":4: queues.q: it stands twice, first at " + name + ":3",
			name + ":7: mcpServers.a: it stands twice, first at " + name + ":6",
		})
	}
}

// TestIncidentRetiredKeys: a retired key is an error, so that nobody relies
// on a limit that no longer exists.
func TestIncidentRetiredKeys(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"maxConcurrentTools": 3}`, "maxConcurrentTools"},
		{`{"parallelToolCalls": true, "mcpServers": {}}`, "parallelToolCalls"},
		{`{"defaults": {"maxConcurrentTools": 3}}`, "defaults.maxConcurrentTools"},
		{`{"defaults": {"temperature": 1, "parallelToolCalls": 3}}`, "defaults.parallelToolCalls"},
		{`{"mcpServers": {"x": {"command": "y", "maxConcurrentTools": 1}}}`, "mcpServers.x.maxConcurrentTools"},
		{`{"restTools": {"x": {"url": "http://h/", "maxConcurrentTools": 1}}}`, "restTools.x.maxConcurrentTools"},
		{`{"openapiSpecs": {"x": {"spec": "y", "parallelToolCalls": 1}}}`, "openapiSpecs.x.parallelToolCalls"},
		{`{"queues": {"default": {"concurrent": 1, "parallelToolCalls": 1}}}`, "queues.default.parallelToolCalls"},
		{`{"max-concurrent-tools": 3}`, "max-concurrent-tools"},
		{`{"defaults": {"max_concurrent_tools": 3}}`, "defaults.max_concurrent_tools"},
		{`{"mcpServers": {"x": {"command": "y", "parallel-tool-calls": 1}}}`, "mcpServers.x.parallel-tool-calls"},
	} {
		_, bad := newWorld(t, map[string]string{"t.json": test.text}).load("t.json")
		replaces := "queues.NAME.concurrent"
		if strings.Contains(test.want, "parallel") {
			replaces = "agent.llm.max_parallel_tool_calls"
		}
		if len(bad) != 1 || bad[0].Key != test.want || !strings.Contains(bad[0].Text, "retired") || !strings.Contains(bad[0].Text, replaces) {
			t.Errorf("%s: %v", test.text, bad)
		}
	}
}

// A key of that name elsewhere belongs to another program.
func TestRetiredKeysElsewhere(t *testing.T) {
	w := newWorld(t, map[string]string{"t.json": `{"providers": {"a": {"parallelToolCalls": true}},
		"mcpServers": {"x": {"command": "y", "env": {"maxConcurrentTools": "1"}}},
		"restTools": {"r": {"url": "http://h/", "parametersSchema": {"properties": {"parallelToolCalls": {}}}}}}`})
	if c := w.mustLoad(t, "t.json"); len(c.Servers) != 1 || len(c.Rest) != 1 {
		t.Errorf("%+v", c)
	}
}

// A misspelt queue does not count as another program's key: without it the
// calls would be limited only by the queue default.
func TestAMisspeltQueueIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`{"mcpServers": {"x": {"command": "y", "que": "heavy"}}}`:              "mcpServers.x.que: there is no such key: did you mean queue?",
		`{"mcpServers": {"x": {"command": "y", "toolQueue": {"a": "heavy"}}}}`: "mcpServers.x.toolQueue: there is no such key: did you mean toolQueues?",
		`{"restTools": {"x": {"url": "http://h/", "Queue": "heavy"}}}`:         "restTools.x.Queue: there is no such key: did you mean queue?",
		`{"queue": {"default": {"concurrent": 1}}}`:                            "queue: there is no such key: did you mean queues?",
	} {
		_, bad := newWorld(t, map[string]string{"t.json": text}).load("t.json")
		if len(bad) != 1 || !strings.HasSuffix(bad[0].String(), want) {
			t.Errorf("%s: %v", text, bad)
		}
	}
}
