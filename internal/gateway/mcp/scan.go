package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

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
