package openapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// FuzzDescription: a description is either refused with its name in the
// message, or its tools have schemas and names that a model can call. Loading
// never takes long.
func FuzzDescription(f *testing.F) {
	for _, s := range []string{
		"openapi: 3.0.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'http://a.test'}]\npaths: {/a: {get: {operationId: x, responses: {'200': {description: d}}}}}\n",
		"openapi: 3.1.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'http://a.test'}]\npaths: {/a/{b}: {post: {parameters: [{name: b, in: path, required: true, schema: {$ref: '#/components/schemas/A'}}], responses: {}}}}\ncomponents: {schemas: {A: {$ref: '#/components/schemas/A'}}}\n",
		"swagger: '2.0'\n", "openapi: 3.0.0\npaths: &a {x: *a}\n", "{}", "openapi: 9\n", "openapi: 3.0.0\ninfo: {title: t, version: '1'}\npaths: {/a: {$ref: 'file:///etc/passwd'}}\n",
	} {
		f.Add(s)
	}
	path := f.TempDir() + "/s.yaml"
	f.Fuzz(func(t *testing.T, spec string) {
		if err := writeFile(path, spec); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		d, err := openapi.Load(t.Context(), toolconf.OpenAPI{Name: "s", Spec: path})
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%d bytes took %s", len(spec), took)
		}
		if err != nil {
			if strings.Contains(err.Error(), "root:x:0") || err.Error() == "" {
				t.Fatalf("%q: %v", spec, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, a := range d.Actions {
			tool := a.Tool
			if seen[tool.Name] || tool.Name == "" || len(tool.Name) > 128 || a.Schema == nil {
				t.Errorf("%q offers %q", spec, tool.Name)
			}
			seen[tool.Name] = true
		}
	})
}
