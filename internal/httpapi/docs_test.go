package httpapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

var update = flag.Bool("update", false, "write docs/api.md")

const docsPage = "../../docs/api.md"

// docs/api.md is made from the route table and from answers of a director.
// go test ./internal/httpapi -run TestDocs -update writes it.
func TestDocsAreWhatTheDirectorAnswers(t *testing.T) {
	head, err := os.ReadFile("testdata/api-head.md")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	page.Write(head)
	exchanges := newSession(t).exchanges
	slices.SortStableFunc(exchanges, func(a, b exchange) int { return cmp.Compare(min(len(a.title), 1), min(len(b.title), 1)) })
	described := describe(t)
	page.WriteString("## Endpoints\n\n| | | scope |\n|---|---|---|\n")
	for _, route := range api.Routes() {
		fmt.Fprintf(&page, "| [`%s %s`](#%s) | %s | %s |\n", route.Method, route.Path, route.Name, route.Summary, route.Scope)
	}
	for _, route := range api.Routes() {
		writeRoute(&page, route, described.operation(route))
		shown := 0
		for _, x := range exchanges {
			if x.route == route.Name {
				writeExchange(t, &page, x)
				shown++
			}
		}
		if shown == 0 {
			t.Errorf("route %s has no example", route.Name)
		}
	}
	if *update {
		if err := os.WriteFile(docsPage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Errorf("docs/api.md is not what the director answers; go test ./internal/httpapi -run TestDocs -update writes it\n%s", firstDifference(string(have), page.String()))
	}
}

func writeRoute(page *bytes.Buffer, route api.Route, op tree) {
	statuses := slices.Sorted(maps.Keys(op["responses"].(tree)))
	fmt.Fprintf(page, "\n<a id=%q></a>\n### `%s %s`\n\n%s. Answers %s.\n", route.Name, route.Method, route.Path, route.Summary, strings.Join(statuses, ", "))
	if len(route.Query) > 0 {
		page.WriteString("\n| parameter | in | |\n|---|---|---|\n")
	}
	for _, p := range route.Query {
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", p.Name, p.In, p.Summary)
	}
}

func writeExchange(t *testing.T, page *bytes.Buffer, x exchange) {
	t.Helper()
	if x.title != "" {
		fmt.Fprintf(page, "\n%s:\n", x.title)
	}
	fmt.Fprintf(page, "\n```http\n%s %s\n", x.request.Method, x.request.URL.RequestURI())
	for _, name := range []string{"Accept", "Last-Event-ID", "Idempotency-Key", "Prefer", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"} {
		if v := x.request.Header.Get(name); v != "" {
			fmt.Fprintf(page, "%s: %s\n", name, hidden(name, v))
		}
	}
	if x.body != "" {
		fmt.Fprintf(page, "Content-Type: application/json\n\n%s\n", pretty(t, []byte(x.body)))
	}
	fmt.Fprintf(page, "```\n```http\n%d %s\n", x.answer.StatusCode, http.StatusText(x.answer.StatusCode))
	for _, name := range []string{"X-Signalbox-Queue-Id", "Location", "Preference-Applied", "Retry-After", "Idempotency-Replayed", "Mcp-Session-Id"} {
		if v := x.answer.Header.Get(name); v != "" {
			fmt.Fprintf(page, "%s: %s\n", name, hidden(name, v))
		}
	}
	if body := shownBody(t, x); body != "" {
		fmt.Fprintf(page, "\n%s\n", body)
	}
	page.WriteString("```\n")
}

// shownBody is the form of a body on the page: long ones are cut, and only metrics that are
// the same in every run are shown.
func shownBody(t *testing.T, x exchange) string {
	t.Helper()
	if len(x.answer.Body) == 0 {
		return ""
	}
	switch x.route {
	case "openapi", "loginPage", "loginScript":
		lines := strings.SplitN(string(x.answer.Body), "\n", 9)
		return strings.Join(lines[:8], "\n") + "\n…"
	case "metrics":
		var shown []string
		for line := range strings.Lines(string(x.answer.Body)) {
			if strings.HasPrefix(line, "signalbox_queue_") || strings.HasPrefix(line, "signalbox_tasks_in") || strings.HasPrefix(line, "signalbox_agents") {
				shown = append(shown, line)
			}
		}
		return strings.Join(shown, "") + "…"
	}
	switch kind := x.answer.Header.Get("Content-Type"); {
	case strings.HasPrefix(kind, "application/json"):
		return pretty(t, x.answer.Body)
	case kind == "text/x-diff":
		return strings.TrimSuffix(string(x.answer.Body), "\n")
	case strings.HasPrefix(kind, "text/event-stream"):
		return withoutBeats(x.answer.Body)
	}
	return strings.TrimSpace(string(x.answer.Body))
}

// withoutBeats removes the beats of a stream, because their number depends on the load of
// the machine.
func withoutBeats(body []byte) string {
	return strings.TrimSpace(strings.ReplaceAll(string(body), ": alive\n\n", ""))
}

func TestDocsLeaveHeartbeatsOut(t *testing.T) {
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "text/event-stream")
	stream := []byte("retry: 1000\n\n: alive\n\nevent: progress\ndata: {}\n\n: alive\n\nevent: result\ndata: {\"text\":\"alive\"}\n\n")
	got := shownBody(t, exchange{route: "callTool", answer: apitest.Reply{Response: answer.Result(), Body: stream}})
	if want := "retry: 1000\n\nevent: progress\ndata: {}\n\nevent: result\ndata: {\"text\":\"alive\"}"; got != want {
		t.Errorf("shown as %q", got)
	}
}

func pretty(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(data), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(h) || h[i] != w[i] {
			old := "the end"
			if i < len(h) {
				old = h[i]
			}
			return fmt.Sprintf("line %d\nthe page has: %s\nit should be: %s", i+1, old, w[i])
		}
	}
	return "the page has more lines"
}

// The table of error codes on the page has the codes that handlers use.
func TestDocsNameEveryErrorCode(t *testing.T) {
	page, err := os.ReadFile("testdata/api-head.md")
	if err != nil {
		t.Fatal(err)
	}
	d := describe(t)
	codes := d.root["components"].(tree)["schemas"].(tree)["Error"].(tree)["properties"].(tree)["error"].(tree)["enum"].([]any)
	for _, code := range codes {
		if !strings.Contains(string(page), fmt.Sprintf("`%s`", code)) {
			t.Errorf("docs do not name %s", code)
		}
	}
}
