package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/strictjson"
)

// Defaults and limits.
const (
	DefaultSessionIdle     = 30 * time.Minute
	DefaultMaxSessions     = 1000
	DefaultMaxPerPrincipal = 100
	// MaxBody is the maximum size of a request body, in bytes.
	MaxBody = 4 << 20
)

// Options configure an Endpoint. All are optional.
type Options struct {
	Version      string
	Instructions string // tells the model how to use the tools
	Log          *slog.Logger

	SessionIdle     time.Duration // idle timeout of a session
	MaxSessions     int           // maximum number of concurrent sessions
	MaxPerPrincipal int           // the same, per principal

	// Tasks turns calls into tasks: calls of async tools, and, for clients with the tasks
	// extension, calls that wait in their tool queue for longer than TaskAfter. nil: no tasks.
	Tasks     gateway.Tasks
	TaskAfter time.Duration // 0: as soon as a call has to wait
	AgentName string        // metadata.agent of a task; "": the tool's name
	// Relay is used instead of Tasks if another endpoint has the tools: calls of clients
	// with the tasks extension are forwarded to it.
	Relay *Relay

	keepAlive time.Duration // for tests
}

func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = DefaultSessionIdle
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.MaxPerPrincipal <= 0 {
		o.MaxPerPrincipal = DefaultMaxPerPrincipal
	}
	if o.keepAlive <= 0 {
		o.keepAlive = keepAliveInterval
	}
}

// Headers of the protocol, and an internal header that links a message to its
// request: the SDK passes on headers but no context.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	requestHeader = "X-Signalbox-Request"
)

// Endpoint is an http.Handler for one path. It takes the caller from the
// context (see gateway.WithCaller). Make one with New.
type Endpoint struct {
	opts     Options
	server   *server
	legacy   http.Handler
	modern   http.Handler
	sessions *sessions
	stop     func() // unregisters from the gateway

	requests sync.Map // key → *request
	keys     atomic.Uint64

	ctx  context.Context //nolint:containedctx // of the endpoint: ends all requests
	end  context.CancelFunc
	busy sync.WaitGroup
	mu   sync.Mutex // guards busy against a concurrent Close
}

// New returns the endpoint of a gateway.
func New(gw Gateway, o Options) *Endpoint {
	o.fill()
	e := &Endpoint{opts: o, server: newServer(gw, o)}
	e.ctx, e.end = context.WithCancel(context.Background())
	e.sessions = &sessions{idle: o.SessionIdle, max: o.MaxSessions, maxEach: o.MaxPerPrincipal, ended: gw.EndSession, all: map[string]*session{}}
	e.server.from = e.find
	e.server.allowSession = func(r *request, ss *mcp.ServerSession) error { return e.sessions.open(r.caller.Principal, ss) }
	one := func(*http.Request) *mcp.Server { return e.server.sdk }
	// The handler around this one checks host names. Sessions expire here and not
	// in the SDK, which counts a session with an open stream as idle.
	e.legacy = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: MaxBody,
	})
	e.modern = mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{
		DisableLocalhostProtection: true, MaxRequestBodyBytes: MaxBody, Stateless: true, PropagateRequestCancellation: true,
	})
	e.stop = gw.OnChange(e.server.changed)
	return e
}

// find returns the request in flight that carried a message.
func (e *Endpoint) find(extra *mcp.RequestExtra) *request {
	if extra == nil {
		return nil
	}
	r, _ := e.requests.Load(extra.Header.Get(requestHeader))
	found, _ := r.(*request)
	return found
}

// ServeHTTP answers one request of a client.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.register() {
		refuse(w, http.StatusServiceUnavailable, "unavailable: the gateway is stopping")
		return
	}
	defer e.busy.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	from := &request{ctx: ctx, caller: gateway.CallerOf(ctx), answer: &answer{ResponseWriter: w, every: e.opts.keepAlive}}
	defer from.answer.end()

	r = r.WithContext(ctx)
	body, tree, ok := readBody(from.answer, r)
	if !ok {
		return
	}
	handler, session := e.legacy, ""
	if isModern(r.Header.Get(versionHeader)) {
		if e.server.hasTasks() && !checkTaskRequest(from, r, body) {
			return
		}
		handler = e.modern
	} else if session = r.Header.Get(sessionHeader); session != "" {
		leave, ok := e.sessions.join(session, from.caller.Principal, from, cancel)
		if !ok {
			refuse(w, http.StatusNotFound, "session not found: it has ended, or is another's; begin a new one with initialize")
			return
		}
		defer leave()
		from.caller.Session = sessionPrefix + session
		switch {
		case r.Method == http.MethodDelete:
			e.sessions.cancelRequests(session, from)
		case tree != nil && tree.Values["method"] == methodCancelled: // the SDK gets it too, for its own calls
			e.sessions.cancel(session, idOf(strictjson.Members(strictjson.Members(body)["params"])["requestId"]))
		}
	}
	if c := e.server.plain(r, body, tree); c != nil {
		e.answerPlain(from, c, session)
		return
	}
	key := strconv.FormatUint(e.keys.Add(1), 36)
	e.requests.Store(key, from)
	defer e.requests.Delete(key)
	r.Header = r.Header.Clone()
	r.Header.Set(requestHeader, key) // replaces whatever the client sent
	handler.ServeHTTP(from.answer, r)
}

// register counts a request, unless the endpoint is closed.
func (e *Endpoint) register() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return false
	}
	e.busy.Add(1)
	return true
}

// Close ends all requests and sessions and returns when they have ended.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	e.end()
	e.mu.Unlock()
	e.stop()
	e.sessions.close()
	e.busy.Wait()
	e.sessions.close() // sessions that a request began in the meantime
	return nil
}

// refuse writes a protocol error without the SDK.
func refuse(w http.ResponseWriter, status int, message string) {
	refuseWith(w, status, json.RawMessage("null"), codeSessionRefused, message)
}

func refuseWith(w http.ResponseWriter, status int, id json.RawMessage, code int64, message string) {
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message},
	})
	if err != nil { // the id came out of JSON
		body = nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error here means that the client has gone
}

// ServeStdio serves one client over in and out, in either era, until in or ctx ends; then
// running calls are ended. All calls have the caller's Session.
func ServeStdio(ctx context.Context, gw Gateway, caller gateway.Caller, in io.ReadCloser, out io.WriteCloser, o Options) error {
	o.fill()
	s := newServer(gw, o)
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	from := &request{ctx: ctx, caller: caller}
	s.from = func(*mcp.RequestExtra) *request { return from }
	defer gw.OnChange(s.changed)()
	defer gw.EndSession(caller.Session)
	err := s.sdk.Run(ctx, &mcp.IOTransport{Reader: &eofReader{ReadCloser: in, gone: gone}, Writer: out})
	if err != nil && (ctx.Err() != nil || errors.Is(err, io.EOF)) {
		return nil // ctx ended, or the client has gone
	}
	return err
}

// eofReader signals the end of the input: the client has gone.
type eofReader struct {
	io.ReadCloser
	gone func()
}

func (e *eofReader) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil {
		e.gone()
	}
	return n, err
}

// inHeader marks an input property that clients of the newer protocol repeat in a header, for
// proxies.
const inHeader = `"x-mcp-header"`

// watchHeaders makes the SDK compare those headers with the arguments. The SDK does so only for
// its own tools: so tools with such properties are registered with it, but still listed and
// called by this package.
func (s *server) watchHeaders() {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	now := map[string]string{}
	for _, tool := range s.gw.Tools() {
		if !bytes.Contains(tool.Definition, []byte(inHeader)) {
			continue
		}
		now[tool.Name] = string(tool.Definition)
		if s.watched[tool.Name] != now[tool.Name] && !s.watch(tool) {
			delete(now, tool.Name)
		}
	}
	for name := range s.watched {
		if now[name] == "" {
			s.sdk.RemoveTools(name)
		}
	}
	s.watched = now
}

// watch registers one tool. Clients skip a tool with invalid header rules. The SDK panics on
// them; then nothing is compared.
func (s *server) watch(tool gateway.Tool) (ok bool) {
	var d struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(tool.Definition, &d) != nil {
		return false
	}
	defer func() {
		if why := recover(); why != nil {
			s.log.Warn("the headers of a tool are not compared with its arguments: its schema violates their rules", "tool", tool.Name, "why", why)
			ok = false
		}
	}()
	s.sdk.AddTool(&mcp.Tool{Name: tool.Name, InputSchema: d.InputSchema},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errNoOwnTools })
	return true
}

// hasHeaderParams reports whether calls of a tool repeat arguments in
// headers.
func (s *server) hasHeaderParams(tool string) bool {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	return s.watched[tool] != ""
}
