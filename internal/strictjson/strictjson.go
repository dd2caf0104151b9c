// Package strictjson reads JSON as strictly as an address that strangers reach
// must: what a program in front of it took a text to say is what it says here.
package strictjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	if tree, ok := parsePlain(data); ok {
		return tree, nil
	}
	return parseAny(data)
}

// parseAny is Parse for every text, whatever is in it.
func parseAny(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, &Error{What: "is not valid UTF-8"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Error{What: fmt.Sprintf("is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())}
		}
		return nil, &Error{What: "is not valid JSON"}
	}
	if halfSurrogate(data) {
		return nil, &Error{What: "contains half of a surrogate pair (\\ud800 to \\udfff), which is no character"}
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	return value(dec, "", 1)
}

func value(dec *json.Decoder, path string, depth int) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, &Error{What: "is not valid JSON"}
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth > maxDepth {
		return nil, &Error{Path: path, What: fmt.Sprintf("is nested too deep: at most %d levels are allowed", maxDepth)}
	}
	if delim == '[' {
		return array(dec, path, depth)
	}
	return members(dec, path, depth)
}

func array(dec *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := value(dec, Element(path, len(list)), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, err
}

func members(dec *json.Decoder, path string, depth int) (any, error) {
	o := &Object{Values: map[string]any{}}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		field := Join(path, key)
		if _, twice := o.Values[key]; twice {
			return nil, &Error{Path: field, What: Twice}
		}
		v, err := value(dec, field, depth+1)
		if err != nil {
			return nil, err
		}
		o.Keys = append(o.Keys, key)
		o.Values[key] = v
	}
	_, err := dec.Token()
	return o, err
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
