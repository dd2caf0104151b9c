package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

func must(t *testing.T, kind string, o runner.Options) runner.Runner {
	t.Helper()
	if o.Binary == "" {
		o.Binary = "/bin/sh" // any executable: it is not started
	}
	r, err := runner.New(kind, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func plan(t *testing.T, r runner.Runner, task runner.Task) runner.Plan {
	t.Helper()
	p, err := r.Plan(task)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const uuid = "6f1c5a52-8c6e-4b6a-9f0e-0d5a3a1b2c3d"

func TestArguments(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		kind string
		opt  runner.Options
		task runner.Task
		want string
		env  []string
	}{
		"claude":         {"claude", runner.Options{}, runner.Task{}, "-p --output-format stream-json --verbose --include-partial-messages --permission-mode acceptEdits", nil},
		"claude new":     {"claude", runner.Options{}, runner.Task{CLISession: uuid, Model: "opus", Thinking: &yes}, "-p --output-format stream-json --verbose --include-partial-messages --permission-mode acceptEdits --model opus --session-id " + uuid + " --effort high", nil},
		"claude resume":  {"claude", runner.Options{Permission: "plan", MaxTurns: 3, AllowedTools: []string{"Bash", "Edit"}, ExtraArgs: []string{"--strict-mcp-config"}}, runner.Task{CLISession: uuid, Resume: true, Thinking: &no}, "--strict-mcp-config -p --output-format stream-json --verbose --include-partial-messages --permission-mode plan --max-turns 3 --allowedTools=Bash,Edit --resume " + uuid, []string{"MAX_THINKING_TOKENS=0"}},
		"codex":          {"codex", runner.Options{}, runner.Task{Home: "/h"}, "exec --json --skip-git-repo-check --sandbox workspace-write -", []string{"CODEX_HOME=/h/.codex", "RUST_LOG=error,codex_api::sse::responses=trace"}},
		"codex resume":   {"codex", runner.Options{Permission: "read-only"}, runner.Task{Home: "/h", CLISession: uuid, Resume: true, Model: "m", Thinking: &yes}, `exec --json --skip-git-repo-check --sandbox read-only --model m -c model_reasoning_effort="high" resume ` + uuid + " -", []string{"CODEX_HOME=/h/.codex", "RUST_LOG=error,codex_api::sse::responses=trace"}},
		"opencode":       {"opencode", runner.Options{}, runner.Task{}, "run --format json --print-logs --log-level ERROR", nil},
		"opencode known": {"opencode", runner.Options{Permission: "allow"}, runner.Task{CLISession: "ses_1", Resume: true, Model: "a/b", Thinking: &yes}, "run --format json --print-logs --log-level ERROR --auto --model a/b --variant high --session ses_1", nil},
	} {
		c.task.Prompt = "--help"
		p := plan(t, must(t, c.kind, c.opt), c.task)
		if got := strings.Join(p.Argv[1:], " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if d := cmp.Diff(c.env, p.Env); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if p.Stdin != "--help" || slices.Contains(p.Argv, "--help") {
			t.Errorf("%s: the prompt is not on standard input", name)
		}
	}
}

func TestModelAndTier(t *testing.T) {
	r := must(t, "claude", runner.Options{Tiers: map[string]string{"fast": "mine"}})
	for _, c := range [][4]string{
		{"m", "fast", "d", "m"}, {"", "fast", "d", "mine"}, {"", "heavy", "d", "opus"}, {"", "", "d", "d"}, {"", "", "", ""},
	} {
		if got, err := r.Model(c[0], c[1], c[2]); got != c[3] || err != nil {
			t.Errorf("%v: %q, %v", c, got, err)
		}
	}
	if _, err := must(t, "codex", runner.Options{}).Model("", "fast", ""); err == nil {
		t.Error("codex has no tiers of its own")
	}
}

func TestClaudeSessionIDs(t *testing.T) {
	r := must(t, "claude", runner.Options{})
	if got := r.NewSession(strings.ToUpper(uuid)); got != uuid {
		t.Errorf("a UUID becomes %s", got)
	}
	if a, b := r.NewSession("mine"), r.NewSession("mine"); len(a) != 36 || a == b || a[14] != '4' {
		t.Errorf("%s and %s", a, b)
	}
	for _, id := range []string{"../../x", "*", uuid} {
		if r.SessionExists(t.TempDir(), id) {
			t.Errorf("%q exists", id)
		}
	}
}

// events feeds lines to the stream of a kind.
func events(t *testing.T, kind string, x runner.Exit, lines ...string) (string, string, runner.Outcome) {
	t.Helper()
	s := plan(t, must(t, kind, runner.Options{}), runner.Task{Prompt: "x"}).Stream
	text := reads(s, lines...)
	return text, s.Session(), s.Outcome(x)
}

func reads(s runner.Stream, lines ...string) string {
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(s.Line([]byte(l)))
	}
	return text.String()
}

func TestClaudeEvents(t *testing.T) {
	text, id, o := events(t, "claude", runner.Exit{},
		`{"type":"system","subtype":"init","session_id":"abc","model":"claude-x"}`,
		`not json at all`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","name":"Bash","input":{"command":"ls -l\nrm x"}}]}}`,
		`{"type":"user","message":{"content":"a string"}}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"Found it.","total_cost_usd":0.5,"usage":{"input_tokens":1,"cache_read_input_tokens":10,"cache_creation_input_tokens":100,"output_tokens":7}}`)
	if text != "Looking.\n[Bash] ls -l …\n" || id != "abc" {
		t.Errorf("%q, session %q", text, id)
	}
	if o.ErrType != "" || o.Output != "Found it." || o.Model != "claude-x" {
		t.Errorf("%+v", o)
	}
}

// Whatever a CLI reports or omits, a failure has a type and a message.
func TestFailureMessages(t *testing.T) {
	crash := runner.Exit{Code: -1, Text: "ended by signal: killed", Stderr: "warning\nfatal: out of memory\n"}
	for _, c := range []struct {
		kind      string
		x         runner.Exit
		lines     []string
		typ, text string
	}{
		{"claude", runner.Exit{Text: "exit status 0"}, nil, "no_result", "exit status 0"},
		{"claude", crash, nil, "no_result", "out of memory"},
		{"claude", crash, []string{`{"type":"assistant","message":{"content":[{"type":"text","text":"half"}]}}`}, "no_result", "killed"},
		{"claude", runner.Exit{}, []string{`{"type":"result","subtype":"error_max_turns","is_error":true}`}, "max_turns", "turns"},
		{"claude", runner.Exit{}, []string{`{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}`}, "claude_error", "Credit"},
		{"claude", runner.Exit{}, []string{`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["boom","bang"]}`}, "claude_error", "boom; bang"},
		{"claude", runner.Exit{}, []string{`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":[{"message":"boom"}]}`}, "claude_error", "boom"},
		{"claude", crash, []string{`{"type":"result","subtype":"error_during_execution","is_error":true}`}, "claude_error", "error_during_execution"},
		{"codex", runner.Exit{Text: "exit status 0"}, []string{`{"type":"thread.started","thread_id":"t"}`}, "no_result", "exit status 0"},
		{"codex", runner.Exit{}, []string{`{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"no such model\"}}"}}`}, "claude_error", "no such model"},
		{"codex", runner.Exit{}, []string{`{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: no, url: http://x/v1/responses"}}`}, "login_refused", "key or login was refused"},
		{"opencode", runner.Exit{}, []string{`{"type":"error","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}`}, "login_refused", "key or login was refused: no"},
		{"opencode", runner.Exit{}, []string{`{"type":"error","error":{"name":"APIError","data":{"message":"no","statusCode":403}}}`}, "claude_error", "no"},
		{"claude", runner.Exit{}, []string{`{"type":"assistant","error":"authentication_failed","message":{"content":[]}}`, `{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}`}, "login_refused", "Not logged in"},
		{"codex", runner.Exit{Text: "exit status 1"}, []string{`{"type":"error","message":"stream lost"}`}, "claude_error", "stream lost"},
		{"codex", runner.Exit{Text: "exit status 1"}, []string{`{"type":"turn.failed","error":{}}`}, "claude_error", "exit status 1"},
		{"opencode", runner.Exit{Text: "exit status 0"}, []string{`{"type":"step_finish","part":{"reason":"tool-calls"}}`}, "no_result", "exit status 0"},
		{"opencode", runner.Exit{}, []string{`{"type":"error","error":{"name":"APIError","data":{"message":"no such model"}}}`}, "claude_error", "no such model"},
		{"opencode", runner.Exit{}, []string{`{"type":"error","error":{"name":"UnknownError"}}`}, "claude_error", "UnknownError"},
		{"opencode", runner.Exit{}, []string{`{"type":"error"}`}, "claude_error", "without a text"},
		{"opencode", runner.Exit{Code: 1, Text: "exit status 1"}, []string{`{"type":"step_finish","part":{"reason":"stop"}}`}, "exit_nonzero", "exit status 1"},
	} {
		_, _, o := events(t, c.kind, c.x, c.lines...)
		if o.ErrType != c.typ || !strings.Contains(o.ErrMessage, c.text) {
			t.Errorf("%s %v: %s %q, want %s %q", c.kind, c.lines, o.ErrType, o.ErrMessage, c.typ, c.text)
		}
	}
}

func TestCodexEvents(t *testing.T) {
	text, id, o := events(t, "codex", runner.Exit{},
		`{"type":"thread.started","thread_id":"`+uuid+`"}`,
		`{"type":"item.started","item":{"type":"command_execution","command":"ls"}}`,
		`{"type":"item.completed","item":{"type":"command_execution","command":"ls"}}`,
		`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a.go","kind":"update"}]}}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}`,
		`{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}`)
	if text != "[shell] ls\n[update] a.go\nDone.\n" || id != uuid || o.ErrType != "" || o.Output != "Done." {
		t.Errorf("%q %q %+v", text, id, o)
	}
}

// Every tool call counts once; its beginning and its mention do not.
func TestToolUsesAreCounted(t *testing.T) {
	claude := []string{
		`{"type":"assistant","message":{"content":[{"type":"text","text":"Look."},{"type":"tool_use","name":"Read"},{"type":"tool_use","name":"Bash"}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result"},{"type":"tool_result"}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}`,
	}
	for _, c := range []struct {
		kind  string
		lines []string
	}{
		{"claude", append(claude, `{"type":"result","subtype":"success"}`)},
		{"claude", claude}, // it was stopped
		{"codex", []string{
			`{"type":"item.started","item":{"type":"command_execution","command":"ls"}}`,
			`{"type":"item.completed","item":{"type":"command_execution","command":"ls"}}`,
			`{"type":"item.completed","item":{"type":"reasoning","text":"Hm."}}`,
			`{"type":"item.completed","item":{"type":"file_change"}}`,
			`{"type":"item.updated","item":{"type":"todo_list"}}`,
			`{"type":"item.completed","item":{"type":"mcp_tool_call","server":"s","tool":"t"}}`,
			`{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}`,
			`{"type":"turn.completed"}`,
		}},
		{"opencode", []string{
			`{"type":"step_start"}`, `{"type":"tool_use","part":{"tool":"bash"}}`, `{"type":"tool_use","part":{"tool":"read"}}`,
			`{"type":"step_finish","part":{"reason":"tool-calls"}}`, `{"type":"tool_use","part":{"tool":"edit"}}`, `{"type":"step_finish","part":{"reason":"stop"}}`,
		}},
	} {
		if _, _, o := events(t, c.kind, runner.Exit{}, c.lines...); o.ToolCount != 3 {
			t.Errorf("%s counts %d uses, want 3", c.kind, o.ToolCount)
		}
	}
}

func FuzzStreams(f *testing.F) {
	f.Add(`{"type":"assistant","message":{"content":[{"type":"tool_use","input":[1]}]}}`)
	f.Add(`{"type":"error","error":"text"}`)
	f.Add(`{"type":"result","errors":{}}`)
	f.Fuzz(func(t *testing.T, line string) {
		for _, kind := range []string{"claude", "codex", "opencode"} {
			if _, _, o := events(t, kind, runner.Exit{}, line); o.ErrType != "" && o.ErrMessage == "" {
				t.Errorf("%s: a failure without a message", kind)
			}
		}
	})
}

func TestAnEmptyPathHasNoCLI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if found := runner.OnPath(); len(found) != 0 {
		t.Errorf("found %v on an empty PATH", found)
	}
}

// Text that was written piece by piece is not repeated when the whole
// arrives, and a text that broke off ends its line.
func TestClaudePartialText(t *testing.T) {
	delta := func(s string) string {
		return `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + s + `"}}}`
	}
	whole := func(s string) string {
		return `{"type":"assistant","message":{"content":[{"type":"text","text":"` + s + `"}]}}`
	}
	of := `"parent_tool_use_id":"toolu_1",`
	for want, lines := range map[string][]string{
		"a b\n":          {delta("a "), delta("b"), whole("a b")},
		"a\n":            {delta("a"), delta(`\n`), whole(`a\n`)},
		"a b c\n":        {delta("a "), whole("a b c")},
		"a\nother\n":     {delta("a"), whole("other")},
		"a\nsub\nb\n":    {delta("a"), strings.Replace(whole("sub"), "{", "{"+of, 1), whole("b")},
		"one\ntwo\n":     {delta("one"), whole("one"), delta("two"), whole("two")},
		"a\n[Bash] ls\n": {delta("a"), `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`},
	} {
		if text, _, _ := events(t, "claude", runner.Exit{}, lines...); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

func TestTroubleIsReported(t *testing.T) {
	retry := func(n int, status, why string) string {
		return fmt.Sprintf(`{"type":"system","subtype":"api_retry","attempt":%d,"max_retries":10,"error_status":%s,"error":%s}`, n, status, why)
	}
	for _, c := range []struct {
		kind, line, heard string
		hopeless          bool
		complaint         bool
	}{
		{kind: "claude", line: retry(1, "401", `"authentication_failed"`), heard: "the model's API answers 401 (authentication_failed)"},
		{kind: "claude", line: retry(2, "401", `"authentication_failed"`), heard: "the model's API answers 401 (authentication_failed)", hopeless: true},
		{kind: "claude", line: retry(9, "529", `"overloaded"`), heard: "the model's API answers 529 (overloaded)"},
		{kind: "claude", line: retry(1, "null", `{"a":1}`), heard: "the model's API cannot be reached"},
		{kind: "codex", line: `{"type":"error","message":"Reconnecting... 1/5 (high demand)"}`, heard: "Reconnecting... 1/5 (high demand)"},
		{kind: "opencode", complaint: true, heard: "the model's API fails: fake 529",
			line: `timestamp=2026-11-22T21:53:10.391Z level=ERROR run=4e message="stream error" providerID=local small=false agent=build error.error="AI_APICallError: fake 529"`},
		{kind: "opencode", complaint: true, line: `timestamp=x level=ERROR message="stream error" small=true agent=title error.error="AI_APICallError: fake 529"`},
	} {
		s := plan(t, must(t, c.kind, runner.Options{}), runner.Task{Prompt: "x"}).Stream
		text := ""
		if c.complaint {
			text, _ = s.StderrLine([]byte(c.line))
		} else {
			text = s.Line([]byte(c.line))
		}
		if heard, hopeless := s.Trouble(); heard != c.heard || hopeless != c.hopeless || (c.heard == "") != (text == "") {
			t.Errorf("%s: %q %v, it says %q", c.line, heard, hopeless, text)
		}
	}
	codex := plan(t, must(t, "codex", runner.Options{}), runner.Task{Prompt: "x"}).Stream
	for line, is := range map[string]bool{
		`2026-11-23T01:08:48.855079Z TRACE codex_api::sse::responses: SSE event: {"delta":"ONE","type":"response.output_text.delta"}`: true,
		`2026-11-23T01:08:48.855079Z ERROR codex_api::sse::responses: stream closed`:                                                  false,
		"thread 'main' panicked": false,
	} {
		if text, pulse := codex.StderrLine([]byte(line)); text != "" || pulse != is {
			t.Errorf("%s: %q %v", line, text, pulse)
		}
	}
	s := plan(t, must(t, "claude", runner.Options{}), runner.Task{Prompt: "x"}).Stream
	s.Line([]byte(retry(1, "529", `"overloaded"`)))
	s.Line([]byte(`{"type":"assistant","message":{"content":[]}}`))
	if heard, _ := s.Trouble(); heard != "" {
		t.Errorf("a trouble that has ended is still reported: %q", heard)
	}
	_, _, o := events(t, "opencode", runner.Exit{Text: "exit status 0"}, `{"type":"step_start"}`)
	if o.ErrType != "no_result" {
		t.Errorf("%+v", o)
	}
	s = plan(t, must(t, "opencode", runner.Options{}), runner.Task{Prompt: "x"}).Stream
	s.StderrLine([]byte("\x1b[93m\x1b[1m! \x1b[0mpermission requested: external_directory (/x/*); auto-rejecting"))
	if o := s.Outcome(runner.Exit{Text: "exit status 0"}); !strings.Contains(o.ErrMessage, "refused by the permission mode: external_directory") {
		t.Errorf("%+v", o)
	}
}

// The text has nothing that a terminal would interpret, and lacks nothing
// that it would show.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[93m\x1b[1m! \x1b[0mrefused":               "! refused",
		"a\x1b[?25lb\x1b[38:2::1:2:3mc":                 "abc",
		"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b":      "ab",
		"\x1b]never ended\nnext":                        "never ended\nnext",
		"\x1bPq string\x1b\\a\x1b(Bb\x1b7c\x1b=d\x1bMe": "abcde",
		"\u009b31mred\u009d0;t\u009c.":                  "red.",
		"one\r\ntwo\rthree\bfour\ttab\x00\x7f":          "one\ntwothreefour\ttab",
		"cut \x1b[31":                                   "cut 31",
		"plain äöü":                                     "plain äöü",
	} {
		if got := runner.Plain(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
