package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/wire"
)

func params(r llm.Request, names *wire.Names) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: r.Model, MaxTokens: int64(r.MaxTokens), Messages: messages(r.Messages, names)}
	if p.MaxTokens <= 0 {
		p.MaxTokens = DefaultMaxTokens
	}
	if strings.TrimSpace(r.System) != "" {
		p.System = []sdk.TextBlockParam{{Text: r.System}}
	}
	for _, t := range r.Tools {
		tool := sdk.ToolParam{Name: names.Vendor(t.Name), InputSchema: schema(t.Schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	// The tools stay declared in a turn that may call none: the conversation
	// speaks of them, and the vendor's cache begins with them.
	if len(p.Tools) > 0 && r.NoTools {
		p.ToolChoice = sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
	}
	return p
}

// schema keeps the members of a schema as they are written. A tool that has
// none takes an empty object.
func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		members = nil
	}
	s := sdk.ToolInputSchemaParam{Properties: struct{}{}}
	for k, v := range members {
		switch {
		case k == "type", string(v) == "null": // it is always an object
		case k == "properties":
			s.Properties = v
		default:
			if s.ExtraFields == nil {
				s.ExtraFields = map[string]any{}
			}
			s.ExtraFields[k] = v
		}
	}
	return s
}

// messages are the conversation in the vendor's words, in which user and
// assistant take turns: the answers to all calls of a turn, and what the user
// says after them, are one message of the user.
func messages(list []llm.Message, names *wire.Names) []sdk.MessageParam {
	var out []sdk.MessageParam
	for _, m := range list {
		role, blocks := sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion(nil)
		switch m.Role {
		case llm.RoleUser:
			blocks = said(m.Text)
		case llm.RoleTool:
			blocks = []sdk.ContentBlockParamUnion{result(m)}
		case llm.RoleAssistant:
			role = sdk.MessageParamRoleAssistant
			blocks = append(said(m.Text), uses(m.ToolCalls, names)...)
		}
		if len(blocks) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			continue
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	return out
}

// said leaves out text that is none: the vendor refuses it.
func said(text string) []sdk.ContentBlockParamUnion {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []sdk.ContentBlockParamUnion{sdk.NewTextBlock(text)}
}

func uses(calls []llm.ToolCall, names *wire.Names) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, c := range calls {
		out = append(out, sdk.NewToolUseBlock(wire.ID(c.ID), json.RawMessage(llm.ObjectArguments(c.Arguments)), names.Vendor(c.Name)))
	}
	return out
}

func result(m llm.Message) sdk.ContentBlockParamUnion {
	r := sdk.ToolResultBlockParam{ToolUseID: wire.ID(m.ToolID)}
	if m.IsError {
		r.IsError = param.NewOpt(true)
	}
	if strings.TrimSpace(m.Text) != "" {
		r.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: m.Text}}}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &r}
}
