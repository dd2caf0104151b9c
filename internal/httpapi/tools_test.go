package httpapi_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestWithoutToolsTheirRoutesSaySo(t *testing.T) {
	b := newBox(t)
	for _, path := range []string{"GET /api/tools", "GET /api/tools/queues", "POST /api/tools/x/call", "POST /mcp", "GET /mcp", "DELETE /mcp"} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" {
			body = "{}"
		}
		e := b.do(method, path, body).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if !strings.Contains(e.Hint, "--tools") || !strings.Contains(e.Hint, "mcpServers") {
			t.Errorf("%s %s: %+v", method, path, e)
		}
	}
}

func TestToolsAndQueuesAreShown(t *testing.T) {
	f := newFakeTools()
	f.queues = queueStates()
	f.queues[2].Waiters = []toolqueue.Waiter{{Agent: "other", Tool: "search__find", Since: toolsSince, Position: 1, Owner: "d1"}}
	b := newBox(t, withTools(f), withToken)
	var tools api.Tools
	b.do("GET", "/api/tools", "", bearer(secret)).want(t, 200, &tools)
	if len(tools.Tools) != 3 || !tools.Tools[1].Async || tools.Tools[0].Title != "Open a page" || tools.Tools[0].TimeoutSeconds != 60 ||
		!strings.Contains(string(tools.Tools[0].InputSchema), `"required"`) || len(tools.Servers) != 2 || tools.Servers[1].Error == "" {
		t.Errorf("%+v", tools)
	}
	limited := b.token(identity.NewToken{Name: "limited", Scopes: []signalbox.Scope{signalbox.ScopeTool}, Agents: []string{"other"}})
	got := b.do("GET", "/api/tools/queues", "", bearer(limited))
	var queues api.ToolQueues
	got.want(t, 200, &queues)
	q := queues.Queues[0]
	if len(q.Holders) != 1 || q.Holders[0].Agent != "" || q.Waiters[0].Agent != "other" || q.WaitersNotShown != 1 || q.LeaseIdle != 30 || q.Holders[0].Session == "" {
		t.Errorf("%+v", q)
	}
	if strings.Contains(string(got.body), "ABCDEF") || strings.Contains(string(got.body), "s2") {
		t.Errorf("the name of a session is as good as a password: %s", got.body)
	}
	b.do("GET", "/api/tools/queues", "", bearer(secret)).want(t, 200, &queues)
	if queues.Queues[0].Holders[0].Agent != "coder" {
		t.Errorf("%+v", queues.Queues[0])
	}
	shared := queues.Queues[2]
	if !shared.Shared || shared.Holders[0].Director != "d2" || shared.Waiters[0].Director != "d1" || shared.Holders[0].Session != queues.Queues[0].Holders[0].Session {
		t.Errorf("of all directors: %+v", shared)
	}
}

func TestCallToolHandsOnArgumentsAndResultsAsTheyAre(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f))
	args := `{"z":12345678901234567890,"a":[1.50,{"b":null}],"text":"ü\n"}`
	var res api.ToolResult
	b.do("POST", "/api/tools/search__find/call", `{"arguments":`+args+`,"session":"s1"}`).want(t, 200, &res)
	if want := `{"asked":` + args + `}`; string(res.StructuredContent) != want || res.IsError {
		t.Errorf("got %s, want %s", res.StructuredContent, want)
	}
	if c := f.last(); c.Caller.Session != "named::s1" {
		t.Errorf("%+v", c.Caller)
	}
	b.do("POST", "/api/tools/search__find/call", "").want(t, 200, &res)
	if c := f.last(); len(c.Arguments) != 0 || c.Caller.Session != "" {
		t.Errorf("without a body: %+v", c)
	}
}

func TestCallToolRefusesWhatIsWrong(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f))
	for _, c := range []bad{
		{`[]`, "", "must be an object"},
		{`{"arguments":[]}`, "arguments", "must be an object, not an array"},
		{`{"arguments":"{}"}`, "arguments", "must be an object, not a string"},
		{`{"arguments":{"a":1,"a":2}}`, "arguments.a", "given twice"},
		{`{"arguments":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 41), "arguments", "nested too deep"},
		{`{"args":{}}`, "args", "not a known field"},
		{`{"session":"a\nb"}`, "X-Signalbox-Session", "printable"},
		{`{"session":"` + strings.Repeat("x", 129) + `"}`, "X-Signalbox-Session", "128"},
	} {
		e := b.do("POST", "/api/tools/search__find/call", c.body).wantError(t, 400, signalbox.CodeValidation)
		if !strings.HasPrefix(e.Field, c.field) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.80s: %+v", c.body, e)
		}
	}
	b.do("POST", "/api/tools/search__find/call", `{"session":"a"}`, header("X-Signalbox-Session", "b")).wantError(t, 400, signalbox.CodeValidation)
	b.do("POST", "/api/tools/nothing/call", `{}`).wantError(t, 404, signalbox.CodeNotFound)
	e := b.do("POST", "/api/tools/search__broken/call", `{}`).wantError(t, 502, signalbox.CodeToolFailed)
	if !strings.Contains(e.Message, "-32000: out of order") {
		t.Errorf("%+v", e)
	}
	e = b.do("POST", "/api/tools/search__full/call", `{}`).wantError(t, 503, signalbox.CodeToolQueue)
	if !e.Retryable || !strings.Contains(e.Hint, "tools queues") {
		t.Errorf("%+v", e)
	}
	if n := len(f.calls); n != 3 {
		t.Errorf("%d calls reached the gateway", n)
	}
}

// The session of a call is the one it names, else its execution's, else its
// token's; those of different callers are never the same.
func TestTheSessionOfACall(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f), withToken)
	coder := b.agent("coder", 2)
	token := b.token(identity.NewToken{Name: "c", Agent: "coder"})
	one := b.token(identity.NewToken{Name: "one", Scopes: []signalbox.Scope{signalbox.ScopeTool}})
	session := func(edits ...edit) string {
		t.Helper()
		b.do("POST", "/api/tools/search__find/call", `{}`, edits...).want(t, 200, nil)
		return f.last().Caller.Session
	}
	if got := session(bearer(one)); !strings.HasPrefix(got, "token:") {
		t.Errorf("of a token: %q", got)
	}
	if a, b := session(bearer(one), header("X-Signalbox-Session", "x")), session(bearer(secret), header("X-Signalbox-Session", "x")); a == b || !strings.HasSuffix(a, ":x") {
		t.Errorf("the same name of two callers: %q, %q", a, b)
	}
	if got := session(bearer(token)); !strings.HasPrefix(got, "token:") {
		t.Errorf("an agent that runs nothing: %q", got)
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, bearer(secret)).want(t, 201, nil)
	task := b.work(coder)
	if got := session(bearer(token)); got != "execution:"+task.ID || f.last().Caller.Agent != "coder" {
		t.Errorf("the only execution: %+v", f.last().Caller)
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, bearer(secret)).want(t, 201, nil)
	second := b.work(coder)
	if got := session(bearer(token)); got != "" {
		t.Errorf("two executions, and none is named: %q", got)
	}
	if got := session(bearer(token), header("X-Signalbox-Execution", second.ID)); got != "execution:"+second.ID {
		t.Errorf("the one that is named: %q", got)
	}
	path := "/api/tools/search__find/call"
	b.do("POST", path, `{}`, bearer(token), header("X-Signalbox-Execution", "queue-00000000000000000000000000")).wantError(t, 403, signalbox.CodeForbidden)
	b.do("POST", path, `{}`, bearer(one), header("X-Signalbox-Execution", task.ID)).wantError(t, 403, signalbox.CodeForbidden)
	b.do("POST", path, `{}`, bearer(one), header("X-Source-Agent", "coder")).wantError(t, 403, signalbox.CodeForbidden)
	b.do("POST", "/mcp", `{}`, bearer(one), header("X-Signalbox-Execution", task.ID)).wantError(t, 403, signalbox.CodeForbidden)
}

func TestACallerThatGoesAwayEndsItsCall(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		f := newFakeTools()
		b := newBox(t, withTools(f))
		a := b.ask("POST", "/api/tools/browser__open/call", `{}`, header("Accept", accept))
		<-f.came
		a.leave()
		<-f.gone
	}
}

func TestACallAsAStream(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f)).serve()
	resp := b.stream("POST", "/api/tools/browser__open/call", `{"arguments":{"url":"about:blank"}}`)
	lines := bufio.NewScanner(resp.Body)
	want(t, lines, "event: progress", `"position":2`)
	<-f.came
	f.goOn <- struct{}{}
	want(t, lines, "event: result", `"text":"opened"`)
	if lines.Scan(); lines.Text() != "" || lines.Scan() {
		t.Errorf("after the result: %q", lines.Text())
	}
	resp = b.stream("POST", "/api/tools/search__broken/call", `{}`)
	lines = bufio.NewScanner(resp.Body)
	want(t, lines, "event: error", `"tool_failed"`)
	for lines.Scan() { // to the end, which comes when the handler has returned
	}
	if n := b.dir.Streams(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
}

// A stop ends calls; their callers are told to come back.
func TestAStopEndsCalls(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f))
	a := b.ask("POST", "/api/tools/browser__open/call", `{}`)
	<-f.came
	b.dir.Stop()
	e := a.answer().wantError(t, 503, signalbox.CodeUnavailable)
	if e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
}

// A token that is revoked ends what was begun with it.
func TestARevokedTokenEndsItsCalls(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f), withToken)
	known, token, err := b.id.CreateToken(t.Context(), identity.NewToken{Name: "one", Scopes: []signalbox.Scope{signalbox.ScopeTool}})
	if err != nil {
		t.Fatal(err)
	}
	a := b.ask("POST", "/api/tools/browser__open/call", `{}`, bearer(token))
	<-f.came
	if _, err := b.id.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	<-f.gone
	a.answer().wantError(t, 401, signalbox.CodeUnauthorized)
}

// Arguments may be as long over HTTP as they may over MCP.
func TestToolCallsTakeLongArguments(t *testing.T) {
	b, f := newToolBox(t)
	const call = "/api/tools/search__find/call"
	long := `{"arguments":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`
	b.do("POST", call, long).want(t, 200, nil)
	b.do("POST", reportPath, long).want(t, 201, nil)
	if n := len(f.last().Arguments); n < 3<<20 {
		t.Errorf("%d bytes of arguments", n)
	}
	for _, path := range []string{call, reportPath} {
		e := b.do("POST", path, `{"arguments":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`).wantError(t, 413, signalbox.CodeTooLarge)
		if !strings.Contains(e.Message, "4194304 bytes") {
			t.Errorf("%+v", e)
		}
	}
	b.do("POST", "/api/queue/task", `{"prompt":"`+strings.Repeat("x", 1<<20)+`"}`).wantError(t, 413, signalbox.CodeTooLarge)
}

func TestMCPPassesTheGateAndHasItsOwnRules(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f), withToken).serve()
	b.do("POST", "/mcp", `{}`).wantError(t, 401, signalbox.CodeUnauthorized)
	b.do("POST", "/mcp", "{}", bearer(secret), header("Content-Type", "text/plain")).wantError(t, 415, signalbox.CodeUnsupportedMedia)
	b.do("POST", "/mcp", strings.Repeat(" ", 4<<20+1), bearer(secret)).wantError(t, 413, signalbox.CodeTooLarge)
	b.do("POST", "/mcp?x=1", "{}", bearer(secret)).wantError(t, 400, signalbox.CodeValidation)
	b.do("POST", "/mcp", "{}", bearer(secret), header("Origin", "http://example.com")).wantError(t, 403, signalbox.CodeForbidden)
	accept := header("Accept", "application/json, text/event-stream")
	for _, body := range []string{"{", "[]", "null", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `"x"`} {
		if got := b.do("POST", "/mcp", body, bearer(secret), accept); got.StatusCode < 400 || got.StatusCode >= 500 {
			t.Errorf("%s: %d %s", body, got.StatusCode, got.body)
		}
	}
	// arguments of half a MiB and more than 32 levels: the tool's business
	deep := strings.Repeat(`{"a":`, 100) + `"` + strings.Repeat("x", 2<<20) + `"` + strings.Repeat(`}`, 100)
	got := b.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search__find","arguments":`+deep+`,"_meta":`+modernMeta+`}}`,
		bearer(secret), accept, header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "tools/call"), header("Mcp-Name", "search__find"))
	if got.StatusCode != 200 || !strings.Contains(string(got.body), "3 documents") {
		t.Errorf("%d %.300s", got.StatusCode, got.body)
	}
	if c := f.last(); c.Caller.Principal == "" && c.Caller.Session == "" {
		t.Errorf("%+v", c.Caller)
	}
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"example","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestAGatewayAloneHasToolsAndNothingElse(t *testing.T) {
	f := newFakeTools()
	b := newBox(t, withTools(f), func(o *options) { o.director.ToolsOnly = true })
	for _, path := range []string{"/api/tools", "/api/tools/queues", "/healthz", "/readyz", "/openapi.json", "/api/me", "/metrics"} {
		b.do("GET", path, "").want(t, 200, nil)
	}
	for _, path := range []string{"/status", "/api/queue", "/api/agents", "/login"} {
		e := b.do("GET", path, "").wantError(t, 404, signalbox.CodeNotFound)
		if !strings.Contains(e.Message, "gateway alone") {
			t.Errorf("%s: %+v", path, e)
		}
	}
	var described struct{ Paths map[string]json.RawMessage }
	b.do("GET", "/openapi.json", "").want(t, 200, &described)
	if len(described.Paths) != 16 || described.Paths["/api/queue"] != nil {
		t.Errorf("%d paths are described", len(described.Paths))
	}
	// It knows no agents: what callers say of theirs is taken as they say it.
	b.do("POST", "/api/tools/search__find/call", `{}`, header("X-Source-Agent", "coder"), header("X-Signalbox-Execution", "queue-00000000000000000000000000")).want(t, 200, nil)
	if c := f.last().Caller; c.Agent != "coder" || c.Session != "execution:queue-00000000000000000000000000" {
		t.Errorf("%+v", c)
	}
}

// want reads an event: its name, and something that stands in its data.
func want(t *testing.T, lines *bufio.Scanner, name, part string) {
	t.Helper()
	for lines.Scan() {
		if lines.Text() != name {
			continue
		}
		lines.Scan()
		if !strings.Contains(lines.Text(), part) {
			t.Fatalf("%s: %s", name, lines.Text())
		}
		return
	}
	t.Fatalf("the stream ended before %s: %v", name, lines.Err())
}

// stream asks a director that is served for a stream.
func (b *box) stream(method, path, body string, edits ...edit) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for _, f := range edits {
		f(r)
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

var _ httpapi.Tools = (*fakeTools)(nil)
