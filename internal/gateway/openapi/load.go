package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	maxOperations = 1000
	maxSchemas    = 32 << 20 // bytes of all input schemas
	mostMistakes  = 20       // that one error has
)

// Description is what a description comes to.
type Description struct {
	Actions  []*rest.Action
	Warnings []string // what was left out, and why
	Reach    rest.Reach
}

// Load reads a description. Its error has all mistakes.
func Load(ctx context.Context, c toolconf.OpenAPI) (d *Description, err error) {
	defer func() {
		if p := recover(); p != nil { // a document that its reader stumbles over is no reason to stop
			d, err = nil, wrong(c, fmt.Errorf("it cannot be read: %v", p))
		}
	}()
	s, err := newSource(ctx, c)
	if err != nil {
		return nil, wrong(c, err)
	}
	defer s.close()
	h, err := newHosts(c, s.where)
	if err != nil {
		return nil, wrong(c, err)
	}
	doc, err := s.parse()
	if err != nil {
		return nil, wrong(c, err)
	}
	l := &loading{conf: c, doc: doc, hosts: h, headers: http.Header{}, names: map[string]string{}, bound: map[string]bool{}}
	l.d.Reach = h.reach()
	for name, value := range c.Headers {
		l.headers.Set(name, value)
	}
	if err := l.operations(); err != nil {
		return nil, wrong(c, err)
	}
	return &l.d, nil
}

// wrong says which entry of which file an error is about.
func wrong(c toolconf.OpenAPI, err error) error {
	where := "openapiSpecs." + c.Name
	if c.Where != "" {
		where = c.Where + ": " + where
	}
	spec := c.Spec
	if u, bad := url.Parse(c.Spec); bad == nil && u.Host != "" {
		spec = place(u)
	}
	return fmt.Errorf("%s: %s: %w", where, spec, err)
}

// parse reads the document with all that it refers to, and validates it.
func (s *source) parse() (*openapi3.T, error) {
	data, err := s.open(s.location())
	if err != nil {
		return nil, err
	}
	if err := checkVersion(data); err != nil {
		return nil, err
	}
	var refused error // the library wraps it more deeply with each reference
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
		return nil, unresolved(data, mistakes(err))
	}
	// Examples, defaults and patterns are not what a request is made of, and
	// real descriptions are often careless with them.
	if err := doc.Validate(s.ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(),
		openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation()); err != nil {
		return nil, mistakes(err)
	}
	return doc, nil
}

func checkVersion(data []byte) error {
	var head struct {
		OpenAPI any `json:"openapi"`
		Swagger any `json:"swagger"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return errors.New("it is no OpenAPI description: expected an object with the key openapi")
	}
	version, _ := head.OpenAPI.(string)
	switch {
	case head.Swagger != nil:
		return fmt.Errorf("it is Swagger %v: expected OpenAPI 3.0 or 3.1; there are converters", rest.Cut(fmt.Sprint(head.Swagger), 20))
	case head.OpenAPI == nil:
		return errors.New("it is no OpenAPI description: expected an object with the key openapi")
	case !strings.HasPrefix(version, "3."):
		return fmt.Errorf("it is OpenAPI %s: expected 3.0 or 3.1", rest.Cut(fmt.Sprint(head.OpenAPI), 20))
	}
	return nil
}

// mistakes puts all that is wrong with a document into one error.
func mistakes(err error) error {
	var all openapi3.MultiError
	if !errors.As(err, &all) {
		all = openapi3.MultiError{err}
	}
	text := "it is no valid OpenAPI description:"
	for i, e := range all {
		if i == mostMistakes {
			text += fmt.Sprintf("\n  and %d mistakes more", len(all)-i)
			break
		}
		text += "\n  " + rest.Cut(strings.Join(strings.Fields(e.Error()), " "), 300)
	}
	return errors.New(text)
}

// loading is a description while its tools are made.
type loading struct {
	conf    toolconf.OpenAPI
	doc     *openapi3.T
	hosts   *hosts
	headers http.Header
	names   map[string]string // of the tools so far, and what they are of
	bound   map[string]bool   // keys of ToolQueues that a tool has
	bytes   int
	d       Description
}

func (l *loading) operations() error {
	type entry struct {
		method, path string
		item         *openapi3.PathItem
		op           *openapi3.Operation
	}
	var all []entry
	for _, path := range sortedKeys(l.doc.Paths.Map()) {
		item := l.doc.Paths.Value(path)
		if item == nil {
			continue
		}
		operations := item.Operations()
		for _, method := range sortedKeys(operations) {
			if op := operations[method]; op != nil && l.wanted(method, op) {
				all = append(all, entry{method, path, item, op})
			}
		}
	}
	if len(all) > maxOperations {
		return fmt.Errorf("it has %d operations, more than the %d that can be tools: choose with includeMethods or tagFilter", len(all), maxOperations)
	}
	var why error
	for _, e := range all {
		if err := l.operation(e.method, e.path, e.item, e.op); err != nil {
			why = err
			l.d.Warnings = append(l.d.Warnings, fmt.Sprintf("%s %s is left out: %v", e.method, rest.Cut(e.path, 100), err))
		}
		if l.bytes > maxSchemas {
			return fmt.Errorf("the input schemas of its tools are larger than %d MiB: choose with includeMethods or tagFilter", maxSchemas>>20)
		}
	}
	l.checkQueues()
	switch {
	case len(l.d.Actions) > 0:
		return nil
	case why != nil:
		return fmt.Errorf("none of its %d operations can be a tool: %w", len(all), why)
	}
	return errors.New("it has no operation that includeMethods and tagFilter let through")
}

// wanted reports whether the configuration wants the operation as a tool.
func (l *loading) wanted(method string, op *openapi3.Operation) bool {
	if want := l.conf.IncludeMethods; len(want) > 0 && !slices.ContainsFunc(want, func(m string) bool { return strings.EqualFold(m, method) }) {
		return false
	}
	want := l.conf.TagFilter
	return len(want) == 0 || slices.ContainsFunc(op.Tags, func(tag string) bool { return slices.Contains(want, tag) })
}

// operation makes a tool of one operation.
func (l *loading) operation(method, path string, item *openapi3.PathItem, op *openapi3.Operation) error {
	switch method {
	case http.MethodConnect, http.MethodTrace:
		return errors.New("its method is no tool's")
	}
	servers := l.doc.Servers
	if len(item.Servers) > 0 {
		servers = item.Servers
	}
	if op.Servers != nil && len(*op.Servers) > 0 {
		servers = *op.Servers
	}
	o := &operation{method: method, path: path, headers: l.headers}
	var err error
	if o.base, err = l.hosts.choose(servers); err != nil {
		return err
	}
	if o.parameters, err = arguments(item, op, l.headers); err != nil {
		return err
	}
	if o.body, err = newBody(op, o.parameters); err != nil {
		return err
	}
	schema, err := o.schema(l.doc.IsOpenAPI30())
	if err != nil {
		return err
	}
	o.forget()
	name := toolName(l.conf.ToolNamePrefix, op.OperationID, method, path)
	if other, taken := l.names[name]; taken {
		return fmt.Errorf("its name would be %s, which is that of %s", name, other)
	}
	l.names[name] = method + " " + path
	l.bytes += len(schema.JSON)
	l.d.Actions = append(l.d.Actions, &rest.Action{Tool: l.tool(name, method, path, op, schema), Schema: schema, Build: o.build})
	return nil
}

func (l *loading) tool(name, method, path string, op *openapi3.Operation, schema *rest.Schema) gateway.Tool {
	about := strings.TrimSpace(op.Description)
	switch summary := strings.TrimSpace(op.Summary); {
	case about == "" && summary == "":
		about = method + " " + path
	case about == "":
		about = summary
	case summary != "" && !strings.HasPrefix(about, summary):
		about = summary + "\n\n" + about
	}
	d := rest.Definition{
		Name: rest.Prefix + name, Title: rest.Cut(strings.TrimSpace(op.Summary), 200), Description: rest.Cut(about, maxDescription),
		InputSchema: schema.JSON, Annotations: rest.Hints(method),
	}
	t := gateway.Tool{
		Name: d.Name, Server: l.conf.Name, Kind: gateway.KindOpenAPI,
		Queue: l.conf.Queue, Timeout: l.conf.Timeout, Definition: d.JSON(),
	}
	for _, key := range []string{d.Name, name, op.OperationID, toolName("", op.OperationID, method, path)} {
		if q := l.conf.ToolQueues[key]; q != "" {
			t.Queue, l.bound[key] = q, true
		}
	}
	rest.Bind(&t)
	return t
}

// checkQueues says which tools that have a queue of their own do not exist.
func (l *loading) checkQueues() {
	for _, key := range sortedKeys(l.conf.ToolQueues) {
		if !l.bound[key] {
			l.d.Warnings = append(l.d.Warnings, fmt.Sprintf("toolQueues names %s, which is no tool of this description", rest.Cut(key, 100)))
		}
	}
}
