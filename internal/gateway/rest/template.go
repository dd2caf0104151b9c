package rest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"
)

const opening = "${parameters."

// text is a string with templates in it.
type text []part

// part is a piece of a text: literal, or the argument at a path.
type part struct {
	literal string
	path    []string // nil: literal
}

// parseText finds the templates in s. What looks otherwise, ${x} or $x, is
// literal: it may mean something to the one who is asked.
func parseText(s string) (text, error) {
	var t text
	for {
		before, after, found := strings.Cut(s, opening)
		if before != "" {
			t = append(t, part{literal: before})
		}
		if !found {
			return t, nil
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%s%s is not closed: expected ${parameters.NAME}", opening, Cut(after, 40))
		}
		path := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(name), ".")
		for _, p := range path {
			if p == "" || strings.ContainsAny(p, "{}/?#&=%$ \t\r\n\\") {
				return nil, fmt.Errorf("${parameters.%s} names no parameter: expected ${parameters.NAME} or ${parameters.NAME.NAME}", Cut(name, 40))
			}
		}
		t = append(t, part{path: path})
		s = rest
	}
}

// whole is the path of the one template that t is, or nil.
func (t text) whole() []string {
	if len(t) == 1 {
		return t[0].path
	}
	return nil
}

func (t text) hasTemplate() bool {
	for _, p := range t {
		if p.path != nil {
			return true
		}
	}
	return false
}

// fill puts the arguments in, each turned by escape; where says where t
// stands, for the error about an argument that is not there.
func (t text) fill(args map[string]any, where string, escape func(string) string) (string, error) {
	var b strings.Builder
	for _, p := range t {
		if p.path == nil {
			b.WriteString(p.literal)
			continue
		}
		v, ok := lookup(args, p.path)
		if !ok || v == nil {
			return "", missing(p.path, where)
		}
		b.WriteString(escape(Text(v)))
	}
	return b.String(), nil
}

func missing(path []string, where string) error {
	name := strings.Join(path, ".")
	return signalbox.Invalid("arguments."+name, "the argument %s is missing: it is part of %s", name, where)
}

// lookup finds the argument at a path.
func lookup(args map[string]any, path []string) (any, bool) {
	var v any = args
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Text is an argument as text: strings, numbers and truth values as they are,
// the rest as JSON.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return string(EncodeJSON(v))
}

func same(s string) string { return s }

// Cut is s shortened to n bytes, for messages.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
