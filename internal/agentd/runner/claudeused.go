package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sync"

	"github.com/signalbox-ai/signalbox"
)

// claudeUsage counts tokens as the model's API does: input excludes cached tokens.
type claudeUsage struct {
	Input      count `json:"input_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
	Output     count `json:"output_tokens"`
}

func (u claudeUsage) tokens() tokens { return tokens{u.Input, u.CacheRead, u.CacheWrite, u.Output} }

// claudeAnswer is an answer of the model. It is reported in parts; each part has the usage so far.
type claudeAnswer struct {
	ID    word        `json:"id"`
	Model word        `json:"model"`
	Usage claudeUsage `json:"usage"`
}

// claudeModels is Claude Code's own count for each model, over all runs of the
// conversation.
type claudeModels map[string]struct {
	Input      count `json:"inputTokens"`
	CacheRead  count `json:"cacheReadInputTokens"`
	CacheWrite count `json:"cacheCreationInputTokens"`
	Output     count `json:"outputTokens"`
}

// UnmarshalJSON implements json.Unmarshaler. It ignores other forms.
func (m *claudeModels) UnmarshalJSON(b []byte) error {
	type plain claudeModels
	if json.Unmarshal(b, (*plain)(m)) != nil {
		*m = nil
	}
	return nil
}

func (m claudeModels) tokens() (sum tokens) {
	for _, u := range m {
		sum = sum.each(tokens{u.Input, u.CacheRead, u.CacheWrite, u.Output}, func(a, b count) count { return a + b })
	}
	return sum
}

// countAnswer counts an answer once, even if it arrives in parts.
func (s *claudeStream) countAnswer(a claudeAnswer) {
	if n := a.Usage.tokens(); n != (tokens{}) {
		s.spent(string(a.ID), string(a.Model), n, 0)
	}
}

// streams follows an answer from its beginning, which means that the model was asked, to its end.
func (s *claudeStream) streams(e claudeEvent) {
	switch e.Event.Type {
	case "message_start":
		s.asking = true
		s.asks()
		s.answering = e.Event.Message
		s.countAnswer(s.answering)
	case "message_delta":
		if e.Answer == "" || e.Answer == string(s.answering.ID) {
			a := s.answering
			a.Usage.Output = max(a.Usage.Output, e.Event.Usage.Output)
			s.spent(string(a.ID), string(a.Model), a.Usage.tokens(), 0)
		}
		if s.asking = e.Event.Delta.Stop == "tool_use" || e.Event.Delta.Stop == "pause_turn"; s.asking {
			s.asks()
		}
	}
}

// total takes Claude Code's own count at the end of the run. It is in the last event, and in the
// conversation's file even if the run was ended earlier.
func (s *claudeStream) total() {
	r := s.result
	if r == nil {
		if all := claudeCounted(s.state, s.session); all != s.meter.before {
			s.meter.total(&s.heard.Used, all)
		}
		return
	}
	all := usage{tokens: r.Models.tokens(), usd: r.Cost}
	if all.tokens == (tokens{}) {
		all.tokens, s.meter.before.tokens = r.Usage.tokens(), tokens{}
	}
	s.meter.total(&s.heard.Used, all)
}

var claudeCount = []byte(`{"type":"cost-state",`)

// claudeCounted returns the usage that Claude Code last wrote to a conversation's file.
func claudeCounted(state, id string) (u usage) {
	text := fileEnd(claudeConversation(state, id))
	i := bytes.LastIndex(text, claudeCount)
	if i < 0 {
		return u
	}
	line, _, _ := bytes.Cut(text[i:], []byte("\n"))
	var e struct {
		Cost   number       `json:"totalCostUSD"`
		Models claudeModels `json:"modelUsage"`
	}
	if json.Unmarshal(line, &e) == nil {
		u = usage{tokens: e.Models.tokens(), usd: float64(e.Cost)}
	}
	return u
}

// budgetOption matches the CLI's own option for a cost limit in its help.
var budgetOption = regexp.MustCompile(`(?m)^\s*--max-budget-usd\b`)

// budgetKeepers caches which programs support a budget.
var budgetKeepers = struct {
	sync.Mutex
	known map[string]bool // by path, size and modification time
}{known: map[string]bool{}}

// keepsBudget reports whether a Claude Code supports a cost limit. If it does not answer in
// time, the result is true: started with the limit, it either enforces it or fails.
func keepsBudget(path string) bool {
	key := path
	if st, err := os.Stat(path); err == nil {
		key = fmt.Sprint(path, st.Size(), st.ModTime())
	}
	budgetKeepers.Lock()
	defer budgetKeepers.Unlock()
	keeps, known := budgetKeepers.known[key]
	if !known {
		help, err := (DetectedCLI{Path: path}).output(context.Background(), "--help")
		if err != nil {
			return true
		}
		keeps = budgetOption.MatchString(help)
		budgetKeepers.known[key] = keeps
	}
	return keeps
}

// CheckBudget also accepts a budget in dollars if the CLI itself can enforce
// it.
func (c claudeRunner) CheckBudget(b signalbox.Budget, model string) error {
	err := c.commonRunner.CheckBudget(b, model)
	if err == nil {
		return nil
	}
	bin, missing := c.binary()
	if missing != nil || keepsBudget(bin) {
		return nil // a missing CLI is reported at the start of the run
	}
	return fmt.Errorf("%w, or install a Claude Code that knows --max-budget-usd", err)
}
