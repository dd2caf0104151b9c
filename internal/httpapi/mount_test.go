package httpapi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// sample fills the variables of a path.
func sample(path string) string {
	return strings.NewReplacer("{id}", "queue-00000000000000000000000000", "{name}", "coder", "{part}", "k2m9", "{path...}", "x", "{$}", "").Replace(path)
}

func TestEveryRouteIsMountedAndNothingElse(t *testing.T) {
	b := apitest.New(t)
	mux, err := b.Server.MountRoutes(api.Routes())
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range api.Routes() {
		r := httptest.NewRequestWithContext(t.Context(), route.Method, sample(route.Path), nil)
		if _, pattern := mux.Handler(r); pattern != route.Method+" "+route.Path {
			t.Errorf("%s %s goes to %q", route.Method, route.Path, pattern)
		}
	}
	if _, err := b.Server.MountRoutes(api.Routes(), "cancel"); err == nil || !strings.Contains(err.Error(), "cancel") {
		t.Errorf("a route without a handler was mounted: %v", err)
	}
	if _, err := b.Server.MountRoutes(api.Routes()[1:]); err == nil || !strings.Contains(err.Error(), "submit") {
		t.Errorf("a handler without a route was let pass: %v", err)
	}
}

func TestEveryErrorCodeHasAStatus(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if ident, ok := spec.Type.(*ast.Ident); !ok || ident.Name != "Code" {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if !httpapi.HasStatus(signalbox.Code(code)) {
			t.Errorf("code %s has no status", code)
		}
		return true
	})
	if found < 15 {
		t.Fatalf("only %d codes found", found)
	}
}

func TestUnknownPathsAndMethodsAnswerJSON(t *testing.T) {
	b := apitest.New(t)
	for _, path := range []string{
		"/", "/api", "/api/", "/api/queue/", "/api/nothing", "/index.html", "/.git/config", "/api/queue/../../etc/passwd",
		"/api/queue/%2e%2e/%2e%2e/etc/passwd", "//api/queue", "/api//queue", "/status/", "/..%2f..%2fetc/passwd", "/debug/pprof/",
	} {
		e := b.Do("GET", path, "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if strings.Contains(e.Message, "\n") {
			t.Errorf("%s: %q", path, e.Message)
		}
	}
	for path, allow := range map[string]string{
		"/api/queue":                  "GET, HEAD",
		"/api/task":                   "POST",
		"/api/agents":                 "GET, HEAD, POST",
		"/api/agents/coder":           "DELETE",
		"/api/agents/coder/heartbeat": "POST",
		"/status":                     "GET, HEAD",
	} {
		got := b.Do("PUT", path, "")
		got.WantError(t, http.StatusMethodNotAllowed, signalbox.CodeMethodNotAllowed)
		if got.Header.Get("Allow") != allow {
			t.Errorf("%s: Allow %q, want %q", path, got.Header.Get("Allow"), allow)
		}
	}
}

func TestEveryAnswerCarriesTheSafetyHeaders(t *testing.T) {
	b := apitest.New(t)
	for _, path := range []string{"/status", "/healthz", "/openapi.json", "/nothing"} {
		h := b.Do("GET", path, "").Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
		if len(h.Get("X-Request-Id")) < 20 {
			t.Errorf("%s: no request id", path)
		}
	}
	if got := b.Do("GET", "/status", "", apitest.Header("X-Request-Id", "mine-1")).Header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("the caller's request id became %q", got)
	}
	if got := b.Do("GET", "/status", "", apitest.Header("X-Request-Id", "a b\"c")).Header.Get("X-Request-Id"); strings.Contains(got, "a b") {
		t.Errorf("a request id that is none was echoed: %q", got)
	}
}
