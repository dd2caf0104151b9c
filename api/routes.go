package api

import "net/http"

// Route is one endpoint of the director. The route table is the only source for
// mounting the handlers, generating GET /openapi.json and checking the docs.
type Route struct {
	Name    string // operation id, and the key of its handler
	Method  string
	Path    string // pattern of net/http.ServeMux
	Summary string
	Status  int // of a success
	Scope   Scope
	Own     []Scope // each suffices for the caller's own tasks
	Query   []Param
	Request any // zero value of the body's type; nil: no body
	Answer  any // zero value of the answer's type; nil: not JSON
	Media   string
	Errors  []int // statuses in addition to 400, 401, 403, 413, 415, 500 and 507
}

// Param is a query parameter or header of a route.
type Param struct {
	Name    string
	In      string // "query" or "header"
	Summary string
}

// Scope is the right that a caller needs for a route.
type Scope string

// The scopes. Public routes require no token.
const (
	ScopePublic  Scope = "public"
	ScopeRead    Scope = "read"
	ScopeSubmit  Scope = "submit"
	ScopeCancel  Scope = "cancel"
	ScopeRelease Scope = "release"
	ScopeAdmin   Scope = "admin"
	// ScopeAgent is the right of an agent's token to act as that agent. Admins have
	// it too.
	ScopeAgent    Scope = "agent"
	ScopeTerminal Scope = "terminal"
	ScopeTool     Scope = "tool"
	ScopeSchedule Scope = "schedule"
	// ScopeTicket routes authenticate by their own one-time ticket.
	ScopeTicket Scope = "ticket"
	// ScopeAny routes accept any valid token.
	ScopeAny Scope = "any"
)

var (
	waitParam        = Param{"wait", "query", "answer when the task has ended, or after this long, such as 30s (at most 5m)"}
	limitParam       = Param{"limit", "query", "how many, 1 to 1000 (default 100)"}
	preferParam      = Param{"Prefer", "header", "respond-async: answer 202 at once; wait=N: after N seconds at most"}
	executionParam   = Param{"X-Signalbox-Execution", "header", "with an agent's token: queue_id of the execution that makes the call; default: the only one that the agent runs"}
	toolSessionParam = Param{"X-Signalbox-Session", "header", "name of the session that keeps a tool's slot from call to call; default: the execution that calls, else the token"}
	sourceAgentParam = Param{"X-Source-Agent", "header", "name of the calling agent; accepted only with that agent's own token, else 403"}

	idempotency = Param{"Idempotency-Key", "header", "1 to 255 printable characters; the same key makes at most one task"}
)

// Routes returns the route table of the director.
func Routes() []Route {
	return []Route{
		{Name: "submit", Method: http.MethodPost, Path: "/api/queue/task", Summary: "Submit a task to the queue", Status: 201,
			Scope: ScopeSubmit, Query: []Param{idempotency, executionParam, sourceAgentParam}, Request: SubmitRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 503}},
		{Name: "submitTask", Method: http.MethodPost, Path: "/api/task", Summary: "Submit a task from the web view", Status: 202,
			Scope: ScopeSubmit, Query: []Param{idempotency, executionParam, sourceAgentParam}, Request: SubmitRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 503}},
		{Name: "queue", Method: http.MethodGet, Path: "/api/queue", Summary: "Waiting and dispatching tasks, in order", Status: 200, Scope: ScopeRead,
			Query: []Param{{"queue", "query", "only this queue, such as agent:coder"}, limitParam, {"after", "query", "cursor of the page before"}}, Answer: Queue{}},
		{Name: "task", Method: http.MethodGet, Path: "/api/queue/{id}", Summary: "One task", Status: 200, Scope: ScopeRead,
			Query: []Param{waitParam}, Answer: Task{}, Errors: []int{404}},
		{Name: "edit", Method: http.MethodPatch, Path: "/api/queue/{id}", Summary: "Change a waiting task: its prompt, priority, agent or place; your own with the scope submit alone", Status: 200, Scope: ScopeCancel, Own: []Scope{ScopeSubmit},
			Request: EditRequest{}, Answer: Task{}, Errors: []int{404, 409, 501}},
		{Name: "find", Method: http.MethodGet, Path: "/api/find/{part}", Summary: "Ids that begin or end with a part", Status: 200, Scope: ScopeRead,
			Answer: Found{}},
		{Name: "cancel", Method: http.MethodPost, Path: "/api/queue/{id}/cancel", Summary: "Cancel a waiting or running task; your own with the scope submit alone", Status: 200, Scope: ScopeCancel, Own: []Scope{ScopeSubmit},
			Answer: Cancelled{}, Errors: []int{404, 409}},
		{Name: "unpark", Method: http.MethodPost, Path: "/api/queue/{id}/unpark", Summary: "Let a parked or waiting task run even if the account of its agent is not open", Status: 200, Scope: ScopeCancel,
			Answer: Task{}, Errors: []int{404, 409}},
		{Name: "land", Method: http.MethodPost, Path: "/api/queue/{id}/land", Summary: "Land the work of a completed task's worktree on a branch; your own with the scope submit alone", Status: 202, Scope: ScopeCancel, Own: []Scope{ScopeSubmit},
			Request: LandRequest{}, Answer: Landing{}, Errors: []int{404, 409, 501}},
		{Name: "dropLanding", Method: http.MethodDelete, Path: "/api/queue/{id}/land", Summary: "Drop a landing that is not done; your own with the scope submit alone", Status: 200, Scope: ScopeCancel, Own: []Scope{ScopeSubmit},
			Answer: Landing{}, Errors: []int{404, 409, 501}},
		{Name: "landings", Method: http.MethodGet, Path: "/api/landings", Summary: "The landings that are not done, including those that need a person", Status: 200, Scope: ScopeRead,
			Answer: Landings{}},
		{Name: "retry", Method: http.MethodPost, Path: "/api/queue/{id}/retry", Summary: "Submit an ended task again, unchanged or edited; another owner's task also needs the scope read", Status: 201, Scope: ScopeSubmit,
			Query: []Param{idempotency, executionParam, sourceAgentParam}, Request: RetryRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 501, 503}},
		{Name: "why", Method: http.MethodGet, Path: "/api/queue/{id}/why", Summary: "Why a task is not running: its gates in order", Status: 200, Scope: ScopeRead,
			Answer: Why{}, Errors: []int{404}},
		{Name: "output", Method: http.MethodGet, Path: "/api/queue/{id}/output", Summary: "The log of a task; a stream with Accept: text/event-stream; your own with the scope submit or tool alone", Status: 200, Scope: ScopeRead, Own: []Scope{ScopeSubmit, ScopeTool},
			Query: []Param{{"after", "query", "position in bytes from which to read (default 0)"}, waitParam,
				{"whole", "query", "true: a piece of the last attempt's log from its agent, which keeps up to 64 MiB, with positions in that log; repeat with next until done, or until next equals after"}}, Answer: Output{}, Errors: []int{404, 409, 501, 503}},
		{Name: "diff", Method: http.MethodGet, Path: "/api/queue/{id}/diff", Summary: "What the last run of a task changed in its repository; as a patch with Accept: text/x-diff; your own with the scope submit alone", Status: 200, Scope: ScopeRead, Own: []Scope{ScopeSubmit},
			Query: []Param{{"format", "query", "json (default) or patch: the whole patch as a file; if its agent does not return it, the part that the director keeps, and Signalbox-Patch-Cut says why"}}, Answer: Diff{}, Errors: []int{404, 409, 501, 503}},
		{Name: "pause", Method: http.MethodPost, Path: "/api/queue/pause", Summary: "Pause one queue or all", Status: 200, Scope: ScopeAdmin,
			Request: PauseRequest{}, Answer: Paused{}},
		{Name: "resume", Method: http.MethodPost, Path: "/api/queue/resume", Summary: "Resume one queue or all", Status: 200, Scope: ScopeAdmin,
			Request: PauseRequest{}, Answer: Paused{}},
		{Name: "gates", Method: http.MethodGet, Path: "/api/gates", Summary: "What is closed now: accounts, agents, tool queues, and times until which tasks are parked", Status: 200, Scope: ScopeRead, Answer: Gates{}},
		{Name: "accounts", Method: http.MethodGet, Path: "/api/accounts", Summary: "The accounts that agents spend, with the limits of their providers and the tasks that wait for them", Status: 200, Scope: ScopeRead, Answer: Accounts{}},
		{Name: "openAccount", Method: http.MethodPost, Path: "/api/accounts/{name}/open", Summary: "Open an account now, without waiting for its reset", Status: 200, Scope: ScopeAdmin, Answer: Account{}, Errors: []int{404}},
		{Name: "closeAccount", Method: http.MethodPost, Path: "/api/accounts/{name}/close", Summary: "Close an account: its agents claim nothing until a time, or until someone opens it", Status: 200, Scope: ScopeAdmin,
			Request: AccountClose{}, Answer: Account{}, Errors: []int{404}},
		{Name: "budgets", Method: http.MethodGet, Path: "/api/budgets", Summary: "The budgets, and what has been spent of them today", Status: 200, Scope: ScopeRead, Answer: Budgets{}},
		{Name: "resources", Method: http.MethodGet, Path: "/api/resources", Summary: "What runs hold until they end: named resources, folders, and branches that tasks land on", Status: 200, Scope: ScopeRead, Answer: Resources{}},
		{Name: "removeAccount", Method: http.MethodDelete, Path: "/api/accounts/{name}", Summary: "Remove an account that no agent spends any more", Status: 204, Scope: ScopeAdmin, Errors: []int{404, 409}},
		{Name: "history", Method: http.MethodGet, Path: "/api/history", Summary: "Ended tasks, newest first", Status: 200, Scope: ScopeRead,
			Query: []Param{
				{"state", "query", "completed, failed, cancelled or timeout"}, {"reason", "query", "a typed reason, such as lost"},
				{"agent", "query", ""}, {"queue", "query", ""}, {"source", "query", ""}, {"source_job", "query", ""}, {"session_id", "query", ""},
				{"q", "query", "part of the prompt's first line"}, {"since", "query", "RFC 3339, or an age such as 2h"}, {"until", "query", "RFC 3339, or an age such as 2h"},
				limitParam, {"before", "query", "cursor of the page before"},
			}, Answer: History{}},
		{Name: "events", Method: http.MethodGet, Path: "/api/events", Summary: "The events of the journal, as server-sent events", Status: 200, Scope: ScopeRead,
			Query: []Param{{"after", "query", "seq after which to begin; default: now"}, {"queue_id", "query", "only events of this task"}, {"agent", "query", "only events of this agent and its queue"},
				{"include", "query", "transient events in addition: position, output, or both separated by a comma"},
				{"Last-Event-ID", "header", "seq of the last event seen"}}, Media: "text/event-stream", Errors: []int{404, 503}},
		{Name: "agents", Method: http.MethodGet, Path: "/api/agents", Summary: "The agents and what they do", Status: 200, Scope: ScopeRead, Answer: Agents{}},
		{Name: "registerAgent", Method: http.MethodPost, Path: "/api/agents", Summary: "Register an agent", Status: 201, Scope: ScopeAgent,
			Request: RegisterAgent{}, Answer: Agent{}, Errors: []int{409}},
		{Name: "heartbeat", Method: http.MethodPost, Path: "/api/agents/{name}/heartbeat", Summary: "The heartbeat of an agent", Status: 200, Scope: ScopeAgent,
			Request: Heartbeat{}, Answer: HeartbeatAnswer{}, Errors: []int{404, 409}},
		{Name: "claim", Method: http.MethodPost, Path: "/api/agents/{name}/claim", Summary: "An agent that pulls requests a task and learns which runs to stop", Status: 200, Scope: ScopeAgent,
			Query: []Param{{"wait", "query", "answer when there is something, or after this long, such as 30s (at most that)"}}, Request: PullClaim{}, Answer: PullAnswer{}, Errors: []int{404, 409, 501, 503}},
		{Name: "report", Method: http.MethodPost, Path: "/api/agents/{name}/tasks/{id}/report", Summary: "An agent that pulls reports on a task", Status: 200, Scope: ScopeAgent,
			Request: PullReport{}, Answer: PullReported{}, Errors: []int{404, 409, 501}},
		{Name: "removeAgent", Method: http.MethodDelete, Path: "/api/agents/{name}", Summary: "Remove an agent", Status: 204, Scope: ScopeAdmin, Errors: []int{404, 409}},
		{Name: "clearLane", Method: http.MethodPost, Path: "/api/agents/{name}/queue/clear", Summary: "Cancel all tasks that wait for an agent", Status: 200, Scope: ScopeRelease,
			Answer: LaneCleared{}, Errors: []int{404}},
		{Name: "releaseLane", Method: http.MethodPost, Path: "/api/agents/{name}/queue/release", Summary: "Release an agent's slots from the tasks that hold them", Status: 200, Scope: ScopeRelease,
			Answer: Released{}, Errors: []int{404}},
		{Name: "chat", Method: http.MethodPost, Path: "/api/agents/{name}/chat", Summary: "Send a message to an agent and wait for its answer; a stream with Accept: text/event-stream", Status: 200, Scope: ScopeSubmit,
			Query: []Param{idempotency, preferParam, executionParam, sourceAgentParam}, Request: ChatRequest{}, Answer: ChatResponse{}, Errors: []int{202, 402, 404, 409, 422, 429, 502, 503, 504}},
		{Name: "bypass", Method: http.MethodPost, Path: "/api/agents/{name}/task", Summary: "Run an isolated task outside the queue; a stream with Accept: text/event-stream", Status: 200, Scope: ScopeSubmit,
			Query: []Param{idempotency, preferParam, executionParam, sourceAgentParam}, Request: BypassRequest{}, Answer: ChatResponse{}, Errors: []int{202, 402, 404, 409, 422, 429, 501, 502, 503, 504}},
		{Name: "lane", Method: http.MethodGet, Path: "/api/agents/{name}/queue", Summary: "The running and waiting tasks of an agent", Status: 200, Scope: ScopeRead,
			Answer: Lane{}, Errors: []int{404}},
		{Name: "workspaces", Method: http.MethodGet, Path: "/api/workspaces", Summary: "The worktrees that agents have made, and what would be lost with each", Status: 200, Scope: ScopeRead,
			Query: []Param{{"agent", "query", "only those of this agent"}}, Answer: Workspaces{}, Errors: []int{404}},
		{Name: "discardWorkspace", Method: http.MethodDelete, Path: "/api/agents/{name}/workspaces/{workspace}", Summary: "Discard a worktree of an agent", Status: 200, Scope: ScopeAdmin,
			Query: []Param{{"seen", "query", "seen of the worktree in the list: without it, or if something has changed since, a worktree in which something would be lost is kept (409)"},
				{"delete_branch", "query", "true: delete its branch with its commits; else the branch is kept, unless all its commits have landed"}}, Answer: WorkspaceDiscarded{}, Errors: []int{404, 409, 501, 503}},
		{Name: "openTerminal", Method: http.MethodPost, Path: "/api/agents/{name}/terminal", Summary: "A ticket for one terminal of an agent", Status: 201, Scope: ScopeTerminal,
			Answer: TerminalTicket{}, Errors: []int{404, 409, 501, 503}},
		{Name: "terminal", Method: http.MethodGet, Path: "/api/agents/{name}/terminal", Summary: "The terminal, as a WebSocket: the first message is auth with the ticket", Status: 101, Scope: ScopeTicket, Media: "application/octet-stream", Errors: []int{501, 503}},
		{Name: "sessions", Method: http.MethodGet, Path: "/api/sessions", Summary: "The conversations of the agents, last used first", Status: 200, Scope: ScopeRead,
			Query: []Param{{"agent", "query", ""}, {"source", "query", ""}, {"owner", "query", ""}, {"state", "query", "active (default), archived, gone or all"}, limitParam, {"before", "query", "cursor of the page before"}}, Answer: Sessions{}},
		{Name: "archiveSession", Method: http.MethodPost, Path: "/api/sessions/{id}/archive", Summary: "Archive a conversation; another owner's also needs the scope read", Status: 200, Scope: ScopeSubmit,
			Answer: Session{}, Errors: []int{404, 409}},
		{Name: "restoreSession", Method: http.MethodPost, Path: "/api/sessions/{id}/restore", Summary: "Make a conversation the current one of its agent again; another owner's also needs the scope read", Status: 200, Scope: ScopeSubmit,
			Answer: Session{}, Errors: []int{404, 409}},
		{Name: "activities", Method: http.MethodGet, Path: "/api/activities", Summary: "The activities, newest first", Status: 200, Scope: ScopeRead,
			Query: []Param{{"agent", "query", ""}, {"type", "query", "chat_start, task_start, schedule_start, agent_collaboration or tool_call"}, {"state", "query", "queued, started, completed or failed"}, limitParam, {"before", "query", "cursor of the page before"}}, Answer: Activities{}},
		{Name: "activity", Method: http.MethodGet, Path: "/api/activities/{id}", Summary: "An activity with the tree below it", Status: 200, Scope: ScopeRead, Answer: Activity{}, Errors: []int{404}},
		{Name: "audit", Method: http.MethodGet, Path: "/api/audit", Summary: "The audit log, oldest first", Status: 200, Scope: ScopeAdmin,
			Query: []Param{{"after", "query", "seq after which to begin (default 0)"}, {"newest", "query", "true: newest first, before the seq after"}, {"event_type", "query", ""}, {"action", "query", ""}, {"user_id", "query", ""}, {"agent", "query", ""}, {"severity", "query", ""}, {"since", "query", "RFC 3339, or an age such as 2h"}, limitParam}, Answer: AuditLog{}},
		{Name: "auditHead", Method: http.MethodGet, Path: "/api/audit/head", Summary: "Number and hash of the newest audit row", Status: 200, Scope: ScopeAdmin, Answer: AuditHead{}},
		{Name: "me", Method: http.MethodGet, Path: "/api/me", Summary: "Who the caller is", Status: 200, Scope: ScopeAny, Answer: Me{}},
		{Name: "prove", Method: http.MethodPost, Path: "/.well-known/signalbox/prove", Summary: "The director proves that it knows the caller's token, before the caller sends it", Status: 200, Scope: ScopePublic, Request: ProveRequest{}, Answer: Proof{}, Errors: []int{401, 409, 429, 503}},
		{Name: "login", Method: http.MethodPost, Path: "/api/login", Summary: "Log in with a password; the answer sets a cookie and contains the key to send with it in Signalbox-Login", Status: 200, Scope: ScopePublic, Request: LoginRequest{}, Answer: LoggedIn{}, Errors: []int{401, 429}},
		{Name: "useLink", Method: http.MethodPost, Path: "/api/login/once", Summary: "Log in with the code of a login link, as with a password", Status: 200, Scope: ScopePublic, Request: LoginOnce{}, Answer: LoggedIn{}, Errors: []int{400, 401}},
		{Name: "makeLink", Method: http.MethodPost, Path: "/api/login/link", Summary: "Create a link with which the director's owner can log in once in a browser, within 10 minutes", Status: 201, Scope: ScopeAdmin, Answer: LoginLink{}, Errors: []int{501}},
		{Name: "logout", Method: http.MethodPost, Path: "/api/logout", Summary: "End the login of this cookie", Status: 204, Scope: ScopeAny},
		{Name: "changePassword", Method: http.MethodPost, Path: "/api/me/password", Summary: "Change your own password; all other logins end, and a login gets a new one in the answer", Status: 200, Scope: ScopeAny, Request: ChangePassword{}, Answer: LoggedIn{}, Errors: []int{429, 501}},
		{Name: "loginPage", Method: http.MethodGet, Path: "/login", Summary: "The login page", Status: 200, Scope: ScopePublic,
			Query: []Param{{"next", "query", "path of this director to go to after the login"}}, Media: "text/html"},
		{Name: "loginScript", Method: http.MethodGet, Path: "/login.js", Summary: "Its script", Status: 200, Scope: ScopePublic, Media: "text/javascript"},
		{Name: "tokens", Method: http.MethodGet, Path: "/api/tokens", Summary: "The tokens, without their secrets", Status: 200, Scope: ScopeAdmin, Answer: Tokens{}},
		{Name: "createToken", Method: http.MethodPost, Path: "/api/tokens", Summary: "Create a token; its secret is shown only in this answer", Status: 201, Scope: ScopeAdmin, Request: NewToken{}, Answer: TokenCreated{}, Errors: []int{404, 409}},
		{Name: "revokeToken", Method: http.MethodDelete, Path: "/api/tokens/{id}", Summary: "Revoke a token", Status: 204, Scope: ScopeAdmin, Errors: []int{404, 409}},
		{Name: "users", Method: http.MethodGet, Path: "/api/users", Summary: "The people who can log in", Status: 200, Scope: ScopeAdmin, Answer: Users{}},
		{Name: "putUser", Method: http.MethodPut, Path: "/api/users/{id}", Summary: "Create or change a user", Status: 200, Scope: ScopeAdmin, Request: PutUser{}, Answer: User{}, Errors: []int{409}},
		{Name: "removeUser", Method: http.MethodDelete, Path: "/api/users/{id}", Summary: "Remove a user and its tokens", Status: 204, Scope: ScopeAdmin, Errors: []int{404, 409}},
		{Name: "tools", Method: http.MethodGet, Path: "/api/tools", Summary: "The tools behind the gateway, and the servers that provide them", Status: 200, Scope: ScopeTool, Answer: Tools{}},
		{Name: "toolQueues", Method: http.MethodGet, Path: "/api/tools/queues", Summary: "The tool queues: who holds their slots and who waits", Status: 200, Scope: ScopeTool, Answer: ToolQueues{}},
		{Name: "setToolQueue", Method: http.MethodPut, Path: "/api/tools/queues/{queue}", Summary: "Set the concurrency and the rate of a tool queue, at this director and until it restarts: new slots go to waiting calls at once, removed ones drain", Status: 200, Scope: ScopeAdmin, Request: SetToolQueue{}, Answer: ToolQueueSet{}, Errors: []int{404}},
		{Name: "openToolQueue", Method: http.MethodPost, Path: "/api/tools/queues/{queue}/open", Summary: "Open a closed tool queue before its time, at all directors that share it", Status: 200, Scope: ScopeAdmin, Answer: ToolQueueOpened{}, Errors: []int{404}},
		{Name: "callTool", Method: http.MethodPost, Path: "/api/tools/{tool}/call", Summary: "Call a tool through its queue; a stream with Accept: text/event-stream", Status: 200, Scope: ScopeTool,
			Query: []Param{toolSessionParam, executionParam, sourceAgentParam}, Request: ToolCall{}, Answer: ToolResult{}, Errors: []int{404, 501, 502, 503, 504}},
		{Name: "createToolTask", Method: http.MethodPost, Path: "/api/tools/{tool}/tasks", Summary: "Call a tool as a durable task", Status: 201, Scope: ScopeTool,
			Query: []Param{idempotency, toolSessionParam, executionParam, sourceAgentParam}, Request: NewToolTask{}, Answer: ToolTask{}, Errors: []int{404, 409, 422, 501, 503}},
		{Name: "toolTasks", Method: http.MethodGet, Path: "/api/tools/tasks", Summary: "Tool calls that are tasks", Status: 200, Scope: ScopeTool,
			Query: []Param{{"tool", "query", "only of this tool"}, {"status", "query", "only pending, running, completed, failed or cancelled"}, {"before", "query", "cursor of an earlier page"}, limitParam}, Answer: ToolTasks{}, Errors: []int{404}},
		{Name: "toolTask", Method: http.MethodGet, Path: "/api/tools/tasks/{id}", Summary: "A tool call that is a task, with its result", Status: 200, Scope: ScopeTool,
			Query: []Param{waitParam}, Answer: ToolTask{}, Errors: []int{404}},
		{Name: "cancelToolTask", Method: http.MethodPost, Path: "/api/tools/tasks/{id}/cancel", Summary: "Cancel a tool call that is a task", Status: 200, Scope: ScopeTool,
			Answer: ToolTask{}, Errors: []int{404, 409}},
		{Name: "getTaskStatus", Method: http.MethodGet, Path: "/getTaskStatus", Summary: "The same as GET /api/tools/tasks/{id}, in the form of the seed async-task-queue", Status: 200, Scope: ScopeTool,
			Query: []Param{{"taskId", "query", "id of the task"}}, Answer: TaskStatus{}, Errors: []int{404}},
		{Name: "schedules", Method: http.MethodGet, Path: "/api/schedules", Summary: "The schedules, by name", Status: 200, Scope: ScopeRead,
			Query: []Param{{"agent", "query", "only of this agent"}, {"name", "query", "only the one of this name"}, {"enabled", "query", "true or false"}, {"outcomes", "query", "firings to show of each, 0 (default) to 20"}, limitParam, {"after", "query", "cursor of the page before"}}, Answer: Schedules{}},
		{Name: "createSchedule", Method: http.MethodPost, Path: "/api/schedules", Summary: "Create a schedule", Status: 201, Scope: ScopeSchedule,
			Request: NewSchedule{}, Answer: Schedule{}, Errors: []int{404, 409}},
		{Name: "schedule", Method: http.MethodGet, Path: "/api/schedules/{id}", Summary: "One schedule, by id or name, with its newest firings", Status: 200, Scope: ScopeRead, Answer: Schedule{}, Errors: []int{404}},
		{Name: "putSchedule", Method: http.MethodPut, Path: "/api/schedules/{id}", Summary: "Replace a schedule; your own, or any as an admin", Status: 200, Scope: ScopeSchedule,
			Request: NewSchedule{}, Answer: Schedule{}, Errors: []int{404, 409}},
		{Name: "removeSchedule", Method: http.MethodDelete, Path: "/api/schedules/{id}", Summary: "Remove a schedule; its tasks are kept", Status: 204, Scope: ScopeSchedule, Errors: []int{404, 409}},
		{Name: "enableSchedule", Method: http.MethodPost, Path: "/api/schedules/{id}/enable", Summary: "Let a schedule fire from now on", Status: 200, Scope: ScopeSchedule, Answer: Schedule{}, Errors: []int{404, 409}},
		{Name: "disableSchedule", Method: http.MethodPost, Path: "/api/schedules/{id}/disable", Summary: "Stop a schedule from firing", Status: 200, Scope: ScopeSchedule, Answer: Schedule{}, Errors: []int{404}},
		{Name: "triggerSchedule", Method: http.MethodPost, Path: "/api/schedules/{id}/trigger", Summary: "Fire a schedule now, in addition to its instants", Status: 201, Scope: ScopeSchedule,
			Answer: Triggered{}, Errors: []int{404, 409, 503}},
		{Name: "executions", Method: http.MethodGet, Path: "/api/schedules/{id}/executions", Summary: "The firings of a schedule, newest first", Status: 200, Scope: ScopeRead,
			Query: []Param{{"limit", "query", "how many, 1 to 100 (default 20)"}}, Answer: Executions{}, Errors: []int{404}},
		{Name: "checkCron", Method: http.MethodGet, Path: "/api/cron", Summary: "What a cron expression means: in words, and its next instants", Status: 200, Scope: ScopeRead,
			Query: []Param{{"expression", "query", "five fields or an @form"}, {"timezone", "query", "IANA name (default: scheduler.timezone)"}, {"n", "query", "instants, 1 to 50 (default 3)"}}, Answer: CronCheck{}},
		{Name: "search", Method: http.MethodGet, Path: "/api/search", Summary: "Tasks that match a query, waiting, running or ended", Status: 200, Scope: ScopeRead,
			Query: []Param{{"q", "query", "such as agent:coder state:failed since:2h \"billing\"; empty: all"}, limitParam, {"after", "query", "cursor of the page before"},
				{"sort", "query", "created, ended, wait, duration, priority or agent, with a minus before it for the largest first; empty: running, waiting, then ended"}}, Answer: Search{}},
		{Name: "searchCounts", Method: http.MethodPost, Path: "/api/search/counts", Summary: "How many tasks match each of several queries", Status: 200, Scope: ScopeRead,
			Request: SearchCountsRequest{}, Answer: SearchCounts{}},
		{Name: "searchKeys", Method: http.MethodGet, Path: "/api/search/keys", Summary: "The keys and values of the query language", Status: 200, Scope: ScopeRead, Answer: SearchKeys{}},
		{Name: "usage", Method: http.MethodGet, Path: "/api/usage", Summary: "The usage of runs in tokens and money, by day, agent, schedule, user or model", Status: 200, Scope: ScopeRead,
			Query: []Param{
				{"by", "query", "day (default), agent, schedule, user or model"}, {"from", "query", "first day in UTC, such as 2026-01-31 (default: 29 days before the last)"},
				{"to", "query", "last day (default: today)"}, {"agent", "query", "only runs of this agent"}, {"schedule", "query", "only runs of this schedule's tasks, by name"},
				{"user", "query", "only runs of this owner's tasks: an e-mail address, or a key such as user:ann"}, {"model", "query", "only runs of this model"},
			}, Answer: Usage{}},
		{Name: "bulk", Method: http.MethodPost, Path: "/api/queue/bulk", Summary: "Cancel or retry all tasks that match a query; without expect, count them", Status: 200, Scope: ScopeCancel,
			Request: BulkRequest{}, Answer: Bulk{}, Errors: []int{409}},
		{Name: "export", Method: http.MethodGet, Path: "/api/export", Summary: "All tasks as they are, for an import at another director", Status: 200, Scope: ScopeAdmin,
			Query: []Param{limitParam, {"after", "query", "cursor of the page before"}}, Answer: Export{}},
		{Name: "import", Method: http.MethodPost, Path: "/api/import", Summary: "Import tasks from another director's export; known ones are not changed", Status: 200, Scope: ScopeAdmin,
			Request: ImportRequest{}, Answer: Imported{}, Errors: []int{413}},
		{Name: "live", Method: http.MethodGet, Path: "/api/live", Summary: "The current state and its changes, as server-sent events", Status: 200, Scope: ScopeRead,
			Query: []Param{{"Last-Event-ID", "header", "revision of the last event seen, as EPOCH.REVISION"}, {"after", "query", "the same, for readers that cannot set a header"}}, Media: "text/event-stream", Errors: []int{503}},
		{Name: "home", Method: http.MethodGet, Path: "/{$}", Summary: "Redirect to the dashboard", Status: 303, Scope: ScopePublic, Media: "text/html", Errors: []int{404}},
		{Name: "page", Method: http.MethodGet, Path: "/ui/{path...}", Summary: "The dashboard", Status: 200, Scope: ScopePublic, Media: "text/html", Errors: []int{404}},
		{Name: "asset", Method: http.MethodGet, Path: "/ui/assets/{path...}", Summary: "The scripts and styles of the dashboard", Status: 200, Scope: ScopePublic, Media: "application/octet-stream", Errors: []int{404}},
		{Name: "directors", Method: http.MethodGet, Path: "/api/directors", Summary: "The directors that share the store, and the agents that each dispatches to", Status: 200, Scope: ScopeRead, Answer: Directors{}},
		{Name: "doctor", Method: http.MethodGet, Path: "/api/doctor", Summary: "The results of the director's self-check", Status: 200, Scope: ScopeRead, Answer: Doctor{}},
		{Name: "mcp", Method: http.MethodPost, Path: "/mcp", Summary: "The tools as an MCP server, streamable HTTP", Status: 200, Scope: ScopeTool,
			Query: []Param{toolSessionParam, executionParam, sourceAgentParam}, Media: "text/event-stream", Errors: []int{404, 503}},
		{Name: "mcpStream", Method: http.MethodGet, Path: "/mcp", Summary: "The messages that the MCP server sends on its own", Status: 200, Scope: ScopeTool, Media: "text/event-stream", Errors: []int{404, 405, 503}},
		{Name: "mcpEnd", Method: http.MethodDelete, Path: "/mcp", Summary: "End an MCP session", Status: 204, Scope: ScopeTool, Errors: []int{404, 405}},
		{Name: "status", Method: http.MethodGet, Path: "/status", Summary: "The director and its queue in figures", Status: 200, Scope: ScopeRead, Answer: Status{}},
		{Name: "openapi", Method: http.MethodGet, Path: "/openapi.json", Summary: "This description", Status: 200, Scope: ScopePublic, Media: "application/json"},
		{Name: "healthz", Method: http.MethodGet, Path: "/healthz", Summary: "The process is alive", Status: 200, Scope: ScopePublic, Answer: Health{}},
		{Name: "readyz", Method: http.MethodGet, Path: "/readyz", Summary: "The director accepts tasks", Status: 200, Scope: ScopePublic, Answer: Health{}, Errors: []int{503}},
		{Name: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Prometheus metrics", Status: 200, Scope: ScopeRead, Media: "text/plain; version=0.0.4"},
	}
}

// Found is the answer to GET /api/find/{part}.
type Found struct {
	QueueIDs []string `json:"queue_ids"` // newest first, at most 20
}
