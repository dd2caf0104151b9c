package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/anthropic"
	"github.com/signalbox-ai/signalbox/internal/llm/llmtest"
	"github.com/signalbox-ai/signalbox/internal/llm/openai"
)

// fails runs one prompt that must fail with a ModelError.
func fails(t *testing.T, m llm.Model) *llm.ModelError {
	t.Helper()
	out, err := (&llm.Loop{Model: m}).Run(inTime(t), llm.Input{Model: "m", Prompt: "go"})
	var e *llm.ModelError
	if !errors.As(err, &e) || out.End != llm.Failed {
		t.Fatalf("%v, %+v", err, out)
	}
	if strings.Contains(err.Error(), llmtest.Key) {
		t.Errorf("the key is in the error: %v", err)
	}
	return e
}

func TestErrorsOfEndpoints(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		for _, c := range []struct {
			name  string
			reply llmtest.Reply
			want  []string
		}{
			{"key", llmtest.Reply{Status: 401, Text: "Incorrect API key provided: " + llmtest.Key}, []string{"answered 401", "Incorrect API key provided: [secret]", "check the API key"}},
			{"model", llmtest.Reply{Status: 404, Text: "The model m does not exist"}, []string{"answered 404", "does not exist", "check the model's name and the base URL"}},
			{"page", llmtest.Reply{Status: 502, Body: "<html>Bad Gateway of " + strings.Repeat("x", 9000)}, []string{"answered 502", "<html>Bad Gateway"}},
			{"empty", llmtest.Reply{Status: 500, Body: " "}, []string{"answered 500", "try again later"}},
			{"detail", llmtest.Reply{Status: 422, Body: `{"detail": "unknown field"}`}, []string{"answered 422: unknown field"}},
			{"plain error", llmtest.Reply{Status: 400, Body: `{"error": "model is required"}`}, []string{"answered 400: model is required"}},
			{"huge", llmtest.Reply{Status: 400, Body: strings.Repeat("y", 3<<20)}, []string{"answered 400"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := llmtest.New(t, v, llmtest.Script(c.reply))
				e := fails(t, s.Model())
				contains(t, e.Error(), c.want...)
				if e.Status != c.reply.Status || len(e.Error()) > 3000 || e.TooLong {
					t.Errorf("%+v", e)
				}
			})
		}
	})
}

func TestConversationThatIsTooLong(t *testing.T) {
	for v, says := range map[llmtest.Vendor]string{
		llmtest.OpenAI:    "This model's maximum context length is 128000 tokens. However, your messages resulted in 128001 tokens.",
		llmtest.Anthropic: "prompt is too long: 200001 tokens > 200000 maximum",
	} {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Status: 400, Text: says}))
		e := fails(t, s.Model())
		contains(t, e.Error(), "the conversation is too long for the model", "begin a new session", says[:20])
		if !e.TooLong {
			t.Errorf("%s: %+v", v, e)
		}
	}
}

func TestBusyEndpointIsRetried(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		now := http.Header{"Retry-After-Ms": {"1"}, "Retry-After": {"0"}}
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Status: 429, Text: "slow down", Header: now}, llmtest.Reply{Status: 503, Text: "later", Header: now}, llmtest.Reply{Text: "done"}))
		out := mustRun(t, llm.Loop{Model: s.Patient(2)}, llm.Input{})
		if out.Text != "done" || len(s.Requests()) != 3 || out.Turns != 1 {
			t.Errorf("%d requests, %+v", len(s.Requests()), out)
		}
		always := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Status: 429, Text: "slow down", Header: now}))
		contains(t, fails(t, always.Patient(2)).Error(), "answered 429", "slow down", "try again later")
		if n := len(always.Requests()); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
	})
}

func TestErrorInTheMiddleOfAStream(t *testing.T) {
	for v, raw := range map[llmtest.Vendor]string{
		llmtest.OpenAI:    `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n" + `data: {"error":{"message":"The server had an error: sk-test-0123456789","type":"server_error"}}` + "\n\n",
		llmtest.Anthropic: "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"half\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The server had an error: sk-test-0123456789\"}}\n\n",
	} {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Raw: raw}))
		out, err := (&llm.Loop{Model: s.Model()}).Run(inTime(t), llm.Input{Model: "m", Prompt: "go"})
		var e *llm.ModelError
		if !errors.As(err, &e) || out.Text != "half" || len(out.Messages) != 2 {
			t.Fatalf("%s: %v %+v", v, err, out)
		}
		contains(t, err.Error(), "The server had an error: [secret]")
		goesOn(t, out.Messages)
	}
}

func TestNonsenseOfAnEndpoint(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		for name, raw := range map[string]string{
			"no events":       "hello\n\n",
			"nothing":         "\n",
			"no JSON":         "event: message_start\ndata: {nonsense\n\n",
			"only the end":    "data: [DONE]\n\n",
			"a very long one": "data: " + strings.Repeat("z", 40<<20),
		} {
			if v == llmtest.Anthropic && len(raw) > 1<<20 {
				continue // this line is parsed like the other vendor's; one test takes a second
			}
			t.Run(name, func(t *testing.T) {
				s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Raw: raw}))
				e := fails(t, s.Model()).Error()
				contains(t, e, "the model's answer could not be had")
				if strings.Contains(e, "bufio") {
					t.Errorf("not our own message: %s", e)
				}
			})
		}
	})
}

// TestSomethingElseAnswers: a web page or a complete answer is not reported as
// a stream that broke off.
func TestSomethingElseAnswers(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		for kind, body := range map[string]string{"text/html; charset=utf-8": "<html>Sign in</html>", "application/json": `{"choices":[]}`} {
			s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Status: 200, Body: body, Header: http.Header{"Content-Type": {kind}}}))
			contains(t, fails(t, s.Model()).Error(), kind, "not with a stream of events", "check the base URL")
		}
	})
}

// TestEndpointThatRedirects: neither the key nor the conversation goes to
// another host than the configured one.
func TestEndpointThatRedirects(t *testing.T) {
	asked := make(chan http.Header, 8)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { asked <- q.Header }))
	t.Cleanup(other.Close)
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Status: 307, Body: "there", Header: http.Header{"Location": {other.URL + "/v9?key=secret"}}}))
		e := fails(t, s.Model())
		contains(t, e.Error(), "answered 307", "on to "+other.URL+"/v9;")
		if strings.Contains(e.Error(), "secret") || len(asked) > 0 {
			t.Errorf("the other was asked %d times; %v", len(asked), e)
		}
	})
}

func TestEndpointThatIsNotThere(t *testing.T) {
	const addr = "127.0.0.1:1" // another process may take a port that was just free
	client := &http.Client{Transport: &http.Transport{}}
	base := "http://user:pa55word@" + addr
	o, err := openai.New(openai.Options{BaseURL: base, APIKey: llmtest.Key, Retries: -1, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	a, err := anthropic.New(anthropic.Options{BaseURL: base, APIKey: llmtest.Key, Retries: -1, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []llm.Model{o, a} {
		e := fails(t, m)
		contains(t, e.Error(), "could not be had", "connection refused", addr, "check the base URL")
		if strings.Contains(e.Error(), "pa55word") {
			t.Errorf("the password is in the error: %v", e)
		}
	}
}

func TestBaseURLs(t *testing.T) {
	for _, bad := range []string{"localhost:1234", "ftp://x", "http://", "://", "/v1"} {
		if _, err := openai.New(openai.Options{BaseURL: bad}); err == nil {
			t.Errorf("openai takes %q", bad)
		}
		if _, err := anthropic.New(anthropic.Options{BaseURL: bad}); err == nil {
			t.Errorf("anthropic takes %q", bad)
		}
	}
	for _, suffix := range []string{"", "/", "/v1", "/v1/"} {
		s := llmtest.New(t, llmtest.Anthropic, llmtest.Script(llmtest.Reply{Text: "done"}))
		m, err := anthropic.New(anthropic.Options{BaseURL: s.URL + suffix, APIKey: llmtest.Key, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
		if err != nil {
			t.Fatal(err)
		}
		mustRun(t, llm.Loop{Model: m}, llm.Input{})
	}
}

// TestEnvironmentIsNotRead: keys and addresses come only from the
// configuration; variables that a shell sets for other programs must not
// redirect an agent.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, k := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} {
		t.Setenv(k, "http://127.0.0.1:1/")
	}
	for _, k := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "ANTHROPIC_PROFILE"} {
		t.Setenv(k, "from-the-environment")
	}
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Odd: from-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Odd: from-the-environment")
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "done"}))
		mustRun(t, llm.Loop{Model: s.Model()}, llm.Input{})
		for k, values := range s.Last().Header {
			if strings.Contains(strings.Join(values, " "), "from-the-environment") {
				t.Errorf("header %s: %v", k, values)
			}
		}
	})
}

// TestNamesThatAVendorDoesNotTake: they are mapped, and mapped back.
func TestNamesThatAVendorDoesNotTake(t *testing.T) {
	long := "browser__" + strings.Repeat("take_a_picture_of_", 8)
	names := []string{"search", "rest__weather.now", "rest__weather/now", "rest__weather_now", "größe", long, long + "x"}
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		s := llmtest.New(t, v, func(r llmtest.Request) llmtest.Reply {
			if r.Turn > 2 {
				return llmtest.Reply{Text: "done"}
			}
			var calls []llm.ToolCall
			for i, tool := range r.Tools {
				calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", r.Turn, i), Name: tool.Name, Arguments: "{}"})
			}
			return llmtest.Reply{Calls: calls}
		})
		b := tools(names...)
		b.do = func(_ context.Context, c llm.ToolCall) (string, bool, error) { return c.Name, false, nil }
		out := mustRun(t, llm.Loop{Model: s.Model(), Tools: b}, llm.Input{})
		got := answers(out.Messages)
		if len(got) != 2*len(names) {
			t.Fatalf("answers %q", got)
		}
		for i, want := range append(names, names...) {
			if got[i] != want {
				t.Errorf("call %d reached %q, want %q", i, got[i], want)
			}
		}
	})
}

// TestInvalidSchemas: one tool with an invalid schema does not make the
// vendor refuse all the others.
func TestInvalidSchemas(t *testing.T) {
	eachVendor(t, func(t *testing.T, v llmtest.Vendor) {
		for _, schema := range []string{`{"type":"array"}`, `{"type":["object","null"],"properties":null}`, `null`, `7`, ``} {
			s := llmtest.New(t, v, llmtest.Script(llmtest.Reply{Text: "ok"}))
			r := llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: "go"}}, Tools: []llm.Tool{{Name: "x", Schema: json.RawMessage(schema)}}}
			if _, err := s.Model().Stream(inTime(t), r, nil); err != nil {
				t.Fatal(err)
			}
			var got struct {
				Type       string          `json:"type"`
				Properties json.RawMessage `json:"properties"`
			}
			if err := json.Unmarshal(s.Last().Tools[0].Schema, &got); err != nil || got.Type != "object" || string(got.Properties) != "{}" {
				t.Errorf("%s is sent as %s, %v", schema, s.Last().Tools[0].Schema, err)
			}
		}
	})
}
