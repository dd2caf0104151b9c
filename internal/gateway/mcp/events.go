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

// maxField bounds a line of an event that is no data.
const maxField = 64 << 10

var errLongField = errors.New("a line of its event stream is too long")

// events leads the messages in a stream of server-sent events through the tap,
// and is the stream of what the SDK is to read instead. Of a call past the SDK, take
// has what is left of them.
type events struct {
	from io.ReadCloser
	take func(jsonrpc.Message)
	old  bool // HTTP with SSE, where the SDK takes every event for a message but the first
	in   *bufio.Reader
	out  bytes.Buffer
	err  error

	data   gather
	fields bytes.Buffer // the event's other lines
	name   string
	lines  int  // of data
	sent   bool // a message went out

	last  string        // the id of the last event that has one
	retry time.Duration // what the server wants for a pause before the stream is taken up again
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

// drain reads the stream to its end, and closes it.
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

// event is the end of an event: its message, if it has one that the SDK is to
// see, goes out with its fields, else they go out alone, for the id in them.
func (e *events) event() {
	e.sent = false
	e.data.end()
	if !e.sent && e.fields.Len() > 0 && e.take == nil && (!e.old || e.name == "endpoint") {
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
		return // it was decoded a moment ago
	}
	e.sent = true
	e.out.Write(e.fields.Bytes())
	e.out.WriteString("data: ")
	e.out.Write(data)
	e.out.WriteString("\n\n")
}

// scan looks for the id of a message that is too long to be kept, reading it
// byte by byte: of the object's own keys only, not of those inside.
type scan struct {
	depth    int
	inString bool
	escaped  bool
	wantKey  bool   // at depth 1, the next string is a key
	text     []byte // of the key or the value that is read, as JSON
	key      string // whose value comes next
	id       jsonrpc.ID
	response bool // it has a result or an error
	request  bool // it has a method
}

// maxScanned bounds a key or an id; longer ones are none of ours.
const maxScanned = 256

// feed reads on.
func (s *scan) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		if s.inString && !s.escaped && s.depth != 1 { // most of what is long: a string inside
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

// answers is the id of the response that was read; false while it is not
// known, or for another kind of message.
func (s *scan) answers() (jsonrpc.ID, bool) {
	return s.id, s.response && !s.request && s.id.IsValid()
}

func (s *scan) byte(c byte) {
	if s.inString {
		s.inText(c)
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

// inText reads on in a string.
func (s *scan) inText(c byte) {
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

func (s *scan) keep(c byte) {
	if s.depth == 1 && len(s.text) <= maxScanned {
		s.text = append(s.text, c)
	}
}

func (s *scan) isKey() {
	s.wantKey, s.key = false, ""
	_ = json.Unmarshal(s.text, &s.key) // a key that is no string is none of ours
	switch s.key {
	case "result", "error":
		s.response = true
	case "method":
		s.request = true
	}
	s.text = s.text[:0]
}

func (s *scan) value() {
	if s.key == "id" && len(s.text) <= maxScanned {
		s.id = idOf(s.text)
	}
	s.key, s.text = "", s.text[:0]
}

// elements are those of a JSON array.
func elements(data []byte) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := json.Unmarshal(data, &all)
	return all, err
}
