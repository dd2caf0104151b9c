package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/openai"
)

// endpoint is a fake endpoint that answers with a status and a body.
func endpoint(t *testing.T, answer func(asked map[string]any) (int, string)) (*openai.Model, *[]map[string]any) {
	t.Helper()
	var asked []map[string]any
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m map[string]any
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		if q.Header.Get("Authorization") != "" {
			t.Errorf("a key was sent where there is none: %q", q.Header.Get("Authorization"))
		}
		asked = append(asked, m)
		status, body := answer(m)
		if status == 200 {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(h.Close)
	m, err := openai.New(openai.Options{BaseURL: h.URL, Client: h.Client(), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m, &asked
}

func events(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "data: %s\n\n", c)
	}
	return b.String() + "data: [DONE]\n\n"
}

var done = events(`{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}`)

func stream(t *testing.T, m *openai.Model) llm.Turn {
	t.Helper()
	turn, err := m.Stream(t.Context(), llm.Request{Model: "m", MaxTokens: 9, Messages: []llm.Message{{Role: llm.RoleUser, Text: "go"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// TestEndpointsKnowDifferentFields: a refused field is omitted or replaced
// from then on.
func TestEndpointsKnowDifferentFields(t *testing.T) {
	m, asked := endpoint(t, func(q map[string]any) (int, string) {
		if q["stream_options"] != nil {
			return 422, `{"message":"extra inputs are not permitted: stream_options"}`
		}
		if q["max_tokens"] != nil {
			return 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`
		}
		return 200, done
	})
	for range 2 {
		if turn := stream(t, m); turn.Message.Text != "done" {
			t.Errorf("%+v", turn)
		}
	}
	if n := len(*asked); n != 4 || (*asked)[3]["max_completion_tokens"] != 9.0 {
		t.Errorf("%d requests: %v", n, *asked)
	}
}

// TestEndpointThatRefusesEverything: the retries end.
func TestEndpointThatRefusesEverything(t *testing.T) {
	m, asked := endpoint(t, func(map[string]any) (int, string) {
		return 400, `{"error":{"message":"neither stream_options nor max_tokens nor max_completion_tokens"}}`
	})
	_, err := m.Stream(t.Context(), llm.Request{Model: "m", MaxTokens: 9, Messages: []llm.Message{{Role: llm.RoleUser, Text: "go"}}}, nil)
	if err == nil || len(*asked) > 4 {
		t.Errorf("%d requests, %v", len(*asked), err)
	}
}

// TestToolCallsOfCompatibleEndpoints: calls arrive in many shapes.
func TestToolCallsOfCompatibleEndpoints(t *testing.T) {
	call := func(c string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + c + `]}}]}`
	}
	stop := `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`
	for name, chunks := range map[string][]string{
		"as the vendor": {call(`{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}`), call(`{"index":0,"function":{"arguments":"{\"n\":"}}`),
			call(`{"index":1,"id":"b","type":"function","function":{"name":"y","arguments":"{}"}}`), call(`{"index":0,"function":{"arguments":" 1}"}}`), stop},
		"id and name each time": {call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":"}}`), call(`{"index":0,"id":"a","function":{"name":"x","arguments":" 1}"}}`),
			call(`{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}`), stop},
		"all numbered 0": {call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\": 1}"}}`), call(`{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}`), stop},
		"all in one":     {call(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\": 1}"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}`), stop},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := endpoint(t, func(map[string]any) (int, string) { return 200, events(chunks...) })
			turn := stream(t, m)
			want := []llm.ToolCall{{ID: "a", Name: "x", Arguments: `{"n": 1}`}, {ID: "b", Name: "y", Arguments: "{}"}}
			if fmt.Sprint(turn.Message.ToolCalls) != fmt.Sprint(want) || turn.InputTokens != 5 || turn.OutputTokens != 3 {
				t.Errorf("%+v", turn)
			}
		})
	}
}

// Cached input is counted separately, if the endpoint reports it, and never exceeds the input.
func TestInputThatWasCached(t *testing.T) {
	for details, want := range map[string]int64{"": 0, `,"prompt_tokens_details":{"cached_tokens":4}`: 4, `,"prompt_tokens_details":{"cached_tokens":400}`: 5, `,"prompt_tokens_details":[]`: 0, `,"prompt_tokens_details":null`: 0, `,"prompt_tokens_details":"4"`: 0} {
		m, _ := endpoint(t, func(map[string]any) (int, string) {
			return 200, events(`{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3` + details + `}}`)
		})
		if turn := stream(t, m); turn.InputTokens != 5 || turn.CacheReadTokens != want {
			t.Errorf("%s: %+v", details, turn)
		}
	}
}

func TestRefusalOfTheVendor(t *testing.T) {
	m, _ := endpoint(t, func(map[string]any) (int, string) {
		return 200, events(`{"choices":[{"index":0,"delta":{"refusal":"I will not"}}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	})
	if turn := stream(t, m); turn.StopReason != llm.StopRefusal || turn.Message.Text != "I will not" {
		t.Errorf("%+v", turn)
	}
}

// TestVendorTakesTheNewField: OpenAI itself is never sent max_tokens.
func TestVendorTakesTheNewField(t *testing.T) {
	var body map[string]any
	client := &http.Client{Transport: trip(func(q *http.Request) (*http.Response, error) {
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if q.URL.String() != "https://api.openai.com/v1/chat/completions" {
			t.Errorf("asked %s", q.URL)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(done)), Request: q}, nil
	})}
	m, err := openai.New(openai.Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	stream(t, m)
	if body["max_completion_tokens"] != 9.0 || body["max_tokens"] != nil || body["tools"] != nil || body["tool_choice"] != nil {
		t.Errorf("asked %v", body)
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
