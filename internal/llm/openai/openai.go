// Package openai is a model behind an endpoint with OpenAI's chat completions
// API: the vendor's own, or one of the many compatible ones.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// VendorURL is the base URL of OpenAI itself.
const VendorURL = "https://api.openai.com/v1"

// Options describe the endpoint.
type Options = wire.Options

// Model implements chat completions.
type Model struct {
	endpoint *wire.Endpoint
	// Fields that the endpoint turned out not to support, for all later turns.
	oldLimit atomic.Bool // max_completion_tokens: the endpoint wants max_tokens
	newLimit atomic.Bool // max_tokens: the endpoint wants max_completion_tokens
	noUsage  atomic.Bool // stream_options
}

// New makes a Model. It sends no request.
func New(o Options) (*Model, error) {
	header := http.Header{}
	if o.APIKey != "" {
		header.Set("Authorization", "Bearer "+o.APIKey)
	}
	o.BaseURL = cmp.Or(o.BaseURL, VendorURL)
	e, err := wire.NewEndpoint(o, VendorURL, "chat/completions", header)
	if err != nil {
		return nil, err
	}
	m := &Model{endpoint: e}
	// The vendor's newer models refuse max_tokens; most compatible endpoints know
	// only that.
	m.oldLimit.Store(!strings.HasSuffix("."+e.Host, ".openai.com") && !strings.HasSuffix("."+e.Host, ".azure.com"))
	return m, nil
}

// Stream runs one turn.
func (m *Model) Stream(ctx context.Context, r llm.Request, text func(string)) (llm.Turn, error) {
	names := wire.NewNames(r.Tools)
	for {
		a := answer{gather: wire.NewGather(names, text)}
		err := m.endpoint.Stream(ctx, m.request(r, names), a.event, func() bool { return a.stop != "" })
		if !m.learn(err) {
			return a.turn(), err
		}
	}
}

// learn records which field an endpoint does not support, and reports whether
// that is new. Each field is learnt at most once, so that the retries end.
func (m *Model) learn(err error) bool {
	var e *llm.ModelError
	if !errors.As(err, &e) || (e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity) {
		return false
	}
	switch says := e.Message; {
	case strings.Contains(says, "stream_options"):
		return m.noUsage.CompareAndSwap(false, true)
	case strings.Contains(says, "max_tokens") && m.oldLimit.Load() && strings.Contains(says, "max_completion_tokens"):
		m.oldLimit.Store(false)
		return m.newLimit.CompareAndSwap(false, true)
	case strings.Contains(says, "max_completion_tokens") && !m.newLimit.Load():
		return m.oldLimit.CompareAndSwap(false, true)
	}
	return false
}

// answer is a turn in progress.
type answer struct {
	gather  *wire.Gather
	stop    wire.Text
	refused bool
	usage   usage
}

// chunk is an event of the stream.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   wire.Text  `json:"content"`
			Refusal   wire.Text  `json:"refusal"`
			ToolCalls []callPart `json:"tool_calls"`
		} `json:"delta"`
		FinishReason wire.Text `json:"finish_reason"`
	} `json:"choices"`
	Usage usage           `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type usage struct {
	Prompt     wire.Count      `json:"prompt_tokens"`
	Completion wire.Count      `json:"completion_tokens"`
	Details    json.RawMessage `json:"prompt_tokens_details"`
}

// cached is how many tokens of the prompt were in the endpoint's cache.
func (u usage) cached() int64 {
	var d struct {
		Cached wire.Count `json:"cached_tokens"`
	}
	_ = json.Unmarshal(u.Details, &d) // other forms do not have it
	return min(int64(d.Cached), int64(u.Prompt))
}

type callPart struct {
	Index    wire.Count `json:"index"`
	ID       wire.Text  `json:"id"`
	Function struct {
		Name      wire.Text `json:"name"`
		Arguments wire.Text `json:"arguments"`
	} `json:"function"`
}

func (a *answer) event(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return wire.Error{Event: data}
	}
	if c.Usage.Prompt > 0 || c.Usage.Completion > 0 {
		a.usage = c.Usage
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	if choice.Delta.Refusal != "" {
		a.refused = true
	}
	for _, text := range []wire.Text{choice.Delta.Content, choice.Delta.Refusal} {
		if err := a.gather.Text(string(text)); err != nil {
			return err
		}
	}
	for _, d := range choice.Delta.ToolCalls {
		if err := a.call(d); err != nil {
			return err
		}
	}
	a.stop = cmp.Or(choice.FinishReason, a.stop)
	return nil
}

// call adds a part of a tool call. Parts belong together by their index; if
// an endpoint numbers all calls 0, a new ID and name begin a new call.
func (a *answer) call(d callPart) error {
	c, id, name := a.gather.At(int64(d.Index)), string(d.ID), string(d.Function.Name)
	if c == nil || id != "" && c.ID != "" && id != c.ID && name != "" {
		var err error
		if c, err = a.gather.Begin(int64(d.Index)); err != nil {
			return err
		}
	}
	if err := a.gather.Named(c, id, name); err != nil {
		return err
	}
	return a.gather.Arguments(c, string(d.Function.Arguments))
}

func (a *answer) turn() llm.Turn {
	u := a.usage
	t := llm.Turn{
		Message: a.gather.Message(), StopReason: llm.StopReason(a.stop), InputTokens: int64(u.Prompt), OutputTokens: int64(u.Completion),
		CacheReadTokens: u.cached(),
	}
	switch {
	case a.refused || a.stop == "content_filter":
		t.StopReason = llm.StopRefusal
	case a.stop == "stop":
		t.StopReason = llm.StopEnd
	case a.stop == "tool_calls" || a.stop == "function_call":
		t.StopReason = llm.StopTools
	case a.stop == "length":
		t.StopReason = llm.StopLength
	}
	return t
}
