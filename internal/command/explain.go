package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fault is an invalid place of an input, and what was expected there.
type fault struct {
	path string // such as files[2].name; "" is the input itself
	want string // such as "must be an integer, not a string"
}

// finder finds, for messages, the place where an input violates its schema.
// The library decides whether the input is valid, but it names places of the
// schema and quotes values. finder supports the keywords that schemas of
// tools usually have, and finds nothing if another keyword is violated.
type finder struct {
	root  map[string]any
	depth int
}

// maxFindDepth bounds the nesting depth of the search.
const maxFindDepth = 64

func (f *finder) in(s, v any, path string) *fault {
	if s == false {
		return &fault{path, "must not be there"}
	}
	m, ok := s.(map[string]any)
	if !ok || f.depth > maxFindDepth {
		return nil
	}
	f.depth++
	defer func() { f.depth-- }()
	if ref, ok := m["$ref"].(string); ok {
		if target, ok := follow(f.root, ref); ok {
			if found := f.in(target, v, path); found != nil {
				return found
			}
		}
	}
	if want := ofKind(m, v); want != "" {
		return &fault{path, want}
	}
	if found := f.parts(m, v, path); found != nil {
		return found
	}
	all, _ := m["allOf"].([]any)
	for _, inner := range all {
		if found := f.in(inner, v, path); found != nil {
			return found
		}
	}
	return nil
}

// parts searches objects and arrays.
func (f *finder) parts(m map[string]any, v any, path string) *fault {
	switch v := v.(type) {
	case map[string]any:
		return f.object(m, v, path)
	case []any:
		for i, e := range v {
			if found := f.in(m["items"], e, fmt.Sprintf("%s[%d]", path, i)); found != nil {
				return found
			}
		}
	}
	return nil
}

func (f *finder) object(m, v map[string]any, path string) *fault {
	at := func(name string) string { return strings.TrimPrefix(path+"."+shown(name), ".") }
	required, _ := m["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			if _, there := v[name]; !there {
				return &fault{at(name), "is missing"}
			}
		}
	}
	properties, _ := m["properties"].(map[string]any)
	_, byPattern := m["patternProperties"]
	for _, name := range slices.Sorted(maps.Keys(v)) {
		s, known := properties[name]
		if !known {
			s = m["additionalProperties"]
			if s == nil || byPattern {
				continue
			}
			if s == false {
				return &fault{at(name), "is none that the tool takes" + instead(properties)}
			}
		}
		if found := f.in(s, v[name], at(name)); found != nil {
			return found
		}
	}
	return nil
}

// instead lists the allowed properties.
func instead(properties map[string]any) string {
	names := slices.Sorted(maps.Keys(properties))
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return ": it takes " + strings.Join(names, ", ")
}

// shown formats a name for a message.
func shown(name string) string {
	if len(name) > 64 {
		for name = name[:64]; !utf8.ValidString(name); {
			name = name[:len(name)-1]
		}
		name += "…"
	}
	if plain := strconv.Quote(name); plain[1:len(plain)-1] != name {
		return plain
	}
	return name
}

// ofKind says what was expected if a value has the wrong type or is out of
// bounds.
func ofKind(m map[string]any, v any) string {
	if t := types(m["type"]); len(t) > 0 && !slices.ContainsFunc(t, func(t string) bool { return isA(t, v) }) {
		return "must be " + a(t) + ", not " + a([]string{typeOf(v)})
	}
	if enum, ok := m["enum"].([]any); ok && !holds(enum, v) {
		return "must be one of " + list(enum)
	}
	if c, ok := m["const"]; ok && !holds([]any{c}, v) {
		return "must be " + string(plainJSON(c))
	}
	switch v := v.(type) {
	case float64:
		return bounds(m, v)
	case string:
		if p, ok := m["pattern"].(string); ok {
			if re, err := regexp.Compile(p); err == nil && !re.MatchString(v) {
				return "must match the pattern " + p
			}
		}
		return counted(m, utf8.RuneCountInString(v), "Length", "characters")
	case []any:
		return counted(m, len(v), "Items", "items")
	case map[string]any:
		return counted(m, len(v), "Properties", "properties")
	}
	return ""
}

func bounds(m map[string]any, v float64) string {
	for _, b := range []struct {
		key, words string
		bad        func(limit float64) bool
	}{
		{"minimum", "must be at least ", func(l float64) bool { return v < l }},
		{"maximum", "must be at most ", func(l float64) bool { return v > l }},
		{"exclusiveMinimum", "must be more than ", func(l float64) bool { return v <= l }},
		{"exclusiveMaximum", "must be less than ", func(l float64) bool { return v >= l }},
	} {
		if limit, ok := m[b.key].(float64); ok && b.bad(limit) {
			return b.words + string(plainJSON(limit))
		}
	}
	return ""
}

func counted(m map[string]any, n int, of, what string) string {
	if limit, ok := m["min"+of].(float64); ok && float64(n) < limit {
		return fmt.Sprintf("must have at least %v %s, not %d", limit, what, n)
	}
	if limit, ok := m["max"+of].(float64); ok && float64(n) > limit {
		return fmt.Sprintf("must have at most %v %s, not %d", limit, what, n)
	}
	return ""
}

func types(v any) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []any:
		var out []string
		for _, e := range v {
			if t, ok := e.(string); ok && t != "" {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

func isA(kind string, v any) bool {
	if n, ok := v.(float64); ok && kind == "integer" {
		return n == math.Trunc(n)
	}
	return typeOf(v) == kind
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// a writes types in prose: an integer or a string.
func a(kinds []string) string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		switch {
		case k == "null":
			out[i] = k
		case strings.Contains("aeio", k[:1]):
			out[i] = "an " + k
		default:
			out[i] = "a " + k
		}
	}
	return strings.Join(out, " or ")
}

func holds(all []any, v any) bool {
	have, _ := json.Marshal(v)
	return slices.ContainsFunc(all, func(e any) bool { b, _ := json.Marshal(e); return string(b) == string(have) })
}

func list(all []any) string {
	out := make([]string, 0, len(all))
	for _, e := range all[:min(len(all), 20)] {
		out = append(out, string(plainJSON(e)))
	}
	if len(all) > 20 {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}
