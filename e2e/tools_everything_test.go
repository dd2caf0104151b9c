package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// everything is the protocol's own example server on one transport; the
// messages from the gateway to it are recorded.
type everything struct {
	*box
	transport string
	node      string
	program   string
	said      func() string // messages that the gateway has sent
	entry     object        // for the tools file
	direct    mcp.Transport // of a client that connects to the server directly
}

func (b *box) everything(transport string) *everything {
	b.t.Helper()
	node := onPath(b.t, "node")
	b.withSystemPath()
	e := &everything{box: b, transport: transport, node: node, program: fromNPM(b.t, everythingPath)}
	switch transport {
	case "stdio":
		// The input is recorded on its way.
		copied := b.root + "/stdin.jsonl"
		script := b.file("everything.sh", "#!/bin/sh\ntee '"+copied+"' | '"+node+"' '"+e.program+"' stdio\n", 0o700)
		e.said = func() string { text, _ := os.ReadFile(copied); return string(text) }
		e.entry = object{"command": script, "env": object{"GREETING": "hello"}}
		direct := exec.Command(node, e.program, "stdio")
		direct.Env = b.environ("GREETING=hello")
		e.direct = &mcp.CommandTransport{Command: direct}
	case "http":
		e.listen("streamableHttp", "/mcp", "listening on port")
		e.direct = &mcp.StreamableClientTransport{Endpoint: e.entry["url"].(string)}
	case "sse":
		e.listen("sse", "/sse", "running on port")
		e.direct = &mcp.SSEClientTransport{Endpoint: e.entry["url"].(string)}
	}
	return e
}

// listen starts the server at an address, behind a proxy that records POST
// bodies.
func (e *everything) listen(mode, path, ready string) {
	e.t.Helper()
	addr := freePort(e.t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		e.t.Fatal(err)
	}
	p := launchProgram(e.t, e.node, e.work, e.environ("PORT="+port), e.program, mode)
	p.says(ready)
	to, err := url.Parse("http://127.0.0.1:" + port)
	if err != nil {
		e.t.Fatal(err)
	}
	var mu sync.Mutex
	var posted bytes.Buffer
	e.said = func() string { mu.Lock(); defer mu.Unlock(); return posted.String() }
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		posted.Write(append(body, '\n'))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer func() { _ = recover() }() // a stream that was broken off
		proxy.ServeHTTP(w, r)
	}))
	e.t.Cleanup(srv.Close)
	e.t.Cleanup(srv.CloseClientConnections)
	e.entry = object{"type": e.transport, "url": srv.URL + path}
}

// The example server behaves the same behind the gateway as directly: lists,
// schemas, every kind of content, errors, progress, cancellation.
func TestTheExampleServerBehindTheGateway(t *testing.T) {
	for _, transport := range []string{"stdio", "http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			b := newBox(t)
			e := b.everything(transport)
			file := b.toolFile(".mcp.json", object{"mcpServers": object{"everything": e.entry}})
			director := b.director("--tools", file)
			direct := b.newCaller(e.direct, legacyEra)
			b.toolsReady(director.url, "everything")
			through := b.over(director.url, map[string]string{"stdio": modernEra}[transport])
			e.sameTools(direct, through)
			e.sameAnswers(direct, through)
			e.progressAndCancel(through, director.url)
			b.nothingHeld(director.url)
			through.Close()
			director.stop()
		})
	}
}

func (e *everything) sameTools(direct, through *caller) {
	e.t.Helper()
	own, err := direct.ListTools(e.ctx(), nil)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(own.Tools) < 10 {
		e.t.Fatalf("%d tools", len(own.Tools))
	}
	var list *mcp.ListToolsResult
	e.until("all tools are listed", func() bool { // some appear when the server knows its client
		if list, err = through.ListTools(e.ctx(), nil); err != nil {
			e.t.Fatal(err)
		}
		return len(configured(list.Tools)) == len(own.Tools)
	})
	named := map[string]*mcp.Tool{}
	for _, tool := range list.Tools {
		named[tool.Name] = tool
	}
	for _, tool := range own.Tools {
		tool.Name = "everything__" + tool.Name
		if want, got := toJSON(e.t, tool), toJSON(e.t, named[tool.Name]); want != got {
			e.t.Errorf("%s: %s, and through the gateway %s", tool.Name, want, got)
		}
	}
}

func (e *everything) sameAnswers(direct, through *caller) {
	e.t.Helper()
	type call struct {
		tool string
		args object
	}
	calls := []call{
		{"echo", object{"message": "Grüße, <b>& more</b>\n\u2028"}},
		{"get-sum", object{"a": 1e21, "b": 0.5}},
		{"get-structured-content", object{"location": "New York"}},
		{"get-tiny-image", object{}},
		{"get-annotated-message", object{"messageType": "error", "includeImage": true}},
		{"get-resource-links", object{"count": 3}},
		{"get-resource-reference", object{"resourceType": "Text", "resourceId": 2}},
		{"gzip-file-as-resource", object{"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"}},
		// Errors: invalid arguments, and no arguments.
		{"echo", object{"message": 7}},
		{"get-structured-content", object{"location": "Nowhere"}},
		{"get-sum", object{}},
	}
	for _, c := range calls {
		want, wantErr := direct.call(e.ctx(), c.tool, c.args, "")
		got, gotErr := through.call(e.ctx(), "everything__"+c.tool, c.args, "")
		if (wantErr == nil) != (gotErr == nil) || wantErr != nil && afterColon(wantErr) != afterColon(gotErr) {
			e.t.Errorf("%s %v: error %v, and behind the gateway %v", c.tool, c.args, wantErr, gotErr)
			continue
		}
		if want == nil {
			continue
		}
		if a, b := plainAnswer(e.t, want), plainAnswer(e.t, got); !reflect.DeepEqual(a, b) {
			e.t.Errorf("%s %v: %.500v, and behind the gateway %.500v", c.tool, c.args, a, b)
		}
	}
}

func (e *everything) progressAndCancel(through *caller, url string) {
	e.t.Helper()
	res, err := through.call(e.ctx(), "everything__trigger-long-running-operation", object{"duration": 0.3, "steps": 3}, "steps")
	if err != nil || !strings.Contains(textOf(res), "completed") {
		e.t.Fatalf("%s, %v", textOf(res), err)
	}
	for _, word := range []string{"steps 1 3", "steps 2 3", "steps 3 3"} {
		through.hears(word)
	}
	p := through.begin("everything__trigger-long-running-operation", object{"duration": 60, "steps": 600}, "long")
	through.hears("long 1 600")
	p.cancel()
	if res, err := p.ends(); err == nil {
		e.t.Errorf("a cancelled call answered %s", textOf(res))
	}
	e.until("the server receives the cancel", func() bool { return strings.Contains(e.said(), `"notifications/cancelled"`) })
	e.nothingHeld(url)
}

var clock = regexp.MustCompile(`\d+:\d\d:\d\d [AP]M`)

// plainAnswer is an answer without the additions of the newer era, and
// without the time of day in some answers.
func plainAnswer(t *testing.T, r *mcp.CallToolResult) object {
	t.Helper()
	m := parse[object](t, clock.ReplaceAllString(toJSON(t, r), "now"))
	delete(m, "resultType")
	delete(m, "_meta")
	return m
}

// afterColon is an error without the prefix from the SDK.
func afterColon(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, `": `)+1:]
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
