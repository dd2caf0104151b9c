package runner

import (
	"encoding/json"

	"github.com/signalbox-ai/signalbox/api"
)

// codexUsage counts tokens as codex does: input includes cached tokens.
type codexUsage struct {
	Input  count `json:"input_tokens"`
	Cached count `json:"cached_input_tokens"`
	Output count `json:"output_tokens"`
}

func (u codexUsage) tokens() tokens {
	cached := min(u.Cached, u.Input)
	return tokens{input: u.Input - cached, cacheRead: cached, output: u.Output}
}

// codexAnswer is the event of the model's API that ends an answer.
type codexAnswer struct {
	Response struct {
		ID     string `json:"id"`
		Model  string `json:"model"`
		Output []struct {
			Type string `json:"type"`
		} `json:"output"`
		Usage struct {
			codexUsage
			Details struct {
				Cached count `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

// completed counts an answer of the model. Tool calls in it are known
// earlier.
func (s *codexStream) completed(event []byte) {
	var e codexAnswer
	if json.Unmarshal(event, &e) != nil {
		return
	}
	r := &e.Response
	u := r.Usage.codexUsage
	u.Cached = r.Usage.Details.Cached
	s.model = r.Model
	if len(s.meter.answers) == 0 {
		s.heard.Used = Used{} // from here on, answers are seen
	}
	s.spent(r.ID, r.Model, u.tokens(), 0)
	for _, item := range r.Output {
		if codexCalls[item.Type] {
			s.asks()
			return
		}
	}
}

// codexCalls are the items of an answer whose results go back to the model. The provider
// itself runs the others.
var codexCalls = map[string]bool{"function_call": true, "custom_tool_call": true, "local_shell_call": true}

// uses records a tool call, after which the model is asked again. It matters if the model's
// answers are not seen: then the conversation's file has their usage.
func (s *codexStream) uses() {
	if len(s.meter.answers) > 0 {
		return
	}
	s.readRollout()
	if used := &s.heard.Used; s.tools > 1 && used.Tokens == (api.TokenUsage{}) {
		used.Uncounted = s.meter.name(s.model)
	}
	s.asks()
}

// counted takes codex's own count, over all runs of the conversation.
func (s *codexStream) counted(all tokens) {
	n := all.since(s.meter.before.tokens)
	if sum(n.usage()) <= sum(s.heard.Used.Tokens) {
		return // the count from answers is as high, and more exact
	}
	usd, known := s.meter.cost(s.model, n)
	s.meter.total(&s.heard.Used, usage{tokens: all, usd: usd})
	if !known {
		s.heard.Used.Unpriced = s.meter.name(s.model)
	}
}
