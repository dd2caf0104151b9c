package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

// chatCall is a chat or bypass task as it came to the fake director.
type chatCall struct {
	path, key, execution, prefer string
	chat                         api.ChatRequest
	bypass                       api.BypassRequest
}

// handleChat answers a chat or a bypass task. The first word of the message says
// how: echo completes, queued completes after a wait in line; busy, crowded, full,
// cycle and down are refused; failed, cancelled, timeout and lost end that way; hang
// runs for ever and line waits for ever.
func (f *fake) handleChat(w http.ResponseWriter, r *http.Request) {
	s := chatCall{path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), execution: r.Header.Get("X-Signalbox-Execution"), prefer: r.Header.Get("Prefer")}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	body := any(&s.chat)
	if strings.HasSuffix(s.path, "/task") {
		body = &s.bypass
	}
	if err := dec.Decode(body); err != nil {
		fail(w, 400, "validation_error", err.Error())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chats = append(f.chats, s)
	if r.PathValue("name") != "coder" {
		fail(w, 404, "not_found", "there is no agent "+r.PathValue("name"))
		return
	}
	word, rest, _ := strings.Cut(s.chat.Message+s.bypass.Message, " ")
	if refuseChat(w, word) {
		return
	}
	f.answerChat(w, r, word, rest)
}

func refuseChat(w http.ResponseWriter, word string) bool {
	e := api.ChatError{Agent: "coder", RetryAfter: 30, Retryable: true}
	status := 0
	switch word {
	case "busy":
		status, e.Error, e.Code, e.Message = 409, "Agent is busy", "agent_busy", "Agent 'coder' is busy"
	case "crowded":
		status, e.Error, e.Code, e.Message, e.Hint = 429, "Bypass is full", "agent_busy", "4 of 4 isolated executions run", "try again later"
	case "full":
		status, e.Error, e.Code, e.Message = 429, "Agent queue is full", "queue_full", "Agent 'coder' is busy with 3 queued requests. Please try again later."
	case "cycle":
		status, e.Error, e.Code, e.Message, e.RetryAfter = 409, "call_cycle", "call_cycle", "the call would wait for itself", 0
	case "down":
		status, e.Error, e.Code, e.Message, e.Hint = 503, "agent_down", "agent_down", "agent coder is down", "start it"
	default:
		return false
	}
	answer(w, status, e)
	return true
}

// answerChat answers a chat that was stored; f.mu is held.
func (f *fake) answerChat(w http.ResponseWriter, r *http.Request, word, rest string) {
	t := f.add(word + " " + rest)
	t.Position = 0
	accepted := api.ChatAccepted{Agent: "coder", Execution: api.ExecutionRef{ID: t.QueueID, QueueStatus: "running"}, State: "pending", URL: "/api/queue/" + t.QueueID}
	if word == "queued" || word == "line" {
		accepted.Position, accepted.ETA, accepted.Execution.QueueStatus = 2, &api.ETA{LowSeconds: 180, HighSeconds: 300, Runs: 9}, "queued:2"
	}
	if strings.Contains(r.Header.Get("Prefer"), "respond-async") {
		answer(w, 202, accepted)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name string, v any) {
		data, _ := json.Marshal(v)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		w.(http.Flusher).Flush()
	}
	event("accepted", accepted)
	if word == "line" {
		f.waitForChange(r)
		return
	}
	if word == "queued" {
		event("position", api.ChatPosition{ID: t.QueueID, Position: 1, ETA: &api.ETA{LowSeconds: 60, HighSeconds: 90, Runs: 9}})
		event("position", api.ChatPosition{ID: t.QueueID})
	}
	event("started", struct{}{})
	f.set(t, "accept", "working")
	if word == "hang" {
		for t.State == "working" && f.waitForChange(r) { //nolint:revive // it waits for the caller to go, or for a cancel
		}
		return
	}
	f.endChat(t, word, rest, event)
}

func (f *fake) endChat(t *api.Task, word, rest string, event func(string, any)) {
	ref := api.ExecutionRef{ID: t.QueueID, QueueStatus: "running"}
	no := api.ChatError{Agent: "coder", Execution: &ref, Error: word, Code: word, State: word, Message: word}
	switch word {
	case "failed":
		no.Code, no.Message = "exit_nonzero", "the command ended with code 2"
	case "lost":
		no.State, no.Message = "failed", "its agent went silent"
	case "timeout":
		no.Code, no.Message = "wait_timeout", "waited 2m0s without being started"
	case "cancelled":
	default:
		event("output", api.Output{Text: "thinking\n" + rest + "\n"})
		event("result", api.ChatResponse{Response: rest, Agent: "coder", Execution: ref, SessionID: "s1", Timestamp: noon})
		return
	}
	event("error", no)
}
