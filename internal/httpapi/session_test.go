package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// exchange is a request and the answer that a director really gave.
type exchange struct {
	route   string // name in the route table
	title   string
	request *http.Request
	body    string
	answer  reply
}

// session is one director asked at every endpoint, the same in every run. Its
// exchanges are the examples of docs/api.md, and are checked against
// GET /openapi.json.
type session struct {
	*box
	clock     clock
	exchanges []exchange

	tools      *fakeTools
	toolTasks  *fakeToolTasks
	plans      *fakeSchedules
	mcpSession edit
}

func newSession(t *testing.T) *session {
	s := &session{}
	s.box = newBox(t, fixed(&s.clock), func(o *options) { o.engine.MaxSize = 3 })
	s.box.agent("reviewer", 1) // by the engine: the story begins with one known agent
	s.withMetrics()
	s.queueStory()
	s.runStory()
	s.endStory()
	s.terminalStory()
	s.agentStory()
	s.chatStory()
	s.toolStory()
	s.toolTaskStory()
	s.scheduleStory()
	s.pagesStory()
	s.searchStory()
	s.pullStory()
	s.exportStory()
	s.streamStory()
	s.liveStory()
	s.toolStreamStory()
	s.identityStory()
	return s
}

func (s *session) withMetrics() {
	mcp := s.toolsAndMCP()
	s.toolTasks = newFakeToolTasks()
	s.toolTasks.store, s.toolTasks.engine = s.store, s.engine
	s.plans = newFakeSchedules(s.clock.now)
	d, err := httpapi.New(httpapi.Config{Schedules: s.plans, Pages: http.HandlerFunc(onePage), Tools: s.tools, ToolTasks: s.toolTasks, MCP: mcp, Engine: s.engine, Identity: s.id, Runs: s.runs, Pull: s.withPullers(), Terminal: true, Version: "1.0.0", Metrics: telemetry.NewMetrics(s.engine)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.dir = d
	s.dir.LookOnlyWhenAsked() // what is sampled, and when, is to be the same in every run
}

// ask sends a request and keeps it with its answer.
func (s *session) ask(route, title, path, body string, edits ...edit) reply {
	s.t.Helper()
	method := ""
	for _, r := range api.Routes() {
		if r.Name == route {
			method = r.Method
		}
	}
	var sent *http.Request
	edits = append(edits, header(requestID, "req-example"), func(r *http.Request) { sent = r })
	got := s.do(method, path, body, edits...)
	s.exchanges = append(s.exchanges, exchange{route: route, title: title, request: sent, body: body, answer: got})
	return got
}

const requestID = "X-Request-Id"

func (s *session) submitted(r reply) string {
	var out api.SubmitResponse
	r.want(s.t, r.StatusCode, &out)
	return out.QueueID
}

func (s *session) queueStory() {
	key := header("Idempotency-Key", "nightly-2025-01-17")
	first := s.submitted(s.ask("submit", "", "/api/queue/task", seedRequest, key))
	s.ask("submit", "The same key and body again find the same task", "/api/queue/task", seedRequest, key)
	s.clock.pass(time.Minute)
	s.ask("submitTask", "", "/api/task", `{"prompt":"Review pull request 17","agent":"reviewer"}`)
	s.submitted(s.ask("submit", "A task for any agent of a kind, later, with secrets", "/api/queue/task",
		`{"prompt":"Sync the calendar","kind":"claude","priority":2,"not_before":"2025-01-17T12:00:00Z","env":{"CALENDAR_TOKEN":"…"},"project":{"name":"office","path":"/srv/office"},"wait_timeout":86400,"on_lost":"requeue"}`))
	s.ask("submit", "The queue is full", "/api/queue/task", `{"prompt":"One too many"}`)
	s.ask("submit", "A request that is wrong", "/api/queue/task", `{"prompt":"p","timeout_seconds":"30"}`)
	s.clock.pass(4 * time.Minute)
	s.ask("queue", "", "/api/queue?limit=2", "")
	s.ask("task", "While it waits", "/api/queue/"+first, "")
	s.ask("find", "", "/api/find/"+first[len(first)-4:], "")
	s.ask("pause", "", "/api/queue/pause", `{"queue":"work","reason":"upgrading the agents","seconds":600}`)
	s.ask("why", "", "/api/queue/"+first+"/why", "")
	s.ask("resume", "", "/api/queue/resume", `{"queue":"work"}`)
	s.ask("status", "", "/status", "")
}

func (s *session) runStory() {
	s.ask("registerAgent", "", "/api/agents", `{"name":"coder","kind":"claude","url":"http://127.0.0.1:9001","slots":2,"fencing":true,"version":"1.0.0","work_dir":"/srv/work"}`)
	a, err := s.engine.Agent(s.t.Context(), "coder")
	if err != nil {
		s.t.Fatal(err)
	}
	s.live.set(engine.LiveAgent{Agent: a, Up: true, LastHeard: s.clock.now()})
	task := s.work(a)
	s.runs.print(task.ID, "Reading the logs …\n")
	s.ask("heartbeat", "", "/api/agents/coder/heartbeat", `{"state":"working","current_tasks":[{"id":"task-1","queue_id":"`+task.ID+`","fence":1,"started_at":"2025-01-17T10:05:00Z","prompt_preview":"Task prompt here"}]}`)
	s.ask("agents", "", "/api/agents", "")
	s.ask("task", "While it runs", "/api/queue/"+task.ID, "")
	s.ask("output", "", "/api/queue/"+task.ID+"/output?after=8", "")
	s.clock.pass(2 * time.Minute)
	code := 0
	s.finish(task, signalbox.ReasonCompleted, signalbox.Result{Output: "All done.", Tail: "Reading the logs …\nAll done.\n", ExitCode: &code, InputTokens: 1200, OutputTokens: 85, CostUSD: 0.012, ToolCount: 4, DurationSeconds: 119.5})
	s.runs.end(task.ID)
	s.ask("task", "Once it has ended", "/api/queue/"+task.ID+"?wait=30s", "")
	s.ask("retry", "", "/api/queue/"+task.ID+"/retry", `{"model":"opus"}`)
	s.ask("cancel", "A task that has ended", "/api/queue/"+task.ID+"/cancel", "")
}

func (s *session) endStory() {
	var q api.Queue
	s.do("GET", "/api/queue?queue=work", "").want(s.t, 200, &q)
	s.ask("cancel", "", "/api/queue/"+q.Tasks[0].QueueID+"/cancel", "")
	s.ask("history", "", "/api/history?state=completed&since=2h", "")
	s.ask("task", "An id that never existed", "/api/queue/queue-00000000000000000000000000", "")
	s.ask("openapi", "", "/openapi.json", "")
	s.ask("healthz", "", "/healthz", "")
	s.ask("readyz", "", "/readyz", "")
	s.dir.SetDraining(true)
	s.ask("readyz", "Before the director stops", "/readyz", "")
	s.dir.SetDraining(false)
	s.ask("metrics", "", "/metrics", "")
}

func (s *session) agentStory() {
	a, err := s.engine.Agent(s.t.Context(), "reviewer")
	if err != nil {
		s.t.Fatal(err)
	}
	s.work(a)
	s.submit(`{"prompt":"Review pull request 18","agent":"reviewer"}`)
	s.ask("clearLane", "", "/api/agents/reviewer/queue/clear", "")
	s.ask("removeAgent", "While it runs a task", "/api/agents/reviewer", "")
	s.ask("releaseLane", "", "/api/agents/reviewer/queue/release", "")
	s.ask("removeAgent", "", "/api/agents/reviewer", "")
}

// streamStory comes last: the stream of a log ends with its task, and with the
// director stopped, those of events end once they have said what there is.
func (s *session) streamStory() {
	var h api.History
	s.do("GET", "/api/history?state=completed&agent=writer", "").want(s.t, 200, &h)
	s.ask("output", "As a stream", "/api/queue/"+h.Tasks[0].QueueID+"/output?after=8", "", header("Accept", "text/event-stream"))
	s.dir.Stop()
	newest := s.newest()
	s.ask("events", "", "/api/events?after="+fmt.Sprint(newest-3), "", header("Accept", "text/event-stream"))
	s.ask("events", "From a place that this director does not have", "/api/events", "", header("Last-Event-ID", "1000000"))
}
