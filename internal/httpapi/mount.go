package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// mount walks the route table: deny by default.
func (d *Server) mount() (*http.ServeMux, error) {
	endpoints := d.endpoints()
	if d.cfg.ToolsOnly {
		maps.DeleteFunc(endpoints, func(_ string, e endpoint) bool { return !e.gateway })
	}
	return d.mountRoutes(d.served(), endpoints)
}

func (d *Server) mountRoutes(routes []api.Route, endpoints map[string]endpoint) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	for _, route := range routes {
		e, ok := endpoints[route.Name]
		if !ok {
			return nil, fmt.Errorf("httpapi: no handler for route %s (%s %s)", route.Name, route.Method, route.Path)
		}
		delete(endpoints, route.Name)
		mux.Handle(route.Method+" "+route.Path, d.guard(route, e))
	}
	if len(endpoints) > 0 {
		return nil, fmt.Errorf("httpapi: handlers without a route: %s", strings.Join(slices.Sorted(maps.Keys(endpoints)), ", "))
	}
	return mux, nil
}

// guard wraps a handler with what its route asks for: the caller's right and
// limits, no query parameter that the table does not name, JSON on writes.
func (d *Server) guard(route api.Route, e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpio.NoteRoute(w, route.Name)
		c, err := d.gate.Admit(r, route)
		r = traced(r.WithContext(access.WithCaller(r.Context(), c)))
		if err == nil {
			err = d.pass(w, r, route, e)
		}
		if err == nil {
			return
		}
		if signalbox.CodeOf(err) == signalbox.CodeForbidden {
			d.audit.WriteDenied(r, route.Name)
		}
		d.answerError(w, r, access.Discreet(err, r, c))
	})
}

// pass hands a request of a caller with the right to the handler.
func (d *Server) pass(w http.ResponseWriter, r *http.Request, route api.Route, e endpoint) error {
	c := access.CallerOf(r)
	if err := httpio.CheckQuery(r, route); err != nil {
		return err
	}
	if err := httpio.CheckMedia(r); err != nil {
		return err
	}
	if route.Scope != api.ScopePublic && route.Scope != api.ScopeTicket && !d.cfg.ToolsOnly { // there nobody was asked who they are, or could prove to be an agent
		if _, err := access.ExecutionOf(r); err != nil {
			return err
		}
	}
	if err := d.findImported(r, route); err != nil {
		return err
	}
	if err := d.gate.Narrow(r, route, e.narrow, c); err != nil {
		return err
	}
	if route.Request == nil && httpio.HasBody(r) && httpio.IsWrite(r) && route.Path != mcpPath {
		if err := httpio.Decode(w, r, &struct{}{}, true); err != nil {
			return err
		}
	}
	during := r
	if e.lasting {
		var done func()
		during, done = d.gate.WhileAllowed(r, c)
		defer done()
	}
	err := e.handle(w, during)
	if during.Context().Err() != nil && r.Context().Err() == nil && !httpio.HasAnswered(w) {
		return signalbox.Errorf(signalbox.CodeUnauthorized, "what was shown is no longer in force")
	}
	return err
}

// unmatched answers what no route matches, in JSON: 405 where the path
// exists for another method, else 404.
func (d *Server) unmatched(w http.ResponseWriter, r *http.Request, allow string) {
	if allow != "" {
		w.Header().Set("Allow", allow)
		d.answerError(w, r, signalbox.Errorf(signalbox.CodeMethodNotAllowed, "%s is not possible on %s: use %s", httpio.Clip(r.Method), httpio.Clip(r.URL.Path), allow))
		return
	}
	what := "there is nothing at %s"
	if d.cfg.ToolsOnly {
		what = "there is nothing at %s: this is a gateway alone, which has tools and no queue of tasks; signalbox up or signalbox director has both"
	}
	d.answerError(w, r, httpio.Refuse(signalbox.CodeNotFound, "GET /openapi.json lists all paths", what, httpio.Clip(r.URL.Path)))
}

// endpoint is what the director has for a route of api.Routes.
type endpoint struct {
	handle httpio.Handler
	narrow access.Narrowing // for callers that are limited to some agents; admins have no limits
	// lasting answers may take long. They end when what their caller showed is
	// no longer in force, not only when it comes again.
	lasting bool
	gateway bool // a gateway alone has it, too
}

// endpoints has one endpoint for each route, by the route's name. Figures of the
// whole (depth, counts, positions) are shown to callers with limits, too.
func (d *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"submit":     {handle: d.submit, narrow: access.ByHandler},
		"submitTask": {handle: d.submitTask, narrow: access.ByHandler},
		"queue":      {handle: d.queue, narrow: access.ByHandler},
		"task":       {handle: d.task, narrow: access.OfTask, lasting: true},
		"find":       {handle: d.find, narrow: access.ByHandler},
		"cancel":     {handle: d.cancel, narrow: access.OfTask},
		"retry":      {handle: d.retry, narrow: access.OfTask},
		"why":        {handle: d.why, narrow: access.OfTask},
		"output":     {handle: d.output, narrow: access.OfTask, lasting: true},
		"pause":      {handle: d.pause},
		"resume":     {handle: d.resume},
		"history":    {handle: d.history, narrow: access.ByHandler},
		"search":     {handle: d.search, narrow: access.ByHandler},
		"bulk":       {handle: d.bulk, narrow: access.ByHandler},
		"export":     {handle: d.export},
		"import":     {handle: d.importTasks},

		"events":     {handle: d.events, narrow: access.ByHandler, lasting: true},
		"live":       {handle: d.live, narrow: access.ByHandler, lasting: true},
		"activities": {handle: d.activities, narrow: access.ByHandler},
		"activity":   {handle: d.activity, narrow: access.OfTask},

		"agents":         {handle: d.agents, narrow: access.ByHandler},
		"registerAgent":  {handle: d.registerAgent, narrow: access.ByHandler},
		"heartbeat":      {handle: d.heartbeat, narrow: access.OfAgent},
		"claim":          {handle: d.claim, narrow: access.OfAgent, lasting: true},
		"report":         {handle: d.report, narrow: access.OfAgent},
		"removeAgent":    {handle: d.removeAgent},
		"clearLane":      {handle: d.clearLane, narrow: access.OfAgent},
		"releaseLane":    {handle: d.releaseLane, narrow: access.OfAgent},
		"lane":           {handle: d.lane, narrow: access.OfAgent},
		"chat":           {handle: d.chat, narrow: access.OfAgent, lasting: true},
		"bypass":         {handle: d.bypass, narrow: access.OfAgent, lasting: true},
		"openTerminal":   {handle: d.openTerminal, narrow: access.OfAgent},
		"terminal":       {handle: d.terminal, narrow: access.Free}, // its ticket was given to one that may
		"sessions":       {handle: d.sessions, narrow: access.ByHandler},
		"archiveSession": {handle: d.archiveSession, narrow: access.ByHandler},
		"restoreSession": {handle: d.restoreSession, narrow: access.ByHandler},

		"schedules":       {handle: d.schedules, narrow: access.ByHandler},
		"createSchedule":  {handle: d.createSchedule, narrow: access.ByHandler},
		"schedule":        {handle: d.schedule, narrow: access.ByHandler},
		"putSchedule":     {handle: d.putSchedule, narrow: access.ByHandler},
		"removeSchedule":  {handle: d.removeSchedule, narrow: access.ByHandler},
		"enableSchedule":  {handle: d.enableSchedule, narrow: access.ByHandler},
		"disableSchedule": {handle: d.disableSchedule, narrow: access.ByHandler},
		"triggerSchedule": {handle: d.triggerSchedule, narrow: access.ByHandler},
		"executions":      {handle: d.executions, narrow: access.ByHandler},
		"checkCron":       {handle: d.checkCron, narrow: access.Free},

		"tools":          {handle: d.tools, narrow: access.Free, gateway: true},
		"toolQueues":     {handle: d.toolQueues, narrow: access.ByHandler, gateway: true},
		"callTool":       {handle: d.callTool, narrow: access.Free, lasting: true, gateway: true},
		"createToolTask": {handle: d.createToolTask, narrow: access.Free, gateway: true},
		"toolTasks":      {handle: d.toolTasks, narrow: access.ByHandler, gateway: true},
		"toolTask":       {handle: d.toolTask, narrow: access.ByHandler, lasting: true, gateway: true},
		"cancelToolTask": {handle: d.cancelToolTask, narrow: access.ByHandler, gateway: true},
		"getTaskStatus":  {handle: d.getTaskStatus, narrow: access.ByHandler, gateway: true},
		"mcp":            {handle: d.mcp, narrow: access.Free, lasting: true, gateway: true},
		"mcpStream":      {handle: d.mcp, narrow: access.Free, lasting: true, gateway: true},
		"mcpEnd":         {handle: d.mcp, narrow: access.Free, gateway: true},

		"audit":       {handle: d.audit.List},
		"auditHead":   {handle: d.audit.Head},
		"me":          {handle: d.logins.Me, narrow: access.Free, gateway: true},
		"prove":       {handle: d.gate.Prove, narrow: access.Free, gateway: true},
		"login":       {handle: d.logins.Login, narrow: access.Free},
		"useLink":     {handle: d.logins.UseLink, narrow: access.Free},
		"makeLink":    {handle: d.logins.MakeLink},
		"logout":      {handle: d.logins.Logout, narrow: access.Free},
		"loginPage":   {handle: d.logins.Page, narrow: access.Free},
		"loginScript": {handle: d.logins.Script, narrow: access.Free},
		"tokens":      {handle: d.credentials.Tokens},
		"createToken": {handle: d.logins.Fresh(d.credentials.CreateToken)},
		"revokeToken": {handle: d.logins.Fresh(d.credentials.RevokeToken)},
		"users":       {handle: d.credentials.Users},
		"putUser":     {handle: d.logins.Fresh(d.credentials.PutUser)},
		"removeUser":  {handle: d.logins.Fresh(d.credentials.RemoveUser)},

		"home":  {handle: d.home, narrow: access.Free},
		"page":  {handle: d.page, narrow: access.Free},
		"asset": {handle: d.page, narrow: access.Free},

		"directors": {handle: d.directors, narrow: access.ByHandler},
		"doctor":    {handle: d.doctor, narrow: access.Free, gateway: true},
		"status":    {handle: d.status, narrow: access.Free},
		"openapi":   {handle: d.describe, narrow: access.Free, gateway: true},
		"healthz":   {handle: d.healthz, narrow: access.Free, gateway: true},
		"readyz":    {handle: d.readyz, narrow: access.Free, gateway: true},
		"metrics":   {handle: d.metrics, gateway: true},
	}
}

// served lists the routes that this director has: all, or those of a gateway
// alone.
func (d *Server) served() []api.Route {
	routes := api.Routes()
	if !d.cfg.ToolsOnly {
		return routes
	}
	endpoints := d.endpoints()
	return slices.DeleteFunc(routes, func(r api.Route) bool { return !endpoints[r.Name].gateway })
}
