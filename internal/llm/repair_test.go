package llm_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/steplimit"
)

func TestRepairArguments(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{``, `{}`}, {`   `, `{}`}, {`{`, `{}`}, {`{"`, `{}`}, {`{"a`, `{}`}, {`{"a"`, `{}`}, {`{"a":`, `{}`},
		{`{"a": "b`, `{"a": "b"}`}, {`{"a": "b\`, `{"a": "b"}`}, {`{"a": "b\u12`, `{"a": "b"}`}, {`{"a": "b\n`, `{"a": "b\n"}`},
		{`{"a": 1,`, `{"a": 1}`}, {`{"a": 1, "b`, `{"a": 1}`}, {`{"a": 1, "b": `, `{"a": 1}`},
		{`{"a": -`, `{}`}, {`{"a": 1.`, `{"a": 1}`}, {`{"a": 1.5e+`, `{"a": 1.5}`}, {`{"a": tr`, `{"a": true}`}, {`{"a": n`, `{"a": null}`},
		{`{"a": [1, {"b": "c`, `{"a": [1, {"b": "c"}]}`}, {`{"a": [1, `, `{"a": [1]}`}, {`{"a": [`, `{"a": []}`},
		{"{ \"z\":1,\t\"a\" : {", "{ \"z\":1,\t\"a\" : {}}"},
		{`{"z": 1,  "a": 2}`, `{"z": 1,  "a": 2}`},
		{`[1, 2`, `{}`}, {`"text`, `{}`}, {`{a: 1`, `{}`}, {`{"a" 1`, `{}`}, {`{"a": 1 "b`, `{}`}, {`{"a": wrong, "b`, `{}`},
		{strings.Repeat(`{"a":`, 5000), `{}`},
	} {
		if got := llm.RepairArguments(c.raw); got != c.want {
			t.Errorf("%.60q: %q, want %q", c.raw, got, c.want)
		}
	}
}

// value generates any JSON value, with arbitrary spaces.
func value(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", " ", "\n ", "\t"}).Draw(t, "space")
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(1, kinds).Draw(t, "kind") {
		case 1:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
		case 2:
			return rapid.SampledFrom([]string{"0", "-1", "12.5", "-3.25e+10", "1E-2"}).Draw(t, "number")
		case 3, 4:
			b, _ := json.Marshal(rapid.String().Draw(t, "string"))
			return string(b)
		case 5:
			list := rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
			return "[" + space + strings.Join(list, ","+space) + space + "]"
		}
		return object(depth-1).Draw(t, "object")
	})
}

func object(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		space := rapid.SampledFrom([]string{"", " ", "\n ", "\t"}).Draw(t, "space")
		var members []string
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			k, _ := json.Marshal(rapid.String().Draw(t, "name"))
			members = append(members, string(k)+space+":"+space+value(depth).Draw(t, "value"))
		}
		return "{" + space + strings.Join(members, space+","+space) + space + "}"
	})
}

// TestEveryBeginningOfArgumentsIsRepaired: wherever arguments are cut, the
// result is an object; complete ones stay unchanged byte for byte.
func TestEveryBeginningOfArgumentsIsRepaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := object(3).Draw(t, "arguments")
		if got := llm.RepairArguments(whole); got != whole {
			t.Fatalf("%q became %q", whole, got)
		}
		at := rapid.IntRange(0, len(whole)).Draw(t, "cut")
		got := llm.RepairArguments(whole[:at])
		var m map[string]any
		if err := json.Unmarshal([]byte(got), &m); err != nil || m == nil {
			t.Fatalf("%q became %q: %v", whole[:at], got, err)
		}
		if at > 0 && got == "{}" && strings.Count(whole[:at], ",") > 0 && strings.Count(whole[:at], `"`) == 4 && !strings.Contains(whole, `\`) {
			// a complete first member must not be lost
			var first map[string]json.RawMessage
			if json.Unmarshal([]byte(whole[:strings.Index(whole, ",")]+"}"), &first) == nil && at > strings.Index(whole, ",") {
				t.Fatalf("%q lost its first member", whole[:at])
			}
		}
	})
}

// TestNonsenseBecomesAnObject: text that is not the beginning of JSON becomes
// one as well.
func TestNonsenseBecomesAnObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(object(3).Draw(t, "arguments"))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(raw)).Draw(t, "at")
			odd := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"`, `\`, "-", "1", "x", "\x00", "\xff"}).Draw(t, "odd")
			raw = slices.Concat(raw[:at], []byte(odd), raw[min(at+rapid.IntRange(0, 3).Draw(t, "without"), len(raw)):])
		}
		raw = append(raw, rapid.SampledFrom([]string{"", "{", `"`}).Draw(t, "more")...)
		var m map[string]json.RawMessage
		if got := llm.RepairArguments(string(raw)); json.Unmarshal([]byte(got), &m) != nil || m == nil {
			t.Fatalf("%q became %q", raw, got)
		}
	})
}

func TestRepairOfConversations(t *testing.T) {
	user, say := llm.Message{Role: llm.RoleUser, Text: "go"}, llm.Message{Role: llm.RoleAssistant, Text: "done"}
	a := llm.ToolCall{ID: "a", Name: "search", Arguments: `{"q": "x", "n`}
	b := llm.ToolCall{ID: "b", Name: "search", Arguments: `no JSON`}
	ask := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{a, b}}
	told := func(id string) llm.Message {
		return llm.Message{Role: llm.RoleTool, ToolID: id, ToolName: "search", Text: "told " + id}
	}
	abort := llm.Message{Role: llm.RoleTool, ToolID: "a", ToolName: "search", Text: steplimit.AbortedText, IsError: true}
	mended := a
	mended.Arguments = `{"q": "x"}`
	for name, c := range map[string]struct{ in, want []llm.Message }{
		"nothing":            {nil, nil},
		"valid":              {[]llm.Message{user, ask, told("a"), told("b"), say}, []llm.Message{user, ask, told("a"), told("b"), say}},
		"open calls":         {[]llm.Message{user, ask, told("b")}, []llm.Message{user, {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{mended, b}}, abort, told("b")}},
		"wrong order":        {[]llm.Message{user, ask, told("b"), told("a")}, []llm.Message{user, ask, told("a"), told("b")}},
		"answers to nothing": {[]llm.Message{user, told("x"), say, told("a")}, []llm.Message{user, say}},
		"answered twice":     {[]llm.Message{user, ask, told("a"), told("a"), told("b"), told("b")}, []llm.Message{user, ask, told("a"), told("b")}},
		"says nothing":       {[]llm.Message{{Role: llm.RoleUser}, user, {Role: llm.RoleAssistant}, {Role: "other", Text: "?"}}, []llm.Message{user}},
		"calls without name": {[]llm.Message{user, {Role: llm.RoleAssistant, Text: "x", ToolCalls: []llm.ToolCall{{ID: "a"}, {Name: "search"}}}}, []llm.Message{user, {Role: llm.RoleAssistant, Text: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.in)
			got := llm.Repair(c.in)
			if d := cmp.Diff(c.want, got, cmp.Transformer("nil", func(m []llm.Message) []llm.Message { return append([]llm.Message{}, m...) })); d != "" && len(c.want)+len(got) > 0 {
				t.Error(d)
			}
			if d := cmp.Diff(before, c.in); d != "" {
				t.Errorf("the argument was changed: %s", d)
			}
			if d := cmp.Diff(got, llm.Repair(got)); d != "" {
				t.Errorf("a repaired conversation was repaired again: %s", d)
			}
		})
	}
}
