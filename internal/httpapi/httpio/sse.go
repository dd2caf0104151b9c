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
	// KeepAliveEvery is how often a stream that has nothing to say says so.
	KeepAliveEvery = 15 * time.Second
	// MaxStreams bounds the streams that are open at once.
	MaxStreams = 2000
	// reconnectMS tells a reader how long to wait before it comes back.
	reconnectMS = 1000
)

// Stream is an answer made of server-sent events.
type Stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	Close func() // gives its place back; once, by who opened it
	Gone  bool   // a write failed: nobody reads any more
}

// Streams counts the streams that are open.
type Streams struct{ n atomic.Int64 }

// Count is how many there are.
func (s *Streams) Count() int { return int(s.n.Load()) }

// Open begins a stream, whose reader has to close it.
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

// Reserve takes one of the places for open streams.
func (s *Streams) Reserve() (leave func(), err error) {
	if s.n.Add(1) > MaxStreams {
		s.n.Add(-1)
		return nil, &Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "%d streams are open, the most there can be", MaxStreams), RetryAfter: 5}
	}
	return func() { s.n.Add(-1) }, nil
}

// BeginStream answers 200: from then on there are only events.
func BeginStream(w http.ResponseWriter) (*Stream, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	s := &Stream{w: w, rc: http.NewResponseController(w), Close: func() {}}
	w.WriteHeader(http.StatusOK)
	return s, s.Write(fmt.Appendf(nil, "retry: %d\n\n", reconnectMS))
}

// RequestID is that of the request that is answered.
func (s *Stream) RequestID() string { return s.w.Header().Get(RequestIDHeader) }

// Write sends bytes at once. A reader that does not take them in time is
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

// KeepAlive sends a comment, so that nothing in between takes the connection for dead.
func (s *Stream) KeepAlive() error { return s.Write([]byte(": alive\n\n")) }

// SendID tells the reader where the stream stands, without an event.
func (s *Stream) SendID(id int64) error { return s.Write(fmt.Appendf(nil, "id: %d\n\n", id)) }

// Send sends an event with its id.
func (s *Stream) Send(id int64, name string, v any) error {
	f, err := Event(id, name, v)
	if err != nil {
		return err
	}
	return s.Write(f)
}

// SendTransient sends an event without a place: it is not repeated to a reader that
// comes back.
func (s *Stream) SendTransient(name string, v any) error {
	f, err := TransientEvent(name, v)
	if err != nil {
		return err
	}
	return s.Write(f)
}

// Fail ends a stream that cannot go on. Its reader comes back and is told
// why by a proper answer.
func (s *Stream) Fail(log *slog.Logger, err error) error {
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		log.Error("stream ended", "request_id", s.RequestID(), "error", err)
	}
	return nil
}

// Event is one server-sent event. JSON has no line breaks of its own.
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

// TransientEvent is an event without an id.
func TransientEvent(name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return AppendEvent(make([]byte, 0, len(data)+len(name)+24), name, data), nil
}

// AppendEvent appends an event to what was written of it already, such as its id.
func AppendEvent(b []byte, name string, data []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}

// Ended reports whether a stream is to end: its caller went away, or the director stops.
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
