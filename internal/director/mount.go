package director

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// handler answers a request or returns why it did not.
type handler func(w http.ResponseWriter, r *http.Request) error

// handlers has one handler for each route, by the route's name.
func (d *Director) handlers() map[string]handler {
	return map[string]handler{
		"submit":        d.submit,
		"submitTask":    d.submitTask,
		"queue":         d.queue,
		"task":          d.task,
		"find":          d.find,
		"cancel":        d.cancel,
		"retry":         d.retry,
		"why":           d.why,
		"output":        d.output,
		"pause":         d.pause,
		"resume":        d.resume,
		"history":       d.history,
		"events":        d.events,
		"agents":        d.agents,
		"registerAgent": d.registerAgent,
		"heartbeat":     d.heartbeat,
		"claim":         d.claim,
		"report":        d.report,
		"removeAgent":   d.removeAgent,
		"clearLane":     d.clearLane,
		"releaseLane":   d.releaseLane,
		"lane":          d.lane,
		"chat":          d.chat,
		"bypass":        d.bypass,
		"sessions":      d.sessions,
		"activities":    d.activities,
		"activity":      d.activity,

		"openTerminal":   d.openTerminal,
		"terminal":       d.terminal,
		"archiveSession": d.archiveSession,
		"restoreSession": d.restoreSession,

		"audit":          d.auditLog,
		"auditHead":      d.auditHead,
		"me":             d.me,
		"prove":          d.prove,
		"login":          d.login,
		"useLink":        d.useLink,
		"makeLink":       d.makeLink,
		"logout":         d.logout,
		"loginPage":      d.loginPage,
		"loginScript":    d.loginScript,
		"tokens":         d.tokens,
		"createToken":    d.fresh(d.createToken),
		"revokeToken":    d.fresh(d.revokeToken),
		"users":          d.users,
		"putUser":        d.fresh(d.putUser),
		"removeUser":     d.fresh(d.removeUser),
		"tools":          d.tools,
		"toolQueues":     d.toolQueues,
		"callTool":       d.callTool,
		"createToolTask": d.createToolTask,
		"toolTasks":      d.toolTasks,
		"toolTask":       d.toolTask,
		"cancelToolTask": d.cancelToolTask,
		"getTaskStatus":  d.getTaskStatus,
		"directors":      d.directors,
		"doctor":         d.doctor,

		"schedules":       d.schedules,
		"createSchedule":  d.createSchedule,
		"schedule":        d.schedule,
		"putSchedule":     d.putSchedule,
		"removeSchedule":  d.removeSchedule,
		"enableSchedule":  d.enableSchedule,
		"disableSchedule": d.disableSchedule,
		"triggerSchedule": d.triggerSchedule,
		"executions":      d.executions,
		"checkCron":       d.checkCron,
		"search":          d.search,
		"bulk":            d.bulk,
		"export":          d.export,
		"import":          d.importTasks,
		"live":            d.live,
		"home":            d.home,
		"page":            d.page,
		"asset":           d.page,
		"mcp":             d.mcp,
		"mcpStream":       d.mcp,
		"mcpEnd":          d.mcp,
		"status":          d.status,
		"openapi":         d.describe,
		"healthz":         d.healthz,
		"readyz":          d.readyz,
		"metrics":         d.metrics,
	}
}

// mount walks the route table: deny by default.
func (d *Director) mount() (*http.ServeMux, error) {
	handlers := d.handlers()
	if !d.cfg.ToolsOnly {
		return d.mountRoutes(api.Routes(), handlers)
	}
	maps.DeleteFunc(handlers, func(name string, _ handler) bool { return !aboutTools[name] })
	return d.mountRoutes(toolRoutes(), handlers)
}

// aboutTools names the routes of a gateway alone.
var aboutTools = map[string]bool{
	"tools": true, "toolQueues": true, "callTool": true, "mcp": true, "mcpStream": true, "mcpEnd": true,
	"createToolTask": true, "toolTasks": true, "toolTask": true, "cancelToolTask": true, "getTaskStatus": true, "doctor": true,
	"me": true, "prove": true, "openapi": true, "healthz": true, "readyz": true, "metrics": true,
}

func toolRoutes() []api.Route {
	return slices.DeleteFunc(api.Routes(), func(r api.Route) bool { return !aboutTools[r.Name] })
}

func (d *Director) mountRoutes(routes []api.Route, handlers map[string]handler) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	for _, route := range routes {
		h, ok := handlers[route.Name]
		if !ok {
			return nil, fmt.Errorf("director: no handler for route %s (%s %s)", route.Name, route.Method, route.Path)
		}
		delete(handlers, route.Name)
		mux.Handle(route.Method+" "+route.Path, d.guard(route, h))
	}
	if len(handlers) > 0 {
		return nil, fmt.Errorf("director: handlers without a route: %s", strings.Join(slices.Sorted(maps.Keys(handlers)), ", "))
	}
	return mux, nil
}

// guard wraps a handler with what its route asks for: the caller's right and
// limits, no query parameter that the table does not name, JSON on writes.
func (d *Director) guard(route api.Route, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteRoute(w, route.Name)
		c, err := d.gate.admit(r, route)
		r = traced(r.WithContext(withCaller(r.Context(), c)))
		if err == nil {
			err = d.pass(w, r, route, h)
		}
		if err == nil {
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeForbidden {
			d.auditDenied(r, route.Name)
		}
		d.answerError(w, r, discreet(err, r, c))
	})
}

// pass hands a request of a caller with the right to the handler.
func (d *Director) pass(w http.ResponseWriter, r *http.Request, route api.Route, h handler) error {
	c := callerOf(r)
	if err := checkQuery(r, route); err != nil {
		return err
	}
	if err := checkMedia(r); err != nil {
		return err
	}
	if route.Scope != api.ScopePublic && route.Scope != api.ScopeTicket && !d.cfg.ToolsOnly { // there nobody was asked who they are, or could prove to be an agent
		if _, err := callOf(r); err != nil {
			return err
		}
	}
	if err := d.findImported(r, route); err != nil {
		return err
	}
	if err := d.narrow(r, route, c); err != nil {
		return err
	}
	if route.Request == nil && hasBody(r) && isWrite(r) && route.Path != mcpPath {
		if err := decode(w, r, &struct{}{}, true); err != nil {
			return err
		}
	}
	during, done := d.whileAllowed(r, route, c)
	defer done()
	err := h(w, during)
	if during.Context().Err() != nil && r.Context().Err() == nil && !hasAnswered(w) {
		return signalbox.Errorf(signalbox.CodeUnauthorized, "what was shown is no longer in force")
	}
	return err
}

// hasAnswered reports whether there is an answer already.
func hasAnswered(w http.ResponseWriter) bool {
	rec, ok := w.(*recorder)
	return ok && rec.status != 0
}

// unmatched answers what no route matches, in JSON: 405 where the path
// exists for another method, else 404.
func (d *Director) unmatched(w http.ResponseWriter, r *http.Request, fallback http.Handler) {
	c := captured{header: http.Header{}}
	fallback.ServeHTTP(&c, r)
	if allow := c.header.Get("Allow"); c.status == http.StatusMethodNotAllowed && allow != "" {
		w.Header().Set("Allow", allow)
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeMethodNotAllowed, "%s is not possible on %s: use %s", clip(r.Method), clip(r.URL.Path), allow))
		return
	}
	what := "there is nothing at %s"
	if d.cfg.ToolsOnly {
		what = "there is nothing at %s: this is a gateway alone, which has tools and no queue of tasks; signalbox up or signalbox director has both"
	}
	d.answerError(w, r, refuse(signalbox.CodeNotFound, "GET /openapi.json lists all paths", what, clip(r.URL.Path)))
}

// captured takes the answer of the mux for itself.
type captured struct {
	header http.Header
	status int
}

func (c *captured) Header() http.Header         { return c.header }
func (c *captured) Write(b []byte) (int, error) { return len(b), nil }
func (c *captured) WriteHeader(status int)      { c.status = status }
