package mcptools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/handshake"
	"github.com/signalbox-ai/signalbox/internal/llm"
	"github.com/signalbox-ai/signalbox/internal/llm/mcptools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long bounds every wait; no wait should take that long.
const long = time.Minute

// server is an MCP server of the SDK, whose tools do what a test says.
type server struct {
	t    *testing.T
	url  string
	addr string
	mu   sync.Mutex
	seen []http.Header
	wrap func(http.Handler) http.Handler
	opts *mcp.StreamableHTTPOptions
	mcp  *mcp.Server
	http *http.Server
	done chan struct{} // closed when http has ended
	died chan struct{} // closed at the end; hanging handlers wait for it too
}

func newServer(t *testing.T, opts *mcp.StreamableHTTPOptions) *server {
	t.Helper()
	s := &server{t: t, opts: opts, mcp: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), died: make(chan struct{})}
	t.Cleanup(func() {
		s.stop()
		close(s.died)
		for ss := range s.mcp.Sessions() {
			ss.Close()
		}
	})
	return s
}

// tool adds a tool with a raw handler.
func (s *server) tool(name string, f mcp.ToolHandler) {
	s.mcp.AddTool(&mcp.Tool{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)}, f)
}

// start serves, at the same address as before if there was one.
func (s *server) start() *server {
	s.t.Helper()
	addr := s.addr
	if addr == "" {
		addr = freeAddr(s.t)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr, s.url = ln.Addr().String(), "http://"+ln.Addr().String()+"/mcp"
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, s.opts)
	if s.wrap != nil {
		h = s.wrap(h)
	}
	note := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Clone())
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
	s.http, s.done = &http.Server{Handler: handshake.Serve("sbxa_secret", note)}, make(chan struct{})
	go func(srv *http.Server, done chan struct{}) {
		defer close(done)
		_ = srv.Serve(ln)
	}(s.http, s.done)
	return s
}

// freeAddr returns an address outside the range of ephemeral ports, so that it
// is still free when a server restarts.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 200 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if ln, err := net.Listen("tcp", addr); err == nil {
			ln.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

func (s *server) stop() {
	if s.http != nil {
		s.http.Close()
		<-s.done
		s.http = nil
	}
}

func (s *server) headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.seen...)
}

func tools(t *testing.T, o mcptools.Options) *mcptools.Tools {
	t.Helper()
	if o.Patience == 0 {
		o.Patience = time.Millisecond
	}
	c, err := mcptools.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	return c
}

func text(s string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil
	}
}

// Tools are listed as their server describes them, restricted to the allowed
// ones, and called with the arguments as the model wrote them, in both eras.
func TestListsAndCalls(t *testing.T) {
	for era, opts := range map[string]*mcp.StreamableHTTPOptions{"with sessions": nil, "stateless": {Stateless: true}, "json": {JSONResponse: true}} {
		t.Run(era, func(t *testing.T) {
			s := newServer(t, opts)
			var got json.RawMessage
			s.tool("fs__read", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got = r.Params.Arguments
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "one"}, &mcp.TextContent{Text: "two"}}}, nil
			})
			s.tool("fs__write", text("written"))
			s.start()
			c := tools(t, mcptools.Options{URL: s.url, Token: "sbxa_secret", Execution: "queue-1", Allowed: func(n string) bool { return n == "fs__read" }})
			list, err := c.Tools(ctx(t))
			if err != nil || len(list) != 1 || list[0].Name != "fs__read" || list[0].Description != "does fs__read" {
				t.Fatalf("%+v, %v", list, err)
			}
			if schema := string(list[0].Schema); strings.Index(schema, `"z"`) > strings.Index(schema, `"a"`) {
				t.Errorf("the schema's keys are sorted: %s", schema)
			}
			text, isError, err := c.Call(ctx(t), llm.ToolCall{ID: "c1", Name: "fs__read", Arguments: ` {"z": 12345678901234567890}`})
			if err != nil || isError || text != "one\ntwo" {
				t.Errorf("%q %v %v", text, isError, err)
			}
			if string(got) != `{"z":12345678901234567890}` {
				t.Errorf("the server got %s", got)
			}
			if text, isError, err = c.Call(ctx(t), llm.ToolCall{Name: "fs__write"}); err != nil || !isError || !strings.Contains(text, "fs__write") {
				t.Errorf("a tool that is not allowed: %q %v %v", text, isError, err)
			}
			for _, args := range []string{`[1]`, `{"a":`, `"x"`} {
				if _, isError, err = c.Call(ctx(t), llm.ToolCall{Name: "fs__read", Arguments: args}); err != nil || !isError {
					t.Errorf("arguments %s: %v %v", args, isError, err)
				}
			}
			if text, _, err = c.Call(ctx(t), llm.ToolCall{Name: "fs__read"}); err != nil || text != "one\ntwo" {
				t.Errorf("no arguments: %q %v", text, err)
			}
			for _, h := range s.headers() {
				if h.Get("Authorization") != "Bearer sbxa_secret" || h.Get("X-Signalbox-Execution") != "queue-1" {
					t.Errorf("headers %v", h)
				}
			}
		})
	}
}

// scripted answers JSON-RPC by hand, for answers that the SDK's server does
// not produce.
func scripted(t *testing.T, answer func(method string) string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		b, _ := io.ReadAll(r.Body)
		if json.Unmarshal(b, &q) != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		body := answer(q.Method)
		if q.Method == "initialize" {
			body = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Every kind of content becomes text, known or unknown; numbers keep their
// digits.
func TestContentKinds(t *testing.T) {
	png := strings.Repeat("A", 400)
	for want, result := range map[string]string{
		"a\nb":                          `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		"[image, image/png, 300 bytes]": `{"content":[{"type":"image","mimeType":"image/png","data":"` + png + `"}]}`,
		"[audio, audio/wav, 1 bytes]":   `{"content":[{"type":"audio","mimeType":"audio/wav","data":"QQ=="}]}`,
		"[link to file:///x, x, text/plain, 12 bytes]": `{"content":[{"type":"resource_link","uri":"file:///x","name":"x","mimeType":"text/plain","size":12}]}`,
		"[resource file:///x, text/plain]\nhello":      `{"content":[{"type":"resource","resource":{"uri":"file:///x","mimeType":"text/plain","text":"hello"}}]}`,
		"[resource file:///x, 3 bytes]":                `{"content":[{"type":"resource","resource":{"uri":"file:///x","blob":"QUJD"}}]}`,
		"[content of kind hologram, 29 bytes of JSON]": `{"content":[{"type":"hologram","x":12345}]}`,
		`{"id":12345678901234567890}`:                  `{"content":[],"structuredContent":{"id":12345678901234567890}}`,
		"said":                                         `{"content":[{"type":"text","text":"said"}],"structuredContent":{"id":1}}`,
		"[no content]":                                 `{"content":[]}`,
	} {
		c := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return `"result":` + result })})
		got, isError, err := c.Call(ctx(t), llm.ToolCall{Name: "x"})
		if err != nil || isError || got != want {
			t.Errorf("%s:\n got %q %v %v\nwant %q", result, got, isError, err, want)
		}
	}
}

// The model gets the tool's or server's own text about a failure.
func TestFailuresAreText(t *testing.T) {
	for want, body := range map[string]string{
		"it is broken":                          `"result":{"isError":true,"content":[{"type":"text","text":"it is broken"}]}`,
		"no such tool (error -32602)":           `"error":{"code":-32602,"message":"no such tool"}`,
		"cannot be given here (input_required)": `"result":{"resultType":"input_required","content":[]}`,
	} {
		c := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return body })})
		got, isError, err := c.Call(ctx(t), llm.ToolCall{Name: "x"})
		if err != nil || !isError || !strings.Contains(got, want) {
			t.Errorf("%s: %q %v %v", body, got, isError, err)
		}
	}
}

// A refusal is reported in the server's own words, without the token.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{401, `{"error":"unauthorized","message":"this director wants a token"}`, "401 Unauthorized: this director wants a token"},
		{404, `{"error":"not_found","message":"this director has no tools: name them with --tools"}`, "has no tools"},
		{302, `go elsewhere`, "302 Found: go elsewhere"},
		{500, `<html>oops</html>`, "oops"},
	} {
		s := httptest.NewServer(handshake.Serve("sbxa_secret", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://192.0.2.1/")
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		})))
		host := strings.TrimPrefix(s.URL, "http://")
		set := tools(t, mcptools.Options{URL: "http://user:pass@" + host + "/mcp?key=hush", Token: "sbxa_secret"})
		_, err := set.Tools(ctx(t))
		var refused *mcptools.Refused
		if !errors.As(err, &refused) || refused.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v", c.status, err)
		} else if said := err.Error(); strings.Contains(said, "pass") || strings.Contains(said, "secret") || strings.Contains(said, "hush") {
			t.Errorf("a secret in %q", said)
		}
		s.Close()
	}
	if _, err := mcptools.New(mcptools.Options{URL: "ftp://x"}); err == nil {
		t.Error("a URL with another scheme is accepted")
	}
}

func TestUnreachableServer(t *testing.T) {
	const addr = "127.0.0.1:1" // another process may take a port that was just free
	c := tools(t, mcptools.Options{URL: "http://" + addr + "/mcp"})
	if _, err := c.Tools(ctx(t)); err == nil || !strings.Contains(err.Error(), "no tool server at http://"+addr+"/mcp") {
		t.Error(err)
	}
	if _, _, err := c.Call(ctx(t), llm.ToolCall{Name: "x"}); err == nil {
		t.Error("a call succeeded")
	}
}

// Progress goes to its own call.
func TestProgress(t *testing.T) {
	s := newServer(t, nil)
	s.tool("slow", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i, say := range []string{"queued, position 2", ""} {
			p := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: say, Progress: float64(i), Total: 2}
			if err := r.Session.NotifyProgress(ctx, p); err != nil {
				return nil, err
			}
		}
		return text("done")(ctx, r)
	})
	s.start()
	heard := make(chan string, 10)
	c := tools(t, mcptools.Options{URL: s.url, Progress: func(c llm.ToolCall, text string) { heard <- c.ID + ": " + text }})
	if got, _, err := c.Call(ctx(t), llm.ToolCall{ID: "c7", Name: "slow"}); err != nil || got != "done" {
		t.Fatalf("%q %v", got, err)
	}
	for _, want := range []string{"c7: queued, position 2", "c7: 1 of 2"} {
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-ctx(t).Done():
			t.Fatal("no progress received")
		}
	}
}

// The server is told when a caller cancels, and other calls continue.
func TestCancel(t *testing.T) {
	s := newServer(t, nil)
	began, ended := make(chan struct{}), make(chan struct{})
	s.tool("hang", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	s.tool("quick", text("here"))
	s.start()
	c := tools(t, mcptools.Options{URL: s.url})
	away, leave := context.WithCancel(ctx(t))
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.Call(away, llm.ToolCall{Name: "hang"})
		answered <- err
	}()
	<-began
	leave()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-ctx(t).Done():
		t.Error("the server was not told")
	}
	if got, _, err := c.Call(ctx(t), llm.ToolCall{Name: "quick"}); err != nil || got != "here" {
		t.Errorf("%q %v", got, err)
	}
}

// After a server restart the toolset reconnects; a call that may have been
// executed is not sent again.
func TestServerRestarts(t *testing.T) {
	s := newServer(t, nil)
	calls, began := 0, make(chan struct{}, 1)
	s.tool("count", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		calls++
		return text(fmt.Sprint(calls))(ctx, r)
	})
	s.tool("hang", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
		case <-s.died:
		}
		return nil, errors.New("cut off")
	})
	s.start()
	c := tools(t, mcptools.Options{URL: s.url, Patience: long})
	call := func(name string) (string, bool) {
		t.Helper()
		text, isError, err := c.Call(ctx(t), llm.ToolCall{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return text, isError
	}
	if got, _ := call("count"); got != "1" {
		t.Fatal(got)
	}
	s.stop()
	back := make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(20 * time.Millisecond) // the server is down for a moment; the caller retries until it is back
		s.start()
	}()
	if got, _ := call("count"); got != "2" {
		t.Fatal(got)
	}
	<-back
	if list, err := c.Tools(ctx(t)); err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
	again := make(chan struct{})
	go func() {
		defer close(again)
		<-began
		s.stop()
		s.start()
	}()
	if got, isError := call("hang"); !isError || !strings.Contains(got, "not known") {
		t.Errorf("%q %v", got, isError)
	}
	<-again
	if got, _ := call("count"); got != "3" || len(began) != 0 {
		t.Errorf("%s, and hang was sent again %d times", got, len(began))
	}
}

// Calls run concurrently in one session.
func TestConcurrentCalls(t *testing.T) {
	s := newServer(t, nil)
	const n = 8
	var all sync.WaitGroup
	all.Add(n)
	s.tool("meet", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		all.Done()
		all.Wait()
		return text("met")(ctx, r)
	})
	s.start()
	c := tools(t, mcptools.Options{URL: s.url})
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if got, _, err := c.Call(ctx(t), llm.ToolCall{Name: "meet"}); err != nil || got != "met" {
				t.Errorf("%q %v", got, err)
			}
		})
	}
	wg.Wait()
}

// Close ends the session at the server, which can then release what the
// session holds.
func TestCloseEndsTheSession(t *testing.T) {
	s := newServer(t, nil)
	s.tool("x", text("y"))
	s.start()
	c := tools(t, mcptools.Options{URL: s.url})
	if _, err := c.Tools(ctx(t)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for range s.mcp.Sessions() {
		t.Error("a session is left")
	}
}

// Too many tools are an error; the list is not cut.
func TestTooManyTools(t *testing.T) {
	var all []string
	for i := range 1001 {
		all = append(all, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i))
	}
	c := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return `"result":{"tools":[` + strings.Join(all, ",") + `]}` })})
	if _, err := c.Tools(ctx(t)); err == nil || !strings.Contains(err.Error(), "more than 1000 tools") {
		t.Error(err)
	}
	turns := tools(t, mcptools.Options{URL: scripted(t, func(string) string { return `"result":{"tools":[],"nextCursor":"again"}` })})
	if _, err := turns.Tools(ctx(t)); err == nil {
		t.Error("an endless list was read completely")
	}
}
