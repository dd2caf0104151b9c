package llm_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/anthropic"
	"github.com/signalbox-ai/signalbox/internal/llm/openai"
)

// FuzzAnswers: whatever an endpoint streams becomes a turn or a ModelError,
// and the streamed text equals the stored text.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`data: {"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}` + "\n\n",
		`data: {"choices":[{"delta":{"content":["a"],"refusal":"no"},"finish_reason":null}]}` + "\n\ndata: [DONE]\n\n",
		`data: {"error":{"message":"no","code":7}}` + "\n\n", `data: {"type":"error","error":{"type":"overloaded_error"}}` + "\n\n",
		`data: {"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","id":"x","name":"n","input":{"a":1}}}` + "\n\n" + `data: {"type":"content_block_stop","index":-1}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1e99}}` + "\n\n",
		"data: {\n\n", "data: 1\r\rdata: []\n\n", "\ufeffid: 1\ndata:\n\n", "retry: 1\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		client := &http.Client{Transport: trip(func(q *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(stream))), Request: q}, nil
		})}
		o, err := openai.New(openai.Options{Client: client, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		a, err := anthropic.New(anthropic.Options{Client: client, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []llm.Model{o, a} {
			var heard strings.Builder
			turn, err := m.Stream(t.Context(), llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: "go"}}}, func(s string) { heard.WriteString(s) })
			if e := (*llm.ModelError)(nil); err != nil && !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			if heard.String() != turn.Message.Text || err == nil && turn.StopReason == "" {
				t.Fatalf("got %q, %+v", heard.String(), turn)
			}
		}
	})
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// FuzzArguments: whatever a model wrote as arguments becomes a JSON object that
// the endpoint accepts. A valid object stays unchanged byte for byte, and
// repairing twice changes nothing.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":`, `{"a":[1,{"b":"c`, `{"a":tru`, `{"a":1}}`, `[1]`, ``, ` {}`, `{"a":"\u00`, `{"a":"\`, `{"a":-`, `{"a":1e`, `{,}`, `{"a" 1}`, "{\"a\":\"\xff\"}", `{"a":1,"a":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for name, mend := range map[string]func(string) string{"RepairArguments": llm.RepairArguments, "ObjectArguments": llm.ObjectArguments} {
			got := mend(raw)
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(got), &object); err != nil || object == nil {
				t.Fatalf("%s(%q) = %q: %v", name, raw, got, err)
			}
			if again := mend(got); again != got {
				t.Fatalf("%s(%q) = %q, and of that %q", name, raw, got, again)
			}
			if len(got) > 8*len(raw)+64 {
				t.Fatalf("%s: %d bytes become %d", name, len(raw), len(got))
			}
		}
	})
}
