package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// Bounds of the input schema of one tool.
const (
	maxInline = 3000  // subschemas with every reference inlined
	maxNodes  = 20000 // subschemas with references kept
)

// errKeepRefs means that references cannot be inlined: they are circular or the
// result is too large.
var errKeepRefs = errors.New("references have to be kept")

// schemas converts OpenAPI schemas to JSON Schema for models. References are inlined, which
// every model understands. If that is impossible, all references of a tool are kept as $defs.
type schemas struct {
	v30    bool // version 3.0, which has its own schema dialect
	keep   bool // references are kept
	nodes  int
	active []*openapi3.Schema // references being inlined
	defs   map[string]any
	names  map[*openapi3.Schema]string
}

func newSchemas(old, keep bool) *schemas {
	return &schemas{v30: old, keep: keep, defs: map[string]any{}, names: map[*openapi3.Schema]string{}}
}

// of converts a schema, or a reference to one, to JSON Schema.
func (s *schemas) of(r *openapi3.SchemaRef) (any, error) {
	if r == nil || r.Value == nil {
		return map[string]any{}, nil
	}
	if r.Ref == "" {
		return s.written(r.Value)
	}
	if s.keep {
		return s.ref(r)
	}
	if slices.Contains(s.active, r.Value) {
		return nil, errKeepRefs
	}
	s.active = append(s.active, r.Value)
	defer func() { s.active = s.active[:len(s.active)-1] }()
	return s.written(r.Value)
}

// ref returns a reference into $defs, where its target is stored once.
func (s *schemas) ref(r *openapi3.SchemaRef) (any, error) {
	name, known := s.names[r.Value]
	if !known {
		base := shorten(clean(path.Base(r.Ref)), maxArgument)
		name = base
		for n := 2; s.defs[name] != nil; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		s.names[r.Value] = name
		s.defs[name] = true // reserves the name, in case the target refers to itself
		target, err := s.written(r.Value)
		if err != nil {
			return nil, err
		}
		s.defs[name] = target
	}
	return map[string]any{"$ref": "#/$defs/" + name}, nil
}

// dropped are keywords that have no meaning for callers, or would change the
// meaning of others.
var dropped = []string{"xml", "externalDocs", "discriminator", "readOnly", "writeOnly", "nullable", "example", "allowEmptyValue",
	"$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$comment", "$defs"}

func (s *schemas) written(v *openapi3.Schema) (any, error) {
	if s.nodes++; !s.keep && s.nodes > maxInline {
		return nil, errKeepRefs
	}
	if s.nodes > maxNodes {
		return nil, fmt.Errorf("its schema has more than %d parts", maxNodes)
	}
	fields, err := v.MarshalYAML()
	if err != nil {
		return nil, err
	}
	m, ok := fields.(map[string]any)
	if !ok {
		return fields, nil // true or false
	}
	out := make(map[string]any, len(m))
	for key, value := range m {
		if strings.HasPrefix(key, "x-") || slices.Contains(dropped, key) {
			continue
		}
		if out[key], err = s.child(value); err != nil {
			return nil, err
		}
	}
	s.withoutReadOnly(v, out)
	if v.Example != nil && len(v.Examples) == 0 {
		out["examples"] = []any{v.Example}
	}
	if s.v30 {
		return convert30(v, out), nil
	}
	return out, nil
}

// child converts the value of a keyword that contains schemas.
func (s *schemas) child(value any) (any, error) {
	switch value := value.(type) {
	case *openapi3.SchemaRef:
		return s.of(value)
	case *openapi3.BoolSchema:
		if value.Has != nil {
			return *value.Has, nil
		}
		return s.of(value.Schema)
	case openapi3.SchemaRefs:
		list := make([]any, len(value))
		for i, r := range value {
			var err error
			if list[i], err = s.of(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	case openapi3.Schemas:
		all := make(map[string]any, len(value))
		for _, name := range sortedKeys(value) {
			var err error
			if all[name], err = s.of(value[name]); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return value, nil
}

// withoutReadOnly drops properties that occur only in answers.
func (s *schemas) withoutReadOnly(v *openapi3.Schema, out map[string]any) {
	properties, ok := out["properties"].(map[string]any)
	if !ok {
		return
	}
	required := slices.Clone(v.Required)
	for name, p := range v.Properties {
		if p != nil && p.Value != nil && p.Value.ReadOnly {
			delete(properties, name)
			required = slices.DeleteFunc(required, func(r string) bool { return r == name })
		}
	}
	if delete(out, "required"); len(required) > 0 {
		out["required"] = required
	}
}

// convert30 converts keywords of version 3.0 to JSON Schema.
func convert30(v *openapi3.Schema, out map[string]any) any {
	bound(out, "exclusiveMinimum", "minimum", v.ExclusiveMin, v.Min)
	bound(out, "exclusiveMaximum", "maximum", v.ExclusiveMax, v.Max)
	if !v.Nullable {
		return out
	}
	if types := v.Type.Slice(); len(types) > 0 {
		out["type"] = append(slices.Clone(types), "null")
		if len(v.Enum) > 0 && !slices.Contains(v.Enum, nil) {
			out["enum"] = append(slices.Clone(v.Enum), nil)
		}
		return out
	}
	return map[string]any{"anyOf": []any{out, map[string]any{"type": "null"}}}
}

func bound(out map[string]any, exclusive, inclusive string, b openapi3.ExclusiveBound, limit *float64) {
	if b.Bool == nil {
		return
	}
	delete(out, exclusive)
	if *b.Bool && limit != nil {
		out[exclusive] = *limit
		delete(out, inclusive)
	}
}

const maxErrors = 20 // maximum number in one error

// parse parses the document with its references, and validates it.
func (s *source) parse(look func(data []byte) error) (*openapi3.T, error) {
	data, err := s.open(s.location())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(data); err != nil {
		return nil, err
	}
	if err := look(data); err != nil {
		return nil, err
	}
	var refused error // the library wraps the error once per reference
	loader := openapi3.NewLoader()
	loader.Context = s.ctx
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, u *url.URL) ([]byte, error) {
		data, err := s.open(u)
		if err != nil && refused == nil {
			refused = err
		}
		return data, err
	}
	doc, err := loader.LoadFromDataWithPath(data, s.location())
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, s.unresolved(joinErrors(err))
	}
	// Examples, defaults and patterns do not affect requests, and real
	// descriptions often have mistakes in them.
	if err := doc.Validate(s.ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(),
		openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation()); err != nil {
		return nil, joinErrors(err)
	}
	return doc, nil
}

func checkVersion(data []byte) error {
	var head struct {
		OpenAPI any `json:"openapi"`
		Swagger any `json:"swagger"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return errors.New("it is not an OpenAPI description: expected an object with the key openapi")
	}
	version, _ := head.OpenAPI.(string)
	switch {
	case head.Swagger != nil:
		return fmt.Errorf("it is Swagger %v: expected OpenAPI 3.0 or 3.1; there are converters", rest.Truncate(fmt.Sprint(head.Swagger), 20))
	case head.OpenAPI == nil:
		return errors.New("it is not an OpenAPI description: expected an object with the key openapi")
	case version != "3" && !strings.HasPrefix(version, "3."):
		return fmt.Errorf("it is OpenAPI %s: expected 3.0 or 3.1", rest.Truncate(fmt.Sprint(head.OpenAPI), 20))
	}
	return nil
}

// joinErrors combines all errors of a document.
func joinErrors(err error) error {
	var all openapi3.MultiError
	if !errors.As(err, &all) {
		all = openapi3.MultiError{err}
	}
	text := "it is not a valid OpenAPI description:"
	for i, e := range all {
		if i == maxErrors {
			text += fmt.Sprintf("\n  and %d mistakes more", len(all)-i)
			break
		}
		text += "\n  " + rest.Truncate(strings.Join(strings.Fields(e.Error()), " "), 300)
	}
	return errors.New(text)
}
