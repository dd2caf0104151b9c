package openapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway/openapi"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const head = `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"servers":[{"url":"http://127.0.0.1:1"}],`

// write writes a description and returns its configuration.
func write(t *testing.T, name, content string) toolconf.OpenAPI {
	t.Helper()
	spec := filepath.Join(t.TempDir(), name)
	if err := writeFile(spec, content); err != nil {
		t.Fatal(err)
	}
	return toolconf.OpenAPI{Name: "s", Spec: spec, Where: "tools.json:7"}
}

func writeFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) }

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q: %v", p, err)
		}
	}
	if len(err.Error()) > 8<<10 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func get(schema string) string {
	return head + `"paths":{"/a":{"get":{"operationId":"a","parameters":[{"name":"p","in":"query","schema":` + schema + `}],"responses":{"200":{"description":"d"}}}}}}`
}

// counting is a server that only counts its requests.
func counting(t *testing.T) (string, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"type":"string"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, &asked
}

// References in a file lead only to files beside it.
func TestIncidentReferenceToMetadataAddress(t *testing.T) {
	elsewhere, asked := counting(t)
	outside := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(outside, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{
		"http://169.254.169.254/latest/meta-data", "http://metadata.google.internal/x#/a", elsewhere + "/x.json", elsewhere + "/x.json#/a",
		strings.TrimPrefix(elsewhere, "http:") + "/x.json", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1/x",
	} {
		_, err := openapi.Load(t.Context(), write(t, "s.json", get(`{"$ref":"`+ref+`"}`)))
		wantError(t, err, "tools.json:7: openapiSpecs.s: ", "is not read")
	}
	for _, ref := range []string{outside, "file://" + outside, "/etc/passwd", "../secret.json", "a/../../secret.json", "../secret.json#/x", "/dev/zero"} {
		_, err := openapi.Load(t.Context(), write(t, "s.json", get(`{"$ref":"`+ref+`"}`)))
		wantError(t, err, "tools.json:7", "is not read")
	}
	c := write(t, "s.json", get(`{"$ref":"link.json"}`))
	if err := os.Symlink(outside, filepath.Join(filepath.Dir(c.Spec), "link.json")); err != nil {
		t.Fatal(err)
	}
	_, err := openapi.Load(t.Context(), c)
	wantError(t, err, "tools.json:7", "escapes")
	if n := asked.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

// References in a description at a URL lead only to the same origin.
func TestReferencesAtURL(t *testing.T) {
	elsewhere, asked := counting(t)
	refs := map[string]string{
		"/good": "schemas/x.json#/X", "/absolute": "/schemas/x.json#/X", "/other": elsewhere + "/x.json", "/host": strings.TrimPrefix(elsewhere, "http:") + "/x.json",
		"/metadata": "http://169.254.169.254/x.json", "/file": "file:///etc/passwd", "/redirect": "/away",
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch ref := refs[r.URL.Path]; {
		case ref != "":
			fmt.Fprint(w, get(`{"$ref":"`+ref+`"}`))
		case r.URL.Path == "/schemas/x.json":
			fmt.Fprint(w, `{"X":{"type":"string"}}`)
		case r.URL.Path == "/away":
			http.Redirect(w, r, elsewhere+"/x.json", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	for path := range refs {
		_, err := openapi.Load(t.Context(), toolconf.OpenAPI{Name: "s", Spec: s.URL + path, BaseURL: s.URL})
		switch path {
		case "/good", "/absolute":
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		case "/redirect":
			wantError(t, err, "another host")
		default:
			wantError(t, err, "is not read")
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
	_, err := openapi.Load(t.Context(), toolconf.OpenAPI{Name: "s", Spec: s.URL + "/nothing?key=s3cret"})
	wantError(t, err, "404", s.URL+"/nothing")
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a secret is in the error: %v", err)
	}
}

// Hostile descriptions are refused quickly and with a clear message.
func TestHostileDescriptions(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	many := func(n int, one string) string {
		var b strings.Builder
		b.WriteString(head + `"paths":{`)
		for i := range n {
			fmt.Fprintf(&b, one, i)
		}
		return strings.TrimSuffix(b.String(), ",") + "}}"
	}
	for name, c := range map[string]struct{ content, want string }{
		"laughs":           {"openapi: 3.1.0\n" + laughs, "aliases"},
		"long alias":       {"openapi: 3.1.0\na: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n", "aliases"},
		"alias of itself":  {"openapi: 3.1.0\na: &a [*a]\n", "aliases"},
		"too large":        {head + `"x-pad":"` + strings.Repeat("x", 9<<20) + `"}`, "8 MiB"},
		"deep JSON":        {head + `"x-deep":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "deep"},
		"deeper JSON":      {strings.Repeat("[", 1<<20), "deep"},
		"deep YAML":        {"openapi: 3.1.0\nx: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "deep"},
		"indented YAML":    {"openapi: 3.1.0\n" + indented(1000), "deep"},
		"many operations":  {many(10000, `"/p%[1]d":{"get":{"operationId":"o%[1]d","responses":{"200":{"description":"d"}}}},`), "10000 operations"},
		"duplicate ids":    {many(2, `"/p%d":{"get":{"operationId":"same","responses":{"200":{"description":"d"}}}},`), "same"},
		"empty":            {" \n", "empty"},
		"page":             {"<!DOCTYPE html><html><body>Not found</body></html>", "OpenAPI description"},
		"list":             {`[1]`, "OpenAPI description"},
		"binary":           {"\x00\x01\x02", "neither JSON nor YAML"},
		"broken YAML":      {"openapi: 3.1.0\npaths:\n  - a\n b: c", "line 3"},
		"swagger":          {`{"swagger":"2.0"}`, "Swagger 2.0"},
		"version":          {`{"openapi":"4.0.0"}`, "OpenAPI 4.0.0"},
		"version number":   {`{"openapi":3.1}`, "expected 3.0 or 3.1"},
		"no paths":         {head + `"paths":{}}`, "no operation"},
		"no such ref":      {get(`{"$ref":"#/components/schemas/None"}`), "components/schemas/None"},
		"wrong types":      {head + `"paths":[]}`, "valid OpenAPI"},
		"null everywhere":  {head + `"paths":{"/a":null,"/b":{"get":null}},"components":null,"servers":null}`, ""},
		"null parameter":   {head + `"paths":{"/a":{"get":{"parameters":[null],"responses":{"200":{"description":"d"}}}}}}`, ""},
		"ref of itself":    {get(`{"$ref":"#/components/schemas/A"}`)[:len(get(`{"$ref":"#/components/schemas/A"}`))-1] + `,"components":{"schemas":{"A":{"$ref":"#/components/schemas/A"}}}}`, ""},
		"relative server":  {strings.Replace(get(`{}`), "http://127.0.0.1:1", "/api", 1), "set baseUrl"},
		"server variable":  {strings.Replace(get(`{}`), "127.0.0.1:1", "{host}", 1), "valid OpenAPI"},
		"metadata server":  {strings.Replace(get(`{}`), "127.0.0.1:1", "169.254.169.254", 1), "metadata"},
		"metadata name":    {strings.Replace(get(`{}`), "127.0.0.1:1", "metadata.google.internal", 1), "metadata"},
		"socket as server": {strings.Replace(get(`{}`), "http://127.0.0.1:1", "unix:///run/x.sock", 1), "set baseUrl"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := openapi.Load(t.Context(), write(t, "s.yaml", c.content))
			wantError(t, err, "tools.json:7: openapiSpecs.s: ", c.want)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func indented(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// The error of an invalid description lists all mistakes.
func TestAllErrorsAreReported(t *testing.T) {
	_, err := openapi.Load(t.Context(), write(t, "s.json", `{"openapi":"3.0.3","info":{"title":"t"},"paths":{"no-slash":{"get":{"responses":{"200":{"description":"d"}}}},
		"/a/{x}":{"get":{"responses":{"200":{"description":"d"}}}},"/b":{"get":{"parameters":[{"name":"q","in":"nowhere"}]}}}}`))
	wantError(t, err, "info", "no-slash", "/a/{x}", "/b")
}

// The error for an unresolved reference into another file names the file.
func TestUnresolvedReference(t *testing.T) {
	c := write(t, "s.json", get(`{"$ref":"x.yaml#/Good"}`))
	if err := writeFile(filepath.Join(filepath.Dir(c.Spec), "x.yaml"), "Good: {properties: {a: {$ref: '#/Bad'}, b: {$ref: 's.json#/Worse'}}}"); err != nil {
		t.Fatal(err)
	}
	_, err := openapi.Load(t.Context(), c)
	wantError(t, err, "#/Bad in x.yaml", "s.json#/Worse in x.yaml")
}

// A schema whose inlined form would be endless or too large keeps its
// references. If it is still too large, only its own tool is skipped.
func TestLargeSchemas(t *testing.T) {
	shared := `"S0":{"type":"string"}`
	for i := 1; i < 40; i++ { // inlined, S39 would have 2^39 parts
		shared += fmt.Sprintf(`,"S%d":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/S%d"},"b":{"$ref":"#/components/schemas/S%d"}}}`, i, i-1, i-1)
	}
	loop := `"L":{"allOf":[{"$ref":"#/components/schemas/L"}]},"M":{"anyOf":[{"$ref":"#/components/schemas/N"},{"type":"null"}]},"N":{"type":"object","properties":{"m":{"$ref":"#/components/schemas/M"}}}`
	huge := `"H":{"enum":["` + strings.Repeat("x", 300<<10) + `"]}`
	op := func(name, schema string) string {
		return `"/` + name + `":{"get":{"operationId":"` + name + `","parameters":[{"name":"p","in":"query","content":{"application/json":{"schema":{"$ref":"#/components/schemas/` + schema + `"}}}}],"responses":{"200":{"description":"d"}}}}`
	}
	c := write(t, "s.json", head+`"paths":{`+op("shared", "S39")+","+op("loop", "L")+","+op("mutual", "M")+","+op("huge", "H")+","+op("plain", "S1")+`},"components":{"schemas":{`+shared+","+loop+","+huge+`}}}`)
	d, err := openapi.Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "GET /huge is left out: its input schema has") {
		t.Errorf("warnings %q", d.Warnings)
	}
	kept := map[string]bool{"rest__shared": true, "rest__loop": true, "rest__mutual": true, "rest__plain": false}
	for _, a := range d.Actions {
		if got := strings.Contains(string(a.Schema.JSON), `"$defs"`); got != kept[a.Tool.Name] || len(a.Schema.JSON) > 20<<10 {
			t.Errorf("%s: %.300s", a.Tool.Name, a.Schema.JSON)
		}
		if _, err := a.Schema.Arguments([]byte(`{"p":{"a":{"m":{}}}}`)); err != nil && kept[a.Tool.Name] {
			t.Errorf("%s: %v", a.Tool.Name, err)
		}
	}
	if len(d.Actions) != len(kept) {
		t.Errorf("%d tools", len(d.Actions))
	}
}
