// Package openai is a model behind any endpoint that speaks OpenAI's chat
// completions: the vendor's own, or one of the many that are compatible.
package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// VendorURL is the base URL of OpenAI itself.
const VendorURL = "https://api.openai.com/v1"

// Options say where the endpoint is.
type Options struct {
	BaseURL string       // with its /v1 where it has one; "": VendorURL
	APIKey  string       // "": none is sent
	Client  *http.Client // nil: one with the usual proxies
	Retries int          // of a request that got no answer, 429 or 5xx; 0: 2, negative: none
}

// Model speaks chat completions. Nothing is read from the environment.
type Model struct {
	chat    sdk.ChatCompletionService
	secrets []string
	// What the endpoint turned out not to know, for all later turns.
	oldLimit atomic.Bool // max_completion_tokens: it wants max_tokens
	newLimit atomic.Bool // max_tokens: it wants max_completion_tokens
	noUsage  atomic.Bool // stream_options
}

// New makes a Model. It does not ask the endpoint for anything.
func New(o Options) (*Model, error) {
	base, secrets, err := wire.Base(cmp.Or(o.BaseURL, VendorURL), VendorURL, o.APIKey)
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: http.DefaultTransport}
	}
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()), option.WithHTTPClient(wire.Direct(o.Client)), option.WithMiddleware(wire.Bound),
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	if o.Retries != 0 {
		opts = append(opts, option.WithMaxRetries(max(o.Retries, 0)))
	}
	m := &Model{chat: sdk.NewChatCompletionService(opts...), secrets: secrets}
	// The vendor's newer models refuse max_tokens; most compatible endpoints
	// know nothing else.
	m.oldLimit.Store(!strings.HasSuffix("."+base.Hostname(), ".openai.com") && !strings.HasSuffix("."+base.Hostname(), ".azure.com"))
	return m, nil
}

// Stream runs one turn.
func (m *Model) Stream(ctx context.Context, r llm.Request, text func(string)) (llm.Turn, error) {
	names := wire.NewNames(r.Tools)
	for {
		turn, err := m.once(ctx, r, names, text)
		if !m.learn(err) {
			return turn, err
		}
	}
}

// learn notes what an endpoint says it does not know, and reports whether
// it is new. Each thing is learnt once, so that this comes to an end.
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

func (m *Model) once(ctx context.Context, r llm.Request, names *wire.Names, text func(string)) (llm.Turn, error) {
	var res *http.Response
	s := m.chat.NewStreaming(ctx, m.params(r, names), option.WithResponseInto(&res))
	defer func() { _ = s.Close() }()
	a := answer{gather: wire.NewGather(names, text)}
	for s.Next() {
		if err := a.chunk(s.Current()); err != nil {
			return a.turn(), wire.Broken(ctx, err, m.secrets...)
		}
	}
	err := s.Err()
	if err == nil && a.stop == "" {
		err = wire.Unended(res)
	}
	if err != nil {
		return a.turn(), m.problem(ctx, err, res)
	}
	return a.turn(), nil
}

func (m *Model) params(r llm.Request, names *wire.Names) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{Model: r.Model, Messages: messages(r, names)}
	if !m.noUsage.Load() {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	switch {
	case r.MaxTokens <= 0:
	case m.oldLimit.Load():
		p.MaxTokens = param.NewOpt(int64(r.MaxTokens))
	default:
		p.MaxCompletionTokens = param.NewOpt(int64(r.MaxTokens))
	}
	p.Tools = tools(r.Tools, names)
	if len(p.Tools) > 0 && r.NoTools {
		p.ToolChoice.OfAuto = param.NewOpt(string(sdk.ChatCompletionToolChoiceOptionAutoNone))
	}
	return p
}

// problem says in our words what the SDK says in its own. The SDK knows only
// the vendor's form of an error; the body is there for those of others.
func (m *Model) problem(ctx context.Context, err error, res *http.Response) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *sdk.Error
	var stream *ssestream.StreamError
	switch {
	case errors.As(err, &api):
		return wire.Refusal(api.StatusCode, orWord(api.Code, api.Type), api.Message, rest(res), m.secrets...)
	case errors.As(err, &stream):
		return wire.Refusal(0, "", "", stream.Event.Data, m.secrets...)
	case res != nil && res.StatusCode >= 400:
		return wire.Refusal(res.StatusCode, "", "", rest(res), m.secrets...)
	}
	return wire.Broken(ctx, err, m.secrets...)
}

// rest is the body of an answer that the SDK has read and put back.
func rest(res *http.Response) []byte {
	if res == nil || res.Body == nil {
		return nil
	}
	b, _ := io.ReadAll(res.Body) // a part of it serves as well
	return b
}

// answer is a turn that is still coming.
type answer struct {
	gather  *wire.Gather
	stop    string
	refused bool
	in, out int64
}

func (a *answer) chunk(c sdk.ChatCompletionChunk) error {
	if c.Usage.PromptTokens > 0 || c.Usage.CompletionTokens > 0 {
		a.in, a.out = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	if choice.Delta.Refusal != "" {
		a.refused = true
	}
	for _, text := range []string{choice.Delta.Content, choice.Delta.Refusal} {
		if err := a.gather.Text(text); err != nil {
			return err
		}
	}
	for _, d := range choice.Delta.ToolCalls {
		if err := a.call(d); err != nil {
			return err
		}
	}
	if choice.FinishReason != "" {
		a.stop = choice.FinishReason
	}
	return nil
}

// call takes a part of a tool call. Parts belong together by their index; an
// endpoint that numbers all calls 0 tells them apart by a new id and name.
func (a *answer) call(d sdk.ChatCompletionChunkChoiceDeltaToolCall) error {
	c := a.gather.At(d.Index)
	if c == nil || d.ID != "" && c.ID != "" && d.ID != c.ID && d.Function.Name != "" {
		var err error
		if c, err = a.gather.Begin(d.Index); err != nil {
			return err
		}
	}
	if err := a.gather.Named(c, d.ID, d.Function.Name); err != nil {
		return err
	}
	return a.gather.Arguments(c, d.Function.Arguments)
}

func (a *answer) turn() llm.Turn {
	t := llm.Turn{Message: a.gather.Message(), StopReason: llm.StopReason(a.stop), InputTokens: a.in, OutputTokens: a.out}
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
