package dashboard_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/dashboard"
)

var pages = sync.OnceValue(dashboard.New)

// ask sends a request to the pages; headers are pairs of name and value.
func ask(t *testing.T, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	pages().ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, body io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// asset returns the address of an asset from the document.
func asset(t *testing.T, name string) string {
	t.Helper()
	document := text(t, ask(t, "GET", "/ui/").Body)
	base := regexp.MustCompile(`/ui/assets/[0-9a-f]{16}/`).FindString(document)
	if base == "" {
		t.Fatalf("the document names no assets:\n%s", document)
	}
	return base + name
}

func TestEveryPathIsThePage(t *testing.T) {
	first := text(t, ask(t, "GET", "/ui/").Body)
	for _, target := range []string{"/ui/tasks", "/ui/tasks/queue-1", "/ui/tasks?q=agent%3Acoder", "/ui/nothing/of/the/kind", "/ui/assets"} {
		a := ask(t, "GET", target)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" || a.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s answers %d, %v", target, a.StatusCode, a.Header)
		}
		if text(t, a.Body) != first {
			t.Errorf("%s is another document", target)
		}
	}
	if strings.Contains(first, "ASSETS") || strings.Contains(first, "PRELOAD") {
		t.Errorf("a mark was not filled in:\n%s", first)
	}
}

// All files that the document names exist, and it names all modules that the first one
// imports.
func TestTheDocumentNamesWhatIsThere(t *testing.T) {
	preloads := 0
	for _, address := range namedBy(t, "/ui/") {
		if a := ask(t, "GET", address); a.StatusCode != 200 {
			t.Errorf("%s answers %d", address, a.StatusCode)
		}
		if strings.Contains(address, "/lib/") || strings.Contains(address, "/vendor/htm/") {
			preloads++
		}
	}
	if preloads < 5 {
		t.Errorf("only %d modules are told of in advance", preloads)
	}
}

func namedBy(t *testing.T, page string) (addresses []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(text(t, ask(t, "GET", page).Body), -1) {
		addresses = append(addresses, m[1])
	}
	return addresses
}

func TestAssetsAreKeptForEver(t *testing.T) {
	for name, media := range map[string]string{
		"main.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"vendor/xterm/xterm.mjs": "text/javascript; charset=utf-8", "vendor/htm/LICENSE.txt": "text/plain; charset=utf-8",
	} {
		a := ask(t, "GET", asset(t, name))
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != media {
			t.Errorf("%s: %d, %s", name, a.StatusCode, a.Header.Get("Content-Type"))
		}
		if got := a.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
	}
}

func TestUnknownAssetsAreNotFound(t *testing.T) {
	base := strings.TrimSuffix(asset(t, ""), "/")
	for _, target := range []string{
		"/ui/assets/0123456789abcdef/main.js", base + "/none.js", base + "/", base + "/index.html", base + "/README.md",
		"/ui/assets/", "/ui/assets/main.js", base + "/../../../etc/passwd",
	} {
		a := ask(t, "GET", target)
		if a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s answers %d, Cache-Control %q", target, a.StatusCode, a.Header.Get("Cache-Control"))
		}
	}
}

func TestGzip(t *testing.T) {
	target := asset(t, "main.js")
	plain := ask(t, "GET", target)
	want := text(t, plain.Body)
	for accept, packed := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "*": true, "*;q=0": false, "identity": false, "gzip;q=0, *": false, "GZIP": true, "gzip;q=what": false,
	} {
		a := ask(t, "GET", target, "Accept-Encoding", accept)
		if a.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: Vary is %q", accept, a.Header.Get("Vary"))
		}
		body := io.Reader(a.Body)
		if got := a.Header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%q: gzip is %v", accept, got)
			continue
		}
		if packed {
			z, err := gzip.NewReader(a.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
			if a.Header.Get("ETag") == plain.Header.Get("ETag") {
				t.Errorf("%q: both forms have one ETag", accept)
			}
		}
		if text(t, body) != want {
			t.Errorf("%q: other content", accept)
		}
	}
}

func TestNotModified(t *testing.T) {
	for _, target := range []string{"/ui/tasks", asset(t, "style.css")} {
		tag := ask(t, "GET", target).Header.Get("ETag")
		for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			a := ask(t, "GET", target, "If-None-Match", header)
			if a.StatusCode != 304 || text(t, a.Body) != "" || a.Header.Get("ETag") != tag || a.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s with %s: %d, %v", target, header, a.StatusCode, a.Header)
			}
		}
		if a := ask(t, "GET", target, "If-None-Match", `"other"`); a.StatusCode != 200 {
			t.Errorf("%s with another tag: %d", target, a.StatusCode)
		}
	}
}

func TestHeadAndOtherMethods(t *testing.T) {
	for _, target := range []string{"/ui/", asset(t, "main.js")} {
		a := ask(t, "HEAD", target)
		if length := a.Header.Get("Content-Length"); a.StatusCode != 200 || text(t, a.Body) != "" || length == "" || length == "0" {
			t.Errorf("HEAD %s: %d, %v", target, a.StatusCode, a.Header)
		}
		if a := ask(t, "POST", target); a.StatusCode != 405 || a.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", target, a.StatusCode)
		}
	}
}

// The policy keeps an agent's output from becoming code, whatever mistake a page makes. It
// is also sent with the worker's script, to which it applies.
func TestPolicy(t *testing.T) {
	for _, target := range []string{"/ui/", asset(t, "worker.js"), "/ui/assets/none.js"} {
		h := ask(t, "GET", target).Header
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "worker-src 'self'", "base-uri 'none'",
			"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types signalbox",
		} {
			if !strings.Contains(policy+";", want+";") {
				t.Errorf("%s: the policy lacks %s: %s", target, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy is loose: %s", target, policy)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", target, h)
		}
	}
}

// The first page takes less than 150 KB over the wire: the document, its styles, all
// modules that the frame and the page Now import, the worker and the chart library.
func TestFirstPageIsSmall(t *testing.T) {
	const most = 150_000
	seen := map[string]bool{}
	sum := size(t, "/ui/")
	for _, address := range namedBy(t, "/ui/") {
		sum += sizeOfAll(t, address, seen)
	}
	for _, name := range []string{"pages/now.js", "pages/now.css", "vendor/uplot/uPlot.iife.min.js", "vendor/uplot/uPlot.min.css", "worker.js"} {
		sum += sizeOfAll(t, asset(t, name), seen)
	}
	t.Logf("the first page: %d bytes in %d answers", sum, len(seen)+1)
	if sum > most {
		t.Errorf("the first page has %d bytes over the wire; at most %d are allowed", sum, most)
	}
}

var imported = regexp.MustCompile(`(?m)^(?:import|export)\b[^;"']*?["'](\.[^"']+)["']`)

// sizeOfAll is the size of an asset and of all modules that it imports, each counted
// once.
func sizeOfAll(t *testing.T, address string, seen map[string]bool) int {
	t.Helper()
	if seen[address] {
		return 0
	}
	seen[address] = true
	sum := size(t, address)
	if path.Ext(address) == ".js" {
		for _, m := range imported.FindAllStringSubmatch(text(t, ask(t, "GET", address).Body), -1) {
			sum += sizeOfAll(t, path.Join(path.Dir(address), m[1]), seen)
		}
	}
	return sum
}

// size is the size of an answer over the wire, with 700 bytes for its headers.
func size(t *testing.T, address string) int {
	t.Helper()
	a := ask(t, "GET", address, "Accept-Encoding", "gzip")
	if a.StatusCode != 200 {
		t.Errorf("%s answers %d", address, a.StatusCode)
	}
	return len(text(t, a.Body)) + 700
}
