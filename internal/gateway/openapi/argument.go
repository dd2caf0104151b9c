package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway/rest"

	"github.com/getkin/kin-openapi/openapi3"
)

// argument is a parameter of an operation, as an argument of its tool.
type argument struct {
	name     string // of the argument
	to       string // of the parameter
	in       string // path, query, header or cookie
	required bool
	style    string
	explode  bool
	asJSON   bool // the parameter is a JSON document
	schema   *openapi3.SchemaRef
	about    string
}

// arguments are the parameters of an operation, those of its path included,
// that a caller can give. What cannot be given is an error if it is required,
// and else left out.
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
				return nil, fmt.Errorf("its %s parameter %s is required, and %w", p.In, rest.Cut(p.Name, 60), err)
			}
			continue
		}
		for n := 1; names[a.name]; n++ {
			if a.name = argumentName(p.Name + "_" + p.In); n > 1 {
				a.name = fit(fmt.Sprintf("%s_%d", a.name, n), maxArgument)
			}
		}
		names[a.name] = true
		all = append(all, a)
	}
	return all, nil
}

// merged are the parameters of the path, each unless the operation has its
// own, and those of the operation.
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

// ignored are headers that the request has anyway: those that the
// specification says are none of a parameter's, and those that are configured.
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
			return nil, cmp.Or(err, fmt.Errorf("cookies are parameters of their own"))
		}
	}
	if p.In == openapi3.ParameterInCookie && rest.CheckHeaderName(p.Name) != nil {
		return nil, fmt.Errorf("that is no name of a cookie")
	}
	m, err := p.SerializationMethod()
	if err != nil {
		return nil, err
	}
	a.style, a.explode = m.Style, m.Explode
	if !slices.Contains(styles[p.In], a.style) {
		return nil, fmt.Errorf("its style %s is not known there", rest.Cut(a.style, 40))
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
	return nil, fmt.Errorf("it is %s, which no argument is", strings.Join(sortedKeys(p.Content), ", "))
}

// property is the argument in the tool's input schema.
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
		m["description"] = rest.Cut(a.about, maxDescription)
	}
	return m, nil
}

// value is what a caller gave for it.
func (a *argument) value(args map[string]any) (v any, ok bool) {
	v = args[a.name]
	if v != nil && a.asJSON {
		return string(rest.EncodeJSON(v)), true
	}
	return v, v != nil
}

func sortedKeys[M ~map[string]V, V any](m M) []string { return slices.Sorted(maps.Keys(m)) }
