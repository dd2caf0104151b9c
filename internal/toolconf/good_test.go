package toolconf_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestExampleOfOurs reads the example of signalbox.yaml as a tools file,
// without its key tools.
func TestExampleOfOurs(t *testing.T) {
	text := example(t, "signalbox.yaml")
	_, text, _ = strings.Cut(text, "queues:")
	w := newWorld(t, map[string]string{"sub/tools.yaml": "queues:" + text})
	w.env["TRACKER_TOKEN"] = "t0ken"
	c := w.mustLoad(t, "sub/tools.yaml")
	want := toolconf.Config{
		Queues: map[string]toolconf.Queue{
			"default": {Concurrent: 64, Where: "sub/tools.yaml:2"},
			"browser": {Concurrent: 1, MaxWait: 5 * time.Minute, MaxWaiters: 20, LeaseIdle: time.Minute, LeaseHold: 10 * time.Minute, Where: "sub/tools.yaml:3"},
			"search":  {Concurrent: 4, Shared: true, Where: "sub/tools.yaml:8"},
		},
		Servers: []toolconf.Server{
			{
				Name: "playwright", Transport: toolconf.Stdio, Command: "npx", Args: []string{"@playwright/mcp", "--headless"}, Shared: true, HealthProbe: "ping",
				Queue: "browser", ToolQueues: map[string]string{"browser_install": "default"}, Where: "sub/tools.yaml:10",
			},
			{
				Name: "tracker", Transport: toolconf.HTTP, URL: "https://tracker.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t0ken"}, Secrets: []string{"t0ken"},
				ToolsDenied: []string{"delete_*"}, RequestTimeout: 30 * time.Second, Shared: true, HealthProbe: "ping", Queue: "default", Where: "sub/tools.yaml:15",
			},
		},
		Rest: []toolconf.RestTool{{
			Name: "weather", Description: "The weather of a city, now", Method: "GET", URL: "https://weather.example.com/v1/now?city=${parameters.city}",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`), Queue: "search", Where: "sub/tools.yaml:21",
		}},
		OpenAPI: []toolconf.OpenAPI{{
			Name: "shop", Spec: filepath.Join(w.dir, "sub", "shop", "openapi.json"), BaseURL: "https://shop.example.com/api", IncludeMethods: []string{"GET"},
			TagFilter: []string{"catalogue"}, ToolNamePrefix: "shop", Queue: "search", Where: "sub/tools.yaml:30",
		}},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\nwant %+v", c, want)
	}
	queues := c.ToolQueues()
	if b := queues["browser"]; len(queues) != 3 || b != (toolqueue.Config{
		Concurrent: 1, MaxWait: 5 * time.Minute, MaxWaiters: 20, Lease: toolqueue.Lease{Idle: time.Minute, MaxHold: 10 * time.Minute},
	}) {
		t.Errorf("%+v", queues)
	}
	if err := toolqueue.New(toolqueue.Hooks{}).Configure(queues); err != nil {
		t.Error(err)
	}
}

func TestExampleOfMCP(t *testing.T) {
	w := newWorld(t, map[string]string{".mcp.json": example(t, ".mcp.json")})
	c := w.mustLoad(t, ".mcp.json")
	want := []toolconf.Server{
		{
			Name: "docs", Transport: toolconf.HTTP, URL: "https://docs.example.com/mcp", Shared: true, HealthProbe: "ping", RequestTimeout: time.Minute,
			Queue: "search", Where: ".mcp.json:8",
		},
		{
			Name: "filesystem", Transport: toolconf.Stdio, Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."},
			Env: map[string]string{"LOG_LEVEL": "warn"}, Shared: true, HealthProbe: "ping", Queue: "default", Where: ".mcp.json:3",
		},
	}
	if !reflect.DeepEqual(c.Servers, want) {
		t.Errorf("%+v\nwant %+v", c.Servers, want)
	}
	if c.Queues["default"].Concurrent != 32 || c.Queues["search"].MaxWait != time.Minute {
		t.Errorf("%+v", c.Queues)
	}
	equal(t, "notes", notes(c), []string{
		"info .mcp.json:12: mcpServers.docs.timeout: 60 is taken for seconds: requestTimeoutMs leaves no doubt",
		"info .mcp.json:14: mcpServers.old: it is switched off and left out",
	})
}

func TestExampleOfAIAgent(t *testing.T) {
	w := newWorld(t, map[string]string{".ai-agent.json": example(t, ".ai-agent.json")})
	c := w.mustLoad(t, ".ai-agent.json")
	servers := []toolconf.Server{
		{Name: "feed", Transport: toolconf.WebSocket, URL: "ws://127.0.0.1:3900/mcp", HealthProbe: "ping", RequestTimeout: 2 * time.Minute, Queue: "default", Where: ".ai-agent.json:7"},
		{Name: "fetcher", Transport: toolconf.Stdio, Command: "fetcher-mcp", Shared: true, HealthProbe: "listTools", ToolsAllowed: []string{"fetch_url"}, Queue: "fetcher", Where: ".ai-agent.json:6"},
	}
	if !reflect.DeepEqual(c.Servers, servers) {
		t.Errorf("%+v\nwant %+v", c.Servers, servers)
	}
	rest := c.Rest[0]
	if rest.Method != "POST" || string(rest.BodyTemplate) != `{"order":"${parameters.order}"}` || rest.Headers["X-Client"] != "${parameters.client}" || !json.Valid(rest.Parameters) {
		t.Errorf("%+v", rest)
	}
	if o := c.OpenAPI[0]; o.Spec != "https://billing.example.com/openapi.json" || o.IncludeMethods[0] != "GET" || o.Queue != "fetcher" {
		t.Errorf("%+v", o)
	}
	equal(t, "notes", notes(c), []string{
		"info .ai-agent.json:8: mcpServers.idle: it is switched off and left out",
		"info .ai-agent.json: these sections are of other programs and are ignored: providers, defaults",
	})
}

// TestTheValuesOfVariablesAreKnown: all values of variables are collected,
// wherever they are used, so that they can be masked later.
func TestTheValuesOfVariablesAreKnown(t *testing.T) {
	w := newWorld(t, map[string]string{"x.json": `{"mcpServers": {
	"a": {"command": "a", "args": ["--key=${TOKEN}", "${NONE:-plain}", "${HOME}/x"], "env": {"DSN": "db://${TOKEN}@h", "TWO": "${SECOND}"}},
	"b": {"url": "http://h/${SECOND}/mcp"}, "c": {"command": "c"}}}`})
	w.env["SECOND"], w.env["HOME"] = "another", "/home/ada"
	for i, want := range [][]string{{"s3same", "another"}, {"another"}, nil} {
		if got := w.mustLoad(t, "x.json").Servers[i].Secrets; !reflect.DeepEqual(got, want) {
			t.Errorf("server %d: %q, want %q", i, got, want)
		}
	}
}

// TestForeignKeys has the keys that other programs write for a server.
func TestForeignKeys(t *testing.T) {
	w := newWorld(t, map[string]string{"x.json": `{
	"$schema": "x", "inputs": [], "colour": "red", "mcpServers": {
	"a": {"type": "local", "command": ["node", "a.js"], "args": ["-v"], "environment": {"PORT": 80, "ON": true}, "timeout": 60000},
	"b": {"type": "remote", "url": "http://h/sse", "autoApprove": ["x"], "oauth": {}, "headers": {"A": "${env:TOKEN}"}},
	"c": {"type": "streamableHttp", "httpUrl": "http://h/mcp", "includeTools": ["*"], "excludeTools": ["y"], "trust": true, "what": 1},
	"d": {"transport": "sse", "url": "http://h/", "command": "left over", "queue": null},
	"e": {"url": "WSS://h/", "tools": ["t"], "disabled": false},
	"f": {"command": "~/bin/f", "cwd": "sub", "headers": {"A": "b"}, "timeout": "90s"},
	"g": {"disabled": true, "env": {"X": "${NOT_SET}"}}}}`})
	c := w.mustLoad(t, "x.json")
	want := []toolconf.Server{
		{Name: "a", Transport: toolconf.Stdio, Command: "node", Args: []string{"a.js", "-v"}, Env: map[string]string{"PORT": "80", "ON": "true"}, RequestTimeout: time.Minute},
		{Name: "b", Transport: toolconf.SSE, URL: "http://h/sse", Headers: map[string]string{"A": "s3same"}, Secrets: []string{"s3same"}},
		{Name: "c", Transport: toolconf.HTTP, URL: "http://h/mcp", ToolsDenied: []string{"y"}},
		{Name: "d", Transport: toolconf.SSE, URL: "http://h/"},
		{Name: "e", Transport: toolconf.WebSocket, URL: "WSS://h/", ToolsAllowed: []string{"t"}},
		{Name: "f", Transport: toolconf.Stdio, Command: "/home/ada/bin/f", Cwd: filepath.Join(w.dir, "sub"), RequestTimeout: 90 * time.Second},
	}
	for i := range want {
		want[i].Shared, want[i].HealthProbe, want[i].Queue = true, "ping", "default"
		if i < len(c.Servers) {
			want[i].Where = c.Servers[i].Where
		}
	}
	if !reflect.DeepEqual(c.Servers, want) {
		t.Errorf("%+v\nwant %+v", c.Servers, want)
	}
	equal(t, "notes", notes(c), []string{
		"info x.json:3: mcpServers.a.timeout: 60000 is taken for milliseconds: requestTimeoutMs leaves no doubt",
		"warn x.json:4: mcpServers.b.autoApprove: whether a call needs a person's word is up to the caller (ignored)",
		"warn x.json:4: mcpServers.b.oauth: the gateway does not sign in for itself: put a token into headers (ignored)",
		"warn x.json:5: mcpServers.c.trust: whether a call needs a person's word is up to the caller (ignored)",
		"warn x.json:5: mcpServers.c.what: there is no such key (ignored)",
		"warn x.json:6: mcpServers.d: it is reached by its url: command, args, env and cwd are for servers that are started here (ignored)",
		"warn x.json:8: mcpServers.f: it is started by a command: url and headers are for servers elsewhere (ignored)",
		"info x.json:9: mcpServers.g: it is switched off and left out",
		"info x.json: these sections are of other programs and are ignored: $schema, inputs",
		"warn x.json:2: colour: there is no such key (ignored)",
	})
}

// TestNumbers: order, numbers and all characters stay as written.
func TestNumbers(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.json": "\xef\xbb\xbf" + `{"restTools": {"a": {"url": "http://h/", "method": "post", "bodyTemplate": {"z": 1e400, "a": [null, true, -0.10, "<é😀\u2028\/>"]}}}}`,
		"b.yaml": "restTools:\n  b:\n    url: http://h/\n    method: PUT\n    bodyTemplate: &b {n: +3, f: 1., t: \"${TOKEN} ${parameters.x} $${x}\", x: 0x1F}\n  c: {url: http://h/, bodyTemplate: *b, method: PATCH, description: \"a ${parameters.x}\"}\n",
	})
	c := w.mustLoad(t, "a.json", "b.yaml")
	for i, want := range []string{
		`{"z":1e400,"a":[null,true,-0.10,"<é😀\u2028/>"]}`,
		`{"n":3,"f":1,"t":"s3same ${parameters.x} ${x}","x":31}`,
		`{"n":3,"f":1,"t":"s3same ${parameters.x} ${x}","x":31}`,
	} {
		if got := string(c.Rest[i].BodyTemplate); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestLease has the ways to configure a session lease.
func TestLease(t *testing.T) {
	w := newWorld(t, map[string]string{"t.yaml": `queues:
  default: {concurrent: 1, session: true}
  no: {concurrent: 1, session: false}
  empty: {concurrent: 1, session: {}}
  idle: {concurrent: 1, session: {idle: 500ms}}
  hold: {concurrent: 1, session: {idleMs: 20, max_hold: 0}}
  none: {concurrent: 1, session: }
`})
	c := w.mustLoad(t, "t.yaml")
	for name, want := range map[string][2]time.Duration{
		"default": {time.Minute, 10 * time.Minute}, "no": {}, "empty": {time.Minute, 10 * time.Minute}, "idle": {500 * time.Millisecond, 10 * time.Minute},
		"hold": {20 * time.Millisecond, 0}, "none": {},
	} {
		if q := c.Queues[name]; q.LeaseIdle != want[0] || q.LeaseHold != want[1] {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

// TestMerge merges files: the greater limit of a queue counts, and a server
// that is defined identically twice exists once.
func TestMerge(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.yaml": "queues:\n  default: {concurrent: 8, max_wait: 10s, max_waiters: 5}\n  browser: {concurrent: 1, session: true, shared: true}\nmcpServers:\n  one: {command: x}\nrestTools:\n  r: {url: 'http://h/'}\nopenapiSpecs:\n  api: {spec: api.json}\n",
		"b.json": `{"queues": {"default": {"concurrent": 4, "maxWaitMs": 60000, "maxWaiters": 2}, "browser": {"concurrent": 2, "session": {"idleMs": 90000, "maxHoldMs": 1000}}},
			"mcpServers": {"one": {"command": "x"}, "two": {"command": "y", "queue": "browser"}}, "restTools": {"r": {"url": "http://h/"}}, "openapiSpecs": {"api": {"spec": "./api.json"}}}`,
		"c.json": `{"mcpServers": {"one": {"command": "another", "enabled": false}}}`,
	})
	for _, order := range [][]string{{"a.yaml", "b.json", "c.json"}, {"c.json", "b.json", "a.yaml", "b.json"}} {
		c := w.mustLoad(t, order...)
		d, b := c.Queues["default"], c.Queues["browser"]
		if d.Shared || !b.Shared || !c.ToolQueues()["browser"].Shared {
			t.Errorf("%v: shared: %v %v", order, d, b)
		}
		if d.Concurrent != 8 || d.MaxWait != time.Minute || d.MaxWaiters != 5 || b.Concurrent != 2 || b.LeaseIdle != 90*time.Second || b.LeaseHold != 10*time.Minute {
			t.Errorf("%v: %+v %+v", order, d, b)
		}
		if len(c.Servers) != 2 || len(c.Rest) != 1 || len(c.OpenAPI) != 1 {
			t.Errorf("%v: %+v", order, c)
		}
	}
}

func TestNothing(t *testing.T) {
	w := newWorld(t, map[string]string{"empty.json": " \n", "none.json": `{"other": 1}`, "null.yaml": "queues:\nmcpServers:\n"})
	c := w.mustLoad(t, "null.yaml")
	if !c.Empty() || c.Queues != nil || c.Notes != nil {
		t.Errorf("%+v", c)
	}
	equal(t, "notes", notes(w.mustLoad(t, "empty.json", "none.json")), []string{
		"warn empty.json: the file is empty",
		"warn none.json:1: other: there is no such key (ignored)",
		"warn none.json: the file names no tools: want them under mcpServers, restTools, openapiSpecs or commandTools",
	})
}

// TestRates: rates are read, and those of two files are merged.
func TestRates(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.yaml": "queues:\n  default: {concurrent: 8, rate: {n: 60, per: 1m, burst: 10}, per: caller}\n  x: {concurrent: 1, rate: {n: 1, per: 1s}, per: {argument: account}}\nmcpServers:\n  one: {command: x}\n",
		"b.json": `{"queues": {"default": {"concurrent": 4, "rate": {"n": 2, "per": 1, "burst": 3}, "per": "caller"}}}`,
	})
	for _, order := range [][]string{{"a.yaml", "b.json"}, {"b.json", "a.yaml"}} {
		c := w.mustLoad(t, order...)
		d, x := c.Queues["default"], c.Queues["x"]
		if d.Rate != (toolqueue.Rate{N: 2, Per: time.Second, Burst: 10}) || d.Per != "caller" || x.Rate != (toolqueue.Rate{N: 1, Per: time.Second}) || x.Per != "argument" || x.Argument != "account" {
			t.Errorf("%v: %+v, %+v", order, d, x)
		}
		if q := c.ToolQueues(); q["default"].Rate != d.Rate || !q["default"].PerKey || !q["x"].PerKey {
			t.Errorf("%v: %+v", order, q)
		}
	}
}
