package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Prefix begins the names of all tools of this package and of package
// openapi.
const Prefix = "rest__"

// methods maps allowed methods to whether the arguments become the body by
// default.
var methods = map[string]bool{
	http.MethodGet: false, http.MethodHead: false, http.MethodOptions: false, http.MethodDelete: false,
	http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
}

// MaxName is the maximum length of a tool name for MCP and model APIs.
const MaxName = 128

var validName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// restTool is a configured tool after parsing.
type restTool struct {
	method  string
	url     *urlTemplate
	headers map[string]template
	body    *bodyTemplate // nil: none
	argBody bool          // the arguments become the body
	schema  *Schema
}

// parseTool parses a tool's configuration. Its error lists all mistakes.
func parseTool(c toolconf.RestTool) (*Action, *urlTemplate, error) {
	t := &restTool{method: strings.ToUpper(c.Method)}
	if t.method == "" {
		t.method = http.MethodGet
	}
	var errs []error
	wrong := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: restTools.%s.%s: %w", c.Where, c.Name, key, err))
		}
	}
	if !validName.MatchString(c.Name) || len(Prefix+c.Name) > MaxName {
		wrong("name", fmt.Errorf("the name %q cannot be a tool's: expected up to %d letters, digits, underscores, dashes and dots", Truncate(c.Name, 60), MaxName-len(Prefix)))
	}
	argBody, known := methods[t.method]
	if !known {
		wrong("method", fmt.Errorf("%q is not a method of a tool: expected GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", Truncate(c.Method, 20)))
	}
	var err error
	t.url, err = parseURL(c.URL)
	wrong("url", err)
	t.headers, err = parseHeaders(c.Headers)
	wrong("headers", err)
	if len(c.BodyTemplate) > 0 {
		t.body, err = parseBody(c.BodyTemplate)
		wrong("bodyTemplate", err)
	}
	t.argBody = argBody && t.body == nil
	t.schema, err = ParseSchema(c.Parameters)
	wrong("parametersSchema", err)
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	return t.action(c), t.url, nil
}

func (t *restTool) action(c toolconf.RestTool) *Action {
	d := Definition{Name: Prefix + c.Name, Description: c.Description, InputSchema: t.schema.JSON, Annotations: Hints(t.method)}
	a := &Action{
		Tool: gateway.Tool{
			Name: d.Name, Server: "rest", Kind: gateway.KindREST,
			Queue: c.Queue, Timeout: c.Timeout, Definition: d.JSON(),
		},
		Schema:  t.schema,
		Secrets: c.Secrets,
		Build:   t.build,
	}
	Bind(&a.Tool)
	return a
}

// build makes the request of one call.
func (t *restTool) build(args map[string]any, raw []byte) (*Request, error) {
	args = t.schema.withDefaults(args)
	r := &Request{Method: t.method, Header: http.Header{}}
	var err error
	if r.URL, err = t.url.fill(args); err != nil {
		return nil, err
	}
	for name, value := range t.headers {
		if path := value.singlePath(); path != nil {
			if v, _ := lookup(args, path); v == nil {
				continue
			}
		}
		s, err := value.fill(args, "the header "+name, same)
		if err == nil {
			err = CheckHeaderValue(name, s)
		}
		if err != nil {
			return nil, err
		}
		r.Header.Set(name, s)
	}
	switch {
	case t.body != nil:
		r.Body, err = t.body.fill(args, r.Header.Get("Content-Type"))
	case t.argBody:
		r.Body, err = t.argumentBody(args, raw, r.Header.Get("Content-Type"))
	}
	if r.Body != nil {
		setDefault(r.Header, "Content-Type", "application/json")
	}
	return r, err
}

// argumentBody encodes the arguments as a body: as a form if the media type
// requires it, otherwise as JSON, unchanged unless the schema adds defaults.
// args already has the defaults.
func (t *restTool) argumentBody(args map[string]any, raw []byte, mediaType string) ([]byte, error) {
	if isForm(mediaType) {
		return EncodeForm(args)
	}
	written, err := decode(raw)
	if m, ok := written.(map[string]any); err != nil || ok && len(m) == len(args) {
		return raw, nil //nolint:nilerr // invalid arguments were refused before
	}
	return EncodeJSON(args), nil
}

func parseHeaders(headers map[string]string) (map[string]template, error) {
	all := make(map[string]template, len(headers))
	var errs []error
	for name, value := range headers {
		t, err := parseText(value)
		host := strings.EqualFold(name, "Host") && !t.hasTemplate() // only the configuration may choose the host name
		switch {
		case err != nil:
		case !host && CheckHeaderName(name) != nil:
			err = CheckHeaderName(name)
		case CheckHeaderValue(name, value) != nil:
			err = errors.New("it has a line end or another control character in it")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", Truncate(name, 60), err))
		}
		all[http.CanonicalHeaderKey(name)] = t
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all, errors.Join(errs...)
}

// Definition is the MCP Tool object.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations map[string]bool `json:"annotations,omitempty"`
}

// JSON encodes the definition for a gateway.Tool.
func (d Definition) JSON() json.RawMessage { return EncodeJSON(d) }

// Hints are the MCP annotations implied by an HTTP method.
func Hints(method string) map[string]bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return map[string]bool{"readOnlyHint": true}
	case http.MethodPut:
		return map[string]bool{"idempotentHint": true}
	case http.MethodDelete:
		return map[string]bool{"destructiveHint": true, "idempotentHint": true}
	}
	return nil
}

// Bind sets the default queue and timeout of a tool.
func Bind(t *gateway.Tool) {
	if t.Queue == "" {
		t.Queue = toolqueue.Default
	}
	if t.Timeout <= 0 {
		t.Timeout = gateway.DefaultTimeout
	}
}
