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

// schema says what the input of a tool has to be.
type schema struct {
	json  json.RawMessage // for the tool's definition
	root  map[string]any
	check *jsonschema.Resolved // nil: an object of anything
	notes []string             // what of it cannot be checked here
}

// compileSchema reads a JSON Schema of an object. Patterns that Go does not
// know, such as those with a look-ahead, are left out of the check.
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
		return nil, errors.New("it has to be a JSON object")
	}
	switch s.root["type"] {
	case "object":
	case nil:
		s.root["type"] = "object" // an input is one; MCP asks for the word
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
	delete(checked, "$schema") // an older version than the library knows differs in nothing that tools use
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

// dropPatterns takes out what Go cannot check, wherever it stands.
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

// validate returns a validation_error that names the first place, in the order
// of names, that does not fit. It quotes nothing of the input, which may be
// secret.
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

// fits asks the library. Where that stumbles the input is refused: nothing that
// was not checked is stored.
func (s *schema) fits(args map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it could not be checked")
		}
	}()
	return s.check.Validate(args)
}

// partOf is the part of the schema that an error of the library is about,
// without what it says of the values.
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

// inPlace are the keywords whose schemas are about the same value as the one
// they stand in; all others are about a part of it.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// rounds looks for a schema that would have to be checked for ever: one that
// leads back to itself without going into the value.
type rounds struct {
	root  map[string]any
	under []string // the references that are being followed
	done  map[string]bool
}

// in looks at a schema and at all below it.
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

// here follows what is about the same value.
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

// sameValue are the schemas in one that are about the same value, but for the
// one that it refers to.
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

// follow finds the place that a reference within a schema names.
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
