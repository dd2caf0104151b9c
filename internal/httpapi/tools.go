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

// Tools are the tools behind the gateway; *gateway.Gateway has them.
type Tools interface {
	Tools() []gateway.Tool
	Tool(name string) (gateway.Tool, bool)
	Servers() []gateway.Server
	Queues() []toolqueue.Status
	// SetQueue changes the bounds of a tool queue, OpenQueue opens a closed one. An unknown queue
	// is toolqueue.ErrUnknown.
	SetQueue(queue string, change func(*toolqueue.Config)) (before toolqueue.Config, err error)
	OpenQueue(queue string) (closed int, err error)
	// OnCall has f called when a call of this director begins to wait, gets its slot or
	// gives it back, or a bound of a queue was changed.
	OnCall(f func())
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
}

// toolHandlers list and call the tools behind the gateway.
type toolHandlers struct {
	tools     Tools        // nil: there are none
	server    http.Handler // the MCP server with them; nil: there is none
	tasks     ToolTasks    // nil: no call can be a task
	toolsOnly bool
	agentName string
	engine    *engine.Engine
	audit     *access.AuditLog
	forward   *forward.Forwarder
	traces    Traces // nil: calls are traced as their callers say
	streams   *httpio.Streams
	log       *slog.Logger
	life      context.Context
}

// errNoTools answers for the tools of a director that has none.
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

// toolRate is the rate that a request sets, none for nil.
func toolRate(set *api.SetToolRate) (r toolqueue.Rate, err error) {
	if set == nil {
		return r, nil
	}
	if per := set.PerSeconds; per < 0 || per > toolqueue.MaxPer.Seconds() {
		return r, signalbox.Invalid("rate.per_seconds", "rate.per_seconds must be %g to %g, not %g", toolqueue.MinPer.Seconds(), toolqueue.MaxPer.Seconds(), per)
	}
	r = toolqueue.Rate{N: set.N, Per: time.Duration(set.PerSeconds * float64(time.Second)), Burst: set.Burst}
	if text := r.Check(); text != "" {
		return r, signalbox.Invalid("rate", "%s; n 0 with nothing else takes the rate off", text)
	}
	return r, nil
}

// rateText is a rate in the audit log.
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

// noQueue is what a caller is told who has named a tool queue that there is not.
func (h *toolHandlers) noQueue(name string, err error) error {
	if errors.Is(err, toolqueue.ErrUnknown) {
		return httpio.Refuse(signalbox.CodeNotFound, h.queueNames(), "there is no tool queue %q", httpio.Clip(name))
	}
	return err
}

// queueNames is the hint for a tool queue that there is not.
func (h *toolHandlers) queueNames() string {
	const most = 20
	var names []string
	for _, q := range h.tools.Queues() {
		names = append(names, q.Name)
	}
	switch {
	case len(names) == 0:
		return "this director has no tool queues: they begin with the tools in its configuration, which names none"
	case len(names) > most:
		return fmt.Sprintf("its tool queues are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "its tool queues are " + strings.Join(names, ", ")
}

// Sessions of calls. The word in front keeps what one way in calls a session
// from being that of another, and the principal keeps callers apart: whoever
// has a session's name has its slots.
const (
	namedSession     = "named:"
	executionSession = "execution:"
	tokenSession     = "token:"
	sessionHeader    = "X-Signalbox-Session"
)

// maxSessionName bounds the name that a caller gives its session.
const maxSessionName = 128

// toolCaller says who calls a tool, and in which session: the one that the
// caller names, else that of the execution in which the call is made, else that
// of its token. An agent that runs several executions and does not say which
// one calls has none: they would share what is held for one.
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

// claimedAgent is what a caller says of the agent that it is. A gateway alone knows
// no agents whose token could prove it, and nothing hangs on it there.
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
	_ = json.Unmarshal(t.Definition, &def) // what of it is of another type is left out
	if len(def.Input) == 0 {
		def.Input = json.RawMessage(`{"type":"object"}`)
	}
	return api.Tool{
		Name: t.Name, Title: cmp.Or(def.Title, def.Annotations.Title), Description: def.Description, Server: t.Server, Kind: string(t.Kind),
		Queue: t.Queue, TimeoutSeconds: t.Timeout.Seconds(), InputSchema: def.Input, OutputSchema: def.Output,
		Async: t.Async, Secrets: t.Secrets,
	}
}

// mcpSessionHeader names an MCP session of the older protocol, which lives in
// the director where it began. Behind a balancer its requests come to any of
// them: the name that a client is given ends with a mark of that director, to
// which the others pass them on. A session whose director has gone is known to
// nobody: its client is told 404, as the protocol wants, and begins anew.
const mcpSessionHeader = "Mcp-Session-Id"

// markOf is the mark of a director in the names of its sessions.
func markOf(director string) string {
	sum := sha256.Sum256([]byte(director))
	return hex.EncodeToString(sum[:6])
}

// sessionAt is where the MCP session of a request lives, and the name that it
// has there.
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

// sessionMarker marks the name of a session that an answer gives to a client.
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

// FlushError is there because a flush may begin the answer.
func (w *sessionMarker) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *sessionMarker) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// mcpPath is that of the MCP server, whose bodies have rules of their own.
const mcpPath = "/mcp"

// mcp is all methods of /mcp. The gate has been passed; from here the protocol
// has its own rules and its own errors.
func (h *toolHandlers) mcp(w http.ResponseWriter, r *http.Request) error {
	if h.server == nil {
		return errNoTools()
	}
	if r.Method == http.MethodGet { // it stays open for as long as the client likes
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
		// The SDK would read it under the deadline for bodies and leave that in
		// force, which would end the call when it is over.
		body, err := httpio.ReadBody(w, r, httpio.MaxCallBytes)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	ctx, cancel := httpio.Until(h.within(queuetools.WithCaller(r, access.CallerOf(r).Who), who), h.life)
	defer cancel()
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers would hold events back
	h.server.ServeHTTP(w, r.WithContext(gateway.WithCaller(ctx, who)))
	return nil
}

// within makes what is called in an execution a part of its trace, where the
// caller names no trace itself.
func (h *toolHandlers) within(ctx context.Context, who gateway.Caller) context.Context {
	if h.traces == nil {
		return ctx
	}
	return h.traces.Context(ctx, who.Execution)
}
