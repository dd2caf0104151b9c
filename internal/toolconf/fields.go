package toolconf

import (
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// isFields tells the short form of a schema from JSON Schema. The short form may
// have a field with the name of any word of JSON Schema, so it is by the value of
// such a word that one can tell.
func isFields(n *conffile.Node) bool {
	for _, pair := range n.Pairs {
		v := pair.Value
		switch pair.Key {
		case "required", "allOf", "anyOf", "oneOf":
			if v.Form == conffile.List {
				return false
			}
		case "additionalProperties":
			if v.Form == conffile.Boolean {
				return false
			}
		case "minProperties", "maxProperties":
			if v.Form == conffile.Number {
				return false
			}
		}
		if strings.HasPrefix(pair.Key, "$") {
			return false
		}
	}
	return !isObjectSchema(n)
}

// isObjectSchema reports whether type is object as JSON Schema has it: with
// properties that are no field of that name, or with nothing but words about it.
func isObjectSchema(n *conffile.Node) bool {
	typed, plain := false, true
	for _, pair := range n.Pairs {
		switch pair.Key {
		case "type":
			typed = pair.Value.Form == conffile.Text && pair.Value.Text == "object"
		case "properties":
			if pair.Value.Form != conffile.Section {
				plain = false
			}
			for _, p := range pair.Value.Pairs {
				plain = plain && (p.Key != "type" || p.Value.Form != conffile.Text)
			}
		case "title", "description", "additionalProperties", "default", "examples":
		default:
			plain = false
		}
	}
	return typed && plain
}

// fields makes JSON Schema of the short form.
type fields struct {
	*section
	seen int
}

// maxFields bounds what aliases of YAML can make of a few fields.
const maxFields = 10_000

func text(s string, line int) *conffile.Node {
	return &conffile.Node{Form: conffile.Text, Text: s, Line: line}
}

// entry is a pair of a schema, on the line of what it is made of.
func entry(key string, v *conffile.Node) conffile.Pair {
	return conffile.Pair{Key: key, Line: v.Line, Value: v}
}

func list(line int, items ...*conffile.Node) *conffile.Node {
	return &conffile.Node{Form: conffile.List, Line: line, Items: items}
}

func pairs(line int, pairs ...conffile.Pair) *conffile.Node {
	return &conffile.Node{Form: conffile.Section, Line: line, Pairs: pairs}
}

// object makes the schema of an object of a section of fields: each is
// required, unless it says optional. nil: a mistake has been reported.
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

// fieldWords are those of a field that JSON Schema has too.
var fieldWords = []string{
	"description", "title", "default", "examples", "enum", "format", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "multipleOf",
	"pattern", "uniqueItems", "writeOnly",
}

// fieldTypes are the types that a field may have; any is of no JSON Schema.
var fieldTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null", "any"}

// field makes the schema of one field. One that is only a text is its type.
func (f *fields) field(n *conffile.Node, key string) (schema *conffile.Node, optional bool) {
	switch {
	case n.Fault != "":
		f.problem(n.Line, key, n.Fault)
		return nil, false
	case n.Form == conffile.Text:
		n = pairs(n.Line, entry("type", n))
	case n.Form != conffile.Section:
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
	s.copyWords(out, many)
	s.finish(nil)
	if many {
		out = s.listOf(out)
	}
	if nullable {
		out = pairs(n.Line, entry("anyOf", list(n.Line, out, pairs(n.Line, entry("type", text("null", n.Line))))))
	}
	return out, optional
}

// fieldType reads the type of a field. That program takes a field of none for a
// string and one of a type that it does not know for anything.
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

// parts reads what a list or an object is made of.
func (f *fields) parts(s *section, kind string, out *conffile.Node) bool {
	switch kind {
	case "array":
		pair, key, ok := s.take("items")
		item := &conffile.Node{Form: conffile.Text, Text: "string", Line: s.line}
		if ok {
			item = pair.Value
		}
		schema, _ := f.field(item, key)
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

// copyWords takes over what JSON Schema has too. The bounds of a list that is
// written as its item stay for listOf.
func (s *section) copyWords(out *conffile.Node, many bool) {
	for _, word := range fieldWords {
		if pair, _, ok := s.take(word); ok && !(many && (word == "minItems" || word == "maxItems")) {
			out.Pairs = append(out.Pairs, entry(word, pair.Value))
		}
	}
	for _, short := range [][2]string{{"min", "minimum"}, {"max", "maximum"}} {
		if pair, _, ok := s.take(short[0]); ok {
			out.Pairs = append(out.Pairs, entry(short[1], pair.Value))
		}
	}
}

func (s *section) listOf(item *conffile.Node) *conffile.Node {
	out := pairs(item.Line, entry("type", text("array", item.Line)), entry("items", item))
	for _, word := range []string{"minItems", "maxItems"} {
		if pair, ok := s.given(word); ok {
			out.Pairs = append(out.Pairs, entry(word, pair.Value))
		}
	}
	return out
}
