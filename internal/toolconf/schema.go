package toolconf

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/signalbox-ai/signalbox/internal/conffile"
)

// schema is the JSON Schema of an object.
type schema struct {
	text []byte // empty: any object
	root map[string]any
}

// properties are the top-level properties, or nil if it has none.
func (x schema) properties() map[string]any {
	out, _ := x.root["properties"].(map[string]any)
	return out
}

// knows reports whether an object may have the property.
func (x schema) knows(name string) bool {
	properties := x.properties()
	_, ok := properties[name]
	return ok || properties == nil
}

// argumentsSchema reads the schema of a REST tool's arguments, unchanged.
func (s *section) argumentsSchema() (out schema) {
	pair, key, ok := s.take("parametersSchema")
	if !ok {
		return out
	}
	if pair.Value.Form != conffile.Section {
		s.wrong(pair.Value, key, "a JSON Schema of an object", false)
		return out
	}
	out.text = s.json(pair.Value, key, nil)
	_ = json.Unmarshal(out.text, &out.root) // without a decoded schema the check of parameters is skipped
	if t := out.root["type"]; t != nil && t != "object" {
		s.problem(pair.Value.Line, key+".type", "want object: the arguments of a tool are one")
	}
	return out
}

// inputSchema reads the schema of a command's input: JSON Schema, or the short form
// of mcp-config.json, a section of fields.
func (s *section) inputSchema() schema {
	pair, key, ok := s.take("inputSchema", "input_schema")
	if !ok {
		return schema{}
	}
	node := pair.Value
	if node.Form != conffile.Section {
		s.wrong(node, key, "a JSON Schema of an object, or a section of fields", false)
		return schema{}
	}
	if isFields(node) {
		f := fields{section: s}
		if node = f.object(node, key); node == nil {
			return schema{}
		}
	}
	out := schema{text: s.json(node, key, nil)}
	if out.text == nil || json.Unmarshal(out.text, &out.root) != nil {
		return schema{}
	}
	if t, ok := out.root["type"]; ok && t != "object" {
		s.problem(pair.Value.Line, key+".type", "want object: the input of a tool is one")
		return schema{}
	}
	if at, err := wrongSchema(out.root, ""); err != nil {
		s.problem(lineOf(pair.Value, at), key+at, "it is not a JSON Schema: "+conffile.Cut(err.Error()))
	}
	return out
}

// wrongSchema returns the error of a schema and the innermost property that has it.
func wrongSchema(root map[string]any, at string) (string, error) {
	err := checkSchema(root)
	if err == nil {
		return "", nil
	}
	properties, _ := root["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			if _, boolean := properties[name].(bool); !boolean {
				return at + ".properties." + shownName(name), errors.New("want a section")
			}
			continue
		}
		// A property may refer to definitions outside it, so on its own it may fail
		// although the reference is correct.
		if property = maps.Clone(property); property["$defs"] == nil && root["$defs"] != nil {
			property["$defs"] = root["$defs"]
		}
		place, inner := wrongSchema(property, at+".properties."+shownName(name))
		if inner != nil && (inner.Error() == err.Error() || !strings.Contains(inner.Error(), "JSON Pointer")) {
			return place, inner
		}
	}
	return at, err
}

// lineOf is the line of a place in a schema, or of the schema itself.
func lineOf(n *conffile.Node, at string) int {
	for name := range strings.SplitSeq(strings.TrimPrefix(at, "."), ".") {
		i := slices.IndexFunc(n.Pairs, func(p conffile.Pair) bool { return shownName(p.Key) == name })
		if i < 0 {
			break
		}
		n = n.Pairs[i].Value
	}
	return n.Line
}

// checkSchema reports what is wrong with a JSON Schema.
func checkSchema(root map[string]any) error {
	root = maps.Clone(root)
	delete(root, "$schema") // older versions do not differ in anything that tools use
	text, err := json.Marshal(root)
	if err != nil {
		return err
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(text, &parsed); err != nil {
		return plainSchemaError(err)
	}
	// A pattern that Go does not support, such as one with a look-ahead, is not an
	// error: callers may support it.
	if _, err := parsed.Resolve(nil); err != nil && !strings.Contains(err.Error(), "regexp") {
		return err
	}
	return nil
}

// plainSchemaError is a decoding error without the names of Go types.
func plainSchemaError(err error) error {
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = errors.New("a " + bad.Value + " stands where it cannot")
	}
	if _, text, ok := strings.Cut(err.Error(), "cannot be unmarshaled into "); ok {
		err = errors.New("a value is not " + text)
	}
	return err
}

// secrets are the properties that the key secrets names, and those that the
// schema marks (writeOnly, or the format password), at any depth.
func (s *section) secrets(input schema) []string {
	var named, out []string
	pair, _ := s.given("secrets")
	s.texts(&named, propertyName, "secrets")
	for _, name := range named {
		if !input.knows(name) {
			s.odd(pair.Line, s.sub("secrets"), "it names the property "+shownName(name)+", which inputSchema does not have")
			continue
		}
		out = append(out, name)
	}
	for name, property := range input.properties() {
		if marked(property) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func marked(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, marked)
	case map[string]any:
		if v["writeOnly"] == true || v["format"] == "password" {
			return true
		}
		for _, inner := range v {
			if marked(inner) {
				return true
			}
		}
	}
	return false
}
