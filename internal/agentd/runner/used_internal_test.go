package runner

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

const conversation = "01a21fdc-4908-7611-8de4-c2d5b5d2be1f"

// usingStream is the stream of a run with a budget, which resumes a conversation of home if resume
// is set. The CLI supports no budget of its own.
func usingStream(t *testing.T, kind, home string, prices Prices, b signalbox.Budget, resume bool) Stream {
	t.Helper()
	r, err := New(kind, Options{Binary: "/bin/true", Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Prompt: "x", Home: home, Env: []string{"TZ=UTC"}, Model: "asked", Budget: b}
	if resume {
		task.CLISession, task.Resume = conversation, true
	}
	p, err := r.Plan(task)
	if err != nil {
		t.Fatal(err)
	}
	return p.Stream
}

// fixtureLines returns the lines of a recorded CLI.
func fixtureLines(t *testing.T, name string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "used", name))
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]byte
	for l := range strings.Lines(string(text)) {
		lines = append(lines, []byte(strings.TrimSuffix(l, "\n")))
	}
	return lines
}

// hears feeds a CLI's recorded output to a stream, and returns the usage at the point where
// the run was given up; nil if it was not.
func hears(t *testing.T, s Stream, names ...string) (over *Used) {
	t.Helper()
	for _, name := range names {
		for _, l := range fixtureLines(t, name) {
			if strings.HasSuffix(name, ".log") {
				s.StderrLine(l)
			} else {
				s.Line(l)
			}
			if _, hopeless := s.Trouble(); hopeless && over == nil {
				if s.Heard().ErrType != OverBudget {
					t.Fatalf("%s: given up for %+v", name, s.Heard())
				}
				u := s.Heard().Used
				over = &u
			}
		}
	}
	return over
}

var scriptedPrices = Prices{"*": {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}

// The lines are output of the CLIs for six answers of a model: five of 10,000 and 2,000 tokens
// that call a tool, and a last one of 11 and 7.
func TestUsageAsTheCLIsReportIt(t *testing.T) {
	all := api.TokenUsage{Input: 50_011, Output: 10_007}
	const usd = 0.300138
	for _, c := range []struct {
		kind  string
		files []string
	}{
		{"claude", []string{"claude-2.1.329-done.jsonl"}},
		{"codex", []string{"codex-0.169.0-done.log", "codex-0.169.0-done.jsonl"}},
		{"opencode", []string{"opencode-1.18.33-done.jsonl"}},
	} {
		s := usingStream(t, c.kind, t.TempDir(), scriptedPrices, signalbox.Budget{}, false)
		if over := hears(t, s, c.files...); over != nil {
			t.Errorf("%s without a budget was given up at %+v", c.kind, over)
		}
		if o := s.Outcome(Exit{}); o.ErrType != "" || o.Output != "done" {
			t.Errorf("%s: %+v", c.kind, o)
		}
		if u := s.Heard().Used; u != (Used{Tokens: all, USD: usd}) {
			t.Errorf("%s: %+v", c.kind, u)
		}
		for name, b := range map[string]signalbox.Budget{"tokens": {Tokens: 30_000}, "dollars": {NanoUSD: 150_000_000}} {
			over := hears(t, usingStream(t, c.kind, t.TempDir(), scriptedPrices, b, false), c.files...)
			if want := (Used{Tokens: api.TokenUsage{Input: 30_000, Output: 6_000}, USD: 0.18}); over == nil || *over != want {
				t.Errorf("%s with a budget in %s was given up at %+v, want %+v", c.kind, name, over, want)
			}
		}
		// The last answer uses up the budget, but the run is done.
		s = usingStream(t, c.kind, t.TempDir(), scriptedPrices, signalbox.Budget{Tokens: 60_010}, false)
		if over := hears(t, s, c.files...); over != nil {
			t.Errorf("%s was given up at %+v though it was done", c.kind, over)
		}
		// An unknown price is not a price of 0.
		over := hears(t, usingStream(t, c.kind, t.TempDir(), nil, signalbox.Budget{NanoUSD: 1e9}, false), c.files...)
		if over == nil || over.Tokens.Input != 10_000 || !strings.Contains(over.Over(signalbox.Budget{NanoUSD: 1e9}), "agent.prices") {
			t.Errorf("%s, without prices, was given up at %+v", c.kind, over)
		}
	}
}

// Claude Code that stops at its own cost limit has failed, unless it was done.
func TestClaudeAtItsOwnLimitOfMoney(t *testing.T) {
	s := usingStream(t, "claude", t.TempDir(), nil, signalbox.Budget{}, false)
	hears(t, s, "claude-2.1.329-own-budget.jsonl")
	if o := s.Outcome(Exit{Code: 1}); o.ErrType != OverBudget || o.ErrMessage != "Reached maximum budget ($0.1)" {
		t.Errorf("%+v", o)
	}
	// Its usage leaves out the last answer; its count per model does not.
	if u := s.Heard().Used; u != (Used{Tokens: api.TokenUsage{Input: 20_000, Output: 4_000}, USD: 0.12}) {
		t.Errorf("%+v", u)
	}
	s = usingStream(t, "claude", t.TempDir(), nil, signalbox.Budget{}, false)
	for _, l := range fixtureLines(t, "claude-2.1.329-own-budget.jsonl") {
		s.Line([]byte(strings.ReplaceAll(string(l), `"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`)))
	}
	if o := s.Outcome(Exit{Code: 1}); o.ErrType != "" || o.Output != "step 1" {
		t.Errorf("that was done: %+v", o)
	}
}

// A CLI's count continues with the conversation. A run's usage is only the increase.
func TestARunDoesNotCountEarlierRuns(t *testing.T) {
	const state = `{"type":"cost-state","sessionId":"` + conversation + `","totalCostUSD":%v,"modelUsage":{"a":{"inputTokens":%d,"outputTokens":%d,"cacheReadInputTokens":100},"b":{"inputTokens":1}}}` + "\n"
	const counts = `{"timestamp":"2026-11-28T01:54:21Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":0,"output_tokens":%d}}}}` + "\n"
	home := t.TempDir()
	claude := filepath.Join(home, ".claude", "projects", "x", conversation+".jsonl")
	codex := filepath.Join(home, ".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T01-54-20-"+conversation+".jsonl")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(claude, fmt.Sprintf(state, 0.1, 1, 1)+fmt.Sprintf(state, 0.5, 1000, 200)+`{"type":"user"}`+"\n")
	write(codex, fmt.Sprintf(counts, 500, 100)+fmt.Sprintf(counts, 1000, 200))

	s := usingStream(t, "claude", home, nil, signalbox.Budget{}, true)
	s.Line([]byte(`{"type":"result","subtype":"success","session_id":"` + conversation + `","result":"ok","total_cost_usd":0.75,"usage":{"input_tokens":1},"modelUsage":{"a":{"inputTokens":1500,"outputTokens":250,"cacheReadInputTokens":100},"b":{"inputTokens":3}}}`))
	s.Outcome(Exit{})
	if u := s.Heard().Used; u != (Used{Tokens: api.TokenUsage{Input: 502, Output: 50}, USD: 0.25}) {
		t.Errorf("claude: %+v", u)
	}
	// After a reset of the CLI's count, all of the count is the run's usage.
	s = usingStream(t, "claude", home, nil, signalbox.Budget{}, true)
	s.Line([]byte(`{"type":"result","subtype":"success","result":"ok","total_cost_usd":0.25,"modelUsage":{"a":{"inputTokens":10,"outputTokens":2}}}`))
	s.Outcome(Exit{})
	if u := s.Heard().Used; u != (Used{Tokens: api.TokenUsage{Input: 10, Output: 2}, USD: 0.25}) {
		t.Errorf("claude that counts from zero again: %+v", u)
	}
	// A CLI that is ended keeps its count with the conversation.
	s = usingStream(t, "claude", home, nil, signalbox.Budget{}, true)
	s.Line([]byte(`{"type":"system","session_id":"` + conversation + `"}`))
	s.Outcome(Exit{Code: -1})
	if u := s.Heard().Used; u != (Used{}) {
		t.Errorf("claude that used nothing: %+v", u)
	}
	write(claude, fmt.Sprintf(state, 0.5, 1000, 200)+fmt.Sprintf(state, 0.8, 1500, 250))
	s.Outcome(Exit{Code: -1})
	if u := s.Heard().Used; u.Tokens != (api.TokenUsage{Input: 500, Output: 50}) || math.Abs(u.USD-0.3) > 1e-9 {
		t.Errorf("claude that was ended: %+v", u)
	}

	s = usingStream(t, "codex", home, scriptedPrices, signalbox.Budget{}, true)
	s.Line([]byte(`{"type":"thread.started","thread_id":"` + conversation + `"}`))
	s.Line([]byte(`{"type":"turn.completed","usage":{"input_tokens":1500,"cached_input_tokens":0,"output_tokens":250}}`))
	s.Outcome(Exit{})
	if u := s.Heard().Used; u.Tokens != (api.TokenUsage{Input: 500, Output: 50}) || math.Abs(u.USD-0.00225) > 1e-9 {
		t.Errorf("codex: %+v", u)
	}
}

// If codex does not show its model's answers, the conversation's file has the
// usage.
func TestCodexUsageFromItsConversation(t *testing.T) {
	home := t.TempDir()
	s := usingStream(t, "codex", home, nil, signalbox.Budget{Tokens: 1000}, false)
	path := filepath.Join(home, ".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T01-54-20-"+conversation+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Line([]byte(`{"type":"thread.started","thread_id":"` + conversation + `"}`))
	use := func(total int) (over bool) {
		line := fmt.Sprintf(`{"timestamp":"2100-01-01T00:00:00Z","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":0}}}}`+"\n", total)
		if total < 0 {
			line = "\n"
		}
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Line([]byte(`{"type":"item.started","item":{"type":"command_execution","command":"ls"}}`))
		_, over = s.Trouble()
		s.Line([]byte(`{"type":"item.completed","item":{"type":"command_execution","command":"ls"}}`))
		return over
	}
	if use(400) || use(999) || !use(1000) {
		t.Errorf("%+v", s.Heard())
	}
	// A run whose CLI reports no usage at all is ended.
	s = usingStream(t, "codex", home, nil, signalbox.Budget{Tokens: 1000}, false)
	s.Line([]byte(`{"type":"thread.started","thread_id":"` + conversation + `"}`))
	if use(-1) || use(-1) || !use(-1) || !strings.Contains(s.Heard().Used.Over(signalbox.Budget{Tokens: 1000}), "does not say how many tokens") {
		t.Errorf("without a usage report: %+v", s.Heard())
	}
}

func TestPrices(t *testing.T) {
	p := Prices{"*": {Input: 1}, "gpt-5*": {Input: 2}, "gpt-5.1": {Input: 3}, "*-mini": {Input: 4}, "gpt-5*mini": {Input: 5}}
	for name, want := range map[string]float64{"gpt-5": 2, "gpt-5.1": 3, "gpt-5-mini": 5, "o4-mini": 4, "else": 1, "": 1} {
		if got, ok := p.of(name); !ok || got.Input != want {
			t.Errorf("%q: %v %v, want %v", name, got, ok, want)
		}
	}
	if got, _ := (Prices{"asked": {Input: 7}}).of("heard", "asked"); got.Input != 7 {
		t.Errorf("by the requested name: %v", got)
	}
	if got, _ := p.of("", "gpt-5"); got.Input != 2 {
		t.Errorf("of a model that does not report its name: %v", got)
	}
	if _, ok := (Prices{"x": {}}).of("", "y"); ok {
		t.Error("a price of another model counts")
	}
	for _, wrong := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := New("demo", Options{Prices: Prices{"m": {Output: wrong}}}); err == nil {
			t.Errorf("a price of %v is taken", wrong)
		}
	}
}

// An answer that is reported several times counts once; ten times five cents are half a
// dollar.
func TestAnAnswerCountsOnce(t *testing.T) {
	m := meter{prices: Prices{"m": {Input: 5, CacheRead: 0.5, CacheWrite: 6.25, Output: 0}}}
	var u Used
	for i := range 10 {
		id := fmt.Sprint(i)
		m.add(&u, id, "m", tokens{input: 5000}, 0)
		m.add(&u, id, "m", tokens{input: 5000, cacheWrite: 4000, output: 3}, 0)
		m.add(&u, id, "m", tokens{input: 1, output: 3}, 0)
	}
	if want := (Used{Tokens: api.TokenUsage{Input: 90_000, Output: 30}, USD: 0.5}); u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
	m.add(&u, "told", "unknown", tokens{output: 1}, 0.25) // reported together with its cost
	if u.USD != 0.75 || u.Unpriced != "" {
		t.Errorf("%+v", u)
	}
	m.add(&u, "", "unknown", tokens{output: 1}, 0)
	m.add(&u, "none", "silent", tokens{}, 0)
	if u.Unpriced != "unknown" || u.Uncounted != "silent" {
		t.Errorf("%+v", u)
	}
}

func TestOverBudgetIsReported(t *testing.T) {
	u := Used{Tokens: api.TokenUsage{Input: 12_000, Output: 345}, USD: 0.52}
	for _, c := range []struct {
		used   Used
		budget signalbox.Budget
		want   string
	}{
		{u, signalbox.Budget{}, ""},
		{u, signalbox.Budget{NanoUSD: 530_000_000, Tokens: 12_346}, ""},
		{u, signalbox.Budget{NanoUSD: 500_000_000}, "spent $0.52 of its budget of $0.50 (12,345 tokens)"},
		{u, signalbox.Budget{NanoUSD: 520_000_000}, "spent $0.52 of its budget of $0.52 (12,345 tokens)"},
		{u, signalbox.Budget{NanoUSD: 1}, "spent $0.52 of its budget of $0.000000001 (12,345 tokens)"},
		{u, signalbox.Budget{NanoUSD: 1e9, Tokens: 12_345}, "spent 12,345 of its budget of 12,345 tokens"},
		{Used{Uncounted: "m"}, signalbox.Budget{}, ""},
		{Used{Uncounted: "m"}, signalbox.Budget{Tokens: 1}, "its budget cannot be kept: model m does not say how many tokens it used; give the task no budget, or another model"},
		{Used{Unpriced: "m"}, signalbox.Budget{Tokens: 1}, ""},
		{Used{Unpriced: "m"}, signalbox.Budget{NanoUSD: 5e8}, "its budget of $0.50 cannot be kept: it is not known what model m costs; set a price in agent.prices of this agent, or a budget in tokens"},
	} {
		if got := c.used.Over(c.budget); got != c.want {
			t.Errorf("%+v of %+v: %q, want %q", c.used, c.budget, got, c.want)
		}
	}
}

// A budget that cannot be enforced is refused before anything is spent.
func TestBudgetsThatCannotBeEnforced(t *testing.T) {
	inDollars, inTokens := signalbox.Budget{NanoUSD: 1}, signalbox.Budget{Tokens: 1}
	help := filepath.Join(t.TempDir(), "claude")
	for _, c := range []struct {
		kind, binary, model string
		budget              signalbox.Budget
		want                string // "": accepted
	}{
		{"codex", "", "m", inTokens, ""},
		{"codex", "", "m", inDollars, `does not know what model "m" costs`},
		{"codex", "", "", inDollars, "its CLI's own model"},
		{"codex", "", "known", inDollars, ""},
		{"llm", "", "m", inDollars, "agent.prices"},
		{"llm", "", "m", inTokens, ""},
		{"opencode", "", "m", inDollars, ""}, // it reports its cost
		{"demo", "", "m", inDollars, ""},
		{"command", "", "m", inTokens, ""},
		{"claude", "/bin/true", "m", inTokens, ""},
		{"claude", "/bin/true", "m", inDollars, "--max-budget-usd"},
		{"claude", "/bin/true", "known", inDollars, ""},
		{"claude", help, "m", inDollars, ""},
		{"claude", "/no/such/program", "m", inDollars, ""}, // the start reports it
	} {
		if c.binary == help {
			script := "#!/bin/sh\necho '  --max-budget-usd <amount>  Maximum dollar amount'\n"
			if err := os.WriteFile(help, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r, err := New(c.kind, Options{Binary: c.binary, Prices: Prices{"known": {}}, Command: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		err = r.CheckBudget(c.budget, c.model)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: %v, want %q", c.kind, c.budget, err, c.want)
		}
	}
}
