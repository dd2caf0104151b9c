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

// maxStreamLine bounds one line of a stream in bytes. The largest honest one is
// the answer of a tool, of up to 16 MiB, in its event.
const maxStreamLine = 32 << 20

var errSilent = errors.New("the stream fell silent")

// message is one server-sent event.
type message struct {
	id   string
	name string
	data []byte
}

// messages parses a stream of server-sent events. It calls each for every
// event, those with an id and no data included, until each returns false,
// and alive for every line.
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
	return errStreamEnded // an event without its blank line is not complete
}

// field takes one line of an event in and reports whether it said anything.
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
	default: // a comment, which is how a director says that it lives, or a field of later days
		return false
	}
	return true
}

// listener hears a stream.
type listener interface {
	// open says that the stream stands; false ends it.
	open() bool
	// message takes one event; false ends the stream.
	message(message) bool
}

// stream opens a stream and hands its events to l until that returns false
// (nil is returned) or the stream ends (an error is). A stream that is
// silent for Options.StreamIdle counts as ended.
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

// patience decides whether a call that outlives the director goes on.
type patience struct {
	c    *Client
	last time.Time // of the last answer
	try  int       // failures in a row
}

func (c *Client) newPatience() *patience { return &patience{c: c, last: time.Now()} }

// answered says that the director lives.
func (p *patience) answered() { p.last, p.try = time.Now(), 0 }

// wait pauses before the next try. It returns err itself when that will not
// go away or patience is at its end, and the context's error when that ends.
func (p *patience) wait(ctx context.Context, err error) error {
	if !passing(err) || time.Since(p.last) > p.c.opts.Patience {
		return err
	}
	p.try++
	return p.c.pause(ctx, p.try, err)
}

// Now as EventsOptions.After begins with what happens from here on.
const Now int64 = -1

// KindReset is the kind of an event that says: between the event before and
// this one there may be others that will not come. What was derived from the
// events has to be read anew.
const KindReset = "reset"

// EventsOptions say which events come.
type EventsOptions struct {
	After   int64  // the seq after which to begin; 0: the oldest that is kept; Now
	QueueID string // only events of this task
	Agent   string // only events of this agent and its queue
	// Include asks for events of the moment besides: position, output. They
	// have no seq, and those that were missed do not come again.
	Include []string
	// OnOpen, if set, is called each time the stream is open. What is read
	// from the director after the first time cannot be missed by the stream.
	OnOpen func()
}

// Events goes through what happens, without an end. A broken stream is
// opened anew after the last event seen, so that none is missed or comes
// twice; where the director cannot go on there, an event of KindReset says
// so. An error is the last pair: the context's, the director's refusal, or
// an *UnreachableError once Options.Patience is over.
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

// eventReader keeps the place in the journal from one stream to the next.
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
		// The stream before broke without having said where now was.
		r.stopped = !r.yield(api.Event{Kind: KindReset, Message: "the stream broke before its first event; others may have been missed"}, nil)
	}
	if r.onOpen != nil && !r.stopped {
		r.onOpen()
	}
	return !r.stopped
}

func (r *eventReader) message(m message) bool {
	seq, err := strconv.ParseInt(m.id, 10, 64)
	if len(m.data) == 0 { // an id alone tells where the stream stands
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
	case m.id == "" && event.Seq == 0 && event.Kind != KindReset: // of the moment
	case m.name == KindReset || event.Kind == KindReset:
		event.Kind = KindReset
		r.after = max(0, event.Seq-1) // it goes on with the event of that seq
	case r.after != Now && event.Seq <= r.after:
		return true // it came before the stream broke
	default:
		r.after = event.Seq
	}
	r.stopped = !r.yield(event, nil)
	return !r.stopped
}
