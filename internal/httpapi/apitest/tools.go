package apitest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Tools is a fake gateway with three tools: search__find returns its arguments,
// browser__open waits for Finish, and report is async.
type Tools struct {
	Mu        sync.Mutex
	Calls     []gateway.Call
	Statuses  []toolqueue.Status
	Waiting   chan gateway.Call // gets every call of browser__open when it starts to wait
	Finish    chan struct{}     // a value ends one of these calls
	Abandoned chan struct{}     // gets a value when the caller of one of them disconnects
	ended     []string          // sessions ended by EndSession
}

// NewTools returns a gateway without calls and queues.
func NewTools() *Tools {
	return &Tools{Waiting: make(chan gateway.Call, 16), Finish: make(chan struct{}, 16), Abandoned: make(chan struct{}, 16)}
}

// ToolsSince is the time in Servers and QueueStates.
var ToolsSince = time.Date(2025, 1, 17, 10, 0, 0, 0, time.UTC)

func (f *Tools) Tool(name string) (gateway.Tool, bool) {
	tools := f.Tools()
	at := slices.IndexFunc(tools, func(t gateway.Tool) bool { return t.Name == name })
	if at < 0 {
		return gateway.Tool{}, false
	}
	return tools[at], true
}

func (f *Tools) Tools() []gateway.Tool {
	return []gateway.Tool{
		{
			Name: "browser__open", Server: "browser", Kind: gateway.KindMCP, Queue: "browser", Timeout: time.Minute,
			Definition: json.RawMessage(`{"name":"browser__open","title":"Open a page","description":"Opens a page in the browser","inputSchema":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}}`),
		},
		{
			Name: "report", Server: "commands", Kind: gateway.KindCommand, Async: true, Secrets: []string{"password"},
			Definition: json.RawMessage(`{"name":"report","description":"Makes the report of a month","inputSchema":{"type":"object","properties":{"month":{"type":"string"},"password":{"type":"string"}}}}`),
		},
		{
			Name: "search__find", Server: "search", Kind: gateway.KindMCP, Queue: "default", Timeout: 30 * time.Second,
			Definition: json.RawMessage(`{"name":"search__find","description":"Finds documents","inputSchema":{"type":"object","properties":{"query":{"type":"string"}}},"outputSchema":{"type":"object"}}`),
		},
	}
}

func (f *Tools) Servers() []gateway.Server {
	return []gateway.Server{
		{Name: "browser", Kind: gateway.KindMCP, State: gateway.StateReady, PIDs: []int{4711}, Tools: 1, Since: ToolsSince},
		{Name: "search", Kind: gateway.KindMCP, State: gateway.StateFailed, Error: "connection refused", Restarts: 2, Tools: 1, Since: ToolsSince},
	}
}

func (f *Tools) Queues() []toolqueue.Status {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Statuses
}

// SetQueue changes the limits of a queue. There is always a queue browser.
func (f *Tools) SetQueue(queue string, change func(*toolqueue.Config)) (before toolqueue.Config, err error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i := range f.Statuses {
		if s := &f.Statuses[i]; s.Name == queue {
			before = toolqueue.Config{Concurrent: s.Concurrent, Rate: s.Rate}
			after := before
			change(&after)
			s.Concurrent, s.Rate = after.Concurrent, after.Rate
			return before, nil
		}
	}
	if queue == "browser" {
		return toolqueue.Config{Concurrent: 1}, nil
	}
	return before, toolqueue.ErrUnknown
}

// OpenQueue opens a queue. There is always a queue browser.
func (f *Tools) OpenQueue(queue string) (closed int, err error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for i := range f.Statuses {
		if s := &f.Statuses[i]; s.Name == queue {
			_, closed = s.Closed()
			s.Limits = nil
			return closed, nil
		}
	}
	if queue == "browser" {
		return 0, nil
	}
	return 0, toolqueue.ErrUnknown
}

func (f *Tools) OnCall(func()) {}

func (f *Tools) OnChange(func()) func() { return func() {} }

func (f *Tools) EndSession(session string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.ended = append(f.ended, session)
}

func (f *Tools) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	f.Mu.Lock()
	f.Calls = append(f.Calls, c)
	f.Mu.Unlock()
	switch c.Tool {
	case "search__find":
		return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"3 documents"}]`), Structured: json.RawMessage(`{"asked":` + orNull(c.Arguments) + `}`)}, nil
	case "search__broken":
		return gateway.Result{}, &gateway.ProtocolError{Code: -32000, Message: "out of order", Data: json.RawMessage(`{"since":1}`)}
	case "search__full":
		return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolQueue, "The tool %q was not called: 8 calls wait for it, the most that may", c.Tool)
	case "browser__open":
		if c.Progress != nil {
			c.Progress(gateway.Progress{Message: "queued, position 2", Position: 2})
		}
		f.Waiting <- c
		select {
		case <-f.Finish:
			return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"opened"}]`)}, nil
		case <-ctx.Done():
			f.Abandoned <- struct{}{}
			return gateway.Result{}, ctx.Err()
		}
	}
	return gateway.Result{}, signalbox.Errorf(signalbox.CodeNotFound, "There is no tool %q: signalbox tools lists those that there are", c.Tool)
}

func orNull(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	return string(raw)
}

// LastCall is the newest call.
func (f *Tools) LastCall() gateway.Call {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Calls[len(f.Calls)-1]
}

// WithTools gives a director tools, and an MCP server for them.
func WithTools(f *Tools) func(*Options) {
	return func(o *Options) {
		o.Config.Tools, o.Config.MCP = f, endpoint.New(f, endpoint.Options{Version: "1.0.0"})
	}
}

// QueueStates are three tool queues: browser, with a leased slot and a waiting call;
// default, which is idle; and search, which is shared.
func QueueStates() []toolqueue.Status {
	return []toolqueue.Status{
		{
			Name: "browser", Concurrent: 1, InUse: 1, Depth: 2, MaxWait: time.Minute, MaxWaiters: 8, Lease: toolqueue.Lease{Idle: 30 * time.Second, MaxHold: 5 * time.Minute},
			Holders: []toolqueue.Holder{{Session: "mcp:ABCDEF", Agent: "coder", Tool: "browser__open", Since: ToolsSince, Leased: true, Expires: ToolsSince.Add(5 * time.Minute)}},
			Waiters: []toolqueue.Waiter{{Session: "named::s2", Agent: "other", Tool: "browser__open", Since: ToolsSince.Add(time.Second), Position: 1}},
		},
		{Name: "default", Concurrent: 64},
		{
			Name: "search", Concurrent: 4, InUse: 1, Shared: true, Holders: []toolqueue.Holder{{Session: gateway.SessionKey("mcp:ABCDEF"), Agent: "coder", Tool: "search__find", Owner: "d2"}},
		},
	}
}

// WithPages gives a director the pages of ServePage.
func WithPages(o *Options) { o.Config.Pages = http.HandlerFunc(ServePage) }

// ServePage serves a one-line page or asset.
func ServePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if strings.HasPrefix(r.URL.Path, "/ui/assets/") {
		w.Header().Set("Content-Type", "application/octet-stream")
		io.WriteString(w, "import …")
		return
	}
	io.WriteString(w, "<!doctype html>…")
}
