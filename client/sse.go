package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// maxStreamLine bounds one line of a stream in bytes. The largest valid one is the
// event with the answer of a tool, up to 16 MiB.
const maxStreamLine = 32 << 20

var errSilent = errors.New("the stream fell silent")

// message is one server-sent event.
type message struct {
	id   string
	name string
	data []byte
}

// messages parses a stream of server-sent events. It calls alive for every line,
// and each for every event, including those with an id and no data, until each
// returns false.
func messages(r io.Reader, alive func(), each func(message) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxStreamLine)
	var m message
	filled := false
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) > 0 {
			filled = m.field(line) || filled
			continue
		}
		if filled && !each(m) {
			return nil
		}
		m, filled = message{}, false
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errStreamEnded // an event without a final blank line is not complete
}

// field parses one line of an event and reports whether it has a known field.
func (m *message) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		m.id = string(value)
	case "event":
		m.name = string(value)
	case "data":
		if m.data != nil {
			m.data = append(m.data, '\n')
		}
		m.data = append(m.data, value...)
		if m.data == nil {
			m.data = []byte{}
		}
	default: // a comment, which the director sends as a sign of life, or a field of a later version
		return false
	}
	return true
}

// listener receives the events of a stream.
type listener interface {
	// open is called when the stream is open; false ends it.
	open() bool
	// message receives one event; false ends the stream.
	message(message) bool
}

// stream opens a stream and passes its events to l. It returns nil when l returns
// false, and an error when the stream ends. A stream that is silent for
// Options.StreamIdle counts as ended.
func (c *Client) stream(ctx context.Context, req call, p *patience, l listener) error {
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.opts.StreamIdle, func() { cancel(errSilent) })
	defer idle.Stop()
	req.accept = "text/event-stream"
	resp, err := c.send(live, req)
	if err != nil {
		return c.noAnswer(ctx, live, req, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return c.refusal(resp, data)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return c.unexpected(resp.StatusCode, fmt.Sprintf("%s %s answered with %s instead of a stream of events", req.method, req.path, excerpt([]byte(kind))))
	}
	p.last = time.Now()
	if !l.open() {
		return nil
	}
	alive := func() { p.answered(); idle.Reset(c.opts.StreamIdle) }
	err = messages(resp.Body, alive, l.message)
	if err == nil || errors.Is(err, errStreamEnded) || errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return c.noAnswer(ctx, live, req, err)
}

// patience decides whether a call that survives restarts of the director keeps
// trying.
type patience struct {
	c    *Client
	last time.Time // of the last answer
	try  int       // failures in a row
}

func (c *Client) newPatience() *patience { return &patience{c: c, last: time.Now()} }

// answered records an answer of the director.
func (p *patience) answered() { p.last, p.try = time.Now(), 0 }

// wait pauses before the next try. It returns err itself if err is not transient or
// the patience is over, and the context's error if the context ends.
func (p *patience) wait(ctx context.Context, err error) error {
	if !passing(err) || time.Since(p.last) > p.c.opts.Patience {
		return err
	}
	p.try++
	return p.c.pause(ctx, p.try, err)
}

// Now as EventsOptions.After means: only new events.
const Now int64 = -1

// KindReset is the kind of an event that says that events before it may be missing
// and will not come. State that was derived from the events has to be read again.
const KindReset = "reset"

// EventsOptions select the events of Events.
type EventsOptions struct {
	After   int64  // begin after this seq; 0: with the oldest that is kept; Now: with new events
	QueueID string // only events of this task
	Agent   string // only events of this agent and its queue
	// Include requests transient events in addition: position, output. They have no
	// seq and are not replayed if missed.
	Include []string
	// OnOpen, if set, is called each time the stream is opened. The stream misses no
	// change after a state that was read from the director after the first call.
	OnOpen func()
}

// Events iterates over the events without an end. A broken stream is reopened after
// the last event seen, so that none is missed or delivered twice. If the director
// cannot continue there, an event of KindReset says so. An error is the last pair:
// the context's, the director's refusal, or an *UnreachableError when
// Options.Patience is over.
func (c *Client) Events(ctx context.Context, opts EventsOptions) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		r := eventReader{after: opts.After, yield: yield, onOpen: opts.OnOpen}
		p := c.newPatience()
		for {
			err := c.stream(ctx, r.call(opts), p, &r)
			if r.stopped {
				return
			}
			if r.err != nil {
				yield(api.Event{}, r.err)
				return
			}
			if err := p.wait(ctx, err); err != nil {
				yield(api.Event{}, err)
				return
			}
		}
	}
}

// eventReader keeps the position in the journal from one stream to the next.
type eventReader struct {
	after   int64
	yield   func(api.Event, error) bool
	onOpen  func()
	opened  bool // before
	stopped bool
	err     error
}

func (r *eventReader) call(opts EventsOptions) call {
	query := values("queue_id", opts.QueueID, "agent", opts.Agent, "include", strings.Join(opts.Include, ","))
	req := call{method: http.MethodGet, path: "/api/events", query: query}
	if r.after == Now {
		return req
	}
	place := strconv.FormatInt(r.after, 10)
	query.Set("after", place)
	req.seen = place
	return req
}

func (r *eventReader) open() bool {
	again := r.opened
	r.opened = true
	if again && r.after == Now {
		// The previous stream broke before it gave the seq of Now.
		r.stopped = !r.yield(api.Event{Kind: KindReset, Message: "the stream broke before its first event; others may have been missed"}, nil)
	}
	if r.onOpen != nil && !r.stopped {
		r.onOpen()
	}
	return !r.stopped
}

func (r *eventReader) message(m message) bool {
	seq, err := strconv.ParseInt(m.id, 10, 64)
	if len(m.data) == 0 { // an id alone gives the position of the stream
		if err == nil {
			r.after = seq
		}
		return true
	}
	var event api.Event
	if err := json.Unmarshal(m.data, &event); err != nil {
		r.err = fmt.Errorf("the stream of events holds one that is not JSON: %w", err)
		return false
	}
	switch {
	case m.id == "" && event.Seq == 0 && event.Kind != KindReset: // transient
	case m.name == KindReset || event.Kind == KindReset:
		event.Kind = KindReset
		r.after = max(0, event.Seq-1) // it continues with the event of that seq
	case r.after != Now && event.Seq <= r.after:
		return true // already delivered before the stream broke
	default:
		r.after = event.Seq
	}
	r.stopped = !r.yield(event, nil)
	return !r.stopped
}
