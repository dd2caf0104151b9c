package model_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/e2e/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	http.DefaultClient.CloseIdleConnections()
	return res.StatusCode, string(b)
}

// The three formats, streaming and not: text, tool call, error.
func TestFormats(t *testing.T) {
	m, err := model.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for path, c := range map[string]struct{ body, tool, end, call string }{
		"/v1/messages":         {`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"Bash"}],"stream":STREAM}`, `tool_use`, "message_stop", `"name":"Bash"`},
		"/v1/responses":        {`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"tools":[{"name":"shell_command","type":"function"}],"stream":STREAM}`, `function_call`, "response.completed", `"name":"shell_command"`},
		"/v1/chat/completions": {`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"function":{"name":"bash"}}],"stream":STREAM}`, `tool_calls`, "[DONE]", `"name":"bash"`},
	} {
		m.Use(model.Replies(
			model.Reply{Text: "hello world", Chunks: 2}, model.Reply{Text: "hello world"},
			model.Reply{Tool: model.Shell("ls")}, model.Reply{Tool: model.Shell("ls")},
			model.Reply{Status: 429, Message: "slow down"}))
		stream, whole := strings.Replace(c.body, "STREAM", "true", 1), strings.Replace(c.body, "STREAM", "false", 1)
		if code, b := post(t, m.URL+path, stream); code != 200 || !strings.Contains(b, `"hello"`) || !strings.Contains(b, `" world"`) || !strings.Contains(b, c.end) {
			t.Errorf("%s streamed: %d %s", path, code, b)
		}
		if code, b := post(t, m.URL+path, whole); code != 200 || !strings.Contains(b, "hello world") || strings.Contains(b, "data:") {
			t.Errorf("%s whole: %d %s", path, code, b)
		}
		for _, body := range []string{stream, whole} {
			if code, b := post(t, m.URL+path, body); code != 200 || !strings.Contains(b, c.tool) || !strings.Contains(b, c.call) {
				t.Errorf("%s tool: %d %s", path, code, b)
			}
		}
		if code, b := post(t, m.URL+path, stream); code != 429 || !strings.Contains(b, "slow down") {
			t.Errorf("%s error: %d %s", path, code, b)
		}
		if code, _ := post(t, m.URL+path, "{"); code != 400 {
			t.Errorf("%s bad body: %d", path, code)
		}
		if n := len(m.Requests()); n != 5 {
			t.Errorf("%s: %d requests", path, n)
		}
	}
}

// A request without tools is a side request and takes no turn of the script.
func TestSideRequests(t *testing.T) {
	m, err := model.Start(model.Replies(model.Reply{Text: "first"}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, b := post(t, m.URL+"/v1/messages", `{"model":"small","messages":[{"role":"user","content":"title?"}]}`)
	if !strings.Contains(b, "title") || len(m.Requests()) != 1 || !m.Requests()[0].Side {
		t.Error(b)
	}
	if _, b = post(t, m.URL+"/v1/messages/count_tokens", `{}`); !strings.Contains(b, "input_tokens") {
		t.Error(b)
	}
}

// An error with the headers and the body of a provider's limit.
func TestLimits(t *testing.T) {
	m, err := model.Start(model.Replies(model.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, Failure: map[string]any{"error": map[string]any{"type": "usage_limit_reached"}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	res, err := http.Post(m.URL+"/v1/responses", "application/json", strings.NewReader(`{"input":"hi","tools":[{"name":"shell"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || strings.TrimSpace(string(b)) != `{"error":{"type":"usage_limit_reached"}}` {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, b)
	}
}
