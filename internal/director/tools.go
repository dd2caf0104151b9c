package director

import (
	"context"
	"net/http"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Tools are the tools behind the gateway; *gateway.Gateway has them.
type Tools interface {
	Tools() []gateway.Tool
	Tool(name string) (gateway.Tool, bool)
	Servers() []gateway.Server
	Queues() []toolqueue.Status
	Call(ctx context.Context, c gateway.Call) (gateway.Result, error)
}

// errNoTools answers for the tools of a director that has none.
func errNoTools() error {
	return refuse(signalbox.CodeNotFound, "name MCP servers, REST tools or commands in its configuration (mcpServers, restTools, openapiSpecs, commandTools), or start it with --tools FILE",
		"this director has no tools")
}

// tools is GET /api/tools.
func (d *Director) tools(w http.ResponseWriter, _ *http.Request) error {
	if d.cfg.Tools == nil {
		return errNoTools()
	}
	tools, servers := d.cfg.Tools.Tools(), d.cfg.Tools.Servers()
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
	d.answer(w, http.StatusOK, out)
	return nil
}

// toolQueues is GET /api/tools/queues.
func (d *Director) toolQueues(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.Tools == nil {
		return errNoTools()
	}
	queues, c := d.cfg.Tools.Queues(), callerOf(r)
	out := api.ToolQueues{Queues: make([]api.ToolQueue, len(queues))}
	for i := range queues {
		out.Queues[i] = toolQueueView(&queues[i], c)
	}
	d.answer(w, http.StatusOK, out)
	return nil
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
func (d *Director) toolCaller(r *http.Request, named string) (gateway.Caller, error) {
	who := callerOf(r).who
	c := gateway.Caller{Principal: who.Key(), Who: who}
	several := false
	switch {
	case d.cfg.ToolsOnly:
		c.Agent, c.Execution = toldOf(r)
	case who.Kind == signalbox.PrincipalAgent:
		c.Agent = who.ID
		execution, err := callOf(r)
		if err != nil {
			return c, err
		}
		if c.Execution, several, err = d.engine.ExecutionOf(r.Context(), who.ID, execution); err != nil {
			return c, err
		}
	}
	if named == "" {
		named = r.Header.Get(sessionHeader)
	}
	if !validSessionName(named) {
		return c, signalbox.Invalid(sessionHeader, "a session's name has at most %d printable characters, not %q", maxSessionName, clip(named))
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

// toldOf is what a caller says of the agent that it is. A gateway alone knows
// no agents whose token could prove it, and nothing hangs on it there.
func toldOf(r *http.Request) (agent, execution string) {
	if name := r.Header.Get(sourceAgentHeader); signalbox.ValidName(name) {
		agent = name
	}
	if id := r.Header.Get(executionHeader); signalbox.ValidID(id) {
		execution = id
	}
	return agent, execution
}

func validSessionName(s string) bool {
	return len(s) <= maxSessionName && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
