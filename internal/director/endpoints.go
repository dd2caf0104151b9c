package director

import (
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox/api"
)

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
func (d *Director) endpoints() map[string]endpoint {
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
func (d *Director) served() []api.Route {
	routes := api.Routes()
	if !d.cfg.ToolsOnly {
		return routes
	}
	endpoints := d.endpoints()
	return slices.DeleteFunc(routes, func(r api.Route) bool { return !endpoints[r.Name].gateway })
}
