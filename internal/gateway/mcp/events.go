package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxField bounds an event's line other than data, in bytes.
const maxField = 64 << 10

var errLongField = errors.New("a line of its event stream is too long")

// events passes the messages of an SSE stream through the interceptor, and is the stream that
// the SDK reads instead. For a direct call, take gets the remaining messages.
type events struct {
	from   io.ReadCloser
	take   func(jsonrpc.Message)
	oldSSE bool // HTTP with SSE: the SDK takes every event but the first for a message
	in     *bufio.Reader
	out    bytes.Buffer
	err    error

	data   messageReader
	fields bytes.Buffer // the event's other lines
	name   string
	lines  int  // number of data lines
	sent   bool // a message was written

	last  string        // the newest event ID
	retry time.Duration // the server's delay before a resume
}

func newEvents(from io.ReadCloser, t *interceptor, old bool) *events {
	e := &events{from: from, oldSSE: old, in: bufio.NewReader(from)}
	e.data = messageReader{interceptor: t, deliver: e.emit}
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
				e.event() // the last event may lack its empty line
			}
		}
	}
	n, err := e.out.Read(p)
	if e.out.Len() == 0 && e.out.Cap() > 1<<20 {
		e.out = bytes.Buffer{}
	}
	return n, err
}

// drain reads the stream to its end and closes it.
func (e *events) drain() {
	for e.err == nil {
		e.err = e.line()
	}
	if errors.Is(e.err, io.EOF) {
		e.event()
	}
	e.Close()
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

// isMessage reports whether the event's data is an MCP message: the endpoint event of HTTP with
// SSE is not.
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

// field keeps a line other than data; it drops comments and unknown fields.
func (e *events) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch string(name) {
	case "event":
		e.name = string(bytes.TrimSpace(value))
	case "id":
		if id := string(bytes.TrimSpace(value)); id != "" {
			e.last = id
		}
	case "retry":
		if ms, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 32); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	case "data":
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

// event ends an event. If the SDK must see its message, the event is written with its fields;
// otherwise only the fields are written, because of the ID.
func (e *events) event() {
	e.sent = false
	e.data.end()
	if !e.sent && e.fields.Len() > 0 && e.take == nil && (!e.oldSSE || e.name == "endpoint") {
		e.out.Write(e.fields.Bytes())
		e.out.WriteByte('\n')
	}
	e.fields.Reset()
	e.name, e.lines = "", 0
}

// emit writes an event with a message.
func (e *events) emit(msg jsonrpc.Message) {
	if e.take != nil {
		e.take(msg)
		return
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return // it was just decoded
	}
	e.sent = true
	e.out.Write(e.fields.Bytes())
	e.out.WriteString("data: ")
	e.out.Write(data)
	e.out.WriteString("\n\n")
}

// idScanner finds the ID of a message that is too long to keep, byte by byte. Only top-level
// keys count.
type idScanner struct {
	depth    int
	inString bool
	escaped  bool
	wantKey  bool   // at depth 1, the next string is a key
	text     []byte // of the current key or value, as JSON
	key      string // of the next value
	id       jsonrpc.ID
	response bool // it has a result or an error
	request  bool // it has a method
}

// maxScanned is the maximum length of a key or ID, in bytes; the provider's
// own are shorter.
const maxScanned = 256

// feed scans the next bytes.
func (s *idScanner) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		if s.inString && !s.escaped && s.depth != 1 { // fast path: most of a long message is inside such a string
			for i < len(p) && p[i] != '"' && p[i] != '\\' {
				i++
			}
			if i == len(p) {
				return
			}
		}
		s.byte(p[i])
	}
}

// answers returns the ID of a response; false if it is unknown or the message
// is not a response.
func (s *idScanner) answers() (jsonrpc.ID, bool) {
	return s.id, s.response && !s.request && s.id.IsValid()
}

func (s *idScanner) byte(c byte) {
	if s.inString {
		s.stringByte(c)
		return
	}
	switch c {
	case '"':
		s.inString = true
		if s.depth == 1 {
			s.text = append(s.text[:0], c)
		}
	case '{', '[':
		s.depth++
		s.wantKey = s.depth == 1 && c == '{'
		s.text = s.text[:0]
	case '}', ']':
		if s.depth == 1 {
			s.value()
		}
		s.depth--
	case ',':
		if s.depth == 1 {
			s.value()
			s.wantKey = true
		}
	case ' ', '\t', '\r', '\n', ':':
	default:
		s.keep(c)
	}
}

// stringByte scans a byte of a string.
func (s *idScanner) stringByte(c byte) {
	s.keep(c)
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		if s.depth == 1 && s.wantKey {
			s.isKey()
		}
	}
}

func (s *idScanner) keep(c byte) {
	if s.depth == 1 && len(s.text) <= maxScanned {
		s.text = append(s.text, c)
	}
}

func (s *idScanner) isKey() {
	s.wantKey, s.key = false, ""
	_ = json.Unmarshal(s.text, &s.key) // an invalid key is ignored
	switch s.key {
	case "result", "error":
		s.response = true
	case "method":
		s.request = true
	}
	s.text = s.text[:0]
}

func (s *idScanner) value() {
	if s.key == "id" && len(s.text) <= maxScanned {
		s.id = idOf(s.text)
	}
	s.key, s.text = "", s.text[:0]
}

// elements returns the elements of a JSON array.
func elements(data []byte) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := json.Unmarshal(data, &all)
	return all, err
}
