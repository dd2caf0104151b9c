package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

// body is the request body of an operation, expressed as arguments of its
// tool.
type body struct {
	kind     string // media type
	required bool
	about    string
	schema   *openapi3.SchemaRef
	name     string   // argument with the whole body, or ""
	names    []string // otherwise: its properties
	catchAll bool     // in that case: unknown arguments are properties, too
}

// newBody reads the body. taken are the names of the parameters.
func newBody(op *openapi3.Operation, taken []*argument) (*body, error) {
	if op.RequestBody == nil || op.RequestBody.Value == nil || len(op.RequestBody.Value.Content) == 0 {
		return nil, nil
	}
	r := op.RequestBody.Value
	b := &body{required: r.Required, about: r.Description}
	if b.kind = chooseMediaType(r.Content); b.kind == "" {
		if !r.Required {
			return nil, nil
		}
		return nil, fmt.Errorf("its body must be %s, which arguments cannot express", strings.Join(sortedKeys(r.Content), " or "))
	}
	if media := r.Content[b.kind]; media != nil {
		b.schema = media.Schema
	}
	has := func(name string) bool {
		return slices.ContainsFunc(taken, func(a *argument) bool { return a.name == name })
	}
	if b.spread(has) {
		return b, nil
	}
	b.names, b.catchAll = nil, false
	for b.name = "body"; has(b.name); b.name = "request_" + b.name {
	}
	return b, nil
}

// chooseMediaType picks a media type that can be built from arguments.
func chooseMediaType(c openapi3.Content) string {
	rank := func(kind string) int {
		plain, _, err := mime.ParseMediaType(kind)
		switch {
		case err != nil:
			return 0
		case plain == "application/json":
			return 4
		case rest.IsJSON(plain):
			return 3
		case plain == rest.FormType:
			return 2
		case plain == "*/*" || plain == "application/*" || plain == "text/plain":
			return 1
		}
		return 0
	}
	best := ""
	for _, kind := range sortedKeys(c) {
		if r := rank(kind); r > 0 && (best == "" || r > rank(best)) {
			best = kind
		}
	}
	return best
}

// spread reports whether the properties of the body can be arguments beside the parameters,
// and collects their names.
func (b *body) spread(taken func(string) bool) bool {
	if b.schema == nil || b.schema.Value == nil || b.kind == "text/plain" {
		return false
	}
	v := b.schema.Value
	plain := (v.Type.Is("object") || v.Type.IsEmpty()) && len(v.Properties) > 0 && !v.Nullable &&
		len(v.OneOf)+len(v.AnyOf)+len(v.AllOf)+len(v.PatternProperties)+len(v.DependentSchemas)+len(v.DependentRequired) == 0 &&
		v.Not == nil && v.If == nil && v.PropertyNames == nil && v.MinProps == 0 && v.MaxProps == nil &&
		v.UnevaluatedProperties.Has == nil && v.UnevaluatedProperties.Schema == nil && len(v.Enum) == 0 && v.Const == nil
	if !plain || !b.required && len(v.Required) > 0 {
		return false
	}
	for _, name := range sortedKeys(v.Properties) {
		if taken(name) || !validArgument(name) {
			return false
		}
		b.names = append(b.names, name)
	}
	more := v.AdditionalProperties
	b.catchAll = more.Schema != nil || more.Has != nil && *more.Has
	return true
}

// add adds the body to the input schema of the tool.
func (b *body) add(in *input, s *schemas) error {
	if b.name != "" {
		v, err := (&argument{schema: b.schema, about: b.about}).property(s)
		in.add(b.name, v, b.required)
		return err
	}
	// The properties become the tool's own, so the reference to all of them is
	// inlined even if references are kept.
	v, err := s.written(b.schema.Value)
	if err != nil {
		return err
	}
	m, _ := v.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	required, _ := m["required"].([]string)
	for name, p := range properties {
		in.add(name, p, slices.Contains(required, name))
	}
	if b.catchAll {
		in.additional = m["additionalProperties"]
	}
	return nil
}

// write makes the body of one call; nil is no body.
func (b *body) write(args map[string]any, parameters []*argument) ([]byte, error) {
	var v any
	if b.name != "" {
		var given bool
		if v, given = args[b.name]; !given {
			return nil, nil
		}
	} else if v = b.collect(args, parameters); v == nil {
		return nil, nil
	}
	kind, _, _ := mime.ParseMediaType(b.kind)
	switch text, isText := v.(string); {
	case kind == rest.FormType:
		return rest.EncodeForm(v)
	case kind == "text/plain" && isText:
		return []byte(text), nil
	case kind == "text/plain":
		return nil, signalbox.Invalid("arguments."+b.name, "the body must be a string")
	}
	return rest.EncodeJSON(v), nil
}

// collect makes an object of the arguments that are properties of the body.
func (b *body) collect(args map[string]any, parameters []*argument) any {
	m := map[string]any{}
	for name, v := range args {
		isParameter := slices.ContainsFunc(parameters, func(a *argument) bool { return a.name == name })
		if slices.Contains(b.names, name) || b.catchAll && !isParameter {
			m[name] = v
		}
	}
	if len(m) == 0 && !b.required {
		return nil
	}
	return m
}

// contentType is the Content-Type header of the request.
func (b *body) contentType() string {
	if strings.Contains(b.kind, "*") {
		return "application/json"
	}
	return b.kind
}

// argument is a parameter of an operation, expressed as an argument of its
// tool.
type argument struct {
	name     string // name of the argument
	to       string // name of the parameter
	in       string // where the parameter goes: path, query, header or cookie
	required bool
	style    string
	explode  bool
	asJSON   bool // the parameter is a JSON document
	schema   *openapi3.SchemaRef
	about    string
}

// arguments returns the parameters of an operation and of its path. A parameter that cannot
// be an argument is an error if it is required; otherwise it is skipped.
func arguments(item *openapi3.PathItem, op *openapi3.Operation, configured http.Header) ([]*argument, error) {
	var all []*argument
	names := map[string]bool{}
	for _, p := range merged(item.Parameters, op.Parameters) {
		if ignored(p, configured) {
			continue
		}
		a, err := newArgument(p)
		if err != nil {
			if p.Required {
				return nil, fmt.Errorf("its %s parameter %s is required, and %w", p.In, rest.Truncate(p.Name, 60), err)
			}
			continue
		}
		for n := 1; names[a.name]; n++ {
			if a.name = argumentName(p.Name + "_" + p.In); n > 1 {
				a.name = shorten(fmt.Sprintf("%s_%d", a.name, n), maxArgument)
			}
		}
		names[a.name] = true
		all = append(all, a)
	}
	return all, nil
}

// merged returns the parameters of the operation, and those of the path that it does not
// override.
func merged(path, op openapi3.Parameters) []*openapi3.Parameter {
	var all []*openapi3.Parameter
	for i, list := range []openapi3.Parameters{path, op} {
		for _, r := range list {
			if r != nil && r.Value != nil && (i == 1 || op.GetByInAndName(r.Value.In, r.Value.Name) == nil) {
				all = append(all, r.Value)
			}
		}
	}
	return all
}

// ignored are headers that cannot be parameters: because the specification says so, or
// because they are configured.
func ignored(p *openapi3.Parameter, configured http.Header) bool {
	if p.In != openapi3.ParameterInHeader {
		return false
	}
	name := http.CanonicalHeaderKey(p.Name)
	return slices.Contains([]string{"Accept", "Content-Type", "Authorization"}, name) || len(configured.Values(name)) > 0
}

func newArgument(p *openapi3.Parameter) (*argument, error) {
	a := &argument{name: argumentName(p.Name), to: p.Name, in: p.In, required: p.Required, schema: p.Schema, about: p.Description}
	if p.In == openapi3.ParameterInHeader {
		if err := rest.CheckHeaderName(p.Name); err != nil || http.CanonicalHeaderKey(p.Name) == "Cookie" {
			return nil, cmp.Or(err, fmt.Errorf("cookies must be separate parameters"))
		}
	}
	if p.In == openapi3.ParameterInCookie && rest.CheckHeaderName(p.Name) != nil {
		return nil, fmt.Errorf("that is not the name of a cookie")
	}
	m, err := p.SerializationMethod()
	if err != nil {
		return nil, err
	}
	a.style, a.explode = m.Style, m.Explode
	if !slices.Contains(styles[p.In], a.style) {
		return nil, fmt.Errorf("its style %s is not known there", rest.Truncate(a.style, 40))
	}
	if len(p.Content) == 0 {
		return a, nil
	}
	for kind, media := range p.Content {
		if rest.IsJSON(kind) && media != nil {
			a.asJSON, a.schema = true, media.Schema
			return a, nil
		}
	}
	return nil, fmt.Errorf("it is %s, which arguments cannot express", strings.Join(sortedKeys(p.Content), ", "))
}

// property is the argument's schema in the tool's input schema.
func (a *argument) property(s *schemas) (any, error) {
	v, err := s.of(a.schema)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{} // true: anything
	}
	if m["description"] == nil && a.about != "" {
		m = maps.Clone(m)
		m["description"] = rest.Truncate(a.about, maxDescription)
	}
	return m, nil
}

// value is the caller's value for the argument.
func (a *argument) value(args map[string]any) (v any, ok bool) {
	v = args[a.name]
	if v != nil && a.asJSON {
		return string(rest.EncodeJSON(v)), true
	}
	return v, v != nil
}

func sortedKeys[M ~map[string]V, V any](m M) []string { return slices.Sorted(maps.Keys(m)) }
