package openapi

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
)

const (
	maxDescription = 4 << 10
	maxSchema      = 256 << 10 // bytes of one tool's input schema
)

// operation makes the HTTP request of a tool's call.
type operation struct {
	method     string
	base       *url.URL
	path       string // with {name}
	parameters []*argument
	body       *body       // nil: none
	headers    http.Header // from the configuration
}

// input builds the input schema of a tool.
type input struct {
	properties map[string]any
	required   []string
	additional any // additionalProperties; nil: false
}

func (in *input) add(name string, v any, required bool) {
	in.properties[name] = v
	if required {
		in.required = append(in.required, name)
	}
}

// schema is the input schema of the tool. It is used for validation only if it has no
// references, because validation might not end otherwise.
func (o *operation) schema(old bool) (*rest.Schema, error) {
	raw, err := o.inputSchema(newSchemas(old, false))
	kept := errors.Is(err, errKeepRefs)
	if kept {
		raw, err = o.inputSchema(newSchemas(old, true))
	}
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its input schema has %d bytes, more than %d", len(raw), maxSchema)
	}
	if !kept {
		if s, err := rest.ParseSchema(raw); err == nil {
			return s, nil
		}
	}
	return rest.UncheckedSchema(raw), nil
}

// releaseDocument allows the document to be garbage collected.
func (o *operation) releaseDocument() {
	for _, a := range o.parameters {
		a.schema = nil
	}
	if o.body != nil {
		o.body.schema = nil
	}
}

func (o *operation) inputSchema(s *schemas) ([]byte, error) {
	in := &input{properties: map[string]any{}}
	for _, a := range o.parameters {
		p, err := a.property(s)
		if err != nil {
			return nil, err
		}
		in.add(a.name, p, a.required)
	}
	if o.body != nil {
		if err := o.body.add(in, s); err != nil {
			return nil, err
		}
	}
	root := map[string]any{"type": "object", "properties": in.properties, "additionalProperties": false}
	if in.additional != nil {
		root["additionalProperties"] = in.additional
	}
	if slices.Sort(in.required); len(in.required) > 0 {
		root["required"] = in.required
	}
	if len(s.defs) > 0 {
		root["$defs"] = s.defs
	}
	return rest.EncodeJSON(root), nil
}

// build makes the request of one call.
func (o *operation) build(args map[string]any, _ []byte) (*rest.Request, error) {
	r := &rest.Request{Method: o.method, Header: o.headers.Clone()}
	for _, a := range o.parameters {
		if _, ok := a.value(args); a.required && !ok {
			return nil, signalbox.Invalid("arguments."+a.name, "the argument %s is missing", a.name)
		}
	}
	var err error
	if r.URL, err = o.url(args); err != nil {
		return nil, err
	}
	if err := o.setHeaders(r.Header, args); err != nil {
		return nil, err
	}
	if o.body != nil {
		r.Body, err = o.body.write(args, o.parameters)
		if r.Body != nil && r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", o.body.contentType())
		}
	}
	return r, err
}

func (o *operation) url(args map[string]any) (string, error) {
	var b strings.Builder
	b.WriteString((&url.URL{Scheme: o.base.Scheme, User: o.base.User, Host: o.base.Host}).String())
	b.WriteString(strings.TrimRight(o.base.EscapedPath(), "/"))
	for segment := range strings.SplitSeq(strings.TrimPrefix(o.path, "/"), "/") {
		filled, err := o.segment(segment, args)
		if err != nil {
			return "", err
		}
		b.WriteString("/" + filled)
	}
	var query []string
	if o.base.RawQuery != "" {
		query = append(query, o.base.RawQuery)
	}
	for _, a := range o.parameters {
		if v, ok := a.value(args); ok && a.in == openapi3.ParameterInQuery {
			query = append(query, a.inQuery(v)...)
		}
	}
	if len(query) > 0 {
		b.WriteString("?" + strings.Join(query, "&"))
	}
	return rest.SameHost(o.base, b.String())
}

// segment fills in the parameters of a path segment.
func (o *operation) segment(template string, args map[string]any) (string, error) {
	var b strings.Builder
	for left := template; ; {
		before, after, found := strings.Cut(left, "{")
		b.WriteString(rest.EscapeLiteral(before))
		if !found {
			break
		}
		name, tail, _ := strings.Cut(after, "}")
		for _, a := range o.parameters {
			if v, ok := a.value(args); ok && a.in == openapi3.ParameterInPath && a.to == name {
				b.WriteString(a.inPath(v))
			}
		}
		left = tail
	}
	if strings.Contains(template, "{") {
		return b.String(), rest.CheckSegment(b.String(), "the URL's path")
	}
	return b.String(), nil
}

func (o *operation) setHeaders(h http.Header, args map[string]any) error {
	cookies := h.Values("Cookie")
	for _, a := range o.parameters {
		v, ok := a.value(args)
		switch {
		case !ok:
		case a.in == openapi3.ParameterInHeader:
			s := simple(v, a.explode, func(s string) string { return s })
			if err := rest.CheckHeaderValue(a.to, s); err != nil {
				return err
			}
			h.Set(a.to, s)
		case a.in == openapi3.ParameterInCookie:
			cookies = append(cookies, a.to+"="+simple(v, false, rest.Escape))
		}
	}
	if len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

// toolName is the operation's ID, or else its method and path, with valid
// characters only.
func toolName(prefix, id, method, path string) string {
	name := id
	if name == "" {
		name = strings.ToLower(method) + "_" + path
	}
	name = clean(name)
	if id == "" {
		for strings.Contains(name, "__") {
			name = strings.ReplaceAll(name, "__", "_")
		}
		name = strings.Trim(name, "_")
	}
	if prefix = strings.TrimSuffix(clean(prefix), "_"); prefix != "" {
		name = prefix + "_" + name
	}
	return shorten(name, rest.MaxName-len(rest.Prefix))
}

// clean replaces characters that are invalid in names of tools and arguments.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '_'
	}, name)
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

const maxArgument = 64 // limit of model APIs

// argumentName converts a parameter's name to a name that models accept: filter[size]
// becomes filter_size, $top becomes top.
func argumentName(name string) string {
	if validArgument(name) {
		return name
	}
	name = strings.ReplaceAll(strings.Trim(clean(name), "_"), "__", "_")
	if name == "" {
		name = "parameter"
	}
	return shorten(name, maxArgument)
}

// validArgument reports whether a property's name is valid as an argument.
func validArgument(name string) bool {
	return name != "" && len(name) <= maxArgument && !strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) && r != '.' })
}

// shorten shortens a name to n bytes and keeps it unique.
func shorten(name string, n int) string {
	if len(name) <= n {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name)) //nolint:errcheck // a hash never fails
	return fmt.Sprintf("%s_%08x", name[:n-9], h.Sum32())
}
