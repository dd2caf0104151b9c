// Package anthropic is a model behind an endpoint that speaks Anthropic's
// messages.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// VendorURL is the base URL of Anthropic itself.
const VendorURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds a turn where nothing else is said: the vendor
// demands a number.
const DefaultMaxTokens = 8192

// Options say where the endpoint is.
type Options struct {
	BaseURL string       // with or without a /v1; "": VendorURL
	APIKey  string       // "": none is sent
	Client  *http.Client // nil: one with the usual proxies
	Retries int          // of a request that got no answer, 429 or 5xx; 0: 2, negative: none
}

// Model speaks messages. Nothing is read from the environment.
type Model struct {
	messages sdk.MessageService
	secrets  []string
	cache    bool // each turn sends the whole conversation again, which the vendor's cache makes cheap
}

// New makes a Model. It does not ask the endpoint for anything.
func New(o Options) (*Model, error) {
	base, secrets, err := wire.Base(strings.TrimSuffix(strings.TrimSuffix(cmp.Or(o.BaseURL, VendorURL), "/"), "/v1"), VendorURL, o.APIKey)
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: http.DefaultTransport}
	}
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(),
		option.WithBaseURL(base.String()), option.WithHTTPClient(wire.Direct(o.Client)), option.WithMiddleware(wire.Bound),
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	if o.Retries != 0 {
		opts = append(opts, option.WithMaxRetries(max(o.Retries, 0)))
	}
	m := &Model{messages: sdk.NewMessageService(opts...), secrets: secrets}
	m.cache = strings.HasSuffix("."+base.Hostname(), ".anthropic.com") // others may not know of it
	return m, nil
}

// Stream runs one turn.
func (m *Model) Stream(ctx context.Context, r llm.Request, text func(string)) (llm.Turn, error) {
	names := wire.NewNames(r.Tools)
	p := params(r, names)
	if m.cache {
		p.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	var res *http.Response
	s := m.messages.NewStreaming(ctx, p, option.WithResponseInto(&res))
	defer func() { _ = s.Close() }()
	a := answer{gather: wire.NewGather(names, text)}
	for s.Next() {
		if err := a.event(s.Current()); err != nil {
			return a.turn(), wire.Broken(ctx, err, m.secrets...)
		}
	}
	err := s.Err()
	if err == nil && a.stop == "" {
		err = wire.Unended(res)
	}
	if err != nil {
		return a.turn(), m.problem(ctx, err)
	}
	return a.turn(), nil
}

// problem says in our words what the SDK says in its own.
func (m *Model) problem(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *sdk.Error
	if !errors.As(err, &api) {
		return wire.Broken(ctx, err, m.secrets...)
	}
	status := api.StatusCode
	if status == http.StatusOK {
		status = 0 // it was said in the middle of the stream
	}
	return wire.Refusal(status, string(api.Type()), "", []byte(api.RawJSON()), m.secrets...)
}

// answer is a turn that is still coming.
type answer struct {
	gather  *wire.Gather
	whole   map[int64]string // the input of a call that came in one piece
	stop    sdk.StopReason
	in, out int64
}

func (a *answer) event(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.in, a.out = u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens
	case "content_block_start":
		return a.block(e)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return a.gather.Text(e.Delta.Text)
		case "input_json_delta":
			if c := a.gather.At(e.Index); c != nil {
				return a.gather.Arguments(c, e.Delta.PartialJSON)
			}
		}
	case "content_block_stop":
		if c := a.gather.At(e.Index); c != nil && c.Arguments.Len() == 0 {
			return a.gather.Arguments(c, a.whole[e.Index])
		}
	case "message_delta":
		a.usage(e.Usage)
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
	}
	return nil
}

// block begins a block. Thoughts and the vendor's own tools are not asked for
// and are passed over.
func (a *answer) block(e sdk.MessageStreamEventUnion) error {
	switch e.ContentBlock.Type {
	case "text":
		return a.gather.Text(e.ContentBlock.Text)
	case "tool_use":
		c, err := a.gather.Begin(e.Index)
		if err != nil {
			return err
		}
		if err := a.gather.Named(c, e.ContentBlock.ID, e.ContentBlock.Name); err != nil {
			return err
		}
		// That is {} where parts follow; a tool that takes nothing, and some
		// endpoints with any tool, leave it at that.
		if a.whole == nil {
			a.whole = map[int64]string{}
		}
		a.whole[e.Index] = e.ContentBlock.JSON.Input.Raw()
	}
	return nil
}

// usage has the totals so far; some endpoints leave out those of the input.
func (a *answer) usage(u sdk.MessageDeltaUsage) {
	if in := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens; in > 0 {
		a.in = in
	}
	if u.OutputTokens > 0 {
		a.out = u.OutputTokens
	}
}

func (a *answer) turn() llm.Turn {
	t := llm.Turn{Message: a.gather.Message(), StopReason: llm.StopReason(a.stop), InputTokens: a.in, OutputTokens: a.out}
	switch a.stop {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		t.StopReason = llm.StopEnd
	case sdk.StopReasonToolUse:
		t.StopReason = llm.StopTools
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		t.StopReason = llm.StopLength
	case sdk.StopReasonRefusal:
		t.StopReason = llm.StopRefusal
	}
	return t
}
