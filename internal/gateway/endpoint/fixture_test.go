package endpoint_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The eras of the protocol, each with a version that clients use.
var eras = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

const modern = "2026-07-28"

// scripted is a provider whose tools do what a test says. hold waits until
// the test lets it continue, or its caller disconnects.
type scripted struct {
	mu      sync.Mutex
	tools   []gateway.Tool
	changed func()
	answers map[string]func(context.Context, gateway.Call) (gateway.Result, error)
	ended   chan string // sessions
	came    chan gateway.Call
	goOn    chan struct{}
	gone    chan struct{}
}

func newScripted() *scripted {
	s := &scripted{
		answers: map[string]func(context.Context, gateway.Call) (gateway.Result, error){}, ended: make(chan string, 2000),
		came: make(chan gateway.Call, 100), goOn: make(chan struct{}, 100), gone: make(chan struct{}, 100),
	}
	s.add("s__echo", toolqueue.Default, func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		return gateway.Result{Content: json.RawMessage(`[]`), Structured: c.Arguments, Meta: c.Meta}, nil
	})
	s.add("s__hold", "one", s.hold)
	s.add("s__leased", "leased", func(context.Context, gateway.Call) (gateway.Result, error) {
		return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"ok"}]`)}, nil
	})
	return s
}

func (s *scripted) hold(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	s.came <- c
	select {
	case <-s.goOn:
		return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"held"}]`)}, nil
	case <-ctx.Done():
		s.gone <- struct{}{}
		return gateway.Result{}, ctx.Err()
	}
}

func (s *scripted) add(name, queue string, answer func(context.Context, gateway.Call) (gateway.Result, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name] = answer
	s.tools = append(s.tools, gateway.Tool{
		Name: name, Server: "s", Kind: gateway.KindMCP, Queue: queue, Timeout: time.Minute,
		Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
	})
}

func (s *scripted) offer(tools []gateway.Tool) {
	s.mu.Lock()
	s.tools = tools
	changed := s.changed
	s.mu.Unlock()
	changed()
}

func (s *scripted) Name() string { return "s" }

func (s *scripted) Start(_ context.Context, changed func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
	return nil
}

func (s *scripted) Tools() []gateway.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]gateway.Tool(nil), s.tools...)
}

func (s *scripted) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	s.mu.Lock()
	answer := s.answers[c.Tool]
	s.mu.Unlock()
	return answer(ctx, c)
}

func (s *scripted) EndSession(session string) { s.ended <- session }
func (s *scripted) Server() gateway.Server {
	return gateway.Server{Name: "s", Kind: gateway.KindMCP, State: gateway.StateReady, Tools: len(s.Tools())}
}
func (s *scripted) Close() error { return nil }

// fixture is a gateway with a scripted provider behind a real listener.
type fixture struct {
	t        *testing.T
	script   *scripted
	gateway  *gateway.Gateway
	endpoint *endpoint.Endpoint
	url      string
}

// principalHeader names the caller, in place of authentication.
const principalHeader = "Test-Principal"

func newFixture(t *testing.T, o endpoint.Options, more ...func(*scripted)) *fixture {
	t.Helper()
	r := &fixture{t: t, script: newScripted()}
	for _, f := range more {
		f(r.script)
	}
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{
		toolqueue.Default: {Concurrent: 64}, "one": {Concurrent: 1}, "two": {Concurrent: 2},
		"leased": {Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour}},
	}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.gateway, err = gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{r.script}, Grace: -1}); err != nil {
		t.Fatal(err)
	}
	if err := r.gateway.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.endpoint = endpoint.New(r.gateway, o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		who := gateway.Caller{Principal: q.Header.Get(principalHeader), Session: q.Header.Get("Test-Session")}
		r.endpoint.ServeHTTP(w, q.WithContext(gateway.WithCaller(q.Context(), who)))
	}))
	r.url = server.URL
	t.Cleanup(func() {
		if err := r.endpoint.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		if err := r.gateway.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// client is a client of the SDK with its own connections.
type client struct {
	*mcp.ClientSession
	progress chan *mcp.ProgressNotificationParams
	changed  chan struct{}
	cut      func() // breaks all its connections
}

func (r *fixture) connect(version string, headers ...string) *client {
	r.t.Helper()
	c, err := r.tryConnect(version, headers...)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *fixture) tryConnect(version string, headers ...string) (*client, error) {
	transport := &http.Transport{}
	life, cut := context.WithCancel(context.Background())
	c := &client{progress: make(chan *mcp.ProgressNotificationParams, 1000), changed: make(chan struct{}, 10), cut: cut}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) { c.progress <- p.Params },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	session, err := sdk.Connect(r.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: r.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: &sending{transport, headers, life}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	c.ClientSession = session
	r.t.Cleanup(func() {
		if session != nil {
			session.Close()
		}
		cut()
		transport.CloseIdleConnections()
	})
	return c, err
}

// sending adds headers to a client's requests, and binds them to a context.
type sending struct {
	http.RoundTripper
	headers []string
	life    context.Context
}

func (s *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(s.life, cancel)
	r = r.Clone(ctx)
	for i := 0; i < len(s.headers); i += 2 {
		r.Header.Set(s.headers[i], s.headers[i+1])
	}
	return s.RoundTripper.RoundTrip(r)
}

// call calls a tool in the background.
func (c *client) call(ctx context.Context, tool string, meta mcp.Meta) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Meta: meta})
		done <- err
	}()
	return done
}

// queue returns the current status of a tool queue.
func (r *fixture) queue(name string) toolqueue.Status {
	for _, q := range r.gateway.Queues() {
		if q.Name == name {
			return q
		}
	}
	r.t.Fatalf("no queue %s", name)
	return toolqueue.Status{}
}
