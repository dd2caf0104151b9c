package httpapi

import (
	"sync"

	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/schedules"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
)

// handlers has the handlers of all routes, by resource.
type handlers struct {
	submits    *submitHandlers
	queues     *queueHandlers
	tasks      *taskHandlers
	outputs    *stream.Outputs
	pauses     *pauseHandlers
	gates      *gateHandler
	accounts   *accountHandlers
	landings   *landingHandlers
	budgets    *budgetHandlers
	resources  *resourceHandlers
	searches   *searchHandler
	usages     *usageHandler
	bulk       *bulkHandler
	transfers  *transferHandlers
	events     *stream.Events
	activities *activityHandlers
	agents     *agentHandlers
	pulls      *pullHandlers
	lanes      *laneHandlers
	calls      *callHandlers
	terminals  *terminalHandlers
	sessions   *sessionHandlers
	workspaces *workspaceHandlers
	schedules  *schedules.Handlers
	tools      *toolHandlers
	toolTasks  *toolTaskHandlers
	pages      *pageHandlers
	directors  *directorHandlers
	doctor     *doctorHandlers
	status     *statusHandlers

	logins      *access.Logins
	credentials *access.Credentials
	audit       *access.AuditLog
	gate        *access.Gate
}

// newHandlers returns the handlers for the parts of the server.
func (d *Server) newHandlers() *handlers {
	cfg, e := &d.cfg, d.engine
	forward := forward.New(cfg.Peers, e, cfg.Log, d.life)
	outputs := &stream.Outputs{Engine: e, Runs: d.runs, Forwarder: forward, Streams: &d.streams, Logger: cfg.Log, Life: d.life}
	tools := &toolHandlers{
		tools: cfg.Tools, server: cfg.MCP, tasks: cfg.ToolTasks, toolsOnly: cfg.ToolsOnly, agentName: cfg.AgentName, engine: e, audit: d.audit,
		forward: forward, traces: cfg.Traces, streams: &d.streams, log: cfg.Log, life: d.life,
	}
	toolTasks := &toolTaskHandlers{tools: tools, engine: e, audit: d.audit, metrics: cfg.Metrics, life: d.life, cancelWait: cancelWait}
	tasks := &taskHandlers{
		engine: e, audit: d.audit, tools: cfg.Tools, toolTasks: cfg.ToolTasks, landings: cfg.Landings, forward: forward, log: cfg.Log, life: d.life, cancelWait: cancelWait,
	}
	schedules := &schedules.Handlers{Scheduler: cfg.Schedules, Engine: e, Audit: d.audit}
	directors := &directorHandlers{peers: cfg.Peers, engine: e, version: cfg.Version, started: d.started}
	accounts := &accountHandlers{engine: e, audit: d.audit}
	return &handlers{
		submits:    &submitHandlers{engine: e, metrics: cfg.Metrics, calls: toolTasks, landings: cfg.Landings},
		queues:     &queueHandlers{engine: e, gate: d.gate, peers: cfg.Peers},
		tasks:      tasks,
		outputs:    outputs,
		pauses:     &pauseHandlers{engine: e, audit: d.audit},
		gates:      &gateHandler{engine: e, tools: cfg.Tools},
		accounts:   accounts,
		workspaces: &workspaceHandlers{engine: e, audit: d.audit, runs: d.runs},
		landings:   &landingHandlers{engine: e, landings: cfg.Landings, tasks: tasks},
		budgets:    &budgetHandlers{engine: e},
		resources:  &resourceHandlers{engine: e},
		searches:   &searchHandler{engine: e, projection: d.projection},
		usages:     &usageHandler{engine: e},
		bulk:       &bulkHandler{engine: e, audit: d.audit, tasks: tasks, calls: toolTasks},
		transfers:  &transferHandlers{engine: e},
		events: &stream.Events{
			Engine: e, Gate: d.gate, Runs: d.runs, Forwarder: forward, Tails: outputs, Journal: d.feed, Streams: &d.streams, Logger: cfg.Log, Life: d.life,
		},
		activities: &activityHandlers{engine: e},
		agents: newAgentHandlers(&agentHandlers{
			engine: e, audit: d.audit, runs: d.runs, pull: cfg.Pull, terminals: d.terminals, forward: forward, log: cfg.Log, lookup: systemLookup,
		}),
		pulls: &pullHandlers{pull: cfg.Pull, forward: forward, life: d.life},
		lanes: &laneHandlers{engine: e, audit: d.audit},
		calls: &callHandlers{
			engine: e, metrics: cfg.Metrics, outputs: outputs, feed: d.feed, streams: &d.streams, log: cfg.Log, life: d.life,
		},
		terminals: &terminalHandlers{engine: e, terminals: d.terminals, forward: forward},
		sessions:  &sessionHandlers{engine: e, audit: d.audit},
		schedules: schedules,
		tools:     tools,
		toolTasks: toolTasks,
		pages:     &pageHandlers{cfg.Pages},
		directors: directors,
		doctor: &doctorHandlers{
			checks: cfg.Doctor, toolsOnly: cfg.ToolsOnly, tools: cfg.Tools, engine: e, accounts: accounts, identity: d.identity, directors: directors,
			forward: forward, draining: &d.draining, version: cfg.Version, started: d.started, log: cfg.Log,
		},
		status: &statusHandlers{
			engine: e, identity: d.identity, projection: d.projection, schedules: schedules, peers: cfg.Peers, scrape: cfg.Metrics,
			openapi:  sync.OnceValues(func() ([]byte, error) { return describe(cfg.Version, d.served()) }),
			draining: &d.draining, version: cfg.Version, started: d.started, log: cfg.Log,
		},
		logins:      access.NewLogins(d.identity, d.audit, e.Now),
		credentials: access.NewCredentials(d.identity, d.audit),
		audit:       d.audit,
		gate:        d.gate,
	}
}

// endpoint is the director's side of a route of api.Routes.
type endpoint struct {
	handle httpio.Handler
	narrow access.Narrowing // for callers that are limited to some agents
	// lasting says that a request may take long; it ends when its caller loses its rights.
	lasting bool
	gateway bool // a standalone gateway also has the route
}

// endpoints returns the endpoint of each route, by the route's name. Callers with limits
// also see totals (depth, counts, positions).
func (h *handlers) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"submit":        {handle: h.submits.submit, narrow: access.ByHandler},
		"submitTask":    {handle: h.submits.submitTask, narrow: access.ByHandler},
		"queue":         {handle: h.queues.queue, narrow: access.ByHandler},
		"task":          {handle: h.tasks.task, narrow: access.OfTask, lasting: true},
		"edit":          {handle: h.tasks.edit, narrow: access.OfTask},
		"find":          {handle: h.queues.find, narrow: access.ByHandler},
		"cancel":        {handle: h.tasks.cancel, narrow: access.OfTask},
		"unpark":        {handle: h.tasks.unpark, narrow: access.OfTask},
		"land":          {handle: h.landings.land, narrow: access.OfTask},
		"dropLanding":   {handle: h.landings.drop, narrow: access.OfTask},
		"landings":      {handle: h.landings.list, narrow: access.ByHandler},
		"retry":         {handle: h.submits.retry, narrow: access.OfTask},
		"why":           {handle: h.tasks.why, narrow: access.OfTask},
		"output":        {handle: h.outputs.Serve, narrow: access.OfTask, lasting: true},
		"diff":          {handle: h.outputs.Diff, narrow: access.OfTask, lasting: true},
		"pause":         {handle: h.pauses.pause},
		"resume":        {handle: h.pauses.resume},
		"gates":         {handle: h.gates.list, narrow: access.ByHandler},
		"accounts":      {handle: h.accounts.list, narrow: access.ByHandler},
		"budgets":       {handle: h.budgets.list, narrow: access.ByHandler},
		"resources":     {handle: h.resources.list, narrow: access.ByHandler},
		"openAccount":   {handle: h.accounts.open},
		"closeAccount":  {handle: h.accounts.close},
		"removeAccount": {handle: h.accounts.remove},
		"history":       {handle: h.queues.history, narrow: access.ByHandler},
		"search":        {handle: h.searches.search, narrow: access.ByHandler},
		"usage":         {handle: h.usages.usage, narrow: access.ByHandler},
		"bulk":          {handle: h.bulk.bulk, narrow: access.ByHandler},
		"export":        {handle: h.transfers.export},
		"import":        {handle: h.transfers.importTasks},

		"searchCounts": {handle: h.searches.counts, narrow: access.ByHandler},
		"searchKeys":   {handle: h.searches.keys, narrow: access.Free},

		"events":     {handle: h.events.Serve, narrow: access.ByHandler, lasting: true},
		"live":       {handle: h.status.live, narrow: access.ByHandler, lasting: true},
		"activities": {handle: h.activities.activities, narrow: access.ByHandler},
		"activity":   {handle: h.activities.activity, narrow: access.OfTask},

		"agents":           {handle: h.agents.agents, narrow: access.ByHandler},
		"registerAgent":    {handle: h.agents.registerAgent, narrow: access.ByHandler},
		"heartbeat":        {handle: h.agents.heartbeat, narrow: access.OfAgent},
		"claim":            {handle: h.pulls.claim, narrow: access.OfAgent, lasting: true},
		"report":           {handle: h.pulls.report, narrow: access.OfAgent},
		"discardWorkspace": {handle: h.workspaces.discard},
		"removeAgent":      {handle: h.agents.removeAgent},
		"clearLane":        {handle: h.lanes.clearLane, narrow: access.OfAgent},
		"releaseLane":      {handle: h.lanes.releaseLane, narrow: access.OfAgent},
		"lane":             {handle: h.lanes.lane, narrow: access.OfAgent},
		"chat":             {handle: h.calls.chat, narrow: access.OfAgent, lasting: true},
		"bypass":           {handle: h.calls.bypass, narrow: access.OfAgent, lasting: true},
		"workspaces":       {handle: h.workspaces.list, narrow: access.ByHandler},
		"openTerminal":     {handle: h.terminals.openTerminal, narrow: access.OfAgent},
		"terminal":         {handle: h.terminals.terminal, narrow: access.Free}, // only allowed callers get a ticket
		"sessions":         {handle: h.sessions.sessions, narrow: access.ByHandler},
		"archiveSession":   {handle: h.sessions.archiveSession, narrow: access.ByHandler},
		"restoreSession":   {handle: h.sessions.restoreSession, narrow: access.ByHandler},

		"schedules":       {handle: h.schedules.List, narrow: access.ByHandler},
		"createSchedule":  {handle: h.schedules.Create, narrow: access.ByHandler},
		"schedule":        {handle: h.schedules.Get, narrow: access.ByHandler},
		"putSchedule":     {handle: h.schedules.Put, narrow: access.ByHandler},
		"removeSchedule":  {handle: h.schedules.Remove, narrow: access.ByHandler},
		"enableSchedule":  {handle: h.schedules.Enable, narrow: access.ByHandler},
		"disableSchedule": {handle: h.schedules.Disable, narrow: access.ByHandler},
		"triggerSchedule": {handle: h.schedules.Trigger, narrow: access.ByHandler},
		"executions":      {handle: h.schedules.Executions, narrow: access.ByHandler},
		"checkCron":       {handle: h.schedules.CheckCron, narrow: access.Free},

		"tools":          {handle: h.tools.list, narrow: access.Free, gateway: true},
		"toolQueues":     {handle: h.tools.toolQueues, narrow: access.ByHandler, gateway: true},
		"setToolQueue":   {handle: h.tools.setToolQueue, gateway: true},
		"openToolQueue":  {handle: h.tools.openToolQueue, gateway: true},
		"callTool":       {handle: h.tools.callTool, narrow: access.Free, lasting: true, gateway: true},
		"createToolTask": {handle: h.toolTasks.createToolTask, narrow: access.Free, gateway: true},
		"toolTasks":      {handle: h.toolTasks.toolTasks, narrow: access.ByHandler, gateway: true},
		"toolTask":       {handle: h.toolTasks.toolTask, narrow: access.ByHandler, lasting: true, gateway: true},
		"cancelToolTask": {handle: h.toolTasks.cancelToolTask, narrow: access.ByHandler, gateway: true},
		"getTaskStatus":  {handle: h.toolTasks.getTaskStatus, narrow: access.ByHandler, gateway: true},
		"mcp":            {handle: h.tools.mcp, narrow: access.Free, lasting: true, gateway: true},
		"mcpStream":      {handle: h.tools.mcp, narrow: access.Free, lasting: true, gateway: true},
		"mcpEnd":         {handle: h.tools.mcp, narrow: access.Free, gateway: true},

		"audit":          {handle: h.audit.List},
		"auditHead":      {handle: h.audit.Head},
		"me":             {handle: h.logins.Me, narrow: access.Free, gateway: true},
		"prove":          {handle: h.gate.Prove, narrow: access.Free, gateway: true},
		"login":          {handle: h.logins.Login, narrow: access.Free},
		"useLink":        {handle: h.logins.UseLink, narrow: access.Free},
		"makeLink":       {handle: h.logins.MakeLink},
		"logout":         {handle: h.logins.Logout, narrow: access.Free},
		"changePassword": {handle: h.logins.ChangePassword, narrow: access.Free},
		"loginPage":      {handle: h.logins.Page, narrow: access.Free},
		"loginScript":    {handle: h.logins.Script, narrow: access.Free},
		"tokens":         {handle: h.credentials.Tokens},
		"createToken":    {handle: h.logins.Fresh(h.credentials.CreateToken)},
		"revokeToken":    {handle: h.logins.Fresh(h.credentials.RevokeToken)},
		"users":          {handle: h.credentials.Users},
		"putUser":        {handle: h.logins.Fresh(h.credentials.PutUser)},
		"removeUser":     {handle: h.logins.Fresh(h.credentials.RemoveUser)},

		"home":  {handle: h.pages.home, narrow: access.Free},
		"page":  {handle: h.pages.page, narrow: access.Free},
		"asset": {handle: h.pages.page, narrow: access.Free},

		"directors": {handle: h.directors.directors, narrow: access.ByHandler},
		"doctor":    {handle: h.doctor.doctor, narrow: access.Free, gateway: true},
		"status":    {handle: h.status.status, narrow: access.Free},
		"openapi":   {handle: h.status.describe, narrow: access.Free, gateway: true},
		"healthz":   {handle: h.status.healthz, narrow: access.Free, gateway: true},
		"readyz":    {handle: h.status.readyz, narrow: access.Free, gateway: true},
		"metrics":   {handle: h.status.metrics, gateway: true},
	}
}
