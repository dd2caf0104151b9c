package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
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
