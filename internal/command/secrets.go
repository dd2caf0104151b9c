package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/mask"
)

// maxSecrets bounds the number of secrets in one input: each is searched for
// in all output.
const maxSecrets = 64

// marks finds what a schema marks as secret, with writeOnly or the format
// password, wherever that is.
type marks struct {
	root map[string]any
	refs map[string]bool // that have been followed
	open bool            // a marked value has no name in the schema
}

// marked reports whether a schema, or one below it, has a mark.
func (m *marks) marked(schema any) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, m.marked)
	case map[string]any:
		if s["writeOnly"] == true || s["format"] == "password" {
			return true
		}
		if ref, ok := s["$ref"].(string); ok && m.markedAt(ref) {
			return true
		}
		for _, inner := range s {
			if m.marked(inner) {
				return true
			}
		}
	}
	return false
}

// markedAt visits each place once, because a schema may refer back to itself.
func (m *marks) markedAt(ref string) bool {
	if m.refs[ref] {
		return false
	}
	m.refs[ref] = true
	target, ok := follow(m.root, ref)
	return ok && m.marked(target)
}

// names returns the marked properties of the input itself, including those in
// schemas that apply to the same value.
func (m *marks) names(schema any, under []string) (names []string) {
	s, _ := schema.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		m.refs = map[string]bool{}
		if m.marked(p) {
			names = append(names, name)
		}
	}
	for _, key := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties"} {
		m.refs = map[string]bool{}
		m.open = m.open || m.marked(s[key])
	}
	if ref, ok := s["$ref"].(string); ok && !slices.Contains(under, ref) {
		target, _ := follow(m.root, ref)
		names = append(names, m.names(target, append(under, ref))...)
	}
	for _, inner := range sameValue(s) {
		names = append(names, m.names(inner, under)...)
	}
	return names
}

// withMarked adds the schema's marked properties to names, in order.
func withMarked(names []string, schema map[string]any) ([]string, error) {
	m := &marks{root: schema}
	out := slices.Concat(names, m.names(schema, nil))
	if m.open {
		return nil, errors.New("it marks as secret what has no name in it (additionalProperties or patternProperties): name each secret property in properties, or in secrets")
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// secretsOf returns the texts of an input that must be masked: those of the
// named properties, at any depth, verbatim and as JSON encodes them. If a
// property occurs twice, both values count.
func secretsOf(input json.RawMessage, names []string) ([]string, error) {
	if len(names) == 0 || len(input) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, err
	}
	var c collector
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if name, _ := key.(string); slices.Contains(names, name) {
			c.collect(value)
		}
	}
	if c.leaves > maxSecrets {
		return nil, signalbox.Invalid("arguments", "The secret arguments hold more than %d texts and numbers: put them into fewer, or into one.", maxSecrets)
	}
	return c.texts, nil
}

// collector collects the texts and numbers of a JSON value.
type collector struct {
	texts  []string
	leaves int
}

func (c *collector) collect(value json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	c.walk(d, value)
}

// walk reads the next value of d, whose whole input is all, and reports whether
// more may follow.
func (c *collector) walk(d *json.Decoder, all []byte) bool {
	from := d.InputOffset()
	t, err := d.Token()
	if err != nil || c.leaves > maxSecrets {
		return false
	}
	switch v := t.(type) {
	case json.Delim:
		for d.More() {
			if v == '{' {
				_, _ = d.Token() // the name, which is not masked
			}
			if !c.walk(d, all) {
				return false
			}
		}
		_, err = d.Token() // the closing token
	case string:
		c.leaves++
		written := bytes.TrimLeft(all[from:d.InputOffset()], " \t\r\n:,")
		c.texts = append(append(c.texts, hideForms(v)...), strings.TrimSpace(string(written[1:len(written)-1])))
	case json.Number:
		c.leaves++
		c.texts = append(c.texts, v.String())
	}
	return err == nil
}

// hideForms returns the forms in which a value may occur: verbatim, without
// surrounding space, which programs tend to trim, and as JSON encodes it:
// plainly, as Go does for HTML (and as secrets are put back into an input), and
// in ASCII only, as Python does.
func hideForms(v string) []string {
	v = strings.TrimSpace(v)
	if len(v) < mask.From {
		return []string{v}
	}
	inner := func(quoted []byte) string { return strings.TrimSpace(string(quoted[1 : len(quoted)-1])) }
	plain := plainJSON(v)
	html, err := json.Marshal(v)
	if err != nil { // text always marshals
		html = plain
	}
	return []string{v, inner(plain), inner(html), inner(asciiJSON(plain))}
}

// asciiJSON escapes everything outside of ASCII.
func asciiJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// plainJSON encodes without HTML escapes.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
