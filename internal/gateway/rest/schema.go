package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	signalbox "github.com/signalbox-ai/signalbox"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema validates the arguments of a tool.
type Schema struct {
	JSON     json.RawMessage // for the tool's definition
	check    *jsonschema.Resolved
	required []string
	defaults map[string]any
}

// anyObject is the schema of a tool that has none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// ParseSchema parses a JSON Schema of an object. Two kinds of schemas are passed on although
// only their required arguments are checked: a schema with circular references, whose
// validation might not end, and a schema that Go cannot compile, for example because of a
// look-ahead in a pattern.
func ParseSchema(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		raw = anyObject
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it must be a JSON object")
	}
	switch m["type"] {
	case "object":
	case nil:
		m["type"] = "object" // the arguments of a tool are an object, and MCP requires the keyword
		raw = EncodeJSON(m)
	default:
		return nil, fmt.Errorf(`its type is %s: the arguments of a tool are an "object"`, EncodeJSON(m["type"]))
	}
	s := unchecked(raw, m)
	if circular(m) {
		return s, nil
	}
	delete(m, "$schema") // older versions do not differ in anything that tools use
	var parsed jsonschema.Schema
	if err := json.Unmarshal(EncodeJSON(m), &parsed); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	if s.check, err = parsed.Resolve(nil); err != nil && !strings.Contains(err.Error(), "regexp") {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	return s, nil
}

// UncheckedSchema is a Schema that checks only the required arguments.
func UncheckedSchema(raw json.RawMessage) *Schema {
	v, _ := decode(raw)
	m, _ := v.(map[string]any)
	return unchecked(raw, m)
}

func unchecked(raw json.RawMessage, m map[string]any) *Schema {
	s := &Schema{JSON: raw, defaults: map[string]any{}}
	required, _ := m["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			s.required = append(s.required, name)
		}
	}
	properties, _ := m["properties"].(map[string]any)
	for name, p := range properties {
		if p, ok := p.(map[string]any); ok && p["default"] != nil {
			s.defaults[name] = p["default"]
		}
	}
	return s
}

// Arguments decodes the arguments of a call and checks them.
func (s *Schema) Arguments(raw json.RawMessage) (map[string]any, error) {
	args := map[string]any{}
	if len(raw) > 0 {
		v, err := decode(raw)
		if err != nil {
			return nil, signalbox.Invalid("arguments", "the arguments are not JSON: %v", err)
		}
		var ok bool
		if args, ok = v.(map[string]any); !ok && v != nil {
			return nil, signalbox.Invalid("arguments", "the arguments have to be a JSON object")
		}
	}
	for _, name := range s.required {
		if _, ok := args[name]; !ok {
			return nil, signalbox.Invalid("arguments."+name, "the argument %s is missing", name)
		}
	}
	if args == nil {
		args = map[string]any{}
	}
	if err := s.validate(raw); err != nil {
		return nil, signalbox.Invalid("arguments", "the arguments do not fit the tool's schema: %s", Truncate(strings.TrimPrefix(err.Error(), "validating root: "), 500))
	}
	return args, nil
}

// validate validates against the whole schema. If the library cannot do so, the upstream
// validates.
func (s *Schema) validate(raw json.RawMessage) (err error) {
	if s.check == nil {
		return nil
	}
	args := map[string]any{} // with float64 numbers: the library takes json.Number for a string
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return err
		}
	}
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	if args == nil {
		args = map[string]any{}
	}
	return s.check.Validate(args)
}

// withDefaults adds the schema's defaults for missing arguments.
func (s *Schema) withDefaults(args map[string]any) map[string]any {
	all := make(map[string]any, len(args)+len(s.defaults))
	maps.Copy(all, s.defaults)
	maps.Copy(all, args)
	return all
}

// circular reports whether following references might not end. References that are not
// paths within the document count as circular.
func circular(root map[string]any) bool {
	c := cycleFinder{root: root, done: map[string]bool{}}
	return c.in(root)
}

type cycleFinder struct {
	root   any
	active []string        // references being followed
	done   map[string]bool // references that are not circular
}

func (c *cycleFinder) in(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, c.in)
	case map[string]any:
		if _, ok := v["$dynamicRef"].(string); ok {
			return true
		}
		if ref, ok := v["$ref"].(string); ok && c.through(ref) {
			return true
		}
		for _, e := range v {
			if c.in(e) {
				return true
			}
		}
	}
	return false
}

func (c *cycleFinder) through(ref string) bool {
	if c.done[ref] {
		return false
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || slices.Contains(c.active, ref) {
		return true
	}
	target := c.root
	for name := range strings.SplitSeq(path, "/") {
		m, ok := target.(map[string]any)
		if !ok {
			return false // the target does not exist: Resolve reports it
		}
		target = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	c.active = append(c.active, ref)
	defer func() { c.active = c.active[:len(c.active)-1] }()
	if c.in(target) {
		return true
	}
	c.done[ref] = true
	return false
}
