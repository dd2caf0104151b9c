// Package strictjson reads JSON as strictly as an address that strangers reach
// must: what a program in front of it took a text to say is what it says here.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxDepth = 32

// Object is a JSON object, its members in the order in which they came.
type Object struct {
	Keys   []string
	Values map[string]any
}

// Twice is what is wrong with a member that its object has already: of two
// programs that read it, each may take another one.
const Twice = "is given twice"

// Error says what is wrong with a text, and where.
type Error struct {
	Path string // of the member, such as "project.tags[2]", cut at about 256 bytes; "" is the whole
	What string // goes on from "the body" or the path, such as Twice
}

func (e *Error) Error() string { return cmp.Or(e.Path, "the text") + " " + e.What }

// Parse reads a JSON text into nil, string, bool, json.Number, []any and
// *Object. It refuses what encoding/json lets pass: invalid UTF-8, halves of
// surrogate pairs, repeated members, deep nesting.
func Parse(data []byte) (any, error) {
	p := parser{data: data}
	tree, err := p.value(1)
	if p.space(); err == nil && p.at < len(data) {
		err = errSyntax
	}
	if err != nil {
		return nil, p.explain(err)
	}
	return tree, nil
}

// fault is why a text is not read further, with the steps that led there, the
// last one first. Of a text that is no JSON explain has more to say.
type fault struct {
	what  string
	steps []func(path string) string
}

var errSyntax = &fault{what: "is not valid JSON"}

// in is the fault within a member or an element.
func (f *fault) in(step func(path string) string) *fault {
	return &fault{f.what, append(f.steps, step)}
}

func member(key string) func(string) string {
	return func(path string) string { return Join(path, key) }
}
func element(i int) func(string) string { return func(path string) string { return Element(path, i) } }

// explain says what is wrong with a text that could not be read: what makes it
// no JSON before what makes it one that is refused.
func (p *parser) explain(f *fault) error {
	if !utf8.Valid(p.data) {
		return &Error{What: "is not valid UTF-8"}
	}
	var whole json.RawMessage
	var syntax *json.SyntaxError
	switch bad := json.Unmarshal(p.data, &whole); {
	case errors.As(bad, &syntax):
		return &Error{What: fmt.Sprintf("is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())}
	case bad != nil:
		return &Error{What: "is not valid JSON"}
	case halfSurrogate(p.data):
		return &Error{What: "contains half of a surrogate pair (\\ud800 to \\udfff), which is no character"}
	}
	path := ""
	for _, step := range slices.Backward(f.steps) {
		path = step(path)
	}
	return &Error{Path: path, What: f.what}
}

// parser is a text and how far it has been read.
type parser struct {
	data []byte
	at   int
}

func (p *parser) space() {
	for p.at < len(p.data) && (p.data[p.at] == ' ' || p.data[p.at] == '\n' || p.data[p.at] == '\t' || p.data[p.at] == '\r') {
		p.at++
	}
}

// next steps over c, and the space before it, if it is what comes next.
func (p *parser) next(c byte) bool {
	p.space()
	if p.at < len(p.data) && p.data[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) value(depth int) (any, *fault) {
	p.space()
	if p.at == len(p.data) {
		return nil, errSyntax
	}
	switch c := p.data[p.at]; {
	case c == '"':
		return p.string()
	case c == '{' || c == '[':
		if depth > maxDepth {
			return nil, &fault{what: fmt.Sprintf("is nested too deep: at most %d levels are allowed", maxDepth)}
		}
		if p.at++; c == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	return p.word()
}

// words are the values that have names.
var words = []struct {
	text  string
	value any
}{{"true", true}, {"false", false}, {"null", nil}}

func (p *parser) word() (any, *fault) {
	for _, w := range words {
		if bytes.HasPrefix(p.data[p.at:], []byte(w.text)) {
			p.at += len(w.text)
			return w.value, nil
		}
	}
	return nil, errSyntax
}

func (p *parser) number() (any, *fault) {
	from := p.at
	p.one("-")
	first := p.at
	if n := p.digits(); n == 0 || n > 1 && p.data[first] == '0' {
		return nil, errSyntax
	}
	if p.one(".") && p.digits() == 0 {
		return nil, errSyntax
	}
	if p.one("eE") {
		p.one("+-")
		if p.digits() == 0 {
			return nil, errSyntax
		}
	}
	return json.Number(p.data[from:p.at]), nil
}

// one steps over one of these characters, if it is there.
func (p *parser) one(of string) bool {
	ok := p.at < len(p.data) && strings.IndexByte(of, p.data[p.at]) >= 0
	if ok {
		p.at++
	}
	return ok
}

func (p *parser) digits() (n int) {
	for p.one("0123456789") {
		n++
	}
	return n
}

// string reads a text. Most are printable ASCII without escapes; any other one is
// left to encoding/json, once it is known to take nothing for U+FFFD.
func (p *parser) string() (string, *fault) {
	if !p.next('"') {
		return "", errSyntax
	}
	from, plain := p.at, true
	for ; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			if plain {
				return string(p.data[from : p.at-1]), nil
			}
			text, raw := "", p.data[from-1:p.at]
			if !utf8.Valid(raw) || json.Unmarshal(raw, &text) != nil || halfSurrogate(raw) {
				return "", errSyntax
			}
			return text, nil
		case c == '\\':
			p.at++ // what is escaped
			plain = false
		case c < ' ' || c > '~':
			plain = false
		}
	}
	return "", errSyntax
}

func (p *parser) array(depth int) (any, *fault) {
	list := []any{}
	for !p.next(']') {
		if len(list) > 0 && !p.next(',') {
			return nil, errSyntax
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err.in(element(len(list)))
		}
		list = append(list, v)
	}
	return list, nil
}

func (p *parser) object(depth int) (any, *fault) {
	o := &Object{Values: map[string]any{}}
	for !p.next('}') {
		if len(o.Keys) > 0 && !p.next(',') {
			return nil, errSyntax
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := o.Values[key]; twice {
			return nil, (&fault{what: Twice}).in(member(key))
		}
		if !p.next(':') {
			return nil, errSyntax
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err.in(member(key))
		}
		o.Keys = append(o.Keys, key)
		o.Values[key] = v
	}
	return o, nil
}

// maxPath bounds the path of a member, which is made for each of them and shown
// in errors, the beginning of it: below a name of a megabyte, a body of as many
// elements would have cost minutes.
const maxPath = 256

// Join is the path of a member, Element that of an element of an array.
func Join(path, key string) string {
	switch {
	case len(path) > maxPath:
		return path
	case len(key) > maxPath:
		key = key[:maxPath+1]
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func Element(path string, i int) string {
	if len(path) > maxPath {
		return path
	}
	return path + "[" + strconv.Itoa(i) + "]"
}

// halfSurrogate reports whether a valid JSON text escapes one half of a
// surrogate pair without the other. encoding/json would put U+FFFD there:
// the text stored would not be the text sent.
func halfSurrogate(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // what is escaped; valid JSON does not end here
		if data[i] != 'u' {
			continue
		}
		first := hex4(data[i+1:])
		i += 4
		if first < 0xd800 || first > 0xdfff {
			continue
		}
		if first > 0xdbff || len(data) < i+7 || data[i+1] != '\\' || data[i+2] != 'u' {
			return true
		}
		if second := hex4(data[i+3:]); second < 0xdc00 || second > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}

func hex4(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return 0
	}
	return n
}

// Members splits an object that Parse has taken into its members, each as it was
// written.
func Members(object []byte) map[string]json.RawMessage {
	p, out := parser{data: object}, map[string]json.RawMessage{}
	if !p.next('{') {
		return nil
	}
	for !p.next('}') {
		p.next(',')
		key, err := p.string()
		if err != nil || !p.next(':') {
			return nil
		}
		p.space()
		from := p.at
		p.skip()
		out[key] = object[from:p.at]
	}
	return out
}

// skip goes behind the value that begins here.
func (p *parser) skip() {
	for depth := 0; ; {
		switch p.data[p.at] {
		case '"':
			for p.at++; p.data[p.at] != '"'; p.at++ {
				if p.data[p.at] == '\\' {
					p.at++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		p.at++
		if depth == 0 && (p.at == len(p.data) || strings.IndexByte(",}] \n\t\r", p.data[p.at]) >= 0) {
			return
		}
	}
}
