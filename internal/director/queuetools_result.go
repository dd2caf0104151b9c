package director

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// toolRefusal is an answer of the director that is no success. It has what
// errors and chats that did not complete have.
type toolRefusal struct {
	status int
	body   []byte

	Code       string            `json:"code"` // of a chat
	Err        string            `json:"error"`
	Message    string            `json:"message"`
	Hint       string            `json:"hint"`
	RetryAfter int               `json:"retry_after"`
	RequestID  string            `json:"request_id"`
	Execution  *api.ExecutionRef `json:"execution"`
}

func (r *toolRefusal) Error() string { return r.code() + ": " + r.Message }

func (r *toolRefusal) code() string {
	if r.Code != "" {
		return r.Code
	}
	return r.Err
}

func refusalOf(w *answerWriter) error {
	r := &toolRefusal{status: w.status, body: bytes.TrimSpace(w.body)}
	if err := json.Unmarshal(w.body, r); err != nil || r.code() == "" {
		return fmt.Errorf("director: it answered itself %d without an error: %q", w.status, clip(string(w.body)))
	}
	return r
}

// isRefused reports whether an answer had one of the statuses.
func isRefused(err error, statuses ...int) bool {
	var r *toolRefusal
	if !errors.As(err, &r) {
		return false
	}
	for _, s := range statuses {
		if r.status == s {
			return true
		}
	}
	return false
}

// toolHints say what to do in the words of tools, where the API speaks of
// requests and of the command line.
var toolHints = map[signalbox.Code]string{
	signalbox.CodeQueueFull:   "try again later; queue_status shows how much waits, cancel_task takes away what is no longer needed",
	signalbox.CodeAgentDown:   "list_agents shows which agents are there; chat_with_agent with overflow persist waits for an agent to come back",
	signalbox.CodeCallCycle:   "call chat_with_agent with wait_seconds 0 and end without waiting for the answer, or with parallel true",
	signalbox.CodeIdempotency: "use another idempotency_key for another task",
	signalbox.CodeNotFound:    "",
}

// refusedTool is the result of a call that came to nothing, in words for a
// model. It has no structured content: that has the form of a success.
func refusedTool(err error) gateway.Result {
	var r *toolRefusal
	if !errors.As(err, &r) {
		body, _ := errorBody(err)
		r = &toolRefusal{Err: body.Error, Message: body.Message, Hint: body.Hint, RetryAfter: body.RetryAfter}
	}
	var b strings.Builder
	b.WriteString(r.Error())
	hint, ours := toolHints[signalbox.Code(r.code())]
	if !ours {
		hint = r.Hint
	}
	if hint != "" {
		b.WriteString("\nWhat to do: " + hint + ".")
	}
	if r.RetryAfter > 0 {
		fmt.Fprintf(&b, "\nTry again in %d seconds.", r.RetryAfter)
	}
	if r.Execution != nil {
		fmt.Fprintf(&b, "\nIts task was %s: task_status and task_output have what it left behind.", r.Execution.ID)
	}
	if r.status == http.StatusInternalServerError && r.RequestID != "" {
		b.WriteString("\nThe director's log has it as " + r.RequestID + ".")
	}
	return gateway.Result{Content: texts(b.String()), IsError: true}
}

// told is the result of a call: the same as JSON and as text.
func told(structured any, text ...string) (gateway.Result, error) {
	data, err := toolJSON(structured, "")
	return gateway.Result{Content: texts(text...), Structured: data}, err
}

// texts are content blocks, without those that are empty.
func texts(all ...string) json.RawMessage {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	blocks := []block{}
	for _, t := range all {
		if t != "" {
			blocks = append(blocks, block{"text", t})
		}
	}
	data, _ := toolJSON(blocks, "") // text always marshals
	return data
}

// toolJSON leaves <, > and & as they are: models read it.
func toolJSON(v any, indent string) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// etaWords says when a task may start, "" where that is not known.
func etaWords(e *api.ETA) string {
	switch {
	case e == nil:
		return ""
	case e.HighSeconds < 1:
		return "it starts in a moment"
	}
	return fmt.Sprintf("it starts in about %.0f to %.0f s", e.LowSeconds, e.HighSeconds)
}

// askStatus tells how to follow a task, with a wait that clients allow.
func askStatus(id string) string {
	return fmt.Sprintf(`Ask task_status {"task_id": %q, "wait_seconds": %d} until it has ended.`, id, chatWait)
}

// joined are two lists of content blocks in one.
func joined(a, b json.RawMessage) json.RawMessage {
	var one, two []json.RawMessage
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &two) != nil {
		return a
	}
	data, err := toolJSON(append(one, two...), "")
	if err != nil {
		return a
	}
	return data
}
