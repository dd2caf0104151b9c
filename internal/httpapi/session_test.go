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
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// exchange is a request and the answer that a director really gave.
type exchange struct {
	route   string // name in the route table
	title   string
	request *http.Request
	body    string
	answer  apitest.Reply
}

// session sends requests to every endpoint of a director, the same in every run. The exchanges
// are the examples in docs/api.md, and are checked against GET /openapi.json.
type session struct {
	*apitest.Fixture
	clock     apitest.Clock
	exchanges []exchange

	tools      *apitest.Tools
	toolTasks  *apitest.ToolTasks
	plans      *apitest.Schedules
	mcpSession apitest.Edit
}

func newSession(t *testing.T) *session {
	s := &session{}
	s.Fixture = apitest.New(t, apitest.WithClock(&s.clock), func(o *apitest.Options) {
		o.Engine.MaxSize = 3
		o.Engine.Resources = map[string]signalbox.Resource{"staging-db": {Capacity: 1}, "port": {Capacity: 3, Values: []string{"3001", "3002", "3003"}}}
		o.Engine.Budgets = signalbox.Budgets{Accounts: map[string]signalbox.Budget{"*": {NanoUSD: 60_000_000_000}, "team": {Tokens: 2_000_000}}}
	})
	s.Fixture.AddAgent("reviewer", 1) // through the engine: the story starts with one known agent
	s.withMetrics()
	s.queueStory()
	s.runStory()
	s.endStory()
	s.workspaceStory()
	s.terminalStory()
	s.agentStory()
	s.accountStory()
	s.landingStory()
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
	s.toolTasks = apitest.NewToolTasks()
	s.toolTasks.Store, s.toolTasks.Engine = s.Store, s.Engine
	s.plans = apitest.NewSchedules(s.clock.Now)
	d, err := httpapi.New(httpapi.Config{LiveIdle: time.Hour, Schedules: s.plans, Pages: http.HandlerFunc(apitest.ServePage), Tools: s.tools, ToolTasks: s.toolTasks, MCP: mcp, Engine: s.Engine, Identity: s.Identity, Runs: s.Runs, Pull: s.withPullers(), Terminal: true, Version: "1.0.0", Metrics: telemetry.NewMetrics(s.Engine)})
	if err != nil {
		s.T.Fatal(err)
	}
	s.Server = d
}

// ask sends a request and records it with its answer.
func (s *session) ask(route, title, path, body string, edits ...apitest.Edit) apitest.Reply {
	s.T.Helper()
	method := ""
	for _, r := range api.Routes() {
		if r.Name == route {
			method = r.Method
		}
	}
	var sent *http.Request
	edits = append(edits, apitest.Header(requestID, "req-example"), func(r *http.Request) { sent = r })
	got := s.Do(method, path, body, edits...)
	s.exchanges = append(s.exchanges, exchange{route: route, title: title, request: sent, body: body, answer: got})
	return got
}

const requestID = "X-Request-Id"

func (s *session) submitted(r apitest.Reply) string {
	var out api.SubmitResponse
	r.Want(s.T, r.StatusCode, &out)
	return out.QueueID
}

func (s *session) queueStory() {
	key := apitest.Header("Idempotency-Key", "nightly-2025-01-17")
	first := s.submitted(s.ask("submit", "", "/api/queue/task", seedRequest, key))
	s.ask("submit", "The same key and body again find the same task", "/api/queue/task", seedRequest, key)
	s.clock.Advance(time.Minute)
	s.ask("submitTask", "", "/api/task", `{"prompt":"Review pull request 17","agent":"reviewer"}`)
	s.submitted(s.ask("submit", "A task for any agent of a kind, later, with secrets", "/api/queue/task",
		`{"prompt":"Sync the calendar","kind":"claude","priority":2,"not_before":"2025-01-17T12:00:00Z","env":{"CALENDAR_TOKEN":"…"},"project":{"name":"office","path":"/srv/office"},"wait_timeout":86400,"on_lost":"requeue"}`))
	s.ask("submit", "The queue is full", "/api/queue/task", `{"prompt":"One too many"}`)
	s.ask("submit", "A request that is wrong", "/api/queue/task", `{"prompt":"p","timeout_seconds":"30"}`)
	s.clock.Advance(4 * time.Minute)
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
	a, err := s.Engine.Agent(s.T.Context(), "coder")
	if err != nil {
		s.T.Fatal(err)
	}
	s.Live.Set(engine.LiveAgent{Agent: a, Up: true, LastHeard: s.clock.Now()})
	task := s.Run(a)
	s.Runs.Print(task.ID, "Reading the logs …\n")
	s.ask("heartbeat", "", "/api/agents/coder/heartbeat", `{"state":"working","current_tasks":[{"id":"task-1","queue_id":"`+task.ID+`","fence":1,"started_at":"2025-01-17T10:05:00Z","prompt_preview":"Task prompt here"}]}`)
	s.ask("agents", "", "/api/agents", "")
	s.ask("task", "While it runs", "/api/queue/"+task.ID, "")
	s.ask("output", "", "/api/queue/"+task.ID+"/output?after=8", "")
	s.Runs.Answering = map[string]bool{"coder": true}
	s.ask("output", "The whole log, from its agent", "/api/queue/"+task.ID+"/output?whole=true", "")
	s.clock.Advance(2 * time.Minute)
	code := 0
	s.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Output: "All done.", Tail: "Reading the logs …\nAll done.\n", ExitCode: &code, InputTokens: 1200, OutputTokens: 85, CostUSD: 0.012, ToolCount: 4, DurationSeconds: 119.5, Model: "opus",
		Checked: &signalbox.Checked{State: signalbox.CheckPassed, Rounds: 2, Results: []signalbox.CheckResult{{Name: "test", State: signalbox.CheckPassed, ExitCode: &code, Seconds: 12.5, Output: "ok\n"}}},
		Changes: &signalbox.Changes{
			Workspace: "worktree", Dir: "/var/lib/signalbox/worktrees/06h1y1/tree", Branch: "signalbox/06h1y1", Base: "8f1d6a5b0c3e4f7a9b2d1c0e5f6a7b8c9d0e1f2a", Head: "3c2b1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b",
			Commits: 1, FilesChanged: 1, Files: []signalbox.ChangedFile{{Path: "crontab", From: "cron.txt", Status: signalbox.FileRenamed}},
			Patch: exchangedPatch, PatchBytes: int64(len(exchangedPatch)),
		}})
	s.Runs.End(task.ID)
	s.ask("task", "Once it has ended", "/api/queue/"+task.ID+"?wait=30s", "")
	s.ask("diff", "", "/api/queue/"+task.ID+"/diff", "")
	s.ask("diff", "As a patch", "/api/queue/"+task.ID+"/diff", "", apitest.Header("Accept", "text/x-diff"))
	s.ask("retry", "", "/api/queue/"+task.ID+"/retry", `{"model":"opus"}`)
	s.ask("cancel", "A task that has ended", "/api/queue/"+task.ID+"/cancel", "")
}

const exchangedPatch = "diff --git a/cron.txt b/crontab\nsimilarity index 100%\nrename from cron.txt\nrename to crontab\n"

func (s *session) endStory() {
	var q api.Queue
	s.Do("GET", "/api/queue?queue=work", "").Want(s.T, 200, &q)
	s.ask("edit", "", "/api/queue/"+q.Tasks[0].QueueID, `{"revision":1,"prompt":"Check the logs of last night only","place":"top"}`)
	s.ask("edit", "Another revision than it has", "/api/queue/"+q.Tasks[0].QueueID, `{"revision":1,"priority":5}`)
	s.ask("cancel", "", "/api/queue/"+q.Tasks[0].QueueID+"/cancel", "")
	s.ask("history", "", "/api/history?state=completed&since=2h", "")
	s.ask("usage", "", "/api/usage", "")
	s.ask("usage", "By agent", "/api/usage?by=agent&from=2025-01-01&to=2025-01-31", "")
	s.ask("task", "An id that never existed", "/api/queue/queue-00000000000000000000000000", "")
	s.ask("openapi", "", "/openapi.json", "")
	s.ask("healthz", "", "/healthz", "")
	s.ask("readyz", "", "/readyz", "")
	s.Server.SetDraining(true)
	s.ask("readyz", "Before the director stops", "/readyz", "")
	s.Server.SetDraining(false)
	s.ask("metrics", "", "/metrics", "")
}

func (s *session) agentStory() {
	a, err := s.Engine.Agent(s.T.Context(), "reviewer")
	if err != nil {
		s.T.Fatal(err)
	}
	s.Run(a)
	s.Submit(`{"prompt":"Review pull request 18","agent":"reviewer"}`)
	s.ask("clearLane", "", "/api/agents/reviewer/queue/clear", "")
	s.ask("removeAgent", "While it runs a task", "/api/agents/reviewer", "")
	s.ask("releaseLane", "", "/api/agents/reviewer/queue/release", "")
	s.ask("removeAgent", "", "/api/agents/reviewer", "")
}

// streamStory is last: the stream of a log ends with its task, and after the director has stopped,
// streams of events end after the existing events.
func (s *session) streamStory() {
	var h api.History
	s.Do("GET", "/api/history?state=completed&agent=writer", "").Want(s.T, 200, &h)
	s.ask("output", "As a stream", "/api/queue/"+h.Tasks[0].QueueID+"/output?after=8", "", apitest.Header("Accept", "text/event-stream"))
	s.Server.Stop()
	newest := s.NewestEvent()
	s.ask("events", "", "/api/events?after="+fmt.Sprint(newest-3), "", apitest.Header("Accept", "text/event-stream"))
	s.ask("events", "From a place that this director does not have", "/api/events", "", apitest.Header("Last-Event-ID", "1000000"))
}
