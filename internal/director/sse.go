package director

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox"
)

const (
	// heartbeat is how often a stream that has nothing to say says so.
	heartbeat = 15 * time.Second
	// maxStreams bounds the streams that are open at once.
	maxStreams = 2000
	// reconnectMS tells a reader how long to wait before it comes back.
	reconnectMS = 1000
)

// stream is an answer made of server-sent events.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	close func()
	gone  bool // a write failed: nobody reads any more
}

func (d *Director) openStream(w http.ResponseWriter) (*stream, error) {
	leave, err := d.reserveStream()
	if err != nil {
		return nil, err
	}
	s, err := beginStream(w)
	if err != nil {
		leave()
		return nil, err
	}
	s.close = leave
	return s, nil
}

// reserveStream takes one of the places for open streams.
func (d *Director) reserveStream() (leave func(), err error) {
	if d.streams.Add(1) > maxStreams {
		d.streams.Add(-1)
		return nil, &refusal{err: signalbox.Errorf(signalbox.CodeUnavailable, "%d streams are open, the most there can be", maxStreams), retryAfter: 5}
	}
	return func() { d.streams.Add(-1) }, nil
}

// beginStream answers 200: from then on there are only events.
func beginStream(w http.ResponseWriter) (*stream, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	s := &stream{w: w, rc: http.NewResponseController(w), close: func() {}}
	w.WriteHeader(http.StatusOK)
	return s, s.write(fmt.Appendf(nil, "retry: %d\n\n", reconnectMS))
}

// write sends bytes at once. A reader that does not take them in time is
// gone.
func (s *stream) write(b []byte) error {
	extendWrite(s.w)
	_, err := s.w.Write(b)
	if err == nil {
		err = s.rc.Flush()
	}
	s.gone = s.gone || err != nil
	return err
}

func (s *stream) comment() error { return s.write([]byte(": alive\n\n")) }

// place tells the reader where the stream stands, without an event.
func (s *stream) place(id int64) error { return s.write(fmt.Appendf(nil, "id: %d\n\n", id)) }

func (s *stream) send(id int64, name string, v any) error {
	f, err := frame(id, name, v)
	if err != nil {
		return err
	}
	return s.write(f)
}

// moment sends an event without a place: it is not repeated to a reader that
// comes back.
func (s *stream) moment(name string, v any) error {
	f, err := frameMoment(name, v)
	if err != nil {
		return err
	}
	return s.write(f)
}

// fail ends a stream that cannot go on. Its reader comes back and is told
// why by a proper answer.
func (s *stream) fail(d *Director, err error) error {
	if signalbox.CodeOf(err) != signalbox.CodeNotFound {
		d.log.Error("stream ended", "request_id", s.w.Header().Get(requestIDHeader), "error", err)
	}
	return nil
}

// frame is one server-sent event. JSON has no line breaks of its own.
func frame(id int64, name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(data)+len(name)+48)
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, '\n')
	return event(b, name, data), nil
}

// frameMoment is an event without an id.
func frameMoment(name string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return event(make([]byte, 0, len(data)+len(name)+24), name, data), nil
}

func event(b []byte, name string, data []byte) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	b = append(b, data...)
	return append(b, "\n\n"...)
}
