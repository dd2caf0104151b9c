package httpio

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// KeepAliveEvery is the interval of comments in an idle stream.
	KeepAliveEvery = 15 * time.Second
	// MaxStreams limits the number of open streams.
	MaxStreams = 2000
	// reconnectMS is how long a reader should wait before it reconnects.
	reconnectMS = 1000
)

// Stream is an answer of server-sent events.
type Stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	Close func() // frees its place among the open streams; call it once
	Gone  bool   // a write failed: the reader is gone
}

// Streams counts the streams that are open.
type Streams struct{ n atomic.Int64 }

// Count returns the number of open streams.
func (s *Streams) Count() int { return int(s.n.Load()) }

// Open starts a stream. The caller must call its Close.
func (s *Streams) Open(w http.ResponseWriter) (*Stream, error) {
	leave, err := s.Reserve()
	if err != nil {
		return nil, err
	}
	out, err := BeginStream(w)
	if err != nil {
		leave()
		return nil, err
	}
	out.Close = leave
	return out, nil
}

// Reserve takes one of the MaxStreams places.
func (s *Streams) Reserve() (leave func(), err error) {
	if s.n.Add(1) > MaxStreams {
		s.n.Add(-1)
		return nil, &Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "%d streams are open, which is the maximum", MaxStreams), RetryAfter: 5}
	}
	return func() { s.n.Add(-1) }, nil
}

// BeginStream answers 200; only events follow.
func BeginStream(w http.ResponseWriter) (*Stream, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering events
	s := &Stream{w: w, rc: http.NewResponseController(w), Close: func() {}}
	w.WriteHeader(http.StatusOK)
	return s, s.Write(fmt.Appendf(nil, "retry: %d\n\n", reconnectMS))
}

// RequestID is the ID of the stream's request.
func (s *Stream) RequestID() string { return s.w.Header().Get(RequestIDHeader) }

// Write sends bytes at once. A reader that does not receive them in time counts as
// gone.
func (s *Stream) Write(b []byte) error {
	ExtendWriteDeadline(s.w)
	_, err := s.w.Write(b)
	if err == nil {
		err = s.rc.Flush()
	}
	s.Gone = s.Gone || err != nil
	return err
}

// KeepAlive sends a comment, so that no proxy takes the connection for dead.
func (s *Stream) KeepAlive() error { return s.Write([]byte(": alive\n\n")) }

// SendID sends an id without an event, for the next reconnect.
func (s *Stream) SendID(id int64) error { return s.Write(fmt.Appendf(nil, "id: %d\n\n", id)) }

// Send sends an event with its id.
func (s *Stream) Send(id int64, name string, v any) error {
	f, err := Event(id, name, v)
	if err != nil {
		return err
	}
	return s.Write(f)
}

// SendTransient sends an event without an id. It is not repeated after a reconnect.
func (s *Stream) SendTransient(name string, v any) error {
	f, err := TransientEvent(name, v)
	if err != nil {
		return err
	}
	return s.Write(f)
}

// Fail ends a stream after an error. Its reader reconnects and gets the error as the
// answer.
func (s *Stream) Fail(log *slog.Logger, err error) error {
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		log.Error("stream ended", "request_id", s.RequestID(), "error", err)
	}
	return nil
}

// Event encodes a server-sent event. JSON contains no line breaks.
func Event(id int64, name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(data)+len(name)+48)
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, '\n')
	return AppendEvent(b, name, data), nil
}

// TransientEvent encodes an event without an id.
func TransientEvent(name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return AppendEvent(make([]byte, 0, len(data)+len(name)+24), name, data), nil
}

// AppendEvent appends an event to its fields written so far, such as the id.
func AppendEvent(b []byte, name string, data []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}

// Ended reports whether a stream must end: its caller has disconnected, or the director
// stops.
func Ended(ctx context.Context, stopping <-chan struct{}) bool {
	select {
	case <-stopping:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
