package endpoint

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// callResult is an answer to tools/call, unchanged from the tool.
type callResult struct {
	mcp.ResultBase
	gateway.Result
	modern bool
}

// MarshalJSON writes what the upstream wrote, plus what the newer protocol
// requires of a result.
func (r *callResult) MarshalJSON() ([]byte, error) {
	meta, err := merged(r.Result.Meta, r.GetMeta())
	if err != nil {
		return nil, err
	}
	out := struct {
		Meta       json.RawMessage `json:"_meta,omitempty"`
		Type       string          `json:"resultType,omitempty"`
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
		Metadata   json.RawMessage `json:"metadata,omitempty"`
	}{
		Meta: meta, Type: resultType(r.modern), Content: r.Content, Structured: r.Structured,
		IsError: r.IsError, Metadata: r.Metadata,
	}
	if len(out.Content) == 0 {
		out.Content = json.RawMessage("[]")
	}
	return marshal(out)
}

// textResult is an answer with a text of the endpoint's own.
func textResult(text string, isError bool) gateway.Result {
	content, err := marshal([]map[string]string{{"type": "text", "text": text}})
	if err != nil { // text always marshals
		content = nil
	}
	return gateway.Result{Content: content, IsError: isError}
}

// toolList is an answer to tools/list.
type toolList struct {
	mcp.ResultBase
	tools  []json.RawMessage
	next   string
	modern bool
}

// MarshalJSON writes the definitions unchanged. The newer protocol requires a cache lifetime:
// it is 0, since servers come and go, and private, since the request had a token.
func (l *toolList) MarshalJSON() ([]byte, error) {
	meta, err := merged(nil, l.GetMeta())
	if err != nil {
		return nil, err
	}
	out := struct {
		Meta  json.RawMessage   `json:"_meta,omitempty"`
		Type  string            `json:"resultType,omitempty"`
		Tools []json.RawMessage `json:"tools"`
		Next  string            `json:"nextCursor,omitempty"`
		TTL   *int              `json:"ttlMs,omitempty"`
		Scope string            `json:"cacheScope,omitempty"`
	}{Meta: meta, Type: resultType(l.modern), Tools: l.tools, Next: l.next}
	if l.modern {
		out.TTL, out.Scope = new(int), "private"
	}
	return marshal(out)
}

func resultType(modern bool) string {
	if modern {
		return resultComplete
	}
	return ""
}

// merged is the upstream's _meta with the SDK's additions; the upstream's keys win.
func merged(upstream json.RawMessage, added map[string]any) (json.RawMessage, error) {
	if len(added) == 0 {
		return upstream, nil
	}
	all := map[string]json.RawMessage{}
	if len(upstream) > 0 {
		if err := json.Unmarshal(upstream, &all); err != nil {
			return nil, err
		}
	}
	for k, v := range added {
		if _, there := all[k]; there {
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		all[k] = data
	}
	return marshal(all)
}

const (
	// keepAliveInterval is how often a pending answer sends a keep-alive. Clients and proxies
	// close connections that are silent for minutes.
	keepAliveInterval = 15 * time.Second
	// writeTimeout bounds one write: a client that reads nothing for so long is
	// gone.
	writeTimeout = 30 * time.Second
)

// answer is the response to one request.
type answer struct {
	http.ResponseWriter
	every time.Duration

	mu             sync.Mutex
	headerSent     bool // the header was written
	isStream       bool // the header announced events
	lateHeader     bool // the SDK tried to set another header afterwards
	paused         bool // the SDK is setting the header
	closed         bool
	keepAliveTimer *time.Timer
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader sends the header. If a keep-alive has already begun an event stream, an error is
// sent as an event instead.
func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.headerSent {
		a.lateHeader = a.isStream && status != http.StatusOK
		return
	}
	a.head(status)
	if a.isStream {
		a.schedule()
	}
}

func (a *answer) head(status int) {
	a.headerSent = true
	a.isStream = strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream")
	a.extendDeadline()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.headerSent {
		a.head(http.StatusOK)
	}
	if !a.lateHeader {
		return a.write(b)
	}
	if _, err := a.write(eventOf(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// notify writes an event between the SDK's events, once those have begun.
func (a *answer) notify(message []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || !a.isStream {
		return errNotAStream
	}
	return a.send(message)
}

// writeEvent writes an event, which may be the first.
func (a *answer) writeEvent(message []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.headerSent {
		a.head(http.StatusOK)
	}
	return a.send(message)
}

func (a *answer) send(message []byte) error {
	if _, err := a.write(eventOf(message)); err != nil {
		return err
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// complete writes the final answer: as an event, or with its own status if no event
// was sent.
func (a *answer) complete(status int, message []byte) {
	if status != http.StatusOK {
		a.Header().Set("Content-Type", "application/json")
		a.WriteHeader(status)
	} else {
		message = eventOf(message)
	}
	_, _ = a.Write(message) // an error here means that the client has gone
}

func eventOf(message []byte) []byte {
	event := make([]byte, 0, len(message)+len("event: message\ndata: \n\n"))
	return append(append(append(event, "event: message\ndata: "...), message...), "\n\n"...)
}

var errNotAStream = errors.New("endpoint: the answer is not a stream of events")

func (a *answer) write(b []byte) (int, error) {
	a.extendDeadline()
	return a.ResponseWriter.Write(b)
}

// extendDeadline extends the write deadline. Deadlines stay with the connection, so that of an
// earlier answer would cut this answer off. Writers without deadlines, as in tests, are left
// alone.
func (a *answer) extendDeadline() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// FlushError flushes the written data.
func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// startKeepAlive starts keep-alives. The header must already be set to that of a
// stream.
func (a *answer) startKeepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = false
	a.schedule()
}

// stopKeepAlive stops keep-alives; the caller now knows the answer and sets
// the header.
func (a *answer) stopKeepAlive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = true
}

func (a *answer) schedule() {
	if a.closed || a.keepAliveTimer != nil {
		return
	}
	a.keepAliveTimer = time.AfterFunc(a.every, a.alive)
}

func (a *answer) alive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if !a.headerSent && !a.paused {
		a.head(http.StatusOK)
	}
	if a.headerSent && a.isStream {
		if _, err := a.write([]byte(": alive\n\n")); err != nil {
			return // the end of the connection is noticed elsewhere
		}
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
	a.keepAliveTimer.Reset(a.every)
}

// end is called when the answer is complete.
func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.keepAliveTimer != nil {
		a.keepAliveTimer.Stop()
	}
	a.extendDeadline() // for what the server writes after this
}
