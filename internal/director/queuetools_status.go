package director

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

func waitQuery(seconds int) url.Values {
	if seconds == 0 {
		return nil
	}
	return url.Values{"wait": {strconv.Itoa(seconds)}}
}

// statusTool is task_status.
func statusTool(ctx context.Context, a *asking) (gateway.Result, error) {
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
	isCall, err := a.askTools(ctx, question{method: http.MethodGet, path: "/api/tools/tasks/" + id, query: waitQuery(in.WaitSeconds)}, &call)
	if err != nil {
		return gateway.Result{}, err
	}
	if isCall {
		return tellTask(statusOfCall(&call), call.Result)
	}
	var t api.Task
	if err := a.ask(ctx, question{method: http.MethodGet, path: taskURL(id), query: waitQuery(in.WaitSeconds)}, &t); err != nil {
		return gateway.Result{}, err
	}
	out := statusOfTask(&t)
	if !out.Ended && t.StartedAt == nil {
		var why api.Why
		if err := a.ask(ctx, question{method: http.MethodGet, path: taskURL(id) + "/why"}, &why); err == nil { // a word more; the rest stands without
			out.WaitsFor = why.Summary
		}
	}
	return tellTask(out, nil)
}

// taskStatus is the answer of task_status.
type taskStatus struct {
	QueueID     string     `json:"queue_id"`
	State       string     `json:"state"`
	Ended       bool       `json:"ended"`
	Agent       string     `json:"agent,omitempty"`
	Tool        string     `json:"tool,omitempty"`
	Position    int        `json:"position,omitempty"`
	Approximate bool       `json:"position_approximate,omitempty"`
	ETA         *api.ETA   `json:"eta,omitempty"`
	WaitsFor    string     `json:"waits_for,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
	Result      *string    `json:"result,omitempty"`
	Structured  any        `json:"structured_result,omitempty"`
	Truncated   bool       `json:"truncated,omitempty"` // the tool printed more than result holds
	ExitCode    *int       `json:"exit_code,omitempty"`
	SessionID   string     `json:"session_id,omitempty"`
	CreatedAt   time.Time  `json:"created_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Next        string     `json:"next,omitempty"`
}

func statusOfTask(t *api.Task) *taskStatus {
	s := &taskStatus{
		QueueID: t.QueueID, State: t.State, Ended: signalbox.State(t.State).Terminal(), Agent: t.Agent,
		Position: t.Position, Approximate: t.PositionApproximate, ETA: t.ETA, Reason: t.Reason, Message: t.Message,
		SessionID: t.SessionID, CreatedAt: t.CreatedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
	if t.Result != nil {
		s.Result, s.ExitCode = &t.Result.Output, t.Result.ExitCode
	}
	return s
}

func statusOfCall(t *api.ToolTask) *taskStatus {
	s := &taskStatus{
		QueueID: t.ID, State: t.State, Ended: signalbox.State(t.State).Terminal(), Tool: t.ToolName, Position: t.Position,
		Reason: t.Reason, Message: t.Message, ExitCode: t.ExitCode, CreatedAt: t.CreatedAt,
	}
	if s.Ended {
		s.EndedAt = timePtr(t.UpdatedAt)
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

// tellTask tells how a task is; what its tool answered stands behind it as it
// was, for it may be more than text.
func tellTask(s *taskStatus, answer *api.ToolResult) (gateway.Result, error) {
	if !s.Ended {
		s.Next = askStatus(s.QueueID)
	}
	words, result := s.words(), ""
	if s.Result != nil && answer == nil {
		result = *s.Result
	}
	r, err := told(s, words, result)
	if err == nil && answer != nil {
		r.Content = joined(r.Content, answer.Content)
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
