package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// FuzzArguments: whatever the arguments are, a request goes to the server of
// the description, with the same number of path segments and no additional
// header.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"x", "", "..", ".", "/", "//evil.test/", "@evil.test", "?a=b&c", "#f", "%2e%2e", "a\r\nX-Evil: 1", "a; b=c", "a,b", "\xff", "..;/"} {
		f.Add(s, s)
	}
	const spec = `openapi: 3.1.0
info: {title: t, version: "1"}
servers: [{url: "http://api.example.test:8080/v1/"}]
paths:
  /a/{one}/b{two}/{three}{four}.x:
    post:
      operationId: op
      parameters:
        - {name: one, in: path, required: true, schema: {}}
        - {name: two, in: path, required: true, style: label, explode: true, schema: {}}
        - {name: three, in: path, required: true, style: matrix, schema: {}}
        - {name: four, in: path, required: true, style: matrix, explode: true, schema: {}}
        - {name: q, in: query, schema: {}}
        - {name: d, in: query, style: deepObject, schema: {}}
        - {name: X-H, in: header, schema: {}}
        - {name: k, in: cookie, schema: {}}
      requestBody: {required: true, content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {f: {}}}}}}
      responses: {"200": {description: d}}
`
	path := f.TempDir() + "/s.yaml"
	if err := writeFile(path, spec); err != nil {
		f.Fatal(err)
	}
	d, err := openapi.Load(f.Context(), toolconf.OpenAPI{Name: "s", Spec: path, Headers: map[string]string{"X-Key": "k"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		raw, err := json.Marshal(map[string]any{
			"one": a, "two": []any{a, b}, "three": map[string]any{a: b}, "four": b, "q": map[string]any{a: b},
			"d": map[string]any{a: map[string]any{b: a}}, "X-H": map[string]any{a: b}, "k": []any{a, b}, "f": a,
		})
		if err != nil {
			t.Fatal(err)
		}
		args, err := d.Actions[0].Schema.Arguments(raw)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Actions[0].Build(args, raw)
		if err != nil {
			if signalbox.CodeOf(err) != signalbox.CodeValidation {
				t.Fatalf("%v", err)
			}
			return
		}
		req, err := http.NewRequest(r.Method, r.URL, nil)
		if err != nil {
			t.Fatalf("%q: %v", r.URL, err)
		}
		u, err := url.Parse(req.URL.String())
		if err != nil || u.Scheme != "http" || u.Host != "api.example.test:8080" || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q leads to %+v, %v", r.URL, u, err)
		}
		if p := u.EscapedPath(); strings.Count(p, "/") != 5 || !strings.HasPrefix(p, "/v1/a/") || u.JoinPath().EscapedPath() != p {
			t.Fatalf("path %q", p)
		}
		if n := strings.Count(u.RawQuery, "&"); n != 1 {
			t.Fatalf("query %q", u.RawQuery)
		}
		for name, values := range r.Header {
			switch name {
			case "X-Key", "X-H", "Cookie", "Content-Type":
				if len(values) != 1 || strings.ContainsAny(values[0], "\r\n\x00") || name == "Cookie" && strings.Contains(values[0], ";") {
					t.Fatalf("header %s: %q", name, values)
				}
			default:
				t.Fatalf("headers %v", r.Header)
			}
		}
		if form, err := url.ParseQuery(string(r.Body)); err != nil || len(form) != 1 || len(form["f"]) != 1 {
			t.Fatalf("body %s: %v", r.Body, err)
		}
	})
}
