package command

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// maxSecrets bounds how many texts of one input are hidden: each is looked for
// in all that the program prints.
const maxSecrets = 64

// markedSecret reports whether a property's schema says, at the top or below,
// that a value is not to be shown: writeOnly, or the format of passwords.
func markedSecret(schema any) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, markedSecret)
	case map[string]any:
		if s["writeOnly"] == true || s["format"] == "password" {
			return true
		}
		for _, inner := range s {
			if markedSecret(inner) {
				return true
			}
		}
	}
	return false
}

// withMarked are the names with those of the schema's properties that are
// marked, in order.
func withMarked(names []string, schema map[string]any) []string {
	out := slices.Clone(names)
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		if markedSecret(p) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// secretsOf returns the texts of an input that are to be hidden: those of the
// named properties, whatever their form, as they are and as JSON writes them.
// A property that is there twice counts twice.
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

// collector gathers the texts and numbers of a JSON value.
type collector struct {
	texts  []string
	leaves int
}

func (c *collector) collect(value json.RawMessage) {
	var v any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return
	}
	if _, ok := v.(string); ok { // as the caller has written it
		c.texts = append(c.texts, strings.TrimSpace(string(value[1:len(value)-1])))
	}
	c.walk(v)
}

func (c *collector) walk(v any) {
	if c.leaves > maxSecrets {
		return
	}
	switch v := v.(type) {
	case string:
		c.leaves++
		c.texts = append(c.texts, hideForms(v)...)
	case json.Number:
		c.leaves++
		c.texts = append(c.texts, v.String())
	case []any:
		for _, e := range v {
			c.walk(e)
		}
	case map[string]any:
		for _, e := range v {
			c.walk(e)
		}
	}
}

// hideForms are the ways in which a value is found: as it is, without the space
// around it that programs like to leave away, and as JSON writes it.
func hideForms(v string) []string {
	v = strings.TrimSpace(v)
	quoted := strings.TrimSpace(string(plainJSON(v)))
	return []string{v, quoted[1 : len(quoted)-1]}
}

// plainJSON encodes without the escapes that HTML wants.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
