package queuetools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

// chatArgs are the arguments of chat_with_agent.
type chatArgs struct {
	Agent          string  `json:"agent"`
	AgentName      string  `json:"agent_name"` // the seed's name for agent
	Message        string  `json:"message"`
	Parallel       bool    `json:"parallel"`
	SessionID      string  `json:"session_id"`
	NewSession     bool    `json:"new_session"`
	Model          string  `json:"model"`
	TimeoutSeconds int     `json:"timeout_seconds"`
	Overflow       string  `json:"overflow"`
	WaitSeconds    *int    `json:"wait_seconds"`
	OnDisconnect   string  `json:"on_disconnect"`
	IdempotencyKey *string `json:"idempotency_key"`
}

// check makes the checks that no route makes, or that a route would explain
// in other words.
func (c *chatArgs) check() error {
	c.Agent = cmp.Or(c.Agent, c.AgentName)
	wait := chatWait
	if c.WaitSeconds == nil {
		c.WaitSeconds = &wait
	}
	switch n := *c.WaitSeconds; {
	case c.Agent == "":
		return signalbox.Invalid("agent", "agent is missing: list_agents has the names")
	case !signalbox.ValidName(c.Agent):
		return signalbox.Errorf(signalbox.CodeNotFound, "%q is not the name of an agent: list_agents has the names", httpio.Clip(c.Agent))
	case c.Message == "":
		return signalbox.Invalid("message", "message is missing: say what the agent is to do")
	case n < 0 || n > maxChatWait:
		return signalbox.Invalid("wait_seconds", "wait_seconds must be 0 to %d, not %d; task_status waits for what takes longer", maxChatWait, n)
	}
	if !c.Parallel {
		return nil
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"session_id", c.SessionID != ""}, {"new_session", c.NewSession}, {"overflow", c.Overflow != ""}} {
		if f.given {
			return signalbox.Invalid(f.name, "%s does not go with parallel, which runs at once and without a conversation", f.name)
		}
	}
	return nil
}

// request converts the arguments to a request: a chat or a bypass task.
func (c *chatArgs) request() httpio.Outgoing {
	gone := cmp.Or(c.OnDisconnect, "cancel")
	q := httpio.Outgoing{Method: http.MethodPost, Path: "/api/agents/" + c.Agent, Header: map[string]string{}}
	if c.Parallel {
		q.Path += "/task"
		q.Body = api.BypassRequest{Message: c.Message, Model: c.Model, TimeoutSeconds: c.TimeoutSeconds, OnDisconnect: gone}
	} else {
		q.Path += "/chat"
		q.Body = api.ChatRequest{
			Message: c.Message, Model: c.Model, TimeoutSeconds: c.TimeoutSeconds, SessionID: c.SessionID, NewSession: c.NewSession,
			Overflow: c.Overflow, OnDisconnect: gone,
		}
	}
	if *c.WaitSeconds == 0 {
		q.Header["Prefer"] = "respond-async"
	} else {
		q.Header["Accept"] = "text/event-stream"
	}
	if c.IdempotencyKey != nil {
		q.Header["Idempotency-Key"] = *c.IdempotencyKey
	}
	return q
}

// errLeft ends a wait, while the task continues: the caller stops waiting but
// did not disconnect.
var errLeft = errors.New("the caller does not wait any longer")

// chat implements chat_with_agent.
func chat(ctx context.Context, a *request) (gateway.Result, error) {
	var in chatArgs
	if err := a.read(&in); err != nil {
		return gateway.Result{}, err
	}
	if err := in.check(); err != nil {
		return gateway.Result{}, err
	}
	turn := &chatTurn{agent: in.Agent, parallel: in.Parallel, progress: a.tool.Progress, begun: time.Now()}
	during, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(leaves(ctx)) })()
	if *in.WaitSeconds > 0 {
		over := time.AfterFunc(time.Duration(*in.WaitSeconds)*time.Second, func() { end(errLeft) })
		defer over.Stop()
	}
	w, err := a.send(during, in.request(), turn.event)
	if ctx.Err() != nil {
		return gateway.Result{}, ctx.Err()
	}
	if err != nil && turn.accepted == nil {
		if errors.Is(err, context.Canceled) { // the wait ended before there was an answer
			err = signalbox.Errorf(signalbox.CodeUnavailable, "the queue did not take the turn within wait_seconds: call again, with an idempotency_key so that it is taken once")
		}
		return gateway.Result{}, err
	}
	return turn.answer(w)
}

// leaves returns the cause with which a chat ends with its tool call: nil if
// the caller disconnected, errLeft if the gateway ends the call.
func leaves(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return nil
	}
	return errLeft
}

// StoppedWaiting reports whether a caller stopped waiting and leaves its task running.
func StoppedWaiting(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errLeft) }

// chatTurn is what the stream of a turn has reported so far.
type chatTurn struct {
	agent    string
	parallel bool
	progress func(gateway.Progress)
	begun    time.Time

	accepted *api.ChatAccepted // the latest
	started  bool
	name     string // of the last event: result or error
	data     []byte
}

// event takes an event of the stream and passes on what the caller should
// know while it waits.
func (t *chatTurn) event(name string, data []byte) {
	var at api.ChatAccepted
	switch name {
	case "accepted", "started":
		if json.Unmarshal(data, &at) == nil {
			t.accepted, t.started = &at, name == "started"
		}
	case "position":
		var place api.ChatPosition
		if json.Unmarshal(data, &place) == nil && t.accepted != nil {
			t.accepted.Position, t.accepted.ETA, t.started = place.Position, place.ETA, false
		}
	case "result", "error":
		t.name, t.data = name, data
		return
	case "":
		if t.accepted == nil {
			return // the turn begins
		}
	default:
		return
	}
	t.tell()
}

// tell reports progress: the position in the queue when it changes, and from
// time to time that the turn still runs, because clients give up on silent
// calls.
func (t *chatTurn) tell() {
	if t.progress == nil || t.accepted == nil {
		return
	}
	p := gateway.Progress{Message: "agent " + t.agent + " is at work", Position: t.accepted.Position}
	switch {
	case t.accepted.Position > 0:
		p.Message = fmt.Sprintf("queued, position %d", t.accepted.Position)
		if w := t.accepted.WaitingFor; w != nil {
			p.Message += ": " + w.Text
		}
	case !t.started:
		p.Message = "agent " + t.agent + " is about to start"
	default:
		if s := time.Since(t.begun).Round(time.Second); s >= httpio.KeepAliveEvery {
			p.Message += fmt.Sprintf(" (%s)", s)
		}
	}
	t.progress(p)
}

// chatDone is the answer for a completed turn, with the seed's fields.
type chatDone struct {
	Status string `json:"status"`
	api.ChatResponse
	QueueID string `json:"queue_id"`
}

// chatGoesOn is the answer for a turn that has not ended.
type chatGoesOn struct {
	Status    string           `json:"status"`
	Agent     string           `json:"agent"`
	QueueID   string           `json:"queue_id"`
	Execution api.ExecutionRef `json:"execution"`
	Position  int              `json:"position,omitempty"`
	ETA       *api.ETA         `json:"eta,omitempty"`
	// WaitingFor is the account that the turn waits for.
	WaitingFor *api.WaitingFor `json:"waiting_for,omitempty"`
	SessionID  string          `json:"session_id,omitempty"`
	Next       string          `json:"next"`
}

// chatBusy is the seed's answer for a turn that was refused.
type chatBusy struct {
	Status      string          `json:"status"`
	Agent       string          `json:"agent"`
	QueueStatus string          `json:"queue_status"`
	RetryAfter  int             `json:"retry_after_seconds"`
	Message     string          `json:"message"`
	Details     json.RawMessage `json:"details"`
}

// answer is the final answer to the caller. w is nil if the wait ended first.
func (t *chatTurn) answer(w *response) (gateway.Result, error) {
	switch {
	case t.name == "result":
		return t.done()
	case t.name == "error":
		return t.refused(&response{status: http.StatusBadGateway, body: t.data})
	case t.accepted != nil: // the wait ended, or the director is stopping
		return t.goesOn()
	case w.status == http.StatusAccepted:
		t.accepted = &api.ChatAccepted{}
		if err := json.Unmarshal(w.body, t.accepted); err != nil {
			return gateway.Result{}, err
		}
		return t.goesOn()
	}
	return t.refused(w)
}

func (t *chatTurn) done() (gateway.Result, error) {
	out := chatDone{Status: "completed"}
	if err := json.Unmarshal(t.data, &out.ChatResponse); err != nil {
		return gateway.Result{}, err
	}
	out.QueueID, out.ExecutionLog = out.Execution.ID, "" // task_output has the log
	note := "(" + out.QueueID
	if out.SessionID != "" {
		note += ", session " + out.SessionID
	}
	return newResult(out, cmp.Or(out.Response, "("+t.agent+" said nothing)"), note+")")
}

func (t *chatTurn) goesOn() (gateway.Result, error) {
	v := t.accepted
	out := chatGoesOn{
		Status: "running", Agent: t.agent, QueueID: v.Execution.ID, Execution: v.Execution, Position: v.Position, ETA: v.ETA,
		SessionID: v.SessionID, Next: followHint(v.Execution.ID),
	}
	text := fmt.Sprintf("%s has not answered yet and goes on with it as %s.", t.agent, out.QueueID)
	if v.Position > 0 {
		out.Status = "queued"
		text = fmt.Sprintf("This waits for %s as %s, position %d.", t.agent, out.QueueID, v.Position)
	}
	if w := v.WaitingFor; w != nil {
		out.WaitingFor = w
		text += " It goes on by itself: " + w.Text + "."
	}
	if when := etaWords(v.ETA); when != "" {
		text += " By what is known " + when + "."
	}
	return newResult(out, text+"\n"+out.Next)
}

// refused reports a busy agent with the seed's fields, and everything else as
// an error.
func (t *chatTurn) refused(w *response) (gateway.Result, error) {
	err := refusalOf(w)
	var r *refusal
	if !errors.As(err, &r) {
		return gateway.Result{}, err
	}
	out := chatBusy{Status: "agent_busy", Agent: t.agent, RetryAfter: cmp.Or(r.RetryAfter, 30), Details: r.body}
	full := ""
	switch signalbox.Code(r.code()) {
	case signalbox.CodeQueueFull:
		out.QueueStatus, full = "queue_full", " The execution queue is full."
	case signalbox.CodeAgentBusy:
		if out.QueueStatus = "busy"; t.parallel {
			out.QueueStatus, full = "bypass_full", " It runs as many parallel tasks as it may."
		}
	default:
		return gateway.Result{}, err
	}
	out.Message = fmt.Sprintf("Agent '%s' is currently busy.%s Please wait %d seconds before retrying, or try a different agent.", t.agent, full, out.RetryAfter)
	text, err := marshal(out, "  ")
	if err != nil {
		return gateway.Result{}, err
	}
	return newResult(out, string(text))
}
