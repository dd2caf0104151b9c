package httpapi_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

type tree = map[string]any

// description is a parsed GET /openapi.json.
type description struct {
	t    *testing.T
	root tree
	made map[string]*jsonschema.Resolved
}

func describe(t *testing.T) description {
	t.Helper()
	var root tree
	apitest.New(t).Do("GET", "/openapi.json", "").Want(t, 200, &root)
	return description{t, root, map[string]*jsonschema.Resolved{}}
}

func (d description) operation(route api.Route) tree {
	path := strings.NewReplacer("...}", "}", "{$}", "").Replace(route.Path)
	item, _ := d.root["paths"].(tree)[path].(tree)
	op, _ := item[strings.ToLower(route.Method)].(tree)
	return op
}

// schema compiles a schema of the description. With strict, objects may have only described
// fields.
func (d description) schema(s tree, strict bool) *jsonschema.Resolved {
	d.t.Helper()
	key := fmt.Sprint(s, strict)
	if d.made[key] == nil {
		d.made[key] = d.compile(s, strict)
	}
	return d.made[key]
}

func (d description) compile(s tree, strict bool) *jsonschema.Resolved {
	d.t.Helper()
	defs := d.root["components"].(tree)["schemas"].(tree)
	needed := tree{}
	need(s, defs, needed)
	whole, err := json.Marshal(tree{"$defs": needed, "allOf": []any{s}})
	if err != nil {
		d.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(whole), "#/components/schemas/", "#/$defs/")
	if strict {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			d.t.Fatal(err)
		}
		shut(v)
		whole, _ = json.Marshal(v)
		text = string(whole)
	}
	var out jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		d.t.Fatal(err)
	}
	resolved, err := out.Resolve(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return resolved
}

// need collects the schemas that v refers to, directly or indirectly. Compiling all schemas for
// each one would take seconds.
func need(v any, defs, needed tree) {
	switch v := v.(type) {
	case tree:
		ref, _ := v["$ref"].(string)
		if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok && needed[name] == nil && defs[name] != nil {
			needed[name] = defs[name]
			need(defs[name], defs, needed)
		}
		for _, child := range v {
			need(child, defs, needed)
		}
	case []any:
		for _, child := range v {
			need(child, defs, needed)
		}
	}
}

func shut(v any) {
	switch v := v.(type) {
	case tree:
		if _, is := v["properties"].(tree); is && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, child := range v {
			shut(child)
		}
	case []any:
		for _, child := range v {
			shut(child)
		}
	}
}

func content(t *testing.T, holder any, media string) tree {
	t.Helper()
	body, _ := holder.(tree)["content"].(tree)
	m, ok := body[media].(tree)
	if !ok {
		t.Fatalf("no %s is described in %v", media, holder)
	}
	return m["schema"].(tree)
}

func TestOpenAPIHasTheStructureOf31(t *testing.T) {
	d := describe(t)
	info := d.root["info"].(tree)
	if d.root["openapi"] != "3.1.0" || info["title"] == "" || info["version"] != "1.0.0" {
		t.Errorf("%v", info)
	}
	ids := map[string]bool{}
	routes := 0
	for path, item := range d.root["paths"].(tree) {
		if !strings.HasPrefix(path, "/") {
			t.Errorf("path %q", path)
		}
		for method, op := range item.(tree) {
			routes++
			d.checkOperation(path, method, op.(tree), ids)
		}
	}
	if routes != len(api.Routes()) {
		t.Errorf("%d operations for %d routes", routes, len(api.Routes()))
	}
	for _, route := range api.Routes() {
		if op := d.operation(route); op == nil || op["operationId"] != route.Name {
			t.Errorf("route %s is not described", route.Name)
		}
	}
	d.checkRefs(d.root)
	for name, s := range d.root["components"].(tree)["schemas"].(tree) {
		if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(name) {
			t.Errorf("schema %q", name)
		}
		d.schema(s.(tree), false)
	}
}

func (d description) checkOperation(path, method string, op tree, ids map[string]bool) {
	d.t.Helper()
	id, _ := op["operationId"].(string)
	if id == "" || ids[id] || op["summary"] == "" || !slices.Contains([]string{"get", "post", "delete", "put", "patch"}, method) {
		d.t.Errorf("%s %s: operation %q", method, path, id)
	}
	ids[id] = true
	declared := map[string]bool{}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		p := p.(tree)
		key := fmt.Sprint(p["in"], " ", p["name"])
		if declared[key] || p["schema"] == nil || (p["in"] == "path") != (p["required"] == true) {
			d.t.Errorf("%s: parameter %v", id, p)
		}
		declared[key] = true
	}
	for _, m := range regexp.MustCompile(`\{(.+?)\}`).FindAllStringSubmatch(path, -1) {
		if !declared["path "+m[1]] {
			d.t.Errorf("%s: path variable %s is not declared", id, m[1])
		}
	}
	responses, _ := op["responses"].(tree)
	if len(responses) < 2 {
		d.t.Errorf("%s: responses %v", id, responses)
	}
	for status, r := range responses {
		if !regexp.MustCompile(`^(101|[2-5]\d\d)$`).MatchString(status) || r.(tree)["description"] == "" {
			d.t.Errorf("%s: response %s %v", id, status, r)
		}
	}
}

func (d description) checkRefs(v any) {
	switch v := v.(type) {
	case tree:
		if ref, ok := v["$ref"].(string); ok {
			name, local := strings.CutPrefix(ref, "#/components/schemas/")
			if _, there := d.root["components"].(tree)["schemas"].(tree)[name]; !local || !there {
				d.t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, child := range v {
			d.checkRefs(child)
		}
	case []any:
		for _, child := range v {
			d.checkRefs(child)
		}
	}
}

// Each route has its required scope, and public routes have none.
func TestOpenAPINamesScopes(t *testing.T) {
	d := describe(t)
	for _, route := range api.Routes() {
		want := fmt.Sprintf("[map[bearer:[%s]] map[login:[%[1]s]]]", route.Scope)
		switch route.Scope {
		case api.ScopeAny:
			want = "[map[bearer:[]] map[login:[]]]"
		case api.ScopePublic, api.ScopeTicket:
			want = "[]"
		}
		if got := fmt.Sprint(d.operation(route)["security"]); got != want {
			t.Errorf("%s: %s, want %s", route.Name, got, want)
		}
	}
}

func TestOpenAPIKnowsTheSeedsRequests(t *testing.T) {
	d := describe(t)
	for _, route := range api.Routes() {
		if route.Name != "submit" && route.Name != "submitTask" {
			continue
		}
		s := d.schema(content(t, d.operation(route)["requestBody"], "application/json"), false)
		for body, good := range map[string]bool{
			seedRequest: true, `{"message":"m"}`: true, `{"prompt":"p","env":{"A":"1"},"project":{"path":"/x"},"not_before":"2025-01-17T10:00:00Z"}`: true,
			`{}`: false, `{"prompt":1}`: false, `{"prompt":"p","promt":"x"}`: false, `{"prompt":"p","priority":11}`: false, `{"prompt":"p","message":"m"}`: false,
			`{"prompt":"p","project":{"pth":"/x"}}`: false, `{"prompt":"p","source":"mars"}`: false, `{"prompt":"p","timeout_seconds":604801}`: false,
		} {
			var v any
			if err := json.Unmarshal([]byte(body), &v); err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(v); (err == nil) != good {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}

// The real answers of the handlers match the description exactly.
func TestOpenAPIDescribesTheRealAnswers(t *testing.T) {
	d := describe(t)
	asked := map[string]bool{}
	for _, x := range newSession(t).exchanges {
		asked[x.route] = true
		var route api.Route
		for _, r := range api.Routes() {
			if r.Name == x.route {
				route = r
			}
		}
		answer, ok := d.operation(route)["responses"].(tree)[fmt.Sprint(x.answer.StatusCode)]
		if !ok {
			t.Errorf("%s answers %d, which is not described", x.route, x.answer.StatusCode)
			continue
		}
		if len(x.answer.Body) == 0 {
			if x.answer.StatusCode != 204 {
				t.Errorf("%s: an empty answer", x.route)
			}
			continue
		}
		media, _, err := mime.ParseMediaType(x.answer.Header.Get("Content-Type"))
		if err != nil {
			t.Fatalf("%s: %v", x.route, err)
		}
		s := content(t, answer, media)
		if media != "application/json" {
			continue
		}
		var v any
		if err := json.Unmarshal(x.answer.Body, &v); err != nil {
			t.Fatal(err)
		}
		if err := d.schema(s, true).Validate(v); err != nil {
			t.Errorf("%s %d: %v\n%s", x.route, x.answer.StatusCode, err, x.answer.Body)
		}
	}
	for _, route := range api.Routes() {
		if !asked[route.Name] {
			t.Errorf("route %s is not in the session", route.Name)
		}
	}
}
