package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

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
