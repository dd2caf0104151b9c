package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/signalbox-ai/signalbox"
)

// schema is the schema of a tool's input.
type schema struct {
	json  json.RawMessage // for the tool's definition
	root  map[string]any
	check *jsonschema.Resolved // nil: any object
	notes []string             // parts that cannot be checked here
}

// compileSchema parses a JSON Schema of an object. Patterns that Go does not
// support, such as those with a look-ahead, are not checked.
func compileSchema(raw []byte) (*schema, error) {
	if len(raw) == 0 {
		raw = []byte(`{"type":"object"}`)
	}
	s := &schema{json: raw}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	var ok bool
	if s.root, ok = v.(map[string]any); !ok {
		return nil, errors.New("it must be a JSON object")
	}
	switch s.root["type"] {
	case "object":
	case nil:
		s.root["type"] = "object" // an input is an object, and MCP requires the keyword
		s.json = plainJSON(s.root)
	default:
		return nil, fmt.Errorf(`its type is %s: the input of a tool is an "object"`, plainJSON(s.root["type"]))
	}
	if len(s.root) == 1 {
		return s, nil
	}
	if err := (&rounds{root: s.root}).in(s.root); err != nil {
		return nil, err
	}
	checked := maps.Clone(s.root)
	delete(checked, "$schema") // older versions do not differ in anything that tools use
	s.dropPatterns(checked)
	var parsed jsonschema.Schema
	if err := json.Unmarshal(plainJSON(checked), &parsed); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	var err error
	if s.check, err = parsed.Resolve(nil); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	return s, nil
}

// dropPatterns removes patterns that Go cannot check, wherever they are.
func (s *schema) dropPatterns(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.dropPatterns(e)
		}
	case map[string]any:
		if p, ok := v["pattern"].(string); ok && !s.knows(p) {
			delete(v, "pattern")
		}
		if all, ok := v["patternProperties"].(map[string]any); ok {
			maps.DeleteFunc(all, func(p string, _ any) bool { return !s.knows(p) })
		}
		for _, e := range v {
			s.dropPatterns(e)
		}
	}
}

func (s *schema) knows(pattern string) bool {
	_, err := regexp.Compile(pattern)
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("the pattern %q of its inputSchema cannot be checked here: the command has to", pattern))
	}
	return err == nil
}

// validate returns a validation_error that names the first invalid place, in
// the order of names. It quotes nothing of the input, which may be secret.
func (s *schema) validate(input json.RawMessage) error {
	if s.check == nil {
		return nil
	}
	args := map[string]any{}
	if err := json.Unmarshal(input, &args); err != nil {
		return signalbox.Invalid("arguments", "The arguments are not JSON.")
	}
	err := s.fits(args)
	if err == nil {
		return nil
	}
	if f := (&finder{root: s.root}).in(s.root, args, ""); f != nil {
		if f.path == "" {
			return signalbox.Invalid("arguments", "The arguments %s.", f.want)
		}
		return signalbox.Invalid("arguments."+f.path, "The argument %s %s.", f.path, f.want)
	}
	return signalbox.Invalid("arguments", "The arguments do not fit the tool's inputSchema: see %s in it.", partOf(err))
}

// fits validates with the library. If the library fails, the input is refused:
// unchecked input is never stored.
func (s *schema) fits(args map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it could not be checked")
		}
	}()
	return s.check.Validate(args)
}

// partOf is the part of the schema that an error of the library is about,
// without the values that the error quotes.
func partOf(err error) string {
	place, rest := "#", err.Error()
	for {
		after, ok := strings.CutPrefix(rest, "validating ")
		if !ok {
			break
		}
		if place, rest, ok = strings.Cut(after, ": "); !ok {
			break
		}
	}
	keyword, _, _ := strings.Cut(rest, ":")
	if len(keyword) > 32 {
		keyword = ""
	}
	return strings.TrimSpace(strings.Replace(place, "root", "#", 1) + " " + keyword)
}

// inPlace are the keywords whose schemas apply to the same value as the
// schema that contains them; all other keywords apply to a part of the value.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// rounds looks for a schema whose validation would never end, because it
// refers back to itself for the same value.
type rounds struct {
	root  map[string]any
	under []string // the references being followed
	done  map[string]bool
}

// in checks a schema and all schemas below it.
func (c *rounds) in(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := c.in(e); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := c.here(v); err != nil {
			return err
		}
		for _, e := range v {
			if err := c.in(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// here follows the schemas that apply to the same value.
func (c *rounds) here(v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := m[key].(string); ok {
			return fmt.Errorf("it has a %s: only a $ref to a place within it, such as #/$defs/name, can be followed", key)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		if err := c.through(ref); err != nil {
			return err
		}
	}
	for _, e := range sameValue(m) {
		if err := c.here(e); err != nil {
			return err
		}
	}
	return nil
}

// sameValue returns the schemas within a schema that apply to the same value,
// except for the one that it refers to.
func sameValue(schema map[string]any) (all []any) {
	for _, key := range inPlace {
		switch e := schema[key].(type) {
		case []any:
			all = append(all, e...)
		case map[string]any:
			if strings.HasPrefix(key, "depend") {
				all = slices.AppendSeq(all, maps.Values(e))
			} else {
				all = append(all, e)
			}
		}
	}
	return all
}

func (c *rounds) through(ref string) error {
	if c.done[ref] {
		return nil
	}
	if slices.Contains(c.under, ref) {
		return fmt.Errorf("its $ref %q leads back to itself", ref)
	}
	target, ok := follow(c.root, ref)
	if !ok {
		return fmt.Errorf("its $ref %q cannot be followed: want a place within it, such as #/$defs/name", ref)
	}
	c.under = append(c.under, ref)
	err := c.here(target)
	c.under = c.under[:len(c.under)-1]
	if c.done == nil {
		c.done = map[string]bool{}
	}
	c.done[ref] = true
	return err
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// follow resolves a reference within a schema.
func follow(root map[string]any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil, false
	}
	var v any = root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[unescapePointer.Replace(name)]; !ok {
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
