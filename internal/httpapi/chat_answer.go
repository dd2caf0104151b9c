package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func refView(t *signalbox.Task) api.ExecutionRef {
	return api.ExecutionRef{ID: t.ID, QueueStatus: t.QueueStatus(), WasQueued: t.WasQueued()}
}

func (h *callHandlers) acceptedView(c *call, t *signalbox.Task, pos store.Position, eta *engine.ETA, message string) api.ChatAccepted {
	v := api.ChatAccepted{
		Agent: c.agent, Execution: refView(t), State: string(t.State), SessionID: t.SessionID, ETA: view.ETA(eta),
		URL: view.TaskURL(t.ID), Message: message, WaitingFor: view.WaitingFor(h.engine.WaitsAt(t)),
	}
	if t.State.Waiting() && (t.QueuedAs > 0 || t.Claims > 0 || v.WaitingFor != nil) {
		v.Position = pos.N // 0 if a slot was free, although the claim takes a moment
	}
	return v
}

// ending is the answer to a call whose task has ended: the agent's response, or an error.
type ending struct {
	status   int
	response *api.ChatResponse
	body     api.ChatError
}

// answer writes the ending as the whole answer.
func (e *ending) answer(w http.ResponseWriter) error {
	if e.response != nil {
		return httpio.Answer(w, e.status, e.response)
	}
	if e.body.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.body.RetryAfter))
	}
	return httpio.Answer(w, e.status, e.body)
}

// endOf returns the ending for a task that has ended.
func (h *callHandlers) endOf(ctx context.Context, c *call, t *signalbox.Task) (ending, error) {
	if t.State != signalbox.Completed {
		return failedEnd(c, t), nil
	}
	res, err := h.engine.Read().Result(ctx, t.ID)
	if err != nil {
		return ending{}, err
	}
	v := &api.ChatResponse{
		Response: res.Output, Agent: c.agent, Execution: refView(t), SessionID: t.SessionID, Timestamp: t.EndedAt,
		Metadata: api.ChatMetadata{
			CostUSD: res.CostUSD, DurationMS: runMS(t, &res), InputTokens: res.InputTokens, OutputTokens: res.OutputTokens, ToolCount: res.ToolCount,
		},
	}
	if t.Mode == signalbox.ModeBypass {
		v.ExecutionLog = res.Tail
	}
	return ending{status: http.StatusOK, response: v}, nil
}

// runMS is the duration of the run, as measured by the agent, else from the row. It is never
// negative, even if a clock was set back.
func runMS(t *signalbox.Task, res *signalbox.Result) int64 {
	if res.DurationSeconds > 0 {
		return int64(res.DurationSeconds * 1000)
	}
	if t.StartedAt.IsZero() {
		return 0
	}
	return max(0, t.EndedAt.Sub(t.StartedAt).Milliseconds())
}

// endStatus maps the reason why a task did not complete to the status of its call. Other
// reasons are errors of the agent: 502.
var endStatus = map[signalbox.Reason]int{
	signalbox.ReasonWaitTimeout: http.StatusGatewayTimeout,
	signalbox.ReasonRunTimeout:  http.StatusGatewayTimeout,
	signalbox.ReasonBudget:      http.StatusPaymentRequired,
	signalbox.ReasonCancelled:   http.StatusConflict,
	signalbox.ReasonReleased:    http.StatusConflict,
}

func failedEnd(c *call, t *signalbox.Task) ending {
	status, ok := endStatus[t.Reason]
	if !ok {
		status = http.StatusBadGateway
	}
	message := t.Message
	if message == "" { // cannot happen, but a caller must get a message
		message = "it ended as " + string(t.Reason)
	}
	ref := refView(t)
	e := api.ChatError{
		Error: string(t.Reason), Code: string(t.Reason), Agent: c.agent, Message: message, State: string(t.State), Execution: &ref,
		// A task that never ran can be sent again; one that ran may have had effects.
		Retryable: t.StartedAt.IsZero() && t.Reason != signalbox.ReasonRejected && t.Reason != signalbox.ReasonCancelled,
		Hint:      "GET " + view.TaskURL(t.ID) + " has its result and output; POST " + view.TaskURL(t.ID) + "/retry runs it again",
	}
	if t.Reason == signalbox.ReasonWaitTimeout {
		e.Hint = "try again later, wait longer with wait_timeout, or wait in the backlog with overflow persist"
	}
	return ending{status: status, body: e}
}

// callRefused answers a call whose task was not stored. Errors about the agent have the
// seed's fields; others are like the errors of all routes.
func (h *callHandlers) callRefused(w http.ResponseWriter, r *http.Request, c *call, err error) error {
	_ = refused(h.metrics, err)
	plain, what := httpio.ErrorBody(err)
	end := ending{status: what.Status, body: api.ChatError{
		Error: plain.Error, Code: plain.Error, Agent: c.agent, Message: plain.Message, Hint: plain.Hint, Retryable: plain.Retryable,
		RequestID: w.Header().Get(httpio.RequestIDHeader),
	}}
	switch signalbox.CodeOf(err) {
	case signalbox.CodeAgentBusy:
		err = h.busy(r.Context(), c, &end)
	case signalbox.CodeQueueFull:
		err = h.full(r.Context(), c, &end)
	case signalbox.CodeAgentDown:
		end.body.RetryAfter, err = view.DefaultRetryAfter, nil
	case signalbox.CodeCallCycle, signalbox.CodeCallDepth, signalbox.CodeUnsupported:
		err = nil
	}
	if err == nil {
		_ = end.answer(w)
	}
	return err
}

// busy is the seed's answer for an agent without a free slot.
func (h *callHandlers) busy(ctx context.Context, c *call, end *ending) error {
	lane, err := h.engine.Lane(ctx, c.agent)
	if err != nil {
		return err
	}
	if c.task.Mode == signalbox.ModeBypass {
		end.status = http.StatusTooManyRequests
		end.body.Error = "Bypass is full"
		end.body.Message = fmt.Sprintf("%s (%d of its isolated executions run now)", end.body.Message, len(lane.Isolated))
		end.body.RetryAfter = view.DefaultRetryAfter
		return nil
	}
	end.body.Error = "Agent is busy"
	end.body.RetryAfter = view.RetryAfter(ctx, h.engine, signalbox.AgentQueue(c.agent))
	if len(lane.Running) > 0 {
		v := view.Execution(&lane.Running[0])
		end.body.Current = &v
	}
	return nil
}

// full is the seed's answer for an agent whose queue is full. The shared backlog has
// another limit and another status (design §3).
func (h *callHandlers) full(ctx context.Context, c *call, end *ending) error {
	n := h.engine.Options().MaxSize
	if c.task.Overflow != signalbox.OverflowPersist {
		n = h.engine.Options().MaxChats
		end.status = http.StatusTooManyRequests
		end.body.Error = "Agent queue is full"
		end.body.Message = fmt.Sprintf("Agent '%s' is busy with %d queued requests. Please try again later.", c.agent, n)
		end.body.Hint = "try again later, or wait in the backlog with overflow persist"
	}
	end.body.QueueLen = &n
	end.body.RetryAfter = view.RetryAfter(ctx, h.engine, signalbox.AgentQueue(c.agent))
	return nil
}

// prefer is the content of the header Prefer (RFC 7240) about the time of the answer. Other
// preferences are ignored, as the RFC requires.
type prefer struct {
	respondAsync bool
	limited      bool
	wait         time.Duration // if limited
}

// forever is longer than any task may wait and run.
const forever = 10 * 365 * 24 * time.Hour

func preferOf(r *http.Request) (p prefer) {
	for _, line := range r.Header.Values("Prefer") {
		for _, one := range strings.Split(line, ",") {
			one, _, _ = strings.Cut(one, ";")
			name, value, _ := strings.Cut(one, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				p.respondAsync = true
			case "wait":
				seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
				if err == nil && !p.limited {
					p.limited, p.wait = true, time.Duration(seconds)*time.Second
				}
			}
		}
	}
	return p
}

// async reports whether the answer is to come as soon as the task is stored.
func (p prefer) async() bool { return (p.respondAsync && !p.limited) || (p.limited && p.wait == 0) }

// maxWait is the maximum time that the caller wants to wait.
func (p prefer) maxWait() time.Duration {
	if p.limited {
		return p.wait
	}
	return forever
}

// applied is the value of Preference-Applied for an answer that came early because of the
// caller's preference; "" if there was another reason.
func (p prefer) applied() string {
	switch {
	case p.limited:
		return "wait=" + strconv.Itoa(int(p.wait/time.Second))
	case p.respondAsync:
		return "respond-async"
	}
	return ""
}
