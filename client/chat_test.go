package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

var ran = api.ChatResponse{Response: "done", Agent: "coder", Execution: api.ExecutionRef{ID: "queue-1", QueueStatus: "queued:2", WasQueued: true}}

func TestChatHeaders(t *testing.T) {
	for _, test := range []struct {
		opts   client.ChatOptions
		prefer string
	}{
		{client.ChatOptions{IdempotencyKey: "k", Execution: "queue-9"}, ""},
		{client.ChatOptions{IdempotencyKey: "k", Execution: "queue-9", Async: true, Wait: time.Second}, "respond-async"},
		{client.ChatOptions{IdempotencyKey: "k", Execution: "queue-9", Wait: 90 * time.Second}, "wait=90"},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got := fmt.Sprint(r.Header.Get("Idempotency-Key"), r.Header.Get("X-Signalbox-Execution"), r.Header.Get("Prefer"), r.URL.Path)
			if want := "kqueue-9" + test.prefer + "/api/agents/coder/chat"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			reply(w, 200, ran)
		})
		got, err := newClient(t, url, client.Options{}).Chat(t.Context(), "coder", api.ChatRequest{Message: "m"}, test.opts)
		if err != nil || got.Response == nil || got.Response.Response != "done" || got.Accepted != nil {
			t.Fatalf("%+v %v", got, err)
		}
	}
}

func TestChatThatGoesOn(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reply(w, 202, api.ChatAccepted{Execution: api.ExecutionRef{ID: "queue-1"}, Position: 2})
	})
	got, err := newClient(t, url, client.Options{}).Chat(t.Context(), "coder", api.ChatRequest{}, client.ChatOptions{Async: true})
	if err != nil || got.Accepted == nil || got.Accepted.Execution.ID != "queue-1" || got.Response != nil {
		t.Fatalf("%+v %v", got, err)
	}
}

// A chat that did not complete is distinguished from a gateway error, although
// both have the status 502 or 504.
func TestChatErrors(t *testing.T) {
	for _, test := range []struct {
		status int
		body   api.ChatError
		id     string
	}{
		{409, api.ChatError{Error: "Agent is busy", Code: "agent_busy", Message: "Agent 'coder' is busy", RetryAfter: 30}, ""},
		{429, api.ChatError{Error: "Agent queue is full", Code: "queue_full"}, ""},
		{503, api.ChatError{Error: "agent_down", Code: "agent_down", Hint: "start it"}, ""},
		{504, api.ChatError{Error: "wait_timeout", Code: "wait_timeout", Execution: &api.ExecutionRef{ID: "queue-1"}}, "queue-1"},
		{502, api.ChatError{Error: "lost", Code: "lost", Execution: &api.ExecutionRef{ID: "queue-1"}}, "queue-1"},
	} {
		var n atomic.Int32
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { n.Add(1); reply(w, test.status, test.body) })
		_, err := newClient(t, url, client.Options{}).Chat(t.Context(), "coder", api.ChatRequest{}, client.ChatOptions{})
		var chat *client.ChatError
		var plain *client.Error
		if !errors.As(err, &chat) || chat.ID() != test.id || chat.Code() != test.body.Code || chat.Status != test.status {
			t.Fatalf("%d: %#v", test.status, err)
		}
		if !errors.As(err, &plain) || client.Code(err) != test.body.Code || plain.Body.Hint != test.body.Hint || err.Error() == "" {
			t.Errorf("%d: as a plain error: %#v", test.status, plain)
		}
		if n.Load() != 1 {
			t.Errorf("%d was asked for %d times", test.status, n.Load())
		}
	}
}

func TestChatWithALostReplyIsOneTask(t *testing.T) {
	var keys []string
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		switch n.Add(1) {
		case 1:
			drop(w, r)
		case 2:
			http.Error(w, "no answer from upstream", http.StatusGatewayTimeout)
		case 3:
			reply(w, 503, api.Error{Error: "unavailable", Message: "starting"})
		default:
			reply(w, 200, ran)
		}
	})
	got, err := newClient(t, url, client.Options{}).Chat(t.Context(), "coder", api.ChatRequest{}, client.ChatOptions{})
	if err != nil || got.Response.Response != "done" || len(keys) != 4 {
		t.Fatalf("%+v %v, %d requests", got, err, len(keys))
	}
	for _, key := range keys {
		if key == "" || key != keys[0] {
			t.Fatalf("keys: %q", keys)
		}
	}
}

func TestChatGivesUpWithTheKey(t *testing.T) {
	url := serve(t, drop)
	c := newClient(t, url, client.Options{Patience: time.Millisecond, Backoff: func(int) time.Duration { return 2 * time.Millisecond }})
	_, err := c.Chat(t.Context(), "coder", api.ChatRequest{}, client.ChatOptions{IdempotencyKey: "mine"})
	var gone *client.UnreachableError
	if !errors.As(err, &gone) || gone.Key != "mine" || !gone.Sent {
		t.Fatalf("%#v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Chat(ctx, "coder", api.ChatRequest{}, client.ChatOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func sse(name string, v any) string {
	data, _ := json.Marshal(v)
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, data)
}

// chatEvents collects the events of a stream, one word per event.
func chatEvents(into *[]string) func(client.ChatEvent) error {
	return func(e client.ChatEvent) error {
		word := e.Name
		switch {
		case e.Accepted != nil:
			word += " " + e.Accepted.Execution.ID
		case e.Position != nil:
			word += fmt.Sprint(" ", e.Position.Position)
		case e.Output != nil:
			word += fmt.Sprint(" ", e.Output.After, e.Output.Text)
		}
		*into = append(*into, word)
		return nil
	}
}

func TestChatStreamGoesOnWhereItBroke(t *testing.T) {
	accepted := sse("accepted", api.ChatAccepted{Execution: api.ExecutionRef{ID: "queue-1"}, Position: 2})
	streams := []string{
		accepted + sse("position", api.ChatPosition{Position: 1}) + sse("started", struct{}{}) + sse("output", client.ChatOutput{Text: "one t"}) + "event: output\ndata: {",
		": nothing\n\n",
		accepted + sse("later", 1) + sse("position", api.ChatPosition{Position: 0}) + sse("started", struct{}{}) +
			sse("output", client.ChatOutput{Text: "one "}) + sse("output", client.ChatOutput{After: 4, Text: "two"}) + sse("result", ran),
	}
	var n atomic.Int32
	var keys []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if r.Header.Get("Accept") != "text/event-stream" {
			t.Error("it does not ask for a stream")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, streams[n.Add(1)-1])
	})
	var got []string
	end, err := newClient(t, url, client.Options{}).ChatStream(t.Context(), "coder", api.ChatRequest{}, client.ChatOptions{Async: true}, chatEvents(&got))
	if err != nil || end.Response != "done" {
		t.Fatalf("%+v %v", end, err)
	}
	if want := "[accepted queue-1 position 1 started output 0one t position 0 output 5wo]"; fmt.Sprint(got) != want {
		t.Fatalf("%v\nwant %s", got, want)
	}
	if len(keys) != 3 || keys[0] != keys[2] || keys[0] == "" {
		t.Fatal(keys)
	}
}

func TestChatStreamEnds(t *testing.T) {
	failed := api.ChatError{Error: "agent_error", Code: "agent_error", Message: "it broke", State: "failed", Execution: &api.ExecutionRef{ID: "queue-1"}}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		each    error
		want    string
	}{
		"error": {stream(sse("error", failed)), nil, "it broke"},
		"refused": {func(w http.ResponseWriter, r *http.Request) {
			reply(w, 429, api.ChatError{Code: "queue_full", Message: "full"})
		}, nil, "full"},
		"not found": {func(w http.ResponseWriter, r *http.Request) {
			reply(w, 404, api.Error{Error: "not_found", Message: "no agent"})
		}, nil, "no agent"},
		"no stream": {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }, nil, "instead of a stream"},
		"no JSON":   {stream("event: result\ndata: x\n\n"), nil, `"result" that is not the expected JSON`},
		"caller":    {stream(sse("accepted", api.ChatAccepted{})), errors.New("broken pipe"), "broken pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, serve(t, test.handler), client.Options{}).BypassStream(t.Context(), "coder", api.BypassRequest{}, client.ChatOptions{},
				func(client.ChatEvent) error { return test.each })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v, want %s", err, test.want)
			}
		})
	}
}

func stream(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
	}
}

func TestEventsOfTheMoment(t *testing.T) {
	var asked []string
	text := event(1, "submit") + sse("position", api.Event{Kind: "position", QueueID: "queue-1", Position: 2}) + event(2, "claim")
	c := newClient(t, streams(t, &asked, text), client.Options{})
	got, _ := collect(t, c, client.EventsOptions{Agent: "coder", Include: []string{"position", "output"}})
	if fmt.Sprint(got) != "[1submit 0position 2claim]" || asked[0] != "after=0&agent=coder&include=position%2Coutput 0" || !strings.HasPrefix(asked[1], "after=2") {
		t.Fatalf("%v, asked %v", got, asked)
	}
}

func TestAllAudit(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "limit=2":
			reply(w, 200, api.AuditLog{Rows: []api.AuditRow{{Seq: 1}, {Seq: 2}}, Next: 2})
		case "after=2&limit=2":
			reply(w, 200, api.AuditLog{Rows: []api.AuditRow{{Seq: 3}}})
		default:
			reply(w, 400, api.Error{Error: "validation_error", Message: r.URL.RawQuery})
		}
	})
	var got []int64
	for row, err := range newClient(t, url, client.Options{}).AllAudit(t.Context(), client.AuditOptions{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Seq)
	}
	if fmt.Sprint(got) != "[1 2 3]" {
		t.Fatal(got)
	}
}
