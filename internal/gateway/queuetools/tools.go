// Package queuetools offers the queue itself as MCP tools: submit a task, follow
// it, chat with an agent. A call goes through the HTTP API, in process, as the
// same caller, so that rights, limits, audit and texts are those of the API.
package queuetools

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// serverName is the gateway's name for the server of the queue's tools.
const serverName = "signalbox"

// The queue's own tools.
const (
	toolSubmit = "submit_task"
	toolStatus = "task_status"
	toolOutput = "task_output"
	toolCancel = "cancel_task"
	toolAgents = "list_agents"
	toolQueue  = "queue_status"
	toolChat   = "chat_with_agent"
	toolLand   = "land_task"
)

// Limits of the queue's tools.
const (
	maxWait     = 60   // maximum wait of task_status and task_output, in seconds
	maxChatWait = 3600 // maximum wait of chat_with_agent, in seconds
	chatWait    = 50   // default: many clients give up on a call after 60 s
	maxOutput   = 32 << 10
)

// timeouts bound the calls, including the longest wait that each may ask for.
var timeouts = map[string]time.Duration{
	toolStatus: 2 * time.Minute, toolOutput: 2 * time.Minute, toolChat: maxChatWait*time.Second + time.Minute,
}

//go:embed queuetools.json
var definitions []byte

// Tools is the provider of the queue's tools for a gateway: callers of the
// tools can submit tasks, follow them and talk to agents. A call goes to the
// director's own handlers as the same caller, so that rights, limits, rules,
// audit and texts are those of the HTTP API. A gateway without a director
// does not use it, because it has no queue.
type Tools struct {
	tools []gateway.Tool
	since time.Time
	d     atomic.Pointer[Director] // nil before Bind
}

var _ gateway.Provider = (*Tools)(nil)

// New makes the tools. They work only after Bind.
func New() *Tools {
	var all []json.RawMessage
	if err := json.Unmarshal(definitions, &all); err != nil {
		panic("queuetools: queuetools.json: " + err.Error()) // it is part of the program
	}
	p := &Tools{since: time.Now()}
	for _, definition := range all {
		var named struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal(definition, &named); err != nil {
			panic("queuetools: queuetools.json: " + err.Error()) // as above
		}
		timeout := cmp.Or(timeouts[named.Name], time.Minute)
		p.tools = append(p.tools, gateway.Tool{
			Name: named.Name, Server: serverName, Kind: gateway.KindInternal, Definition: compact(definition), Timeout: timeout,
		})
	}
	return p
}

// Director is the director that the tools call.
type Director struct {
	Handler http.Handler // the whole HTTP API
	// ImportedID returns the ID that a task has here; the given ID may be from another
	// store.
	ImportedID func(ctx context.Context, id string) (string, error)
	Engine     *engine.Engine
	ToolTasks  bool // calls of tools can become tasks
	Log        *slog.Logger
}

// Bind sets the director.
func (p *Tools) Bind(d Director) { p.d.Store(&d) }

// Name is the name of the provider.
func (p *Tools) Name() string { return serverName }

// Start does nothing.
func (p *Tools) Start(context.Context, func()) error { return nil }

// Tools returns the tools, which never change.
func (p *Tools) Tools() []gateway.Tool { return p.tools }

// EndSession does nothing: no tool of the queue has sessions.
func (p *Tools) EndSession(string) {}

// Server is always ready.
func (p *Tools) Server() gateway.Server {
	return gateway.Server{Name: serverName, Kind: gateway.KindInternal, State: gateway.StateReady, Tools: len(p.tools), Since: p.since}
}

// Close does nothing.
func (p *Tools) Close() error { return nil }

// Call answers a call. A refusal is a result, so that the model can read it.
func (p *Tools) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	from, ok := ctx.Value(callerKey{}).(caller)
	a := request{d: p.d.Load(), from: from.request, who: from.who, tool: c}
	if a.d == nil || !ok {
		return gateway.Result{}, signalbox.Errorf(signalbox.CodeUnavailable, "The tool %q was not called: it answers calls that come to the director, at /mcp or POST /api/tools/{tool}/call.", c.Tool)
	}
	answer := map[string]func(context.Context, *request) (gateway.Result, error){
		toolSubmit: submit, toolStatus: status, toolOutput: output, toolCancel: cancel,
		toolAgents: agents, toolQueue: queue, toolChat: chat, toolLand: land,
	}[c.Tool]
	r, err := answer(ctx, &a)
	if err == nil {
		return r, nil
	}
	if ctx.Err() != nil {
		return gateway.Result{}, err // its caller has gone
	}
	var refused *refusal
	if !errors.As(err, &refused) { // a refusal is already in the log, if it belongs there
		if body, what := httpio.ErrorBody(err); what.Hidden {
			a.d.Log.Error("a tool of the queue failed", "tool", c.Tool, "code", body.Error, "error", err)
		}
	}
	return refusedResult(err), nil
}

type callerKey struct{}

// caller is the caller of a tool and the request in which it calls.
type caller struct {
	request *http.Request
	who     signalbox.Principal
}

// WithCaller stores the request in which a tool is called, and its principal,
// in the context: the queue's tools act as this caller.
func WithCaller(r *http.Request, who signalbox.Principal) context.Context {
	return context.WithValue(r.Context(), callerKey{}, caller{r, who})
}

func waitQuery(seconds int) url.Values {
	if seconds == 0 {
		return nil
	}
	return url.Values{"wait": {strconv.Itoa(seconds)}}
}

// status implements task_status.
func status(ctx context.Context, a *request) (gateway.Result, error) {
	var in statusArgs
	err := a.read(&in)
	if err == nil {
		in.TaskID, err = a.taskID(ctx, in.TaskID, in.WaitSeconds)
	}
	if err != nil {
		return gateway.Result{}, err
	}
	id := in.TaskID
	var call api.ToolTask
	isCall, err := a.askTools(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/tools/tasks/" + id, Query: waitQuery(in.WaitSeconds)}, &call)
	if err != nil {
		return gateway.Result{}, err
	}
	if isCall {
		return taskResult(statusOfCall(&call), call.Result)
	}
	var t api.Task
	if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/queue/" + id, Query: waitQuery(in.WaitSeconds)}, &t); err != nil {
		return gateway.Result{}, err
	}
	out := statusOfTask(&t)
	if !out.Ended && t.StartedAt == nil {
		var why api.Why
		if err := a.ask(ctx, httpio.Outgoing{Method: http.MethodGet, Path: "/api/queue/" + id + "/why"}, &why); err == nil { // optional: the answer is complete without it
			out.WaitsFor = why.Summary
		}
	}
	return taskResult(out, nil)
}

// taskStatus is the answer of task_status.
type taskStatus struct {
	QueueID     string          `json:"queue_id"`
	State       string          `json:"state"`
	Ended       bool            `json:"ended"`
	Agent       string          `json:"agent,omitempty"`
	Tool        string          `json:"tool,omitempty"`
	Position    int             `json:"position,omitempty"`
	Approximate bool            `json:"position_approximate,omitempty"`
	ETA         *api.ETA        `json:"eta,omitempty"`
	WaitsFor    string          `json:"waits_for,omitempty"`
	WaitingFor  *api.WaitingFor `json:"waiting_for,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Message     string          `json:"message,omitempty"`
	Result      *string         `json:"result,omitempty"`
	Structured  any             `json:"structured_result,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"` // the tool printed more than result holds
	ExitCode    *int            `json:"exit_code,omitempty"`
	Changes     *taskChanges    `json:"changes,omitempty"`
	Checks      *taskChecks     `json:"checks,omitempty"`
	Landing     *taskLanding    `json:"landing,omitempty"`
	SessionID   string          `json:"session_id,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	StartedAt   *time.Time      `json:"started_at,omitempty"`
	EndedAt     *time.Time      `json:"ended_at,omitempty"`
	Next        string          `json:"next,omitempty"`
}

// taskChanges describes what a run changed in its repository, as figures only: a patch could
// fill the context of a model.
type taskChanges struct {
	Branch       string `json:"branch,omitempty"`
	Base         string `json:"base,omitempty"`
	Head         string `json:"head,omitempty"`
	Commits      int    `json:"commits"`
	FilesChanged int    `json:"files_changed"`
	Insertions   int64  `json:"insertions"`
	Deletions    int64  `json:"deletions"`
	summary      string
}

// taskChecks are the states of a run's checks; the task's message quotes the output of a failed
// one.
type taskChecks struct {
	State   string            `json:"state"`
	Rounds  int               `json:"rounds"`
	Checks  map[string]string `json:"checks,omitempty"` // by name: the state
	Message string            `json:"message,omitempty"`
	summary string
}

func checksOf(c *api.AgentChecks) *taskChecks {
	s := &taskChecks{State: c.State, Rounds: c.Rounds, Message: c.Message, summary: c.Summary()}
	for _, r := range c.Results {
		if s.Checks == nil {
			s.Checks = map[string]string{}
		}
		s.Checks[r.Name] = r.State
	}
	return s
}

func statusOfTask(t *api.Task) *taskStatus {
	s := &taskStatus{
		QueueID: t.QueueID, State: t.State, Ended: signalbox.State(t.State).Terminal(), Agent: t.Agent,
		Position: t.Position, Approximate: t.PositionApproximate, ETA: t.ETA, WaitingFor: t.WaitingFor, Reason: t.Reason, Message: t.Message,
		SessionID: t.SessionID, CreatedAt: t.CreatedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
	if t.Landing != nil {
		s.Landing = landingOf(t.Landing)
	}
	if t.Result != nil {
		s.Result, s.ExitCode = &t.Result.Output, t.Result.ExitCode
		if c := t.Result.Changes; c != nil {
			s.Changes = &taskChanges{c.Branch, c.Base, c.Head, c.Commits, c.FilesChanged, c.Insertions, c.Deletions, c.Summary()}
		}
		if c := t.Result.Checks; c != nil {
			s.Checks = checksOf(c)
		}
	}
	return s
}

func statusOfCall(t *api.ToolTask) *taskStatus {
	s := &taskStatus{
		QueueID: t.ID, State: t.State, Ended: signalbox.State(t.State).Terminal(), Tool: t.ToolName, Position: t.Position,
		Reason: t.Reason, Message: t.Message, ExitCode: t.ExitCode, CreatedAt: t.CreatedAt,
	}
	if s.Ended {
		s.EndedAt = view.Time(t.UpdatedAt)
	} else {
		s.WaitsFor, s.Message = t.Message, ""
	}
	if t.Result != nil {
		text := gateway.TextOf(t.Result.Content)
		s.Result, s.Truncated = &text, t.Result.Truncated()
		if len(t.Result.StructuredContent) > 0 {
			s.Structured = t.Result.StructuredContent
		}
	}
	return s
}

// taskResult reports the state of a task. The answer of its tool is appended
// unchanged, because it may be more than text.
func taskResult(s *taskStatus, answer *api.ToolResult) (gateway.Result, error) {
	if !s.Ended {
		s.Next = followHint(s.QueueID)
	} else if s.Landing.goesOn() {
		s.Next = landingHint(s.QueueID)
	}
	words, result := s.words(), ""
	if s.Result != nil && answer == nil {
		result = *s.Result
	}
	r, err := newResult(s, words, result)
	if err == nil && answer != nil {
		r.Content = joinContent(r.Content, answer.Content)
	}
	return r, err
}

func (s *taskStatus) words() string {
	what := s.QueueID
	if s.Tool != "" {
		what += " (" + s.Tool + ")"
	}
	if s.Ended {
		text := what + " has ended: " + s.State
		if s.Reason != s.State {
			text += " (" + s.Reason + ")"
		}
		if s.Message != "" {
			text += ". " + s.Message
		}
		if s.Truncated {
			text += ". Its result is cut: the tool printed more than is kept"
		}
		if s.Changes != nil {
			text += ". It changed " + s.Changes.summary
		}
		if s.Checks != nil {
			text += ". Checks: " + s.Checks.summary
		}
		if s.Landing != nil {
			text += ". Landing: " + strings.TrimSuffix(s.Landing.Text, ".")
		}
		if s.Next != "" {
			text += ".\n" + s.Next
		}
		return text
	}
	text := what + " is " + s.State
	if s.Agent != "" {
		text += " at agent " + s.Agent
	}
	if s.Position > 0 {
		text += fmt.Sprintf(", position %d", s.Position)
	}
	if when := etaWords(s.ETA); when != "" {
		text += "; " + when
	}
	if s.WaitsFor != "" {
		text += ". It waits: " + strings.TrimSuffix(s.WaitsFor, ".")
	}
	return text + ".\n" + s.Next
}
