package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/signalbox-ai/signalbox/internal/conffile"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/rest"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const (
	maxOperations = 1000
	maxSchemas    = 32 << 20 // bytes of all input schemas
)

// Description is the result of loading.
type Description struct {
	Actions  []*rest.Action
	Warnings []string // what was skipped, and why
	Reach    rest.EgressPolicy
}

// Load loads a description. Its error lists all mistakes.
func Load(ctx context.Context, c toolconf.OpenAPI) (d *Description, err error) {
	defer func() {
		if p := recover(); p != nil { // a document that makes the library panic must not end the process
			d, err = nil, configError(c, fmt.Errorf("it cannot be read: %v", p))
		}
	}()
	s, err := newSource(ctx, c)
	if err != nil {
		return nil, configError(c, err)
	}
	defer s.close()
	h, err := newHosts(c, s.where)
	if err != nil {
		return nil, configError(c, err)
	}
	l := &loader{conf: c, hosts: h, headers: http.Header{}, names: map[string]string{}, bound: map[string]bool{}}
	l.d.Reach = h.egress()
	for name, value := range c.Headers {
		l.headers.Set(name, value)
	}
	if l.doc, err = s.parse(l.count); err != nil {
		return nil, configError(c, err)
	}
	if err := l.operations(); err != nil {
		return nil, configError(c, err)
	}
	return &l.d, nil
}

// configError names the configuration entry and file of an error.
func configError(c toolconf.OpenAPI, err error) error {
	key := "openapiSpecs." + c.Name
	where := c.Where
	if where == "" {
		where = key
	}
	spec := c.Spec
	if u, bad := url.Parse(c.Spec); bad == nil && u.Host != "" {
		spec = redactedURL(u)
	}
	return conffile.Problems{{Where: where, Key: key, Text: spec + ": " + err.Error()}}
}

// loader makes the tools of one description.
type loader struct {
	conf    toolconf.OpenAPI
	doc     *openapi3.T
	hosts   *hostPolicy
	headers http.Header
	names   map[string]string // tool names so far, with the operation of each
	bound   map[string]bool   // the keys of ToolQueues that a tool has
	bytes   int
	d       Description
}

// count refuses a document with too many operations before the expensive parsing. Referenced
// operations are counted later.
func (l *loader) count(data []byte) error {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if json.Unmarshal(data, &doc) != nil {
		return nil //nolint:nilerr // the library reports what is wrong
	}
	n := 0
	for _, item := range doc.Paths {
		for key, raw := range item {
			var op struct {
				Tags []string `json:"tags"`
			}
			if slices.Contains(methods, key) && json.Unmarshal(raw, &op) == nil && l.selected(key, op.Tags) {
				n++
			}
		}
	}
	return tooMany(n)
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch"}

func tooMany(n int) error {
	if n <= maxOperations {
		return nil
	}
	return fmt.Errorf("it has %d operations, more than the %d that can be tools: choose with includeMethods or tagFilter", n, maxOperations)
}

func (l *loader) operations() error {
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
			if op := operations[method]; op != nil && l.selected(method, op.Tags) {
				all = append(all, entry{method, path, item, op})
			}
		}
	}
	if err := tooMany(len(all)); err != nil {
		return err
	}
	var why error
	for _, e := range all {
		if err := l.operation(e.method, e.path, e.item, e.op); err != nil {
			why = err
			l.d.Warnings = append(l.d.Warnings, fmt.Sprintf("%s %s is left out: %v", e.method, rest.Truncate(e.path, 100), err))
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

// selected reports whether the configuration selects the operation.
func (l *loader) selected(method string, tags []string) bool {
	if want := l.conf.IncludeMethods; len(want) > 0 && !slices.ContainsFunc(want, func(m string) bool { return strings.EqualFold(m, method) }) {
		return false
	}
	want := l.conf.TagFilter
	return len(want) == 0 || slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(want, tag) })
}

// operation makes a tool of one operation.
func (l *loader) operation(method, path string, item *openapi3.PathItem, op *openapi3.Operation) error {
	switch method {
	case http.MethodConnect, http.MethodTrace:
		return errors.New("its method cannot be a tool's")
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
	o.releaseDocument()
	name := toolName(l.conf.ToolNamePrefix, op.OperationID, method, path)
	if other, taken := l.names[name]; taken {
		return fmt.Errorf("its name would be %s, which is that of %s", name, other)
	}
	l.names[name] = method + " " + path
	l.bytes += len(schema.JSON)
	l.d.Actions = append(l.d.Actions, &rest.Action{Tool: l.tool(name, method, path, op, schema), Schema: schema, Build: o.build})
	return nil
}

func (l *loader) tool(name, method, path string, op *openapi3.Operation, schema *rest.Schema) gateway.Tool {
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
		Name: rest.Prefix + name, Title: rest.Truncate(strings.TrimSpace(op.Summary), 200), Description: rest.Truncate(about, maxDescription),
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

// checkQueues warns about tools with a queue of their own that do not exist.
func (l *loader) checkQueues() {
	for _, key := range sortedKeys(l.conf.ToolQueues) {
		if !l.bound[key] {
			l.d.Warnings = append(l.d.Warnings, fmt.Sprintf("toolQueues names %s, which is not a tool of this description", rest.Truncate(key, 100)))
		}
	}
}

// unresolved adds the unresolved references to an error: the library names only part of the
// first.
func (s *source) unresolved(err error) error {
	docs := make(map[string]any, len(s.read))
	for key, data := range s.read {
		var doc any
		if json.Unmarshal(data, &doc) == nil {
			docs[key] = doc
		}
	}
	var dangling []string
	for _, key := range sortedKeys(docs) {
		eachRef(docs[key], func(ref string) {
			if target, path, ok := refTarget(docs, key, ref); ok && !resolves(target, path) {
				dangling = append(dangling, fmt.Sprintf("the reference %s in %s leads nowhere", rest.Truncate(ref, 200), rest.Truncate(filepath.Base(key), 100)))
			}
		})
	}
	if len(dangling) == 0 {
		return err
	}
	slices.Sort(dangling)
	dangling = slices.Compact(dangling)
	text := ""
	for i, d := range dangling {
		if i == maxErrors {
			text += fmt.Sprintf("\n  and %d references more", len(dangling)-i)
			break
		}
		text += "\n  " + d
	}
	return fmt.Errorf("it is not a valid OpenAPI description:%s", text)
}

// refTarget returns the document and the path that a reference points to.
func refTarget(docs map[string]any, from, ref string) (doc any, path string, ok bool) {
	file, path, ok := strings.Cut(ref, "#/")
	if !ok {
		return nil, "", false
	}
	if file == "" {
		return docs[from], path, true
	}
	base, err := url.Parse(from)
	if err != nil {
		return nil, "", false
	}
	to, err := base.Parse(file)
	if err != nil {
		return nil, "", false
	}
	doc, ok = docs[to.String()]
	return doc, path, ok
}

func eachRef(v any, f func(string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRef(e, f)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			f(ref)
		}
		for _, e := range v {
			eachRef(e, f)
		}
	}
}

func resolves(v any, path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[name]
			if !ok {
				return false
			}
			v = next
		case []any:
			return true // an index: the library's message is clear enough
		default:
			return false
		}
	}
	return true
}
