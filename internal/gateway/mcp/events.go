package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxField bounds a line of an event that is no data.
const maxField = 64 << 10

var errLongField = errors.New("a line of its event stream is too long")

// events leads the messages in a stream of server-sent events through the tap,
// and is the stream of what the SDK is to read instead.
type events struct {
	from io.ReadCloser
	old  bool // HTTP with SSE, where the SDK takes every event for a message but the first
	in   *bufio.Reader
	out  bytes.Buffer
	err  error

	data   gather
	fields bytes.Buffer // the event's other lines
	name   string
	lines  int  // of data
	sent   bool // a message went out
}

func newEvents(from io.ReadCloser, t *tap, old bool) *events {
	e := &events{from: from, old: old, in: bufio.NewReader(from)}
	e.data = gather{tap: t, deliver: e.emit}
	return e
}

// Close implements io.Closer.
func (e *events) Close() error { return e.from.Close() }

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		if err := e.line(); err != nil {
			e.err = err
			if errors.Is(err, io.EOF) {
				e.event() // the last one may lack its empty line
			}
		}
	}
	n, err := e.out.Read(p)
	if e.out.Len() == 0 && e.out.Cap() > 1<<20 {
		e.out = bytes.Buffer{}
	}
	return n, err
}

// line reads one line of the stream.
func (e *events) line() error {
	start, long, err := e.in.ReadLine()
	if err != nil {
		return err
	}
	if len(start) == 0 {
		e.event()
		return nil
	}
	name, value, _ := bytes.Cut(start, []byte{':'})
	if string(name) == "data" && e.isMessage() {
		return e.dataLine(value, long)
	}
	line := bytes.Clone(start)
	for long {
		var more []byte
		if more, long, err = e.in.ReadLine(); err != nil {
			return err
		}
		if len(line)+len(more) > maxField {
			return errLongField
		}
		line = append(line, more...)
	}
	e.field(line)
	return nil
}

// isMessage tells whether the event's data is an MCP message: the event of
// HTTP with SSE that names the endpoint is not.
func (e *events) isMessage() bool { return e.name == "" || e.name == "message" }

func (e *events) dataLine(start []byte, long bool) error {
	if e.lines++; e.lines > 1 {
		e.data.add([]byte{'\n'})
	}
	e.data.add(start)
	for long {
		var more []byte
		var err error
		if more, long, err = e.in.ReadLine(); err != nil {
			return err
		}
		e.data.add(more)
	}
	return nil
}

// field keeps a line that is no data; comments and unknown ones are dropped.
func (e *events) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch string(name) {
	case "event":
		e.name = string(bytes.TrimSpace(value))
	case "id", "retry", "data":
	default:
		return
	}
	if e.fields.Len() < maxField {
		e.fields.Write(name)
		e.fields.WriteByte(':')
		e.fields.Write(value)
		e.fields.WriteByte('\n')
	}
}

// event is the end of an event: its message, if it has one that the SDK is to
// see, goes out with its fields, else they go out alone, for the id in them.
func (e *events) event() {
	e.sent = false
	e.data.end()
	if !e.sent && e.fields.Len() > 0 && (!e.old || e.name == "endpoint") {
		e.out.Write(e.fields.Bytes())
		e.out.WriteByte('\n')
	}
	e.fields.Reset()
	e.name, e.lines = "", 0
}

// emit writes an event with a message.
func (e *events) emit(msg jsonrpc.Message) {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return // it was decoded a moment ago
	}
	e.sent = true
	e.out.Write(e.fields.Bytes())
	e.out.WriteString("data: ")
	e.out.Write(data)
	e.out.WriteString("\n\n")
}
