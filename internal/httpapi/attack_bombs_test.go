package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// bombs are small bodies that cost much if they are read carelessly.
func bombs() map[string]string {
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one, n), ",") }
	long := strings.Repeat("k", 400<<10) + `\u00e9` // an escape disables the fast path for plain text
	return map[string]string{
		"deep arrays":                     strings.Repeat("[", 500_000),
		"deep arrays, closed":             strings.Repeat("[", 250_000) + strings.Repeat("]", 250_000),
		"deep objects":                    strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_000),
		"deep in a field":                 `{"prompt":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "}",
		"a long number":                   `{"prompt":` + strings.Repeat("9", 900<<10) + "}",
		"a huge number":                   `{"priority":1e999999999,"timeout_seconds":1e999999999}`,
		"a number of many parts":          `{"priority":0.` + strings.Repeat("1", 900<<10) + "e-999999999}",
		"many members":                    "{" + many(90_000, `"aaaaaaa":1,`) + "}",
		"many elements":                   "[" + many(100_000, "1,") + "]",
		"many elements in a field":        `{"prompt":[` + many(100_000, "1,") + "]}",
		"many below a long name":          `{"` + long + `":[` + many(60_000, "1,") + "]}",
		"many members below a long name":  `{"` + long + `":{` + many(60_000, `"a":1,`) + "}}",
		"many objects below a long name":  `{"` + long + `":[` + many(60_000, `{},`) + "]}",
		"long names below long names":     strings.Repeat(`{"`+long[len(long)-25<<10:]+`":`, 31) + "[" + many(30_000, "1,") + "]" + strings.Repeat("}", 31),
		"one name twice":                  `{"prompt":"a","prompt":"b"}`,
		"one name twice in another way":   `{"prompt":"a","\u0070rompt":"b"}`,
		"names that hash alike, perhaps":  "{" + many(20_000, `"Aa":1,"BB":2,`) + "}",
		"escapes":                         `{"prompt":"` + strings.Repeat(`\u0000`, 150_000) + `"}`,
		"halves of pairs":                 `{"prompt":"` + strings.Repeat(`\ud800`, 150_000) + `"}`,
		"no UTF-8":                        `{"prompt":"` + strings.Repeat("\xff", 900<<10) + `"}`,
		"only spaces":                     strings.Repeat(" ", 1<<20),
		"a quote that never ends":         `"` + strings.Repeat("a", 1<<20-1),
		"a name that never ends":          `{"` + strings.Repeat("a", 1<<20-2),
		"a body that is compressed":       zipped(strings.Repeat(" ", 20<<20)),
		"compressed and without its name": "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 1000),
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	w.Close()
	return b.String()
}

// Every route that reads a body refuses a bomb at once, with a short message. The test fails
// for a route that reads bodies and is not tested.
func TestAttackBombsAtEveryRoute(t *testing.T) {
	all := bombs()
	tried := 0
	b, show := apitest.NewWithUsers(t) // their agents are idle
	for _, route := range api.Routes() {
		if route.Request == nil && route.Name != "mcp" {
			continue
		}
		tried++
		for name, body := range all {
			if tried > 1 && route.Name != "login" && route.Name != "mcp" && !quickBombs[name] {
				continue // the routes share one reader
			}
			path := strings.NewReplacer("{id}", idFor(b, route), "{name}", "coder", "{tool}", "search__find").Replace(route.Path)
			edits := append([]apitest.Edit{}, show["admin"]...)
			if strings.Contains(name, "compressed") {
				edits = append(edits, apitest.Header("Content-Encoding", "gzip"))
			}
			if route.Name == "report" || route.Name == "claim" || route.Name == "heartbeat" {
				edits = append([]apitest.Edit{}, show["coder"]...)
			}
			begun := time.Now()
			got := b.Do(route.Method, path, body, edits...)
			if took := time.Since(begun); took > 15*time.Second { // it once took minutes
				t.Errorf("%s: %s took %v", route.Name, name, took)
			}
			if got.StatusCode < 400 || got.StatusCode >= 500 && got.StatusCode != http.StatusNotImplemented || len(got.Body) > 4<<10 {
				t.Errorf("%s: %s: %d, %d bytes: %.200s", route.Name, name, got.StatusCode, len(got.Body), got.Body)
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d routes were tried", tried)
	}
}

// quickBombs are tried at every route, not only at the first one with the shared reader.
var quickBombs = map[string]bool{"deep in a field": true, "one name twice": true, "a body that is compressed": true}
