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
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestWithoutToolsTheirRoutesSaySo(t *testing.T) {
	b := apitest.New(t)
	for _, path := range []string{"GET /api/tools", "GET /api/tools/queues", "POST /api/tools/x/call", "POST /mcp", "GET /mcp", "DELETE /mcp"} {
		method, path, _ := strings.Cut(path, " ")
		body := ""
		if method == "POST" {
			body = "{}"
		}
		e := b.Do(method, path, body).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if !strings.Contains(e.Hint, "--tools") || !strings.Contains(e.Hint, "mcpServers") {
			t.Errorf("%s %s: %+v", method, path, e)
		}
	}
}

func TestToolsAndQueuesAreShown(t *testing.T) {
	f := apitest.NewTools()
	f.Statuses = apitest.QueueStates()
	f.Statuses[2].Waiters = []toolqueue.Waiter{{Agent: "other", Tool: "search__find", Since: apitest.ToolsSince, Position: 1, Owner: "d1"}}
	b := apitest.New(t, apitest.WithTools(f), apitest.WithToken)
	var tools api.Tools
	b.Do("GET", "/api/tools", "", apitest.Bearer(apitest.Secret)).Want(t, 200, &tools)
	if len(tools.Tools) != 3 || !tools.Tools[1].Async || tools.Tools[0].Title != "Open a page" || tools.Tools[0].TimeoutSeconds != 60 ||
		!strings.Contains(string(tools.Tools[0].InputSchema), `"required"`) || len(tools.Servers) != 2 || tools.Servers[1].Error == "" {
		t.Errorf("%+v", tools)
	}
	limited := b.AddToken(identity.NewToken{Name: "limited", Scopes: []signalbox.Scope{signalbox.ScopeTool}, Agents: []string{"other"}})
	got := b.Do("GET", "/api/tools/queues", "", apitest.Bearer(limited))
	var queues api.ToolQueues
	got.Want(t, 200, &queues)
	q := queues.Queues[0]
	if len(q.Holders) != 1 || q.Holders[0].Agent != "" || q.Waiters[0].Agent != "other" || q.WaitersNotShown != 1 || q.LeaseIdle != 30 || q.Holders[0].Session == "" {
		t.Errorf("%+v", q)
	}
	if strings.Contains(string(got.Body), "ABCDEF") || strings.Contains(string(got.Body), "s2") {
		t.Errorf("the name of a session is as good as a password: %s", got.Body)
	}
	b.Do("GET", "/api/tools/queues", "", apitest.Bearer(apitest.Secret)).Want(t, 200, &queues)
	if queues.Queues[0].Holders[0].Agent != "coder" {
		t.Errorf("%+v", queues.Queues[0])
	}
	shared := queues.Queues[2]
	if !shared.Shared || shared.Holders[0].Director != "d2" || shared.Waiters[0].Director != "d1" || shared.Holders[0].Session != queues.Queues[0].Holders[0].Session {
		t.Errorf("of all directors: %+v", shared)
	}
}

func TestRateOfToolQueueIsSetAndItIsOpened(t *testing.T) {
	f := apitest.NewTools()
	f.Statuses = apitest.QueueStates()
	b := apitest.New(t, apitest.WithTools(f))
	const path = "/api/tools/queues/default"
	set := func(body string) (got api.ToolQueueSet) {
		t.Helper()
		b.Do("PUT", path, body).Want(t, 200, &got)
		return got
	}
	if got := set(`{"rate":{"n":10,"per_seconds":60}}`); got.RateBefore != nil || got.Before != 64 || got.Queue.Concurrent != 64 || got.Queue.Rate == nil || *got.Queue.Rate != (api.ToolRate{N: 10, PerSeconds: 60, Burst: 1}) {
		t.Errorf("%+v", got)
	}
	if got := set(`{"concurrent":3,"rate":{"n":5,"per_seconds":0.5,"burst":7}}`); *got.RateBefore != (api.ToolRate{N: 10, PerSeconds: 60, Burst: 1}) || got.Queue.Concurrent != 3 || got.Queue.Rate.PerSeconds != 0.5 || got.Queue.Rate.Burst != 7 {
		t.Errorf("%+v", got)
	}
	for body, field := range map[string]string{
		`{}`: "concurrent", `{"concurrent":-1,"rate":{"n":0}}`: "concurrent", `{"rate":{"n":-1,"per_seconds":1}}`: "rate", `{"rate":{"n":1}}`: "rate",
		`{"rate":{"n":0,"per_seconds":1}}`: "rate", `{"rate":{"n":1,"per_seconds":-1}}`: "rate.per_seconds", `{"rate":{"n":1,"per_seconds":1e300}}`: "rate.per_seconds",
		`{"rate":{"n":1,"per_seconds":1e-9}}`: "rate", `{"rate":{"n":1000001,"per_seconds":1}}`: "rate", `{"rate":{"n":1,"per_seconds":1,"burst":-1}}`: "rate",
		`{"rate":{"n":1,"per_seconds":2678400,"burst":1000000}}`: "rate", `{"rate":{"n":"1","per_seconds":1}}`: "rate.n", `{"rate":null,"x":1}`: "x",
	} {
		if e := b.Do("PUT", path, body).WantError(t, 400, signalbox.CodeValidation); e.Field != field {
			t.Errorf("%s: %+v", body, e)
		}
	}
	if got := set(`{"rate":{"n":0}}`); got.RateBefore.N != 5 || got.Queue.Rate != nil || got.Queue.Concurrent != 3 {
		t.Errorf("%+v", got)
	}
	f.Statuses[1].Limits = []toolqueue.Limit{{Closed: toolqueue.Closing{Until: apitest.ToolsSince}}}
	for _, want := range []int{1, 0} {
		var got api.ToolQueueOpened
		if b.Do("POST", path+"/open", "").Want(t, 200, &got); got.Opened != want || got.Queue.Name != "default" || got.Queue.Closed != nil {
			t.Errorf("%+v", got)
		}
	}
	b.Do("POST", "/api/tools/queues/defalt/open", "").WantError(t, 404, signalbox.CodeNotFound)
}

func TestCallToolHandsOnArgumentsAndResultsAsTheyAre(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f))
	args := `{"z":12345678901234567890,"a":[1.50,{"b":null}],"text":"ü\n"}`
	var res api.ToolResult
	b.Do("POST", "/api/tools/search__find/call", `{"arguments":`+args+`,"session":"s1"}`).Want(t, 200, &res)
	if want := `{"asked":` + args + `}`; string(res.StructuredContent) != want || res.IsError {
		t.Errorf("got %s, want %s", res.StructuredContent, want)
	}
	if c := f.LastCall(); c.Caller.Session != "named::s1" {
		t.Errorf("%+v", c.Caller)
	}
	b.Do("POST", "/api/tools/search__find/call", "").Want(t, 200, &res)
	if c := f.LastCall(); len(c.Arguments) != 0 || c.Caller.Session != "" {
		t.Errorf("without a body: %+v", c)
	}
}

func TestCallToolRefusesWhatIsWrong(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f))
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
		e := b.Do("POST", "/api/tools/search__find/call", c.body).WantError(t, 400, signalbox.CodeValidation)
		if !strings.HasPrefix(e.Field, c.field) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%.80s: %+v", c.body, e)
		}
	}
	b.Do("POST", "/api/tools/search__find/call", `{"session":"a"}`, apitest.Header("X-Signalbox-Session", "b")).WantError(t, 400, signalbox.CodeValidation)
	b.Do("POST", "/api/tools/nothing/call", `{}`).WantError(t, 404, signalbox.CodeNotFound)
	e := b.Do("POST", "/api/tools/search__broken/call", `{}`).WantError(t, 502, signalbox.CodeToolFailed)
	if !strings.Contains(e.Message, "-32000: out of order") {
		t.Errorf("%+v", e)
	}
	e = b.Do("POST", "/api/tools/search__full/call", `{}`).WantError(t, 503, signalbox.CodeToolQueue)
	if !e.Retryable || !strings.Contains(e.Hint, "tools queues") {
		t.Errorf("%+v", e)
	}
	if n := len(f.Calls); n != 3 {
		t.Errorf("%d calls reached the gateway", n)
	}
}

// The session of a call is the named one, else that of its execution, else that of its token.
// Sessions of different callers are never the same.
func TestTheSessionOfACall(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f), apitest.WithToken)
	coder := b.AddAgent("coder", 2)
	token := b.AddToken(identity.NewToken{Name: "c", Agent: "coder"})
	one := b.AddToken(identity.NewToken{Name: "one", Scopes: []signalbox.Scope{signalbox.ScopeTool}})
	session := func(edits ...apitest.Edit) string {
		t.Helper()
		b.Do("POST", "/api/tools/search__find/call", `{}`, edits...).Want(t, 200, nil)
		return f.LastCall().Caller.Session
	}
	if got := session(apitest.Bearer(one)); !strings.HasPrefix(got, "token:") {
		t.Errorf("of a token: %q", got)
	}
	if a, b := session(apitest.Bearer(one), apitest.Header("X-Signalbox-Session", "x")), session(apitest.Bearer(apitest.Secret), apitest.Header("X-Signalbox-Session", "x")); a == b || !strings.HasSuffix(a, ":x") {
		t.Errorf("the same name of two callers: %q, %q", a, b)
	}
	if got := session(apitest.Bearer(token)); !strings.HasPrefix(got, "token:") {
		t.Errorf("an agent that runs nothing: %q", got)
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, apitest.Bearer(apitest.Secret)).Want(t, 201, nil)
	task := b.Run(coder)
	if got := session(apitest.Bearer(token)); got != "execution:"+task.ID || f.LastCall().Caller.Agent != "coder" {
		t.Errorf("the only execution: %+v", f.LastCall().Caller)
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"coder"}`, apitest.Bearer(apitest.Secret)).Want(t, 201, nil)
	second := b.Run(coder)
	if got := session(apitest.Bearer(token)); got != "" {
		t.Errorf("two executions, and none is named: %q", got)
	}
	if got := session(apitest.Bearer(token), apitest.Header("X-Signalbox-Execution", second.ID)); got != "execution:"+second.ID {
		t.Errorf("the one that is named: %q", got)
	}
	path := "/api/tools/search__find/call"
	b.Do("POST", path, `{}`, apitest.Bearer(token), apitest.Header("X-Signalbox-Execution", "queue-00000000000000000000000000")).WantError(t, 403, signalbox.CodeForbidden)
	b.Do("POST", path, `{}`, apitest.Bearer(one), apitest.Header("X-Signalbox-Execution", task.ID)).WantError(t, 403, signalbox.CodeForbidden)
	b.Do("POST", path, `{}`, apitest.Bearer(one), apitest.Header("X-Source-Agent", "coder")).WantError(t, 403, signalbox.CodeForbidden)
	b.Do("POST", "/mcp", `{}`, apitest.Bearer(one), apitest.Header("X-Signalbox-Execution", task.ID)).WantError(t, 403, signalbox.CodeForbidden)
}

func TestACallerThatGoesAwayEndsItsCall(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		f := apitest.NewTools()
		b := apitest.New(t, apitest.WithTools(f))
		a := b.Start("POST", "/api/tools/browser__open/call", `{}`, apitest.Header("Accept", accept))
		<-f.Waiting
		a.Cancel()
		<-f.Abandoned
	}
}

func TestACallAsAStream(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f)).Serve()
	resp := openToolStream(b, "POST", "/api/tools/browser__open/call", `{"arguments":{"url":"about:blank"}}`)
	lines := bufio.NewScanner(resp.Body)
	want(t, lines, "event: progress", `"position":2`)
	<-f.Waiting
	f.Finish <- struct{}{}
	want(t, lines, "event: result", `"text":"opened"`)
	if lines.Scan(); lines.Text() != "" || lines.Scan() {
		t.Errorf("after the result: %q", lines.Text())
	}
	resp = openToolStream(b, "POST", "/api/tools/search__broken/call", `{}`)
	lines = bufio.NewScanner(resp.Body)
	want(t, lines, "event: error", `"tool_failed"`)
	for lines.Scan() { // until the handler has returned
	}
	if n := b.Server.OpenStreams(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
}

// A stop ends calls and tells their callers to retry.
func TestAStopEndsCalls(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f))
	a := b.Start("POST", "/api/tools/browser__open/call", `{}`)
	<-f.Waiting
	b.Server.Stop()
	e := a.Reply().WantError(t, 503, signalbox.CodeUnavailable)
	if e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
}

// A revoked token ends the calls that were started with it.
func TestARevokedTokenEndsItsCalls(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f), apitest.WithToken)
	known, token, err := b.Identity.CreateToken(t.Context(), identity.NewToken{Name: "one", Scopes: []signalbox.Scope{signalbox.ScopeTool}})
	if err != nil {
		t.Fatal(err)
	}
	a := b.Start("POST", "/api/tools/browser__open/call", `{}`, apitest.Bearer(token))
	<-f.Waiting
	if _, err := b.Identity.RevokeToken(t.Context(), known.ID); err != nil {
		t.Fatal(err)
	}
	<-f.Abandoned
	a.Reply().WantError(t, 401, signalbox.CodeUnauthorized)
}

// Arguments over HTTP have the same size limit as over MCP.
func TestToolCallsTakeLongArguments(t *testing.T) {
	b, f := apitest.NewWithToolTasks(t)
	const call = "/api/tools/search__find/call"
	long := `{"arguments":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`
	b.Do("POST", call, long).Want(t, 200, nil)
	b.Do("POST", apitest.ReportPath, long).Want(t, 201, nil)
	if n := len(f.LastCall().Arguments); n < 3<<20 {
		t.Errorf("%d bytes of arguments", n)
	}
	for _, path := range []string{call, apitest.ReportPath} {
		e := b.Do("POST", path, `{"arguments":{"a":"`+strings.Repeat("x", 4<<20)+`"}}`).WantError(t, 413, signalbox.CodeTooLarge)
		if !strings.Contains(e.Message, "4194304 bytes") {
			t.Errorf("%+v", e)
		}
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"`+strings.Repeat("x", 1<<20)+`"}`).WantError(t, 413, signalbox.CodeTooLarge)
}

func TestMCPPassesTheGateAndHasItsOwnRules(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f), apitest.WithToken).Serve()
	b.Do("POST", "/mcp", `{}`).WantError(t, 401, signalbox.CodeUnauthorized)
	b.Do("POST", "/mcp", "{}", apitest.Bearer(apitest.Secret), apitest.Header("Content-Type", "text/plain")).WantError(t, 415, signalbox.CodeUnsupportedMedia)
	b.Do("POST", "/mcp", strings.Repeat(" ", 4<<20+1), apitest.Bearer(apitest.Secret)).WantError(t, 413, signalbox.CodeTooLarge)
	b.Do("POST", "/mcp?x=1", "{}", apitest.Bearer(apitest.Secret)).WantError(t, 400, signalbox.CodeValidation)
	b.Do("POST", "/mcp", "{}", apitest.Bearer(apitest.Secret), apitest.Header("Origin", "http://example.com")).WantError(t, 403, signalbox.CodeForbidden)
	accept := apitest.Header("Accept", "application/json, text/event-stream")
	for _, body := range []string{"{", "[]", "null", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `"x"`} {
		if got := b.Do("POST", "/mcp", body, apitest.Bearer(apitest.Secret), accept); got.StatusCode < 400 || got.StatusCode >= 500 {
			t.Errorf("%s: %d %s", body, got.StatusCode, got.Body)
		}
	}
	// large and deep arguments are allowed: only the tool decides
	deep := strings.Repeat(`{"a":`, 100) + `"` + strings.Repeat("x", 2<<20) + `"` + strings.Repeat(`}`, 100)
	got := b.Do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search__find","arguments":`+deep+`,"_meta":`+modernMeta+`}}`,
		apitest.Bearer(apitest.Secret), accept, apitest.Header("Mcp-Protocol-Version", "2026-07-28"), apitest.Header("Mcp-Method", "tools/call"), apitest.Header("Mcp-Name", "search__find"))
	if got.StatusCode != 200 || !strings.Contains(string(got.Body), "3 documents") {
		t.Errorf("%d %.300s", got.StatusCode, got.Body)
	}
	if c := f.LastCall(); c.Caller.Principal == "" && c.Caller.Session == "" {
		t.Errorf("%+v", c.Caller)
	}
}

const modernMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"example","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestAGatewayAloneHasToolsAndNothingElse(t *testing.T) {
	f := apitest.NewTools()
	b := apitest.New(t, apitest.WithTools(f), func(o *apitest.Options) { o.Config.ToolsOnly = true })
	for _, path := range []string{"/api/tools", "/api/tools/queues", "/healthz", "/readyz", "/openapi.json", "/api/me", "/metrics"} {
		b.Do("GET", path, "").Want(t, 200, nil)
	}
	for _, path := range []string{"/status", "/api/queue", "/api/agents", "/login"} {
		e := b.Do("GET", path, "").WantError(t, 404, signalbox.CodeNotFound)
		if !strings.Contains(e.Message, "standalone gateway") {
			t.Errorf("%s: %+v", path, e)
		}
	}
	var described struct{ Paths map[string]json.RawMessage }
	b.Do("GET", "/openapi.json", "").Want(t, 200, &described)
	if len(described.Paths) != 18 || described.Paths["/api/queue"] != nil {
		t.Errorf("%d paths are described", len(described.Paths))
	}
	// It has no agents, so the agent that a caller claims is accepted.
	b.Do("POST", "/api/tools/search__find/call", `{}`, apitest.Header("X-Source-Agent", "coder"), apitest.Header("X-Signalbox-Execution", "queue-00000000000000000000000000")).Want(t, 200, nil)
	if c := f.LastCall().Caller; c.Agent != "coder" || c.Session != "execution:queue-00000000000000000000000000" {
		t.Errorf("%+v", c)
	}
}

// want reads an event and checks its name and a part of its data.
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

// openToolStream opens a stream of a served director.
func openToolStream(b *apitest.Fixture, method, path, body string, edits ...apitest.Edit) *http.Response {
	b.T.Helper()
	r, err := http.NewRequestWithContext(b.T.Context(), method, b.HTTP.URL+path, strings.NewReader(body))
	if err != nil {
		b.T.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for _, f := range edits {
		f(r)
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() { resp.Body.Close() })
	return resp
}

var _ httpapi.Tools = (*apitest.Tools)(nil)
