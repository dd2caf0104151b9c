// Package strictjson parses JSON strictly, for addresses that untrusted
// clients reach: a proxy in front of the server cannot understand a text
// differently.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const maxDepth = 32

// Object is a JSON object with its members in their original order.
type Object struct {
	Keys   []string
	Values map[string]any
}

// Duplicate describes a duplicate member: of two programs that read the object,
// each may take another one.
const Duplicate = "is given twice"

// Error describes a mistake in a text, and its place.
type Error struct {
	Path string // of the member, such as "project.tags[2]", cut at about 256 bytes; "" is the whole text
	What string // completes "the body ..." or the path, such as Twice
}

func (e *Error) Error() string { return cmp.Or(e.Path, "the text") + " " + e.What }

// Parse parses a JSON text into nil, string, bool, json.Number, []any and
// *Object. It refuses what encoding/json accepts: invalid UTF-8, unpaired
// surrogates, duplicate members, deep nesting.
func Parse(data []byte) (any, error) {
	dec := decoder(data)
	defer decoders.Put(dec)
	tree, fault := value(dec, 1)
	if fault == nil {
		if _, err := dec.ReadToken(); err != io.EOF {
			fault = errSyntax
		}
	}
	if fault != nil {
		return nil, explain(data, fault)
	}
	return tree, nil
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// duplicate members are found here, where their paths are known.
var repeated = jsontext.AllowDuplicateNames(true)

func decoder(data []byte) *jsontext.Decoder {
	dec := decoders.Get().(*jsontext.Decoder)
	dec.Reset(bytes.NewBuffer(data), repeated)
	return dec
}

// fault is why parsing stopped, with the path to the place, innermost step
// first. If the text is not JSON, explain finds a better error.
type fault struct {
	what  string
	steps []func(path string) string
}

var errSyntax = &fault{what: "is not valid JSON"}

// in adds the step to a member or an element.
func (f *fault) in(step func(path string) string) *fault {
	return &fault{f.what, append(f.steps, step)}
}

func member(key string) func(string) string {
	return func(path string) string { return Join(path, key) }
}
func element(i int) func(string) string { return func(path string) string { return Element(path, i) } }

// explain returns the error for a text: syntax errors have precedence over
// errors in valid JSON.
func explain(data []byte, f *fault) error {
	if !utf8.Valid(data) {
		return &Error{What: "is not valid UTF-8"}
	}
	var whole json.RawMessage
	var syntax *json.SyntaxError
	switch bad := json.Unmarshal(data, &whole); {
	case errors.As(bad, &syntax):
		return &Error{What: fmt.Sprintf("is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())}
	case bad != nil:
		return &Error{What: "is not valid JSON"}
	case !jsontext.Value(data).IsValid(repeated): // encoding/json replaces these by U+FFFD: the stored text would differ from the sent one
		return &Error{What: "contains half of a surrogate pair (\\ud800 to \\udfff), which is not a character"}
	}
	path := ""
	for _, step := range slices.Backward(f.steps) {
		path = step(path)
	}
	return &Error{Path: path, What: f.what}
}

func value(dec *jsontext.Decoder, depth int) (any, *fault) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, errSyntax
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case '[', '{':
		if depth > maxDepth {
			return nil, &fault{what: fmt.Sprintf("is nested too deep: at most %d levels are allowed", maxDepth)}
		}
		if token.Kind() == '[' {
			return array(dec, depth)
		}
		return object(dec, depth)
	}
	return nil, errSyntax
}

func array(dec *jsontext.Decoder, depth int) (any, *fault) {
	list := []any{}
	for dec.PeekKind() != ']' {
		v, err := value(dec, depth+1)
		if err != nil {
			return nil, err.in(element(len(list)))
		}
		list = append(list, v)
	}
	_, _ = dec.ReadToken() // the bracket
	return list, nil
}

func object(dec *jsontext.Decoder, depth int) (any, *fault) {
	o := &Object{Values: map[string]any{}}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, errSyntax
		}
		key := name.String()
		if _, twice := o.Values[key]; twice {
			return nil, (&fault{what: Duplicate}).in(member(key))
		}
		v, wrong := value(dec, depth+1)
		if wrong != nil {
			return nil, wrong.in(member(key))
		}
		o.Keys = append(o.Keys, key)
		o.Values[key] = v
	}
	_, _ = dec.ReadToken() // the brace
	return o, nil
}

// maxPath bounds the path of a member, in bytes. A path is built for each
// member, and its beginning is shown in errors. Without a bound, a body with a
// name of a megabyte above as many elements would take minutes.
const maxPath = 256

// Join returns the path of a member, Element that of an element of an array.
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

// Members splits an object that Parse has accepted into its members, each as it
// was written; nil: it is not an object.
func Members(text []byte) map[string]json.RawMessage {
	dec := decoder(text)
	defer decoders.Put(dec)
	if brace, err := dec.ReadToken(); err != nil || brace.Kind() != '{' {
		return nil
	}
	out := map[string]json.RawMessage{}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		end := dec.InputOffset()
		out[key] = text[end-int64(len(v)) : end]
	}
	return out
}
