package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// toolStream answers every call with that stream and records the call.
func toolStream(t *testing.T, text string, made *[]string) *client.Client {
	t.Helper()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*made = append(*made, fmt.Sprintf("%s %s %s %s", r.URL.EscapedPath(), r.Header.Get("X-Signalbox-Execution"), r.Header.Get("Accept"), body))
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
	})
	return newClient(t, url, client.Options{})
}

func TestCallToolTellsItsProgress(t *testing.T) {
	var made []string
	c := toolStream(t, "retry: 1000\n\nevent: progress\ndata: {\"progress\":0,\"message\":\"queued, position 2\",\"position\":2}\n\n: alive\n\n"+
		"event: later\ndata: {}\n\nevent: result\ndata: {\"content\":[{\"type\":\"x\",\"n\":12345678901234567890}],\"isError\":true}\n\n", &made)
	var told []api.ToolProgress
	res, err := c.CallTool(t.Context(), "a__b/c", api.ToolCall{Arguments: json.RawMessage(`{"n":12345678901234567890}`), Session: "s"},
		client.ToolOptions{Execution: "queue-1", Progress: func(p api.ToolProgress) { told = append(told, p) }})
	if err != nil || !res.IsError || string(res.Content) != `[{"type":"x","n":12345678901234567890}]` {
		t.Errorf("%+v, %v", res, err)
	}
	if len(told) != 1 || told[0].Position != 2 {
		t.Errorf("%+v", told)
	}
	if want := `/api/tools/a__b%2Fc/call queue-1 text/event-stream {"arguments":{"n":12345678901234567890},"session":"s"}`; len(made) != 1 || made[0] != want {
		t.Errorf("got %q, want %s", made, want)
	}
}

func TestCallToolErrors(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		check  func(error) bool
	}{
		"of the director": {"event: error\ndata: {\"error\":\"tool_queue_full\",\"message\":\"full\",\"retryable\":true}\n\n", func(err error) bool { return client.Code(err) == "tool_queue_full" }},
		"a broken stream": {"event: progress\ndata: {}\n\n", client.IsUnreachable},
		"no JSON":         {"event: result\ndata: {\n\n", func(err error) bool { return strings.Contains(err.Error(), "result") }},
	} {
		t.Run(name, func(t *testing.T) {
			var made []string
			c := toolStream(t, test.stream, &made)
			_, err := c.CallTool(t.Context(), "t", api.ToolCall{}, client.ToolOptions{Progress: func(api.ToolProgress) {}})
			if err == nil || !test.check(err) {
				t.Errorf("%v", err)
			}
			if len(made) != 1 {
				t.Errorf("a call was made %d times; it may have an effect each time", len(made))
			}
		})
	}
}

func TestCallToolEndsWithItsContext(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, progress := range []func(api.ToolProgress){nil, func(api.ToolProgress) {}} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := newClient(t, url, client.Options{}).CallTool(ctx, "t", api.ToolCall{}, client.ToolOptions{Progress: progress})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	}
}
