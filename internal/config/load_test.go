package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// world is a working folder, a home and an environment.
type world struct {
	t    *testing.T
	dir  string
	home string
	env  map[string]string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), home: t.TempDir()}
	w.env = map[string]string{"HOME": w.home}
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) file(text string) { w.write(filepath.Join(w.dir, "signalbox.yaml"), text) }

// trusted is the answer of a user who trusts the files in the working folder.
func trusted(config.Untrusted) (bool, error) { return true, nil }

func (w *world) load(file string, flags ...config.Flag) (config.Config, error) {
	return config.Load(config.Sources{Ask: trusted, File: file, Dir: w.dir, Flags: flags, Env: func(name string) (string, bool) {
		v, ok := w.env[name]
		return v, ok
	}})
}

func (w *world) mustLoad(file string, flags ...config.Flag) config.Config {
	w.t.Helper()
	c, err := w.load(file, flags...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func flag(name, key string, values ...string) config.Flag {
	return config.Flag{Name: name, Key: key, Values: values}
}

func TestDefaults(t *testing.T) {
	w := newWorld(t)
	c := w.mustLoad("").Plain()
	want := config.Default(filepath.Join(w.home, ".signalbox"))
	if !reflect.DeepEqual(c, want) {
		t.Fatalf("%+v\nwant %+v", c, want)
	}
	if c.Data != filepath.Join(w.home, ".signalbox", "data") || c.Queue.MaxSize != 50 || c.Discover != (config.PortRange{}) {
		t.Fatalf("%+v", c)
	}
	if c.Origin("addr") != "default" {
		t.Fatal(c.Origin("addr"))
	}
}

func TestWholeFile(t *testing.T) {
	w := newWorld(t)
	w.env["AGENT_TOKEN"], w.env["SIZE"] = "s3same", "7"
	w.file(`
director: http://box:8080
token: "abc"
addr: :9999
data: ./state
store: postgres://u:p@db/signalbox
hosts: [queue.example.com, "10.0.0.1:8080"]
log: {format: json, level: debug}
queue:
  max_size: ${SIZE}
  max_attempts: 5
  dispatch_timeout: 45
  age_step: 1.5
  retention: "24h"
  chat_max_size: 4
  wait_timeout: 90
  on_lost: requeue
  fleet: 20
bypass: {slots: 2, fleet: 8}
workspace: {max_bytes: 20GiB, min_free: 1.5 GB}
priorities: {user: 5, schedule: 0, agent: -5}
stall_limit: 5m
run_grace: 45
terminal: true
execution_ttl: &ttl 300s
session_grace: *ttl
grace: 0
on_shutdown: stop
agents:
  - {name: coder, kind: claude, url: "http://10.0.0.2:9000", token: "${AGENT_TOKEN}", slots: 3}
  - name: writer
    url: https://writer.example.com
discover: off
agent:
  name: local
  kind: command
  addr: 127.0.0.1:9100
  token: t
  workdir: ~/work
  home: /srv/home
  slots: 2
  model: opus
  timeout: 1h30m
  permission_mode: plan
  tools: none
  tiers: {fast: haiku, "deep": opus}
  prices: {opus: {input: 15, output: 75, cache_read: 1.5}, "*": {input: 0, output: 0}}
  command: [echo, "$${prompt}", 3]
  args:
    - --verbose
  project_roots: [., /srv/projects]
  pass_env: [ANTHROPIC_API_KEY]
  isolated_slots: 6
  account: shared-max
  terminal: true
  terminal_command: [bash, --login]
  limit_wait: 45s
  terminal_idle: 5m
  checks: [{name: test, run: "go test ${PKG} $(pwd)", timeout: 10m}, {name: lint, run: make lint}]
  check_retries: 3
  task_checks: everyone
  llm:
    provider: anthropic
    base_url: http://127.0.0.1:4000
    api_key: "${AGENT_TOKEN}"
    system: Be brief.
    max_tokens: 100
    max_turns: 5
    max_parallel_tool_calls: 3
    over_limit: queue
    exempt: [fs__read]
    approval: [fs__write]
    tools: none
tools: [more.json]
seed_metrics: true
queues:
  default: {concurrent: 8}
mcpServers:
  fs: {command: fs-server}
restTools:
  search: {url: "https://api.example.com/${parameters.q}"}
openapiSpecs:
  shop: {spec: shop.yaml}
`)
	w.write(filepath.Join(w.dir, "more.json"), `{"mcpServers": {"web": {"url": "http://127.0.0.1:3000/mcp"}}}`)
	c := w.mustLoad("")
	path := filepath.Join(w.dir, "signalbox.yaml")
	agent := config.Agent{
		Name: "local", Kind: "command", Addr: "127.0.0.1:9100", Token: "t", WorkDir: filepath.Join(w.home, "work"), Home: "/srv/home",
		Slots: 2, Model: "opus", Timeout: 90 * time.Minute, PermissionMode: "plan", Tools: "none", Tiers: map[string]string{"fast": "haiku", "deep": "opus"},
		Prices:  map[string]config.Price{"opus": {Input: 15, Output: 75, CacheRead: 1.5, CacheWrite: 15}, "*": {}},
		Command: []string{"echo", "${prompt}", "3"}, Args: []string{"--verbose"}, ProjectRoots: []string{w.dir, "/srv/projects"},
		Workspace: config.Workspace{MaxBytes: 20 << 30, MinFree: 1_500_000_000},
		PassEnv:   []string{"ANTHROPIC_API_KEY"}, IsolatedSlots: 6, Account: "shared-max",
		Terminal: true, TerminalCommand: []string{"bash", "--login"}, LimitWait: 45 * time.Second, TerminalIdle: 5 * time.Minute,
		Checks: []signalbox.Check{{Name: "test", Run: "go test ${PKG} $(pwd)", TimeoutSeconds: 600}, {Name: "lint", Run: "make lint"}}, CheckRetries: 3, TaskChecks: "everyone",
		LLM: config.LLM{
			Provider: "anthropic", BaseURL: "http://127.0.0.1:4000", APIKey: "s3same", System: "Be brief.", MaxTokens: 100, MaxTurns: 5,
			MaxParallelToolCalls: 3, OverLimit: "queue", Exempt: []string{"fs__read"}, Approval: []string{"fs__write"}, Tools: "none",
		},
	}
	if !reflect.DeepEqual(c.Agent, agent) {
		t.Errorf("agent: %+v\nwant   %+v", c.Agent, agent)
	}
	agents := []config.RemoteAgent{
		{Name: "coder", Kind: "claude", URL: "http://10.0.0.2:9000", Token: "s3same", Slots: 3},
		{Name: "writer", URL: "https://writer.example.com"},
	}
	if !reflect.DeepEqual(c.Agents, agents) {
		t.Errorf("agents: %+v", c.Agents)
	}
	queue := config.Queue{MaxSize: 7, ChatMaxSize: 4, WaitTimeout: 90 * time.Second, Fleet: 20, MaxAttempts: 5, OnLost: signalbox.LostRequeue, DispatchTimeout: 45 * time.Second, AgeStep: 1500 * time.Millisecond, Retention: 24 * time.Hour, RetentionBytes: 8 << 30, CallerRetentionBytes: 1 << 30, SubmitTasks: 1000, SubmitBytes: 16 << 20}
	if c.Queue != queue || c.Log != (config.Log{Format: "json", Level: "debug"}) {
		t.Errorf("%+v %+v", c.Queue, c.Log)
	}
	if c.File != path || c.Director != "http://box:8080" || c.Token != "abc" || c.Addr != ":9999" || c.Data != filepath.Join(w.dir, "state") ||
		c.Store != "postgres://u:p@db/signalbox" || len(c.Hosts) != 2 || c.ExecutionTTL != 5*time.Minute || c.SessionGrace != 5*time.Minute ||
		c.Grace != 0 || c.OnShutdown != "stop" || c.Discover != (config.PortRange{}) {
		t.Errorf("%+v", c)
	}
	priorities := map[signalbox.Source]int{signalbox.SourceUser: 5, signalbox.SourceScheduler: 0, signalbox.SourceAgent: -5}
	if c.Bypass != (config.Bypass{Slots: 2, Fleet: 8}) || !reflect.DeepEqual(c.Priorities, priorities) ||
		c.StallLimit != 5*time.Minute || c.RunGrace != 45*time.Second || !c.Terminal {
		t.Errorf("%+v", c)
	}
	if tools := c.Tools; !c.SeedMetrics || len(c.ToolFiles) != 1 || len(tools.Servers) != 2 || tools.Servers[0].Name != "fs" || tools.Servers[1].Where != "more.json:1" ||
		len(tools.Rest) != 1 || len(tools.OpenAPI) != 1 || tools.OpenAPI[0].Spec != filepath.Join(w.dir, "shop.yaml") || tools.Queues["default"].Concurrent != 8 {
		t.Errorf("%+v", c.Tools)
	}
	if got := c.Origin("queue.max_size"); got != "signalbox.yaml:10" {
		t.Errorf("origin of queue.max_size: %s", got)
	}
	if got := c.Origin("name"); got != "default" {
		t.Errorf("an agent's name was taken for a key of the file: %s", got)
	}
}

func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	w.file("queue: {max_size: 1, max_attempts: 1}\naddr: 127.0.0.1:1\ndata: /file\n")
	w.env["AG_QUEUE_MAX_SIZE"], w.env["AG_QUEUE_MAX_ATTEMPTS"], w.env["AG_QUEUE_DISPATCH_TIMEOUT"] = "2", "2", "2"
	w.env["SIGNALBOX_QUEUE_MAX_SIZE"] = "3"
	w.env["SIGNALBOX_ADDR"] = "127.0.0.1:3"
	w.env["SIGNALBOX_STORE"], w.env["AG_QUEUE_DIR"] = "", "~/queue"
	c := w.mustLoad("", flag("--addr", "addr", "127.0.0.1:4"))
	if c.Addr != "127.0.0.1:4" || c.Queue.MaxSize != 3 || c.Queue.MaxAttempts != 2 || c.Queue.DispatchTimeout != 2*time.Second {
		t.Fatalf("%+v", c)
	}
	if c.Data != filepath.Join(w.home, "queue") || c.Store != "sqlite:" {
		t.Fatalf("data %s, store %s", c.Data, c.Store)
	}
	for key, want := range map[string]string{
		"addr": "--addr", "queue.max_size": "SIGNALBOX_QUEUE_MAX_SIZE", "queue.max_attempts": "AG_QUEUE_MAX_ATTEMPTS", "data": "AG_QUEUE_DIR", "store": "default",
	} {
		if got := c.Origin(key); got != want {
			t.Errorf("origin of %s: %s, want %s", key, got, want)
		}
	}
}

// The variables of the seed execution-queue, with plain seconds.
func TestSeedVariables(t *testing.T) {
	w := newWorld(t)
	w.env["MAX_QUEUE_SIZE"], w.env["QUEUE_WAIT_TIMEOUT"], w.env["EXECUTION_TTL"] = "5", "60", "900"
	c := w.mustLoad("")
	if c.Queue.ChatMaxSize != 5 || c.Queue.WaitTimeout != time.Minute || c.StallLimit != signalbox.StallByProgress || c.ExecutionTTL != 15*time.Minute || c.Queue.MaxSize != 50 {
		t.Fatalf("%+v", c)
	}
	w.env["SIGNALBOX_CHAT_MAX_SIZE"], w.env["SIGNALBOX_QUEUE_WAIT_TIMEOUT"], w.env["SIGNALBOX_EXECUTION_TTL"] = "6", "2m", "1h"
	c = w.mustLoad("", flag("--terminal", "terminal", "true"))
	if c.Queue.ChatMaxSize != 6 || c.Queue.WaitTimeout != 2*time.Minute || c.ExecutionTTL != time.Hour || !c.Terminal {
		t.Fatalf("ours are stronger: %+v", c)
	}
}

func TestFlags(t *testing.T) {
	w := newWorld(t)
	c := w.mustLoad("",
		flag("--slots", "agent.slots", "2"), flag("--project-root", "agent.project_roots", "a"), flag("--host", "hosts", "x", "y"),
		flag("--data", "data", "d"), flag("--discover", "discover", "9000"), flag("--command", "agent.command", "run", "{prompt}"))
	if c.Agent.Slots != 2 || c.Agent.ProjectRoots[0] != filepath.Join(w.dir, "a") || len(c.Hosts) != 2 ||
		c.Data != filepath.Join(w.dir, "d") || c.Discover != (config.PortRange{First: 9000, Last: 9000}) || len(c.Agent.Command) != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestWhichFile(t *testing.T) {
	w := newWorld(t)
	home := filepath.Join(w.home, ".signalbox", "config.yaml")
	w.write(home, "addr: 127.0.0.1:2\n")
	if c := w.mustLoad(""); c.Addr != "127.0.0.1:2" || c.File != home {
		t.Errorf("home: %s from %s", c.Addr, c.File)
	}
	w.file("addr: 127.0.0.1:1\n")
	if c := w.mustLoad(""); c.Addr != "127.0.0.1:1" {
		t.Errorf("here: %s", c.Addr)
	}
	w.write(filepath.Join(w.dir, "other.yaml"), "# nothing is set\nlog:\n  # level: debug\nagents:\n")
	if c := w.mustLoad("other.yaml"); c.Addr != "127.0.0.1:8080" {
		t.Errorf("named: %s", c.Addr)
	}
	w.env["SIGNALBOX_HOME"] = filepath.Join(w.dir, "elsewhere")
	if got := config.Home(func(n string) (string, bool) { v, ok := w.env[n]; return v, ok }); got != w.env["SIGNALBOX_HOME"] {
		t.Errorf("home is %s", got)
	}
	c, err := config.Load(config.Sources{NoSearch: true, Dir: w.dir, Env: func(string) (string, bool) { return "/home/x", true }})
	if err == nil { // every variable is "/home/x", which is not a URL
		t.Errorf("%+v", c)
	}
}

// TestBadInput has a file, variables or flags, and all the expected errors.
func TestBadInput(t *testing.T) {
	for _, test := range []struct {
		name  string
		file  string
		env   map[string]string
		flags []config.Flag
		want  []string
	}{
		{name: "unknown keys", file: "adr: x\nqueue:\n  max_sise: 1\nmax_attempts: 3\nagent: {colour: red}\n", want: []string{
			`signalbox.yaml:1: adr: there is no such key: did you mean addr?`,
			`signalbox.yaml:3: queue.max_sise: there is no such key: did you mean queue.max_size?`,
			`signalbox.yaml:4: max_attempts: there is no such key: did you mean queue.max_attempts?`,
			`signalbox.yaml:5: agent.colour: there is no such key`,
		}},
		{name: "wrong types", file: "addr: 8080\ntoken: 12345\nqueue: 5\nlog: [json]\nhosts: one\ngrace: true\nagent:\n  slots: two\n  tiers: [a]\n  tiers: {a: 1}\n", want: []string{
			`signalbox.yaml:1: addr: want host:port, such as 127.0.0.1:8080, got the number 8080`,
			`signalbox.yaml:2: token: want a token of printable characters without spaces, got the number 12345`,
			`signalbox.yaml:3: queue: want a section of keys and values, got the number 5`,
			`signalbox.yaml:4: log: want a section of keys and values, got a list`,
			`signalbox.yaml:5: hosts: want a list of host names, got "one"`,
			`signalbox.yaml:6: grace: want a duration from 0s to 24h, such as 90s, 1h30m or a number of seconds, got the boolean true`,
			`signalbox.yaml:8: agent.slots: want a whole number from 1 to 64, got "two"`,
			`signalbox.yaml:9: agent.tiers: want a section of tiers and their models, got a list`,
			`signalbox.yaml:10: agent.tiers: it stands twice, first at signalbox.yaml:9`,
		}},
		{name: "prices", file: "agent:\n  prices:\n    gpt-5*: {input: 1.25}\n    'a b': {input: 1, output: 2}\n    opus: 15\n    haiku: {input: -1, output: .nan, cache: 1}\n    sonnet: {input: .inf, output: 1000001}\nagents: {llm: {prices: [free]}}\n", want: []string{
			`signalbox.yaml:3: agent.prices.gpt-5*: want input and output, in US dollars for 1,000,000 tokens`,
			`signalbox.yaml:4: agent.prices.a b: want the name of a model, with * for any characters, such as gpt-5*`,
			`signalbox.yaml:5: agent.prices.opus: want a section of keys and values, got the number 15`,
			`signalbox.yaml:6: agent.prices.haiku.input: want a number from 0 to 1000000, got the number -1`,
			`signalbox.yaml:6: agent.prices.haiku.output: want a number from 0 to 1000000, got the number .nan`,
			`signalbox.yaml:6: agent.prices.haiku.cache: there is no such key`,
			`signalbox.yaml:7: agent.prices.sonnet.input: want a number from 0 to 1000000, got the number .inf`,
			`signalbox.yaml:7: agent.prices.sonnet.output: want a number from 0 to 1000000, got the number 1000001`,
			`signalbox.yaml:8: agents.llm.prices: want a section of models and their prices, got a list`,
		}},
		{name: "a number in quotes", file: "queue: {max_size: \"50\", max_attempts: 1.5, retention: .nan}\n", want: []string{
			`signalbox.yaml:1: queue.max_size: want a whole number from 1 to 1000000, got "50"`,
			`signalbox.yaml:1: queue.max_attempts: want a whole number from 1 to 1000, got the number 1.5`,
			`signalbox.yaml:1: queue.retention: want a duration from 1m to 87600h, such as 90s, 1h30m or a number of seconds, got the number .nan`,
		}},
		{name: "out of range", file: "queue: {max_size: 0, dispatch_timeout: 2h, age_step: -1, retention: 1e300}\nexecution_ttl: 3 parsecs\non_shutdown: kill\ndiscover: 9010-9000\nstore: mysql://root:secret@db\nagent: {kind: gpt, name: 'a b'}\n", want: []string{
			`signalbox.yaml:1: queue.max_size: want a whole number from 1 to 1000000, got the number 0`,
			`signalbox.yaml:1: queue.dispatch_timeout: want a duration from 1ms to 1h, such as 90s, 1h30m or a number of seconds, got "2h"`,
			`signalbox.yaml:1: queue.age_step: want a duration from 0s to 24h, such as 90s, 1h30m or a number of seconds, got the number -1`,
			`signalbox.yaml:1: queue.retention: want a duration from 1m to 87600h, such as 90s, 1h30m or a number of seconds, got "1e300"`,
			`signalbox.yaml:2: execution_ttl: want a duration from 1s to 24h, such as 90s, 1h30m or a number of seconds, got "3 parsecs"`,
			`signalbox.yaml:3: on_shutdown: want leave or stop, got "kill"`,
			`signalbox.yaml:4: discover: want a range of ports such as 9000-9010, at most 100 of them, or off, got "9010-9000"`,
			`signalbox.yaml:5: store: want sqlite:[FILE], postgres://…, redis://… or memory:, got something else`,
			`signalbox.yaml:6: agent.kind: want claude, codex, opencode, command, llm or demo, got "gpt"`,
			`signalbox.yaml:6: agent.name: want 1 to 64 letters, digits, dots, underscores or hyphens, got "a b"`,
		}},
		{name: "sizes", file: "workspace: {max_bytes: 1kB, min_free: -1}\nagent: {slots: 1}\n", want: []string{
			`signalbox.yaml:1: workspace.max_bytes: want a size such as 20GiB or 500MB, from 1MB to 1PB, or 0 for none, got "1kB"`,
			`signalbox.yaml:1: workspace.min_free: want a size such as 20GiB or 500MB, from 1MB to 1PB, or 0 for none, got the number -1`,
		}},
		{name: "lanes", file: "queue: {chat_max_size: 0, wait_timeout: 0, fleet: -1, on_lost: retry}\nbypass: {slots: many, fleet: 0}\npriorities: {user: 11, schedule: high, boss: 1}\nstall_limit: 1ms\nrun_grace: 0\nterminal: \"true\"\nagent: {terminal: 1, limit_wait: 0, terminal_idle: 1s, isolated_slots: 0}\n", want: []string{
			`signalbox.yaml:1: queue.chat_max_size: want a whole number from 1 to 10000, got the number 0`,
			`signalbox.yaml:1: queue.wait_timeout: want a duration from 1s to 720h, such as 90s, 1h30m or a number of seconds, got the number 0`,
			`signalbox.yaml:1: queue.fleet: want a whole number from 0 to 1000000, got the number -1`,
			`signalbox.yaml:1: queue.on_lost: want fail or requeue, got "retry"`,
			`signalbox.yaml:2: bypass.slots: want a whole number from 0 to 10000, got "many"`,
			`signalbox.yaml:2: bypass.fleet: want a whole number from 1 to 1000000, got the number 0`,
			`signalbox.yaml:3: priorities.user: want a whole number from -10 to 10, got the number 11`,
			`signalbox.yaml:3: priorities.schedule: want a whole number from -10 to 10, got "high"`,
			`signalbox.yaml:3: priorities.boss: there is no such key`,
			`signalbox.yaml:4: stall_limit: want a duration from 1s to 168h, such as 90s, 1h30m or a number of seconds, or 0 for none, got "1ms"`,
			`signalbox.yaml:5: run_grace: want a duration from 1s to 1h, such as 90s, 1h30m or a number of seconds, got the number 0`,
			`signalbox.yaml:6: terminal: want true or false, got "true"`,
			`signalbox.yaml:7: agent.terminal: want true or false, got the number 1`,
			`signalbox.yaml:7: agent.limit_wait: want a duration from 1s to 1h, such as 90s, 1h30m or a number of seconds, got the number 0`,
			`signalbox.yaml:7: agent.terminal_idle: want a duration from 10s to 24h, such as 90s, 1h30m or a number of seconds, got "1s"`,
			`signalbox.yaml:7: agent.isolated_slots: want a whole number from 1 to 64, got the number 0`,
		}},
		{name: "variables", file: "token: ${NOT_SET}\naddr: ${ALSO-NOT}\ndata: \"${OPEN\"\nagent:\n  args: [ok, \"${GONE}\"]\nqueue: {max_size: \"${WORDS}\"}\n", env: map[string]string{"WORDS": "many"}, want: []string{
			`signalbox.yaml:1: token: the environment variable NOT_SET is not set`,
			`signalbox.yaml:2: addr: what stands between ${ and } is not the name of a variable: want ${NAME}, or $${ for a ${ that stays`,
			`signalbox.yaml:3: data: a ${ has no end: want ${NAME}, or $${ for a ${ that stays`,
			`signalbox.yaml:5: agent.args: the environment variable GONE is not set`,
			`signalbox.yaml:6: queue.max_size: want a whole number from 1 to 1000000, got "many"`,
		}},
		{name: "agents", file: "agents:\n- {name: a, url: 'http://h:1'}\n- {name: a, url: 'http://h:2'}\n- {name: b}\n- {url: 'http://h'}\n- 5\n- {name: c, url: 'h:1', slotz: 1}\n- {name: d, url: 'http://h:4', proof: true}\n", want: []string{
			`signalbox.yaml:3: agents[1]: there is already an agent named a`,
			`signalbox.yaml:4: agents[2]: agent b has no url`,
			`signalbox.yaml:5: agents[3]: it has no name`,
			`signalbox.yaml:6: agents[4]: want a section of keys and values, got the number 5`,
			`signalbox.yaml:7: agents[5].url: want a URL such as http://127.0.0.1:8080, got "h:1"`,
			`signalbox.yaml:7: agents[5].slotz: there is no such key: did you mean slots?`,
			`signalbox.yaml:8: agents[6]: agent d has no token that it could prove`,
		}},
		{name: "tools", file: "tools: one.json\nparallelToolCalls: true\nagent: {maxConcurrentTools: 3}\nseed_metrics: 1\nmcpServers:\n  fs: {comand: x}\nmcpServer: {}\n", want: []string{
			`signalbox.yaml:1: tools: want a list of paths, got "one.json"`,
			`signalbox.yaml:2: parallelToolCalls: this key is retired: calls of tools always run side by side, as far as queues.NAME.concurrent lets them; agent.llm.max_parallel_tool_calls bounds those of one step of our own agents`,
			`signalbox.yaml:3: agent.maxConcurrentTools: this key is retired: what bounds the calls of tools is the capacity of their queue, queues.NAME.concurrent, for all sessions together`,
			`signalbox.yaml:4: seed_metrics: want true or false, got the number 1`,
			`signalbox.yaml:7: mcpServer: there is no such key: did you mean mcpServers?`,
			`signalbox.yaml:6: mcpServers.fs: it has neither a command nor a url: want the command that starts the server, or the url where it is`,
			`signalbox.yaml:6: mcpServers.fs.comand: there is no such key: did you mean command?`,
		}},
		{name: "agents as a text", file: "agents: claude\n", want: []string{`signalbox.yaml:1: agents: want a list of agents elsewhere, or a section of kinds and their options, got "claude"`}},
		{name: "no such kind", file: "agents: {cluade: {slots: 1}}\n", want: []string{`signalbox.yaml:1: agents.cluade: there is no such kind of agent: did you mean claude?`}},
		{name: "options of a kind", file: "agents:\n  claude: {permission_mod: plan, slots: 0, addr: \"a:1\", llm: {max_turns: x}}\n  codex: [a]\n  claude: {}\n", want: []string{
			`signalbox.yaml:2: agents.claude.permission_mod: there is no such key: did you mean permission_mode?`,
			`signalbox.yaml:2: agents.claude.slots: want a whole number from 1 to 64, got the number 0`,
			`signalbox.yaml:2: agents.claude.addr: there is no such key`,
			`signalbox.yaml:2: agents.claude.llm.max_turns: want a whole number from 1 to 1000, got "x"`,
			`signalbox.yaml:3: agents.codex: want a section of keys and values, got a list`,
			`signalbox.yaml:4: agents.claude: it stands twice, first at signalbox.yaml:2`,
		}},
		{name: "a list at the top", file: "- addr\n", want: []string{`signalbox.yaml:1: want a section of keys and values, got a list`}},
		{name: "no value", file: "addr:\n", want: []string{`signalbox.yaml:1: addr: want host:port, such as 127.0.0.1:8080, got nothing`}},
		{name: "two documents", file: "addr: ':1'\n---\naddr: ':2'\n", want: []string{`signalbox.yaml:3: the file holds a second document: want one`}},
		{name: "tags and aliases", file: "addr: !!str 1\ndata: *none\n", want: []string{
			`signalbox.yaml:1: addr: tags and merge keys are not supported here: write the value out, in quotes where it is a text`,
			`signalbox.yaml:2: data: the alias *none stands for nothing`,
		}},
		{name: "environment", env: map[string]string{"SIGNALBOX_QUEUE_MAX_SIZE": "lots", "AG_QUEUE_DISPATCH_TIMEOUT": "-1s", "SIGNALBOX_TOKEN": "a b", "SIGNALBOX_DIRECTOR": "ftp://x"}, want: []string{
			`SIGNALBOX_DIRECTOR: director: want a URL such as http://127.0.0.1:8080, got "ftp://x"`,
			`SIGNALBOX_TOKEN: token: want a token of printable characters without spaces, got something else`,
			`SIGNALBOX_QUEUE_MAX_SIZE: queue.max_size: want a whole number from 1 to 1000000, got "lots"`,
			`AG_QUEUE_DISPATCH_TIMEOUT: queue.dispatch_timeout: want a duration from 1ms to 1h, such as 90s, 1h30m or a number of seconds, got "-1s"`,
		}},
		{name: "file, variable and flag", file: "grace: soon\n", env: map[string]string{"SIGNALBOX_ADDR": "here"}, flags: []config.Flag{flag("--slots", "agent.slots", "0")}, want: []string{
			`signalbox.yaml:1: grace: want a duration from 0s to 24h, such as 90s, 1h30m or a number of seconds, got "soon"`,
			`SIGNALBOX_ADDR: addr: want host:port, such as 127.0.0.1:8080, got "here"`,
			`--slots: want a whole number from 1 to 64, got "0"`,
		}},
		{name: "values that do not go together", file: "hosts: [a]\npublic_hosts: [b]\nagent: {kind: command}\n", want: []string{
			`signalbox.yaml:3: agent.kind: an agent of kind command needs agent.command, the program and its arguments`,
			`signalbox.yaml:2: public_hosts: it is the same as hosts, which stands at signalbox.yaml:1: give one of them`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if test.file != "" {
				w.file(test.file)
			}
			for name, v := range test.env {
				w.env[name] = v
			}
			_, err := w.load("", test.flags...)
			got, _ := err.(config.Problems)
			var lines []string
			for _, p := range got {
				lines = append(lines, p.String())
			}
			if !reflect.DeepEqual(lines, test.want) {
				t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(lines, "\n  "), strings.Join(test.want, "\n  "))
			}
			for _, secret := range []string{"secret", "a b\""} {
				if test.name != "out of range" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct{ name, text, want string }{
		{"missing.yaml", "", "missing.yaml: no such file or directory"},
		{"tab.yaml", "queue:\n\tmax_size: 1\n", "tab.yaml:2: it is not YAML: "},
		{"open.yaml", "hosts: [a\naddr: x\n", "it is not YAML: "},
		{"big.yaml", strings.Repeat("#", 1<<20+1), "big.yaml: it is larger than 1048576 bytes"},
	} {
		if test.text != "" {
			w.write(filepath.Join(w.dir, test.name), test.text)
		}
		if _, err := w.load(test.name); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	if err := os.Mkdir(filepath.Join(w.dir, "signalbox.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.load(""); err == nil || err.Error() != "signalbox.yaml: it is a folder, want a file" {
		t.Error(err)
	}
}

func TestWithoutAHome(t *testing.T) {
	w := newWorld(t)
	delete(w.env, "HOME")
	if _, err := w.load(""); err == nil || err.Error() != "data: want a folder: neither HOME nor SIGNALBOX_HOME is set" {
		t.Error(err)
	}
	w.mustLoad("", flag("--data", "data", "here"))
}

// FuzzFile looks for texts that make the reader panic or hang.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"addr: x", "a: &a [*a]", "agents: [{name: a, url: http://b}]", "agent: &x\n  tiers: *x\n", "? [a]\n: b\n<<: *c", "token: ${A}${", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := newWorld(t)
		w.file(text)
		w.load("")
	})
}
