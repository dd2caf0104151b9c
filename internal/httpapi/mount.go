package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
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
		c, err := d.gate.admit(r, route)
		r = traced(r.WithContext(withCaller(r.Context(), c)))
		if err == nil {
			err = d.pass(w, r, route, e)
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
func (d *Server) pass(w http.ResponseWriter, r *http.Request, route api.Route, e endpoint) error {
	c := callerOf(r)
	if err := httpio.CheckQuery(r, route); err != nil {
		return err
	}
	if err := httpio.CheckMedia(r); err != nil {
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
	if err := d.narrow(r, route, e.narrow, c); err != nil {
		return err
	}
	if route.Request == nil && httpio.HasBody(r) && httpio.IsWrite(r) && route.Path != mcpPath {
		if err := httpio.Decode(w, r, &struct{}{}, true); err != nil {
			return err
		}
	}
	during, done := d.whileAllowed(r, e, c)
	defer done()
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

// handler answers a request or returns why it did not.
type handler func(w http.ResponseWriter, r *http.Request) error

// endpoint is what the director has for a route of api.Routes.
type endpoint struct {
	handle handler
	narrow narrowing // for callers that are limited to some agents; admins have no limits
	// lasting answers may take long. They end when what their caller showed is
	// no longer in force, not only when it comes again.
	lasting bool
	gateway bool // a gateway alone has it, too
}

// endpoints has one endpoint for each route, by the route's name. Figures of the
// whole (depth, counts, positions) are shown to callers with limits, too.
func (d *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"submit":     {handle: d.submit, narrow: narrowHandler},
		"submitTask": {handle: d.submitTask, narrow: narrowHandler},
		"queue":      {handle: d.queue, narrow: narrowHandler},
		"task":       {handle: d.task, narrow: narrowTask, lasting: true},
		"find":       {handle: d.find, narrow: narrowHandler},
		"cancel":     {handle: d.cancel, narrow: narrowTask},
		"retry":      {handle: d.retry, narrow: narrowTask},
		"why":        {handle: d.why, narrow: narrowTask},
		"output":     {handle: d.output, narrow: narrowTask, lasting: true},
		"pause":      {handle: d.pause},
		"resume":     {handle: d.resume},
		"history":    {handle: d.history, narrow: narrowHandler},
		"search":     {handle: d.search, narrow: narrowHandler},
		"bulk":       {handle: d.bulk, narrow: narrowHandler},
		"export":     {handle: d.export},
		"import":     {handle: d.importTasks},

		"events":     {handle: d.events, narrow: narrowHandler, lasting: true},
		"live":       {handle: d.live, narrow: narrowHandler, lasting: true},
		"activities": {handle: d.activities, narrow: narrowHandler},
		"activity":   {handle: d.activity, narrow: narrowTask},

		"agents":         {handle: d.agents, narrow: narrowHandler},
		"registerAgent":  {handle: d.registerAgent, narrow: narrowHandler},
		"heartbeat":      {handle: d.heartbeat, narrow: narrowAgent},
		"claim":          {handle: d.claim, narrow: narrowAgent, lasting: true},
		"report":         {handle: d.report, narrow: narrowAgent},
		"removeAgent":    {handle: d.removeAgent},
		"clearLane":      {handle: d.clearLane, narrow: narrowAgent},
		"releaseLane":    {handle: d.releaseLane, narrow: narrowAgent},
		"lane":           {handle: d.lane, narrow: narrowAgent},
		"chat":           {handle: d.chat, narrow: narrowAgent, lasting: true},
		"bypass":         {handle: d.bypass, narrow: narrowAgent, lasting: true},
		"openTerminal":   {handle: d.openTerminal, narrow: narrowAgent},
		"terminal":       {handle: d.terminal, narrow: narrowFree}, // its ticket was given to one that may
		"sessions":       {handle: d.sessions, narrow: narrowHandler},
		"archiveSession": {handle: d.archiveSession, narrow: narrowHandler},
		"restoreSession": {handle: d.restoreSession, narrow: narrowHandler},

		"schedules":       {handle: d.schedules, narrow: narrowHandler},
		"createSchedule":  {handle: d.createSchedule, narrow: narrowHandler},
		"schedule":        {handle: d.schedule, narrow: narrowHandler},
		"putSchedule":     {handle: d.putSchedule, narrow: narrowHandler},
		"removeSchedule":  {handle: d.removeSchedule, narrow: narrowHandler},
		"enableSchedule":  {handle: d.enableSchedule, narrow: narrowHandler},
		"disableSchedule": {handle: d.disableSchedule, narrow: narrowHandler},
		"triggerSchedule": {handle: d.triggerSchedule, narrow: narrowHandler},
		"executions":      {handle: d.executions, narrow: narrowHandler},
		"checkCron":       {handle: d.checkCron, narrow: narrowFree},

		"tools":          {handle: d.tools, narrow: narrowFree, gateway: true},
		"toolQueues":     {handle: d.toolQueues, narrow: narrowHandler, gateway: true},
		"callTool":       {handle: d.callTool, narrow: narrowFree, lasting: true, gateway: true},
		"createToolTask": {handle: d.createToolTask, narrow: narrowFree, gateway: true},
		"toolTasks":      {handle: d.toolTasks, narrow: narrowHandler, gateway: true},
		"toolTask":       {handle: d.toolTask, narrow: narrowHandler, lasting: true, gateway: true},
		"cancelToolTask": {handle: d.cancelToolTask, narrow: narrowHandler, gateway: true},
		"getTaskStatus":  {handle: d.getTaskStatus, narrow: narrowHandler, gateway: true},
		"mcp":            {handle: d.mcp, narrow: narrowFree, lasting: true, gateway: true},
		"mcpStream":      {handle: d.mcp, narrow: narrowFree, lasting: true, gateway: true},
		"mcpEnd":         {handle: d.mcp, narrow: narrowFree, gateway: true},

		"audit":       {handle: d.auditLog},
		"auditHead":   {handle: d.auditHead},
		"me":          {handle: d.me, narrow: narrowFree, gateway: true},
		"prove":       {handle: d.prove, narrow: narrowFree, gateway: true},
		"login":       {handle: d.login, narrow: narrowFree},
		"useLink":     {handle: d.useLink, narrow: narrowFree},
		"makeLink":    {handle: d.makeLink},
		"logout":      {handle: d.logout, narrow: narrowFree},
		"loginPage":   {handle: d.loginPage, narrow: narrowFree},
		"loginScript": {handle: d.loginScript, narrow: narrowFree},
		"tokens":      {handle: d.tokens},
		"createToken": {handle: d.fresh(d.createToken)},
		"revokeToken": {handle: d.fresh(d.revokeToken)},
		"users":       {handle: d.users},
		"putUser":     {handle: d.fresh(d.putUser)},
		"removeUser":  {handle: d.fresh(d.removeUser)},

		"home":  {handle: d.home, narrow: narrowFree},
		"page":  {handle: d.page, narrow: narrowFree},
		"asset": {handle: d.page, narrow: narrowFree},

		"directors": {handle: d.directors, narrow: narrowHandler},
		"doctor":    {handle: d.doctor, narrow: narrowFree, gateway: true},
		"status":    {handle: d.status, narrow: narrowFree},
		"openapi":   {handle: d.describe, narrow: narrowFree, gateway: true},
		"healthz":   {handle: d.healthz, narrow: narrowFree, gateway: true},
		"readyz":    {handle: d.readyz, narrow: narrowFree, gateway: true},
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
