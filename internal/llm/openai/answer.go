package openai

import (
	sdk "github.com/openai/openai-go/v3"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

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
