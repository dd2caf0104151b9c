package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Tools are the tools behind the gateway; *gateway.Gateway implements it.
type Tools interface {
	Tools() []gateway.Tool
	Tool(name string) (gateway.Tool, bool)
	Servers() []gateway.Server
	Queues() []toolqueue.Status
	// SetQueue changes the limits of a tool queue, OpenQueue opens a closed one. The error for an
	// unknown queue is toolqueue.ErrUnknown.
	SetQueue(queue string, change func(*toolqueue.Config)) (before toolqueue.Config, err error)
	OpenQueue(queue string) (closed int, err error)
	// OnCall registers f, which is called when a call of this director starts to wait, gets
	// its slot or releases it, and when a limit of a queue was changed.
	OnCall(f func())
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
}

// toolHandlers list and call the tools behind the gateway.
type toolHandlers struct {
	tools     Tools        // nil: no tools
	server    http.Handler // the MCP server for the tools; nil: none
	tasks     ToolTasks    // nil: no call can be a task
	toolsOnly bool
	agentName string
	engine    *engine.Engine
	audit     *access.AuditLog
	forward   *forward.Forwarder
	traces    Traces // nil: only the callers' traces are used
	streams   *httpio.Streams
	log       *slog.Logger
	life      context.Context
}

// errNoTools is the error of a director without tools.
func errNoTools() error {
	return httpio.Refuse(signalbox.CodeNotFound, "name MCP servers, REST tools or commands in its configuration (mcpServers, restTools, openapiSpecs, commandTools), or start it with --tools FILE",
		"this director has no tools")
}

// list is GET /api/tools.
func (h *toolHandlers) list(w http.ResponseWriter, _ *http.Request) error {
	if h.tools == nil {
		return errNoTools()
	}
	tools, servers := h.tools.Tools(), h.tools.Servers()
	out := api.Tools{Tools: make([]api.Tool, len(tools)), Servers: make([]api.ToolServer, len(servers))}
	for i := range tools {
		out.Tools[i] = toolView(&tools[i])
	}
	for i := range servers {
		s := &servers[i]
		out.Servers[i] = api.ToolServer{
			Name: s.Name, Kind: string(s.Kind), State: string(s.State), Error: s.Error,
			Restarts: s.Restarts, PIDs: s.PIDs, Tools: s.Tools, Since: s.Since.UTC(),
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// toolQueues is GET /api/tools/queues.
func (h *toolHandlers) toolQueues(w http.ResponseWriter, r *http.Request) error {
	if h.tools == nil {
		return errNoTools()
	}
	queues, c := h.tools.Queues(), access.CallerOf(r)
	out := api.ToolQueues{Queues: make([]api.ToolQueue, len(queues))}
	for i := range queues {
		out.Queues[i] = view.ToolQueue(&queues[i], c.Who)
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// setToolQueue is PUT /api/tools/queues/{queue}.
func (h *toolHandlers) setToolQueue(w http.ResponseWriter, r *http.Request) error {
	var req api.SetToolQueue
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return err
	}
	if h.tools == nil {
		return errNoTools()
	}
	if req.Rate == nil && req.Concurrent == 0 || req.Concurrent < 0 || req.Concurrent > toolqueue.MaxConcurrent {
		return signalbox.Invalid("concurrent", "concurrent must be 1 to %d, not %d", toolqueue.MaxConcurrent, req.Concurrent)
	}
	rate, err := toolRate(req.Rate)
	if err != nil {
		return err
	}
	name := r.PathValue("queue")
	was, err := h.tools.SetQueue(name, func(c *toolqueue.Config) {
		c.Concurrent = cmp.Or(req.Concurrent, c.Concurrent)
		if req.Rate != nil {
			c.Rate = rate
		}
	})
	if err != nil {
		return h.noQueue(name, err)
	}
	before, after := map[string]any{}, map[string]any{}
	if req.Concurrent > 0 {
		before["concurrent"], after["concurrent"] = was.Concurrent, req.Concurrent
	}
	if req.Rate != nil {
		before["rate"], after["rate"] = rateText(was.Rate), rateText(rate)
	}
	return h.audit.WriteAndAnswer(w, r, signalbox.Audit{
		EventType: "tool_queue", Action: "set", Resource: name,
		Details: signalbox.AuditDetails(map[string]any{"before": before, "after": after}),
	}, http.StatusOK, api.ToolQueueSet{Before: was.Concurrent, RateBefore: view.ToolRate(was.Rate), Queue: h.queueView(r, name)})
}

// openToolQueue is POST /api/tools/queues/{queue}/open.
func (h *toolHandlers) openToolQueue(w http.ResponseWriter, r *http.Request) error {
	if h.tools == nil {
		return errNoTools()
	}
	name := r.PathValue("queue")
	closed, err := h.tools.OpenQueue(name)
	if err != nil {
		return h.noQueue(name, err)
	}
	return h.audit.WriteAndAnswer(w, r, signalbox.Audit{
		EventType: "tool_queue", Action: "open", Resource: name, Details: signalbox.AuditDetails(map[string]any{"opened": closed}),
	}, http.StatusOK, api.ToolQueueOpened{Opened: closed, Queue: h.queueView(r, name)})
}

// toolRate converts the rate of a request; nil is no rate.
func toolRate(set *api.SetToolRate) (r toolqueue.Rate, err error) {
	if set == nil {
		return r, nil
	}
	if per := set.PerSeconds; per < 0 || per > toolqueue.MaxPer.Seconds() {
		return r, signalbox.Invalid("rate.per_seconds", "rate.per_seconds must be %g to %g, not %g", toolqueue.MinPer.Seconds(), toolqueue.MaxPer.Seconds(), per)
	}
	r = toolqueue.Rate{N: set.N, Per: time.Duration(set.PerSeconds * float64(time.Second)), Burst: set.Burst}
	if text := r.Check(); text != "" {
		return r, signalbox.Invalid("rate", "%s; n 0 with nothing else removes the rate", text)
	}
	return r, nil
}

// rateText is the form of a rate in the audit log.
func rateText(r toolqueue.Rate) string {
	if r.N == 0 {
		return "none"
	}
	return fmt.Sprintf("%d/%s, burst %d", r.N, r.Per, max(1, r.Burst))
}

func (h *toolHandlers) queueView(r *http.Request, name string) (out api.ToolQueue) {
	for _, q := range h.tools.Queues() {
		if q.Name == name {
			out = view.ToolQueue(&q, access.CallerOf(r).Who)
		}
	}
	return out
}

// noQueue returns the error for an unknown tool queue.
func (h *toolHandlers) noQueue(name string, err error) error {
	if errors.Is(err, toolqueue.ErrUnknown) {
		return httpio.Refuse(signalbox.CodeNotFound, h.queueNames(), "there is no tool queue %q", httpio.Clip(name))
	}
	return err
}

// queueNames is the hint for an unknown tool queue.
func (h *toolHandlers) queueNames() string {
	const most = 20
	var names []string
	for _, q := range h.tools.Queues() {
		names = append(names, q.Name)
	}
	switch {
	case len(names) == 0:
		return "this director has no tool queues, because its configuration has no tools"
	case len(names) > most:
		return fmt.Sprintf("its tool queues are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "its tool queues are " + strings.Join(names, ", ")
}

// Sessions of calls. The prefix separates the sessions of different interfaces, and the
// principal separates callers: a client that knows a session's name can use its slots.
const (
	namedSession     = "named:"
	executionSession = "execution:"
	tokenSession     = "token:"
	sessionHeader    = "X-Signalbox-Session"
)

// maxSessionName limits the name that a caller gives its session.
const maxSessionName = 128

// toolCaller returns the caller of a tool and its session: the named one, else that of
// the calling execution, else that of the token. An agent with several executions that
// does not name the calling one has no session, because they would share its slots.
func (h *toolHandlers) toolCaller(r *http.Request, named string) (gateway.Caller, error) {
	who := access.CallerOf(r).Who
	c := gateway.Caller{Principal: who.Key(), Who: who}
	several := false
	switch {
	case h.toolsOnly:
		c.Agent, c.Execution = claimedAgent(r)
	case who.Kind == signalbox.PrincipalAgent:
		c.Agent = who.ID
		execution, err := access.ExecutionOf(r)
		if err != nil {
			return c, err
		}
		if c.Execution, several, err = h.engine.ExecutionOf(r.Context(), who.ID, execution); err != nil {
			return c, err
		}
	}
	if named == "" {
		named = r.Header.Get(sessionHeader)
	}
	if !validSessionName(named) {
		return c, signalbox.Invalid(sessionHeader, "a session's name has at most %d printable characters, not %q", maxSessionName, httpio.Clip(named))
	}
	switch {
	case named != "":
		c.Session = namedSession + c.Principal + ":" + named
	case c.Execution != "":
		c.Session = executionSession + c.Execution
	case who.TokenID != "" && !several:
		c.Session = tokenSession + who.TokenID
	}
	return c, nil
}

// claimedAgent returns the agent and execution that a caller claims to be. A standalone
// gateway has no agents' tokens that could prove it, and nothing depends on it there.
func claimedAgent(r *http.Request) (agent, execution string) {
	if name := r.Header.Get(httpio.SourceAgentHeader); signalbox.ValidName(name) {
		agent = name
	}
	if id := r.Header.Get(httpio.ExecutionHeader); signalbox.ValidID(id) {
		execution = id
	}
	return agent, execution
}

func validSessionName(s string) bool {
	return len(s) <= maxSessionName && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

func toolView(t *gateway.Tool) api.Tool {
	var def struct {
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
		Annotations struct {
			Title string `json:"title"`
		} `json:"annotations"`
	}
	_ = json.Unmarshal(t.Definition, &def) // fields of other types are left out
	if len(def.Input) == 0 {
		def.Input = json.RawMessage(`{"type":"object"}`)
	}
	return api.Tool{
		Name: t.Name, Title: cmp.Or(def.Title, def.Annotations.Title), Description: def.Description, Server: t.Server, Kind: string(t.Kind),
		Queue: t.Queue, TimeoutSeconds: t.Timeout.Seconds(), InputSchema: def.Input, OutputSchema: def.Output,
		Async: t.Async, Secrets: t.Secrets,
	}
}

// mcpSessionHeader names an MCP session of the older protocol, which is in the memory of
// the director where it started. Behind a load balancer its requests may reach any
// director, so the name for the client ends with a mark of that director, and the others
// forward the requests to it. If that director is gone, the client gets 404, as the
// protocol requires, and starts a new session.
const mcpSessionHeader = "Mcp-Session-Id"

// markOf returns the mark of a director in the names of its sessions.
func markOf(director string) string {
	sum := sha256.Sum256([]byte(director))
	return hex.EncodeToString(sum[:6])
}

// sessionAt returns the director of an MCP session, and the session's name there.
func (h *toolHandlers) sessionAt(ctx context.Context, name string) (other store.Director, own string, elsewhere bool) {
	if h.forward.Peers == nil {
		return other, name, false
	}
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return other, name, false
	}
	own, mark := name[:at], name[at+1:]
	if mark == markOf(h.forward.Peers.Self().ID) {
		return other, own, false
	}
	for _, other := range h.forward.Others(ctx) {
		if mark == markOf(other.ID) && other.URL != "" {
			return other, name, true
		}
	}
	return other, name, false
}

// sessionMarker adds the mark to the session name in an answer.
type sessionMarker struct {
	http.ResponseWriter
	mark string
	done bool
}

func (w *sessionMarker) begin() {
	if w.done {
		return
	}
	w.done = true
	if name := w.Header().Get(mcpSessionHeader); name != "" {
		w.Header().Set(mcpSessionHeader, name+"."+w.mark)
	}
}

func (w *sessionMarker) WriteHeader(status int) {
	w.begin()
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionMarker) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// FlushError marks the session name, because a flush may start the answer.
func (w *sessionMarker) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *sessionMarker) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// mcpPath is the path of the MCP server, whose bodies have their own rules.
const mcpPath = "/mcp"

// mcp handles all methods of /mcp. The caller was admitted already; the protocol has its
// own rules and errors.
func (h *toolHandlers) mcp(w http.ResponseWriter, r *http.Request) error {
	if h.server == nil {
		return errNoTools()
	}
	if r.Method == http.MethodGet { // a stream that the client keeps open
		leave, err := h.streams.Reserve()
		if err != nil {
			return err
		}
		defer leave()
	}
	if h.forward.Peers != nil {
		other, name, elsewhere := h.sessionAt(r.Context(), r.Header.Get(mcpSessionHeader))
		if elsewhere {
			return h.forward.Proxy(w, r, other, "this MCP session")
		}
		if name != "" {
			r.Header.Set(mcpSessionHeader, name)
		}
		w = &sessionMarker{ResponseWriter: w, mark: markOf(h.forward.Peers.Self().ID)}
	}
	who, err := h.toolCaller(r, "")
	if err != nil {
		return err
	}
	if httpio.HasBody(r) {
		// The SDK would read the body with the read deadline and not reset it, which
		// would end a long call.
		body, err := httpio.ReadBody(w, r, httpio.MaxCallBytes)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := httpio.Until(h.within(queuetools.WithCaller(r, access.CallerOf(r).Who), who), h.life)
	defer cancel()
	w.Header().Set("X-Accel-Buffering", "no") // keeps proxies from buffering events
	h.server.ServeHTTP(w, r.WithContext(gateway.WithCaller(ctx, who)))
	return nil
}

// within adds the trace of the caller's execution, unless the caller has sent a trace.
func (h *toolHandlers) within(ctx context.Context, who gateway.Caller) context.Context {
	if h.traces == nil {
		return ctx
	}
	return h.traces.Context(ctx, who.Execution)
}
