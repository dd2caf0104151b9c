package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/e2e/model"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// spender is an agent with a model that calls a tool for ever, unless it is asked to
// say hello. The usage of each answer is known.
type spender struct {
	*box
	kind string
	url  string // of the agent
	m    *model.Server

	mu    sync.Mutex
	asked []model.Request // without side requests
}

// The usage of each answer: 6 cents, at 3 and 15 dollars per million tokens.
var answerUsage = model.Usage{Input: 10_000, Output: 2_000}

const (
	tokensOfAnswer = 12_000
	usdOfAnswer    = 0.06
)

// spends starts an agent of a kind, at a director if there is one; prices are its configured
// prices.
func (b *box) spends(kind, prices, director string, args ...string) *spender {
	b.t.Helper()
	s := &spender{box: b, kind: kind}
	m, err := model.Start(s.answer)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(m.Close)
	s.m = m
	b.quietCLIs()
	if kind != "llm" {
		if err := os.Symlink(installed(b.t, kind), filepath.Join(b.bin, kind)); err != nil {
			b.t.Fatal(err)
		}
	}
	b.vars["ANTHROPIC_BASE_URL"], b.vars["ANTHROPIC_API_KEY"], b.vars["OPENAI_API_KEY"] = m.URL, "test-key", "test-key"
	b.vars["OPENCODE_MODELS_PATH"] = b.file("models.json", "{}", 0o600)
	b.file("home/.npmrc", "offline=true\n", 0o600)
	b.file("home/.codex/config.toml", fmt.Sprintf(codexConfig, m.URL), 0o600)
	b.file("home/.config/opencode/opencode.json", fmt.Sprintf(opencodeConfig, m.URL), 0o600)
	tools := "none"
	if kind == "llm" {
		d := newDesk(b.t)
		d.open()
		tools = d.url
	}
	config := fmt.Sprintf("agent:\n  model: %s\n  prices: {%s}\n  llm: {base_url: %q, api_key: test-key, tools: %q, max_turns: 1000}\n",
		map[string]string{"claude": "claude-sonnet-4-5", "codex": "scripted", "opencode": "local/scripted", "llm": "scripted"}[kind], prices, m.URL+"/v1", tools)
	p := b.agent(kind, director, append(args, "--kind", kind, "--config", b.file("prices.yaml", config, 0o600))...)
	if director != "" {
		return s
	}
	_, at, _ := strings.Cut(p.prints("http://"), "http://")
	s.url = "http://" + strings.TrimSpace(at)
	return s
}

const wordsForEver = "go on and on"

func (s *spender) answer(r model.Request) model.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	if !strings.Contains(r.Text, wordsForEver) {
		return model.Reply{Text: "Hello.", Usage: answerUsage}
	}
	n := len(s.asked)
	tool := model.Shell(fmt.Sprintf("echo step %d", n))
	if s.kind == "llm" {
		tool = &model.Tool{Name: "look", Input: map[string]any{"page": n}}
	}
	return model.Reply{Text: fmt.Sprintf("Step %d.", n), Tool: tool, Usage: answerUsage}
}

// requests returns the requests so far.
func (s *spender) requests() []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// runs makes the agent run a task to its end.
func (s *spender) runs(task api.AgentTask) (end api.AgentTaskStatus) {
	s.t.Helper()
	body, err := json.Marshal(task)
	if err != nil {
		s.t.Fatal(err)
	}
	code, said := s.ask("POST", s.url+"/task", string(body))
	var acc api.AgentTaskAccepted
	if code != http.StatusCreated || json.Unmarshal([]byte(said), &acc) != nil {
		s.t.Fatalf("%d %s", code, said)
	}
	s.until("the run has ended", func() bool {
		_, said = s.ask("GET", s.url+"/task/"+acc.TaskID+"?wait=30s", "")
		end = api.AgentTaskStatus{}
		if err := json.Unmarshal([]byte(said), &end); err != nil {
			s.t.Fatal(err, said)
		}
		return end.State != "working"
	})
	return end
}

// A model that calls a tool for ever is stopped at the budget of the run: at most the request in
// flight exceeds it, and there is none after the end. The whole usage is reported.
func TestABudgetEndsARunThatWouldGoOnForEver(t *testing.T) {
	const price = "scripted: {input: 3, output: 15}, local/scripted: {input: 3, output: 15}, claude-sonnet*: {input: 3, output: 15}"
	half := api.Budget{USD: 0.5}
	for _, c := range []struct {
		name, kind, prices string
		budget             api.Budget
		long               bool
	}{
		{"claude keeps it itself", "claude", "", half, true},
		{"claude by prices", "claude", price, half, true},
		{"claude in tokens", "claude", "", api.Budget{Tokens: 100_000}, false},
		{"codex", "codex", price, half, false},
		{"codex in tokens", "codex", "", api.Budget{Tokens: 100_000}, true},
		{"opencode", "opencode", price, api.Budget{USD: 0.1}, true},
		{"opencode in tokens", "opencode", "", api.Budget{Tokens: 100_000}, true},
		{"llm", "llm", price, half, false},
		{"llm in tokens", "llm", "", api.Budget{Tokens: 100_000}, false},
		{"claude, used up at once", "claude", "", api.Budget{USD: 0.0000001}, true},
		{"codex, used up at once", "codex", "", api.Budget{Tokens: 1}, true},
		{"llm, used up at once", "llm", price, api.Budget{USD: 0.0000001}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long {
				soak.Only(t, "another way to the same end")
			}
			s := newBox(t).spends(c.kind, c.prices, "")
			begun := time.Now()
			end := s.runs(api.AgentTask{Prompt: wordsForEver, Budget: &c.budget})
			n := len(s.requests())
			if end.State != "failed" || end.Error == nil || end.Error.Type != "budget" || !strings.Contains(end.Error.Message, "of its budget of") {
				t.Fatalf("it ended as %s: %+v", end.State, end.Error)
			}
			s.wantWithin(end.TokenUsage, end.CostUSD, c.budget, n)
			t.Logf("%s: %d requests in %s; %s", c.name, n, time.Since(begun).Round(time.Millisecond), end.Error.Message)
			if end := s.runs(api.AgentTask{Prompt: "say hello"}); end.State != "completed" || end.Output != "Hello." {
				t.Errorf("the next run: %+v", end)
			}
			s.wantNoMore(n)
		})
	}
}

// The same through a director, whose tasks have the budget: with an agent that it calls, and with
// one that pulls.
func TestABudgetOfATaskEndsItsRun(t *testing.T) {
	for _, c := range []struct {
		kind, flag, value string
		budget            api.Budget
		args              []string
	}{
		{"claude", "--budget", "0.5", api.Budget{USD: 0.5}, nil},
		{"codex", "--budget-tokens", "100000", api.Budget{Tokens: 100_000}, []string{"--pull"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			if c.kind == "claude" {
				soak.Only(t, "a budget in dollars of an agent that a director calls")
			}
			b := newBox(t)
			director := b.director()
			d := b.client(director.url)
			s := b.spends(c.kind, "", director.url, c.args...)
			s.untilState(d, c.kind, "idle")
			out := s.cli("submit", "--wait", c.flag, c.value, "--kind", c.kind, wordsForEver)
			n := len(s.requests())
			found, err := d.Search(s.ctx(), "state:failed", client.SearchOptions{})
			if err != nil || len(found.Tasks) != 1 {
				t.Fatalf("%v, %+v; %+v", err, found, out)
			}
			task, err := d.Task(s.ctx(), found.Tasks[0].QueueID)
			if err != nil {
				t.Fatal(err)
			}
			if task.State != "failed" || task.Reason != "budget" || out.code == 0 || !strings.Contains(out.err+out.out, "budget") {
				t.Errorf("it ended as %s, %s: %s; submit --wait: %+v", task.State, task.Reason, task.Message, out)
			}
			s.wantWithin(task.TokenUsage, task.CostUSD, c.budget, n)
			t.Logf("%s: %d requests; %s", c.kind, n, task.Message)
			s.completed(d, s.submit(d, api.SubmitRequest{Prompt: "say hello", Kind: c.kind}))
			s.wantNoMore(n)
		})
	}
}

// wantNoMore: the run made no requests after the first n.
func (s *spender) wantNoMore(n int) {
	s.t.Helper()
	for _, r := range s.requests()[n:] {
		if strings.Contains(r.Text, wordsForEver) {
			s.t.Errorf("the model was asked again after the end of the run")
		}
	}
}

// wantWithin: a run that made n requests ended at its budget, in time, and reported all its usage.
func (s *spender) wantWithin(told *api.TokenUsage, costUSD float64, budget api.Budget, n int) {
	s.t.Helper()
	kind := s.kind
	over := 1
	if killed := kind != "llm" && !(kind == "claude" && budget.USD > 0); killed {
		over = 2 // until it is ended it may begin another request
	}
	if most := budget.USD + float64(over)*usdOfAnswer; budget.USD > 0 && (float64(n)*usdOfAnswer > most+1e-9 || float64(n)*usdOfAnswer < budget.USD) {
		s.t.Errorf("%d requests of $%.2f, and the budget was $%v", n, usdOfAnswer, budget.USD)
	}
	if most := budget.Tokens + int64(over)*tokensOfAnswer; budget.Tokens > 0 && (int64(n)*tokensOfAnswer > most || int64(n)*tokensOfAnswer < budget.Tokens) {
		s.t.Errorf("%d requests of %d tokens, and the budget was %d", n, tokensOfAnswer, budget.Tokens)
	}
	used := api.TokenUsage{Input: int64(n * answerUsage.Input), Output: int64(n * answerUsage.Output)}
	before := api.TokenUsage{Input: used.Input - int64(answerUsage.Input), Output: used.Output - int64(answerUsage.Output)} // the request in flight may not have been answered
	if told == nil || *told != used && *told != before || told.Input == 0 {
		s.t.Fatalf("it reports %+v, want %+v", told, used)
	}
	usd := float64(told.Input)*3e-6 + float64(told.Output)*15e-6
	if known := budget.USD > 0 || kind == "claude"; known && (costUSD < usd-1e-6 || costUSD > usd+1e-6) {
		s.t.Errorf("it reports $%v for %+v, want $%v", costUSD, told, usd)
	}
}
