package openai

import (
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

// messages are the conversation in the vendor's words. Arguments go back in
// the model's own bytes.
func messages(r llm.Request, names *wire.Names) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	if r.System != "" {
		out = append(out, sdk.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleUser:
			out = append(out, sdk.UserMessage(m.Text))
		case llm.RoleTool:
			out = append(out, sdk.ToolMessage(m.Text, wire.ID(m.ToolID)))
		case llm.RoleAssistant:
			out = append(out, assistant(m, names))
		}
	}
	return out
}

func assistant(m llm.Message, names *wire.Names) sdk.ChatCompletionMessageParamUnion {
	var a sdk.ChatCompletionAssistantMessageParam
	if m.Text != "" {
		a.Content.OfString = param.NewOpt(m.Text)
	}
	for _, c := range m.ToolCalls {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID: wire.ID(c.ID),
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
				Name: names.Vendor(c.Name), Arguments: llm.ObjectArguments(c.Arguments),
			},
		}})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// tools are declared with their schemas as they are.
func tools(list []llm.Tool, names *wire.Names) []sdk.ChatCompletionToolUnionParam {
	var out []sdk.ChatCompletionToolUnionParam
	for _, t := range list {
		f := shared.FunctionDefinitionParam{Name: names.Vendor(t.Name)}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		f.Parameters = schema(t.Schema)
		out = append(out, sdk.ChatCompletionFunctionTool(f))
	}
	return out
}

// schema keeps the members of a schema as they are written. A tool that has
// none takes an empty object.
func schema(raw json.RawMessage) shared.FunctionParameters {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		members = map[string]json.RawMessage{}
	}
	p := shared.FunctionParameters{"type": "object", "properties": struct{}{}}
	for k, v := range members {
		// A vendor refuses all of a request for one schema that is of something
		// else than an object.
		if k != "type" && string(v) != "null" {
			p[k] = v
		}
	}
	return p
}

func orWord(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
