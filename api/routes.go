package api

import "net/http"

// Route is one endpoint of the director: the one place from which the
// handlers are mounted, GET /openapi.json is made, and the docs are checked.
type Route struct {
	Name    string // operation id, and the key of its handler
	Method  string
	Path    string // in the form of net/http.ServeMux
	Summary string
	Status  int // of a success
	Scope   Scope
	Query   []Param
	Request any // zero value of the body's type; nil: no body
	Answer  any // zero value of the answer's type; nil: not JSON
	Media   string
	Errors  []int // statuses beyond 400, 401, 403, 413, 415 and 500
}

// Param is a query parameter or header of a route.
type Param struct {
	Name    string
	In      string // "query" or "header"
	Summary string
}

// Scope is the right that a caller needs for a route.
type Scope string

// The scopes. Public routes ask for no token.
const (
	ScopePublic  Scope = "public"
	ScopeRead    Scope = "read"
	ScopeSubmit  Scope = "submit"
	ScopeCancel  Scope = "cancel"
	ScopeRelease Scope = "release"
	ScopeAdmin   Scope = "admin"
)

var (
	waitParam   = Param{"wait", "query", "answer when the task has ended, or after this long, such as 30s (at most 5m)"}
	limitParam  = Param{"limit", "query", "how many, 1 to 1000 (default 100)"}
	idempotency = Param{"Idempotency-Key", "header", "1 to 255 printable characters; the same key makes at most one task"}
)

// Routes returns the route table of the director.
func Routes() []Route {
	return []Route{
		{Name: "submit", Method: http.MethodPost, Path: "/api/queue/task", Summary: "Submit a task to the queue", Status: 201,
			Scope: ScopeSubmit, Query: []Param{idempotency}, Request: SubmitRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 503}},
		{Name: "submitTask", Method: http.MethodPost, Path: "/api/task", Summary: "Submit a task from the web view", Status: 202,
			Scope: ScopeSubmit, Query: []Param{idempotency}, Request: SubmitRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 503}},
		{Name: "queue", Method: http.MethodGet, Path: "/api/queue", Summary: "Waiting and dispatching tasks, in order", Status: 200, Scope: ScopeRead,
			Query: []Param{{"queue", "query", "only this queue, such as agent:coder"}, limitParam, {"after", "query", "cursor of the page before"}}, Answer: Queue{}},
		{Name: "task", Method: http.MethodGet, Path: "/api/queue/{id}", Summary: "One task", Status: 200, Scope: ScopeRead,
			Query: []Param{waitParam}, Answer: Task{}, Errors: []int{404}},
		{Name: "find", Method: http.MethodGet, Path: "/api/find/{part}", Summary: "Ids that begin or end with a part", Status: 200, Scope: ScopeRead,
			Answer: Found{}},
		{Name: "cancel", Method: http.MethodPost, Path: "/api/queue/{id}/cancel", Summary: "Cancel a task, waiting or running", Status: 200, Scope: ScopeCancel,
			Answer: Cancelled{}, Errors: []int{404, 409}},
		{Name: "retry", Method: http.MethodPost, Path: "/api/queue/{id}/retry", Summary: "Submit an ended task anew, as it was or edited", Status: 201, Scope: ScopeSubmit,
			Query: []Param{idempotency}, Request: RetryRequest{}, Answer: SubmitResponse{}, Errors: []int{404, 409, 422, 503}},
		{Name: "why", Method: http.MethodGet, Path: "/api/queue/{id}/why", Summary: "Why a task is not running: its gates in order", Status: 200, Scope: ScopeRead,
			Answer: Why{}, Errors: []int{404}},
		{Name: "output", Method: http.MethodGet, Path: "/api/queue/{id}/output", Summary: "The log of a task; a stream with Accept: text/event-stream", Status: 200, Scope: ScopeRead,
			Query: []Param{{"after", "query", "position in bytes from which to read (default 0)"}, waitParam}, Answer: Output{}, Errors: []int{404}},
		{Name: "pause", Method: http.MethodPost, Path: "/api/queue/pause", Summary: "Pause one queue or all", Status: 200, Scope: ScopeAdmin,
			Request: PauseRequest{}, Answer: Paused{}},
		{Name: "resume", Method: http.MethodPost, Path: "/api/queue/resume", Summary: "Resume one queue or all", Status: 200, Scope: ScopeAdmin,
			Request: PauseRequest{}, Answer: Paused{}},
		{Name: "history", Method: http.MethodGet, Path: "/api/history", Summary: "Ended tasks, newest first", Status: 200, Scope: ScopeRead,
			Query: []Param{
				{"state", "query", "completed, failed, cancelled or timeout"}, {"reason", "query", "a typed reason, such as lost"},
				{"agent", "query", ""}, {"queue", "query", ""}, {"source", "query", ""}, {"source_job", "query", ""}, {"session_id", "query", ""},
				{"q", "query", "part of the prompt's first line"}, {"since", "query", "RFC 3339, or an age such as 2h"}, {"until", "query", "RFC 3339, or an age such as 2h"},
				limitParam, {"before", "query", "cursor of the page before"},
			}, Answer: History{}},
		{Name: "events", Method: http.MethodGet, Path: "/api/events", Summary: "What happens, as server-sent events", Status: 200, Scope: ScopeRead,
			Query: []Param{{"after", "query", "seq after which to begin; default: now"}, {"queue_id", "query", "only events of this task"},
				{"Last-Event-ID", "header", "seq of the last event seen"}}, Media: "text/event-stream"},
		{Name: "agents", Method: http.MethodGet, Path: "/api/agents", Summary: "The agents and what they do", Status: 200, Scope: ScopeRead, Answer: Agents{}},
		{Name: "registerAgent", Method: http.MethodPost, Path: "/api/agents", Summary: "Register an agent", Status: 201, Scope: ScopeAdmin,
			Request: RegisterAgent{}, Answer: Agent{}, Errors: []int{409}},
		{Name: "heartbeat", Method: http.MethodPost, Path: "/api/agents/{name}/heartbeat", Summary: "An agent says that it lives", Status: 200, Scope: ScopeAdmin,
			Request: Heartbeat{}, Answer: HeartbeatAnswer{}, Errors: []int{404, 409}},
		{Name: "removeAgent", Method: http.MethodDelete, Path: "/api/agents/{name}", Summary: "Forget an agent", Status: 204, Scope: ScopeAdmin, Errors: []int{404, 409}},
		{Name: "clearLane", Method: http.MethodPost, Path: "/api/agents/{name}/queue/clear", Summary: "Cancel all that waits for an agent", Status: 200, Scope: ScopeAdmin,
			Answer: LaneCleared{}, Errors: []int{404}},
		{Name: "releaseLane", Method: http.MethodPost, Path: "/api/agents/{name}/queue/release", Summary: "Take an agent's slots away from what holds them", Status: 200, Scope: ScopeRelease,
			Answer: Released{}, Errors: []int{404}},
		{Name: "status", Method: http.MethodGet, Path: "/status", Summary: "The director and its queue in figures", Status: 200, Scope: ScopeRead, Answer: Status{}},
		{Name: "openapi", Method: http.MethodGet, Path: "/openapi.json", Summary: "This description", Status: 200, Scope: ScopePublic, Media: "application/json"},
		{Name: "healthz", Method: http.MethodGet, Path: "/healthz", Summary: "The process lives", Status: 200, Scope: ScopePublic, Answer: Health{}},
		{Name: "readyz", Method: http.MethodGet, Path: "/readyz", Summary: "The director takes work", Status: 200, Scope: ScopePublic, Answer: Health{}, Errors: []int{503}},
		{Name: "metrics", Method: http.MethodGet, Path: "/metrics", Summary: "Prometheus metrics", Status: 200, Scope: ScopeRead, Media: "text/plain; version=0.0.4"},
	}
}

// Found is the answer to GET /api/find/{part}.
type Found struct {
	QueueIDs []string `json:"queue_ids"` // newest first, at most 20
}
