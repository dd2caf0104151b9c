package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/anthropic"
)

// said streams these events, and returns the turn and the request.
func said(t *testing.T, r llm.Request, events ...string) (llm.Turn, map[string]any) {
	t.Helper()
	var asked map[string]any
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := json.NewDecoder(q.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if q.Header.Get("Anthropic-Version") == "" || q.Header.Get("X-Api-Key") != "" {
			t.Errorf("headers %v", q.Header)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var kind struct{ Type string }
			if err := json.Unmarshal([]byte(e), &kind); err != nil {
				t.Error(err)
			}
			io.WriteString(w, "event: "+kind.Type+"\ndata: "+e+"\n\n")
		}
	}))
	t.Cleanup(h.Close)
	m, err := anthropic.New(anthropic.Options{BaseURL: h.URL, Client: h.Client(), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	r.Model = "m"
	if len(r.Messages) == 0 {
		r.Messages = []llm.Message{{Role: llm.RoleUser, Text: "go"}}
	}
	var heard strings.Builder
	turn, err := m.Stream(t.Context(), r, func(d string) { heard.WriteString(d) })
	if err != nil {
		t.Fatal(err)
	}
	if heard.String() != turn.Message.Text {
		t.Errorf("streamed %q, got %q", heard.String(), turn.Message.Text)
	}
	return turn, asked
}

// TestBlocks: thinking is skipped, an input may arrive in one piece, and
// cached tokens count.
func TestBlocks(t *testing.T) {
	turn, _ := said(t, llm.Request{},
		`{"type":"message_start","message":{"id":"x","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"whole","input":{"z": 1, "a":2}}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"nothing","input":{}}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_3","name":"parts","input":{}}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"q\": "}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":" 1}"}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":77}}`,
		`{"type":"message_stop"}`)
	c := turn.Message.ToolCalls
	if turn.Message.Text != "I look" || len(c) != 3 || c[0].Arguments != `{"z": 1, "a":2}` || c[1].Arguments != "{}" || c[2].Arguments != `{"q":  1}` {
		t.Errorf("%+v", turn.Message)
	}
	if turn.StopReason != llm.StopTools || turn.InputTokens != 543 || turn.CacheReadTokens != 40 || turn.CacheWriteTokens != 500 || turn.OutputTokens != 77 {
		t.Errorf("%+v", turn)
	}
}

// TestAnswersOfOneTurnAreOneMessage: the next user text is in the same
// message. Text that the vendor refuses is left out.
func TestAnswersOfOneTurnAreOneMessage(t *testing.T) {
	history := []llm.Message{
		{Role: llm.RoleUser, Text: "go"}, {Role: llm.RoleUser, Text: "go on"},
		{Role: llm.RoleAssistant, Text: " \n", ToolCalls: []llm.ToolCall{{ID: "a:1", Name: "x", Arguments: "no JSON"}, {ID: "b", Name: "x"}}},
		{Role: llm.RoleTool, ToolID: "a:1", Text: "", IsError: true}, {Role: llm.RoleTool, ToolID: "b", Text: "yes"},
		{Role: llm.RoleUser, Text: "and now?"},
	}
	tools := []llm.Tool{{Name: "x", Schema: json.RawMessage(`{"type":"object","required":["q"],"$defs":{"n":{}},"properties":{"q":{"type":"string"}}}`)}, {Name: "y"}}
	_, asked := said(t, llm.Request{Messages: history, Tools: tools, NoTools: true},
		`{"type":"message_start","message":{"content":[],"usage":{}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}`, `{"type":"message_stop"}`)
	messages, _ := json.Marshal(asked["messages"])
	id := asked["messages"].([]any)[1].(map[string]any)["content"].([]any)[0].(map[string]any)["id"].(string)
	want := `[{"content":[{"text":"go","type":"text"},{"text":"go on","type":"text"}],"role":"user"},` +
		`{"content":[{"id":"` + id + `","input":{"invalid_arguments":"no JSON"},"name":"x","type":"tool_use"},{"id":"b","input":{},"name":"x","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"is_error":true,"tool_use_id":"` + id + `","type":"tool_result"},{"content":[{"text":"yes","type":"text"}],"tool_use_id":"b","type":"tool_result"},{"text":"and now?","type":"text"}],"role":"user"}]`
	if string(messages) != want || strings.Contains(id, ":") {
		t.Errorf("messages\n%s\nwant\n%s", messages, want)
	}
	declared, _ := json.Marshal(asked["tools"])
	if want := `[{"input_schema":{"$defs":{"n":{}},"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"},"name":"x"},{"input_schema":{"properties":{},"type":"object"},"name":"y"}]`; string(declared) != want {
		t.Errorf("tools\n%s\nwant\n%s", declared, want)
	}
	if choice, _ := json.Marshal(asked["tool_choice"]); string(choice) != `{"type":"none"}` || asked["max_tokens"] != 8192.0 {
		t.Errorf("asked %s, %v tokens", choice, asked["max_tokens"])
	}
}

// TestVendorCaches: only the vendor itself is asked to cache the
// conversation, because other endpoints may not support it.
func TestVendorCaches(t *testing.T) {
	for base, want := range map[string]bool{"": true, "https://api.anthropic.com/v1": true, "https://proxy.example/": false, "https://notanthropic.com": false} {
		var body map[string]any
		client := &http.Client{Transport: trip(func(q *http.Request) (*http.Response, error) {
			if err := json.NewDecoder(q.Body).Decode(&body); err != nil || q.URL.Path != "/v1/messages" {
				t.Errorf("%s %v", q.URL, err)
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("")), Request: q}, nil
		})}
		m, err := anthropic.New(anthropic.Options{BaseURL: base, APIKey: "k", Client: client, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Stream(t.Context(), llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: "go"}}}, nil)
		if got := body["cache_control"] != nil; got != want {
			t.Errorf("%q: cache_control %v", base, body["cache_control"])
		}
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
