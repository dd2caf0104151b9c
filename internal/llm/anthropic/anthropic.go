// Package anthropic is a model behind an endpoint with Anthropic's messages
// protocol.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// VendorURL is the base URL of Anthropic itself.
const VendorURL = "https://api.anthropic.com"

// version of the messages protocol.
const version = "2023-06-01"

// DefaultMaxTokens limits a turn by default: the vendor requires a limit.
const DefaultMaxTokens = 8192

// Options describe the endpoint; the URL may end with /v1.
type Options = wire.Options

// Model implements the messages protocol.
type Model struct {
	endpoint *wire.Endpoint
	cache    bool // each turn resends the whole conversation, which the vendor's cache makes cheap
}

// New makes a Model. It sends no request.
func New(o Options) (*Model, error) {
	header := http.Header{"Anthropic-Version": {version}}
	if o.APIKey != "" {
		header.Set("X-Api-Key", o.APIKey)
	}
	o.BaseURL = strings.TrimSuffix(strings.TrimSuffix(cmp.Or(o.BaseURL, VendorURL), "/"), "/v1")
	e, err := wire.NewEndpoint(o, VendorURL, "v1/messages", header)
	if err != nil {
		return nil, err
	}
	return &Model{endpoint: e, cache: strings.HasSuffix("."+e.Host, ".anthropic.com")}, nil // others may not support it
}

// Stream runs one turn.
func (m *Model) Stream(ctx context.Context, r llm.Request, text func(string)) (llm.Turn, error) {
	names := wire.NewNames(r.Tools)
	q := newRequest(r, names)
	if m.cache {
		q.CacheControl = &cacheControl{Type: "ephemeral"}
	}
	a := answer{gather: wire.NewGather(names, text)}
	err := m.endpoint.Stream(ctx, q, a.event, func() bool { return a.stop != "" })
	return a.turn(), err
}

// answer is a turn in progress.
type answer struct {
	gather *wire.Gather
	whole  map[int64]string // input of calls that arrived in one piece
	stop   wire.Text
	usage  usage
}

// event is an event of the stream.
type event struct {
	Type    wire.Text  `json:"type"`
	Index   wire.Count `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type  wire.Text       `json:"type"`
		Text  wire.Text       `json:"text"`
		ID    wire.Text       `json:"id"`
		Name  wire.Text       `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type        wire.Text `json:"type"`
		Text        wire.Text `json:"text"`
		PartialJSON wire.Text `json:"partial_json"`
		StopReason  wire.Text `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage has the totals so far; some endpoints leave out the input.
type usage struct {
	Input         wire.Count `json:"input_tokens"`
	CacheRead     wire.Count `json:"cache_read_input_tokens"`
	CacheCreation wire.Count `json:"cache_creation_input_tokens"`
	Output        wire.Count `json:"output_tokens"`
}

func (u usage) input() wire.Count { return u.Input + u.CacheRead + u.CacheCreation }

func (a *answer) event(data []byte) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	index := int64(e.Index)
	switch e.Type {
	case "error":
		return wire.Error{Event: data}
	case "message_start":
		a.usage = e.Message.Usage
	case "content_block_start":
		return a.block(index, e)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return a.gather.Text(string(e.Delta.Text))
		case "input_json_delta":
			if c := a.gather.At(index); c != nil {
				return a.gather.Arguments(c, string(e.Delta.PartialJSON))
			}
		}
	case "content_block_stop":
		if c := a.gather.At(index); c != nil && c.Arguments.Len() == 0 {
			return a.gather.Arguments(c, a.whole[index])
		}
	case "message_delta":
		out := cmp.Or(e.Usage.Output, a.usage.Output)
		if e.Usage.input() > 0 {
			a.usage = e.Usage
		}
		a.usage.Output = out
		a.stop = cmp.Or(e.Delta.StopReason, a.stop)
	}
	return nil
}

// block begins a block. Thinking and the vendor's own tools are not requested
// and are skipped.
func (a *answer) block(index int64, e event) error {
	switch e.Block.Type {
	case "text":
		return a.gather.Text(string(e.Block.Text))
	case "tool_use":
		c, err := a.gather.Begin(index)
		if err != nil {
			return err
		}
		if err := a.gather.Named(c, string(e.Block.ID), string(e.Block.Name)); err != nil {
			return err
		}
		// The input is {} if parts follow. For a tool without arguments, and at some
		// endpoints for any tool, no parts follow.
		if a.whole == nil {
			a.whole = map[int64]string{}
		}
		a.whole[index] = string(e.Block.Input)
	}
	return nil
}

func (a *answer) turn() llm.Turn {
	u := a.usage
	t := llm.Turn{
		Message: a.gather.Message(), StopReason: llm.StopReason(a.stop), InputTokens: int64(u.input()), OutputTokens: int64(u.Output),
		CacheReadTokens: int64(u.CacheRead), CacheWriteTokens: int64(u.CacheCreation),
	}
	switch a.stop {
	case "end_turn", "stop_sequence":
		t.StopReason = llm.StopEnd
	case "tool_use":
		t.StopReason = llm.StopTools
	case "max_tokens", "model_context_window_exceeded":
		t.StopReason = llm.StopLength
	case "refusal":
		t.StopReason = llm.StopRefusal
	}
	return t
}
