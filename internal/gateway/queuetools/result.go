package queuetools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// refusal is an unsuccessful answer of the director. It has the fields of
// errors and of chats that did not complete.
type refusal struct {
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

func (r *refusal) Error() string { return r.code() + ": " + r.Message }

func (r *refusal) code() string { return cmp.Or(r.Code, r.Err) }

func refusalOf(w *response) error {
	r := &refusal{status: w.status, body: bytes.TrimSpace(w.body)}
	if err := json.Unmarshal(w.body, r); err != nil || r.code() == "" {
		return fmt.Errorf("queuetools: the director answered itself %d without an error: %q", w.status, httpio.Clip(string(w.body)))
	}
	return r
}

// hasStatus reports whether err is a refusal with one of the statuses.
func hasStatus(err error, statuses ...int) bool {
	var r *refusal
	return errors.As(err, &r) && slices.Contains(statuses, r.status)
}

// hints say what to do in terms of tools; those of the API are in terms of
// requests and the command line.
var hints = map[signalbox.Code]string{
	signalbox.CodeQueueFull:   "try again later; queue_status shows how much waits, cancel_task takes away what is no longer needed",
	signalbox.CodeAgentDown:   "list_agents shows which agents are there; chat_with_agent with overflow persist waits for an agent to come back",
	signalbox.CodeCallCycle:   "call chat_with_agent with wait_seconds 0 and end without waiting for the answer, or with parallel true",
	signalbox.CodeIdempotency: "use another idempotency_key for another task",
	signalbox.CodeNotFound:    "",
}

// refusedResult is the result of a refused call, as text for a model. It has
// no structured content, because that has the shape of a success.
func refusedResult(err error) gateway.Result {
	var r *refusal
	if !errors.As(err, &r) {
		body, _ := httpio.ErrorBody(err)
		r = &refusal{Err: body.Error, Message: body.Message, Hint: body.Hint, RetryAfter: body.RetryAfter}
	}
	var b strings.Builder
	b.WriteString(r.Error())
	hint, ours := hints[signalbox.Code(r.code())]
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

// newResult is the result of a call, with the same content as JSON and as
// text.
func newResult(structured any, text ...string) (gateway.Result, error) {
	data, err := marshal(structured, "")
	return gateway.Result{Content: texts(text...), Structured: data}, err
}

// texts returns content blocks for the texts that are not empty.
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
	data, _ := marshal(blocks, "") // text always marshals
	return data
}

// marshal leaves <, > and & unescaped, because models read the text.
func marshal(v any, indent string) (json.RawMessage, error) {
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

// etaWords says when a task may start; "" if that is unknown.
func etaWords(e *api.ETA) string {
	switch {
	case e == nil:
		return ""
	case e.HighSeconds < 1:
		return "it starts in a moment"
	}
	return fmt.Sprintf("it starts in about %.0f to %.0f s", e.LowSeconds, e.HighSeconds)
}

// followHint says how to follow a task, with a wait that clients tolerate.
func followHint(id string) string {
	return fmt.Sprintf(`Ask task_status {"task_id": %q, "wait_seconds": %d} until it has ended.`, id, chatWait)
}

// joinContent concatenates two lists of content blocks.
func joinContent(a, b json.RawMessage) json.RawMessage {
	var one, two []json.RawMessage
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &two) != nil {
		return a
	}
	data, err := marshal(append(one, two...), "")
	if err != nil {
		return a
	}
	return data
}

// request is one call of a tool of the queue.
type request struct {
	d    *Director
	from *http.Request // the request in which the tool is called
	who  signalbox.Principal
	tool gateway.Call
}

// read decodes the arguments into the struct that into points to, as strictly
// as a request body.
func (a *request) read(into any) error {
	if len(a.tool.Arguments) == 0 {
		return nil
	}
	tree, err := httpio.Parse(a.tool.Arguments)
	if err != nil {
		return err
	}
	return httpio.Bind(reflect.ValueOf(into).Elem(), tree, "")
}

// callerHeaders are the headers that identify the caller, its origin and its
// execution.
var callerHeaders = []string{
	"Authorization", "Cookie", httpio.SourceAgentHeader, httpio.ExecutionHeader, "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode",
	"Forwarded", "X-Forwarded-For", "X-Real-Ip", "User-Agent", httpio.RequestIDHeader,
}

// request makes a request on behalf of the caller.
func (a *request) request(ctx context.Context, q httpio.Outgoing) (*http.Request, error) {
	at := url.URL{Scheme: "http", Host: "director", Path: q.Path, RawQuery: q.Query.Encode()}
	r, err := q.Request(ctx, at.String())
	if err != nil {
		return nil, err
	}
	r.Host, r.RemoteAddr, r.RequestURI, r.TLS = a.from.Host, a.from.RemoteAddr, r.URL.RequestURI(), a.from.TLS
	for _, name := range callerHeaders {
		if values := a.from.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	for name, value := range q.Header {
		r.Header[name] = []string{value}
	}
	return r, nil
}

// ask sends a request through the director's handler and decodes the answer
// into the value that into points to. Every answer but a success is an error.
func (a *request) ask(ctx context.Context, q httpio.Outgoing, into any) error {
	w, err := a.send(ctx, q, nil)
	if err != nil {
		return err
	}
	if w.status < 200 || w.status > 299 {
		return refusalOf(w)
	}
	return json.Unmarshal(w.body, into)
}

// send is ask for callers that need the raw answer. event receives the events
// of a streamed answer.
func (a *request) send(ctx context.Context, q httpio.Outgoing, event func(name string, data []byte)) (*response, error) {
	r, err := a.request(ctx, q)
	if err != nil {
		return nil, err
	}
	w := &response{header: http.Header{}, event: event}
	a.d.Handler.ServeHTTP(w, r)
	if w.status == 0 { // the handler does not answer a caller that has gone
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.status = http.StatusOK
	}
	return w, nil
}

// response is the http.ResponseWriter that receives an answer of the
// director.
type response struct {
	header http.Header
	status int
	body   []byte // in a stream: the received part of the next event
	event  func(name string, data []byte)
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, b...)
	if w.streams() {
		w.tell()
	}
	return len(b), nil
}

// Flush does nothing; handlers that stream need it.
func (w *response) Flush() {}

func (w *response) streams() bool {
	return w.event != nil && strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream")
}

// tell passes on the events that are complete; a comment has neither name nor
// data.
func (w *response) tell() {
	for {
		text, rest, whole := bytes.Cut(w.body, []byte("\n\n"))
		if !whole {
			return
		}
		w.body = rest
		name, data := "", []byte(nil)
		for line := range bytes.Lines(text) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if v, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
				name = string(v)
			} else if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				data = v
			}
		}
		w.event(name, data)
	}
}
