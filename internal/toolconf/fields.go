package toolconf

import (
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// schemaForms are keywords of JSON Schema and the form of their values there, which a
// field of the short form never has.
var schemaForms = map[string]conffile.Form{
	"required": conffile.List, "allOf": conffile.List, "anyOf": conffile.List, "oneOf": conffile.List,
	"additionalProperties": conffile.Boolean, "minProperties": conffile.Number, "maxProperties": conffile.Number,
}

// isFields reports whether a schema is in the short form and not JSON Schema. A field
// of the short form may have the name of any keyword, so the values decide. type:
// object means JSON Schema if properties is not itself a field and nothing else but
// annotations is given.
func isFields(n *conffile.Node) bool {
	typed, plain := false, true
	for _, pair := range n.Pairs {
		switch v := pair.Value; {
		case strings.HasPrefix(pair.Key, "$") || schemaForms[pair.Key] == v.Form:
			return false
		case pair.Key == "type":
			typed = v.Form == conffile.Text && v.Text == "object"
		case pair.Key == "properties":
			named := func(p conffile.Pair) bool { return p.Key == "type" && p.Value.Form == conffile.Text }
			plain = plain && v.Form == conffile.Section && !slices.ContainsFunc(v.Pairs, named)
		case !slices.Contains([]string{"title", "description", "additionalProperties", "default", "examples"}, pair.Key):
			plain = false
		}
	}
	return !typed || !plain
}

// fields converts the short form to JSON Schema.
type fields struct {
	*section
	seen int
}

// maxFields limits how many fields YAML aliases can produce.
const maxFields = 10_000

func text(s string, line int) *conffile.Node {
	return &conffile.Node{Form: conffile.Text, Text: s, Line: line}
}

// entry is a pair of a schema with the line of its value.
func entry(key string, v *conffile.Node) conffile.Pair {
	return conffile.Pair{Key: key, Line: v.Line, Value: v}
}

func list(line int, items ...*conffile.Node) *conffile.Node {
	return &conffile.Node{Form: conffile.List, Line: line, Items: items}
}

func pairs(line int, pairs ...conffile.Pair) *conffile.Node {
	return &conffile.Node{Form: conffile.Section, Line: line, Pairs: pairs}
}

// object converts a section of fields to the schema of an object. Each field is
// required unless it is marked optional. nil: an error has been reported.
func (f *fields) object(n *conffile.Node, key string) *conffile.Node {
	if f.seen += 1 + len(n.Pairs); f.seen > maxFields {
		f.problem(n.Line, key, "it has too many fields")
		return nil
	}
	properties, required := pairs(n.Line), list(n.Line)
	for _, pair := range n.Pairs {
		schema, optional := f.field(pair.Value, key+"."+shownName(pair.Key))
		if schema == nil {
			return nil
		}
		properties.Pairs = append(properties.Pairs, conffile.Pair{Key: pair.Key, Line: pair.Line, Value: schema})
		if !optional {
			required.Items = append(required.Items, text(pair.Key, pair.Line))
		}
	}
	out := pairs(n.Line, entry("type", text("object", n.Line)), entry("properties", properties))
	if len(required.Items) > 0 {
		out.Pairs = append(out.Pairs, entry("required", required))
	}
	return out
}

// fieldWords are the keys of a field that are keywords of JSON Schema, and min and
// max, which are short for minimum and maximum.
var fieldWords = []string{
	"description", "title", "default", "examples", "enum", "format", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf",
	"pattern", "uniqueItems", "writeOnly", "min", "max",
}

// fieldTypes are the types that a field may have. JSON Schema has no any.
var fieldTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null", "any"}

// field converts one field. If it is only a text, the text is its type.
func (f *fields) field(n *conffile.Node, key string) (schema *conffile.Node, optional bool) {
	switch {
	case n.Form == conffile.Text:
		n = pairs(n.Line, entry("type", n))
	case n.Form != conffile.Section && n.Fault == "":
		f.wrong(n, key, "a type, or a section with one", false)
		return nil, false
	}
	s := f.open(n, n.Line, key)
	if s == nil {
		return nil, false
	}
	f.seen++
	kind := s.fieldType()
	out := pairs(n.Line)
	s.boolean(&optional, "optional")
	if pair, ok := s.given("required"); ok && pair.Value.Form == conffile.Boolean {
		required := !optional
		s.boolean(&required, "required")
		optional = !required
	}
	many, nullable := false, false
	s.boolean(&many, "isArray")
	many = many && kind != "array"
	s.boolean(&nullable, "nullable")
	if kind != "any" {
		out.Pairs = append(out.Pairs, entry("type", text(kind, n.Line)))
	}
	if !f.parts(s, kind, out) {
		return nil, false
	}
	for _, word := range fieldWords {
		pair, _, ok := s.take(word)
		if word == "min" || word == "max" {
			word += "imum"
		}
		if ok && (!many || word != "minItems" && word != "maxItems") { // they apply to the list
			out.Pairs = append(out.Pairs, entry(word, pair.Value))
		}
	}
	s.finish(nil)
	if many {
		out = pairs(n.Line, entry("type", text("array", n.Line)), entry("items", out))
		for _, word := range []string{"minItems", "maxItems"} {
			if pair, ok := s.given(word); ok {
				out.Pairs = append(out.Pairs, entry(word, pair.Value))
			}
		}
	}
	if nullable {
		out = pairs(n.Line, entry("anyOf", list(n.Line, out, pairs(n.Line, entry("type", text("null", n.Line))))))
	}
	return out, optional
}

// fieldType reads the type of a field. As in the other program, a field without a
// type is a string, and one with an unknown type can be anything.
func (s *section) fieldType() string {
	pair, key, ok := s.take("type")
	if !ok {
		return "string"
	}
	kind := strings.ToLower(pair.Value.Text)
	if pair.Value.Form != conffile.Text || !slices.Contains(fieldTypes, kind) {
		s.odd(pair.Line, key, "want one of "+strings.Join(fieldTypes, ", ")+conffile.Suggest(kind, fieldTypes))
		return "any"
	}
	return kind
}

// parts converts the items of a list or the properties of an object.
func (f *fields) parts(s *section, kind string, out *conffile.Node) bool {
	switch kind {
	case "array":
		pair, key, ok := s.take("items")
		if !ok {
			pair.Value = text("string", s.line)
		}
		schema, _ := f.field(pair.Value, key)
		if schema == nil {
			return false
		}
		out.Pairs = append(out.Pairs, entry("items", schema))
	case "object":
		if pair, key, ok := s.take("properties"); ok {
			if pair.Value.Form != conffile.Section {
				s.wrong(pair.Value, key, "a section of fields", false)
				return false
			}
			inner := f.object(pair.Value, key)
			if inner == nil {
				return false
			}
			out.Pairs = inner.Pairs
		}
		if pair, _, ok := s.take("additionalProperties"); ok {
			out.Pairs = append(out.Pairs, entry("additionalProperties", pair.Value))
		}
	}
	return true
}
