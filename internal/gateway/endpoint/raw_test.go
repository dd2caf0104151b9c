package endpoint_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
)

type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request unchanged. Accept and Content-Type are valid unless
// overridden.
func (r *fixture) send(method, body string, headers ...string) reply {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

// open begins a session of the older protocol and returns its ID.
func (r *fixture) open(headers ...string) string {
	r.t.Helper()
	got := r.send("POST", initialize, headers...)
	if got.status != 200 || got.header.Get("Mcp-Session-Id") == "" {
		r.t.Fatalf("%+v", got)
	}
	return got.header.Get("Mcp-Session-Id")
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// ask sends a request in either era and returns the whole answer.
func (r *fixture) ask(version, method, params string) string {
	r.t.Helper()
	if version != modern {
		got := r.send("POST", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`}}`, "Mcp-Session-Id", r.open())
		return data(r.t, got)
	}
	return data(r.t, r.sendModern(method, params, ""))
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}`

// metaOf is the _meta that a modern client sends with each request, plus
// more. It declares no capabilities, unless more does.
func metaOf(more string) string {
	if !strings.Contains(more, "clientCapabilities") {
		more += `,"io.modelcontextprotocol/clientCapabilities":{}`
	}
	return modernMeta + more
}

func (r *fixture) sendModern(method, params, meta string, headers ...string) reply {
	if params != "" {
		params += ","
	}
	name := ""
	if _, rest, ok := strings.Cut(params, `"name":"`); ok {
		name, _, _ = strings.Cut(rest, `"`)
	}
	headers = append([]string{"Mcp-Protocol-Version", modern, "Mcp-Method", method, "Mcp-Name", name}, headers...)
	return r.send("POST", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+params+`"_meta":{`+metaOf(meta)+`}}}`, headers...)
}

// data returns the data of the last event of an answer.
func data(t *testing.T, got reply) string {
	t.Helper()
	at := strings.LastIndex(got.body, "data: ")
	if got.status != 200 || at < 0 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return strings.TrimSpace(got.body[at+len("data: "):])
}

// Answers of upstreams pass through byte for byte: numbers beyond a float64,
// unknown fields and kinds of content, and text that JSON encoders tend to
// escape.
func TestDefinitionsAndResultsPassUnchanged(t *testing.T) {
	definition := `{"name":"s__raw","title":"<raw> & \"so\"","inputSchema":{"type":"object","properties":{"n":{"const":12345678901234567890}},"$defs":{"x":true},"x-unknown":[1.0,1e400]},"annotations":{"readOnlyHint":true,"odd":null},"execution":{"taskSupport":"optional"},"x-more":{"z":1,"a":2}}`
	content := `[{"type":"hologram","n":12345678901234567890,"t":"a<b>&c\u2028"},{"type":"text","text":"x","annotations":{"priority":0.10}},{"type":"resource_link","uri":"file:///x"}]`
	structured := `{"big":123456789012345678901234567890,"z":1.000,"a":[]}`
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{Version: "9"}, func(s *scripted) {
			s.add("s__raw", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
				return gateway.Result{Content: json.RawMessage(content), Structured: json.RawMessage(structured), Meta: json.RawMessage(`{"example.com/n":12345678901234567890}`), IsError: true}, nil
			})
			s.tools[len(s.tools)-1].Definition = json.RawMessage(definition)
		})
		if list := r.ask(version, "tools/list", ""); !strings.Contains(list, definition) {
			t.Errorf("the list is\n%s\nand lacks\n%s", list, definition)
		}
		res := r.ask(version, "tools/call", `"name":"s__raw"`)
		for _, want := range []string{`"content":` + content, `"structuredContent":` + structured, `"isError":true`, `"example.com/n":12345678901234567890`} {
			if !strings.Contains(res, want) {
				t.Errorf("the result is\n%s\nand lacks\n%s", res, want)
			}
		}
		if has := strings.Contains(res, `"resultType":"complete"`); has != (version == modern) {
			t.Errorf("%s: %s", version, res)
		}
	})
}

func TestArgumentsPassUnchanged(t *testing.T) {
	args := `{"z":12345678901234567890,"a":[1.50,{"b":null}],"t":"<>&"}`
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{})
		if res := r.ask(version, "tools/call", `"name":"s__echo","arguments":`+args); !strings.Contains(res, `"structuredContent":`+args) {
			t.Error(res)
		}
	})
	r := newFixture(t, endpoint.Options{})
	got := data(t, r.sendModern("tools/call", `"name":"s__echo"`, `,"example.com/trace":"t1","progressToken":"p"`))
	if !strings.Contains(got, `"example.com/trace":"t1"`) || strings.Contains(got, "clientCapabilities") || strings.Contains(got, "progressToken") {
		t.Errorf("the upstream got this _meta: %s", got)
	}
}

// Naming another client's session or request has no effect.
func TestForgedHeaders(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	id := r.open(principalHeader, "user:anna")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, method := range []string{"POST", "GET", "DELETE"} {
		for _, who := range []string{"user:ben", ""} {
			if got := r.send(method, map[string]string{"POST": list}[method], "Mcp-Session-Id", id, principalHeader, who); got.status != 404 {
				t.Errorf("%s of %q: %+v", method, who, got)
			}
		}
	}
	if got := r.send("POST", list, "Mcp-Session-Id", id, principalHeader, "user:anna"); got.status != 200 {
		t.Errorf("its owner: %+v", got)
	}
	if got := r.send("POST", list, "Mcp-Session-Id", "no-such-session"); got.status != 404 || !strings.Contains(got.body, "initialize") {
		t.Errorf("%+v", got)
	}
	// While another caller's call is in flight, its request key cannot be forged.
	holder := r.connect(modern, principalHeader, "user:anna", "Test-Session", "of-anna")
	done := holder.call(t.Context(), "s__hold", nil)
	anna := testkit.Receive(t, "the call runs", r.script.came)
	if anna.Caller.Session != "of-anna" || anna.Caller.Principal != "user:anna" {
		t.Errorf("%+v", anna.Caller)
	}
	r.script.add("s__who", "default", func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		return gateway.Result{Content: json.RawMessage(fmt.Sprintf(`[{"type":"text","text":%q}]`, c.Caller.Principal))}, nil
	})
	r.script.offer(r.script.Tools())
	for key := range 40 {
		got := r.sendModern("tools/call", `"name":"s__who"`, "", principalHeader, "user:ben", "X-Signalbox-Request", fmt.Sprintf("%x", key))
		if !strings.Contains(got.body, "user:ben") {
			t.Fatalf("%+v", got)
		}
	}
	r.script.goOn <- struct{}{}
	if err := testkit.Receive(t, "the call ends", done); err != nil {
		t.Error(err)
	}
}

func TestHostileRequests(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	id := r.open()
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for name, c := range map[string]struct {
		method, body string
		headers      []string
		status       int
	}{
		"no JSON":              {"POST", "{", nil, 400},
		"empty":                {"POST", "", []string{"Content-Type", "application/json"}, 400},
		"an empty batch":       {"POST", "[]", nil, 400},
		"a batch, too new":     {"POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, []string{"Mcp-Protocol-Version", "2025-06-18"}, 400},
		"a batch, modern":      {"POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, []string{"Mcp-Protocol-Version", modern}, 400},
		"an unknown method":    {"POST", `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, nil, 400},
		"too deep":             {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo","arguments":{"a":` + deep + `}}}`, nil, 400},
		"a name given twice":   {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__other","arguments":{},"name":"s__echo"}}`, nil, 400},
		"the same, modern":     {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, []string{"Mcp-Protocol-Version", modern}, 400},
		"too large":            {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", endpoint.MaxBody) + `"}}`, nil, 413},
		"Accept is wrong":      {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Accept", "application/json"}, 400},
		"no JSON type":         {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Content-Type", "text/plain"}, 415},
		"a version of old":     {"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400},
		"a version to come":    {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`, []string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, 400},
		"PUT":                  {"PUT", "{}", nil, 405},
		"GET of the modern":    {"GET", "", []string{"Mcp-Protocol-Version", modern}, 405},
		"DELETE of the modern": {"DELETE", "", []string{"Mcp-Protocol-Version", modern}, 405},
		"resumption":           {"GET", "", []string{"Last-Event-ID", "x_1"}, 400},
	} {
		got := r.send(c.method, c.body, append([]string{"Mcp-Session-Id", id}, c.headers...)...)
		if got.status != c.status {
			t.Errorf("%s: %d, want %d: %.200s", name, got.status, c.status, got.body)
		}
	}
	// The session still works after all of these.
	if got := r.send("POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", id); got.status != 200 {
		t.Errorf("%+v", got)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if got := r.send(method, ""); got.status != 400 {
			t.Errorf("%s without a session: %+v", method, got)
		}
	}
}

// In the versions with batches, each call of a batch counts.
func TestBatch(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	id := r.open()
	got := r.send("POST", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo","arguments":{"n":1}}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__echo","arguments":{"n":2}}}]`,
		"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-03-26")
	if got.status != 200 || !strings.Contains(got.body, `{"n":1}`) || !strings.Contains(got.body, `{"n":2}`) {
		t.Errorf("%+v", got)
	}
}

// A second initialize of a session is refused, and the session survives.
func TestInitializeTwiceIsRefused(t *testing.T) {
	r := newFixture(t, endpoint.Options{MaxSessions: 1})
	id := r.open()
	if got := r.send("POST", initialize, "Mcp-Session-Id", id); !strings.Contains(got.body, "duplicate") {
		t.Errorf("%+v", got)
	}
	if got := r.send("DELETE", "", "Mcp-Session-Id", id); got.status != 204 {
		t.Errorf("%+v", got)
	}
	testkit.Receive(t, "the session ends", r.script.ended)
	if len(r.script.ended) > 0 {
		t.Error("it ended twice")
	}
	r.open()
}

// The write deadline stays with the connection, so every answer sets its own,
// even an answer without a body.
func TestWriteDeadlinePerAnswer(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	id := r.open()
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	q := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	q.Header.Set("Mcp-Session-Id", id)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	r.endpoint.ServeHTTP(w, q)
	if w.Code != 202 || w.atHeader.Before(time.Now()) {
		t.Errorf("status %d with the deadline %v", w.Code, w.atHeader)
	}
}

// deadlined records the deadline at the time a header is written.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline, atHeader time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error { d.deadline = t; return nil }
func (d *deadlined) WriteHeader(status int) {
	d.atHeader = d.deadline
	d.ResponseRecorder.WriteHeader(status)
}

// The number of sessions is bounded. A session in use is never evicted.
func TestSessionsAreBounded(t *testing.T) {
	r := newFixture(t, endpoint.Options{MaxSessions: 3, MaxPerPrincipal: 2})
	anna := []string{principalHeader, "user:anna"}
	r.open(anna...)
	r.open(anna...)
	got := r.send("POST", initialize, anna...)
	if !strings.Contains(got.body, "you have 2 MCP sessions open") {
		t.Errorf("%+v", got)
	}
	r.open(principalHeader, "user:ben")
	if got := r.send("POST", initialize, principalHeader, "user:carl"); !strings.Contains(got.body, "3 MCP sessions are open") {
		t.Errorf("%+v", got)
	}
	if _, err := r.tryConnect("2025-06-18", principalHeader, "user:carl"); err == nil || !strings.Contains(err.Error(), "3 MCP sessions are open") {
		t.Errorf("a client of the SDK got: %v", err)
	}
}

// An idle session ends by itself, or sooner if its place is needed, but not
// while its client listens or calls.
func TestIdleSessionsEnd(t *testing.T) {
	r := newFixture(t, endpoint.Options{SessionIdle: 50 * time.Millisecond, MaxPerPrincipal: 1})
	anna := []string{principalHeader, "user:anna"}
	id := r.open(anna...)
	testkit.Receive(t, "the idle session ends", r.script.ended)
	if got := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id, anna[0], anna[1]); got.status != 404 {
		t.Errorf("%+v", got)
	}
	busy := r.connect("2025-06-18", anna...)
	done := busy.call(t.Context(), "s__hold", nil)
	testkit.Receive(t, "the call runs", r.script.came)
	if got := r.send("POST", initialize, anna...); !strings.Contains(got.body, "you have 1 MCP sessions open") {
		t.Errorf("%+v", got)
	}
	time.Sleep(200 * time.Millisecond) // four times its idle time
	r.script.goOn <- struct{}{}
	if err := testkit.Receive(t, "the call ends", done); err != nil {
		t.Error(err)
	}
}

// A long call sends comments as keep-alives until its answer. After the first
// comment an error becomes an event instead of a status.
func TestLongCallSendsKeepAlives(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		goOn := make(chan struct{})
		r := newFixture(t, endpoint.Beating(20*time.Millisecond), func(s *scripted) {
			s.add("s__long", "default", func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
				<-goOn
				return gateway.Result{}, &gateway.ProtocolError{Code: -32602, Message: "no such page"}
			})
		})
		time.AfterFunc(150*time.Millisecond, func() { close(goOn) })
		res := r.ask(version, "tools/call", `"name":"s__long"`)
		if !strings.Contains(res, `"no such page"`) {
			t.Error(res)
		}
	})
	r := newFixture(t, endpoint.Beating(20*time.Millisecond))
	time.AfterFunc(150*time.Millisecond, func() { r.script.goOn <- struct{}{} })
	got := r.sendModern("tools/call", `"name":"s__hold"`, "")
	<-r.script.came
	if strings.Count(got.body, ": alive\n\n") < 3 || !strings.Contains(got.body, "held") {
		t.Errorf("%+v", got)
	}
}
