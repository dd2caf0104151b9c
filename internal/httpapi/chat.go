package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// call is a request that makes a task and waits for its end: a chat or a
// bypass task.
type call struct {
	agent string
	task  engine.NewTask
	who   signalbox.Principal
	// cancelIfGone says that the task is cancelled if its caller disconnects.
	cancelIfGone bool
	prefer       prefer
	// startWithin limits the wait of a call whose task may wait for ever: if the
	// task has not started by then, the answer is 202. 0: no limit.
	startWithin time.Duration
}

// callHandlers handle chats and bypass tasks, which make a task and wait for its end.
type callHandlers struct {
	engine  *engine.Engine
	metrics Metrics
	outputs *stream.Outputs
	feed    *stream.Feed
	callers callers
	streams *httpio.Streams
	log     *slog.Logger
	life    context.Context
}

// chat is POST /api/agents/{name}/chat.
func (h *callHandlers) chat(w http.ResponseWriter, r *http.Request) error {
	var req api.ChatRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return refused(h.metrics, err)
	}
	c, err := h.newCall(r, signalbox.ModeChat, req.OnDisconnect)
	if err == nil {
		err = c.chat(req, h.engine.Options().WaitTimeout)
	}
	if err != nil {
		return refused(h.metrics, err)
	}
	return h.call(w, r, c)
}

// chat fills the call from a chat request. standard is the wait if the request does not
// have one.
func (c *call) chat(req api.ChatRequest, standard time.Duration) (err error) {
	n := &c.task
	if n.Prompt, err = promptOf(req.Prompt, req.Message); err != nil {
		return err
	}
	if n.Overflow, err = overflowOf(req); err != nil {
		return err
	}
	n.Model, n.Tier, n.TimeoutSeconds, n.Thinking = req.Model, req.Tier, req.TimeoutSeconds, req.Thinking
	n.SessionID, n.NewSession, n.Env = req.SessionID, req.NewSession, req.Env
	n.Priority, n.OnLost = req.Priority, signalbox.OnLost(req.OnLost)
	n.Project = (*signalbox.Project)(req.Project)
	wait := waitTimeout(req.WaitTimeout)
	if wait < 0 || wait > engine.MaxWaitTimeout {
		return signalbox.Invalid("wait_timeout", "wait_timeout must be 1 to %d seconds", int(engine.MaxWaitTimeout/time.Second))
	}
	if n.Overflow == signalbox.OverflowPersist {
		if c.startWithin = wait; wait == 0 {
			c.startWithin = standard
		}
		return nil
	}
	n.WaitTimeout = wait
	return nil
}

// overflowOf combines overflow and wait_if_busy.
func overflowOf(req api.ChatRequest) (signalbox.Overflow, error) {
	given := signalbox.Overflow(req.Overflow)
	if req.WaitIfBusy == nil {
		return given, nil
	}
	rejects := given == signalbox.OverflowReject
	if given != "" && rejects == *req.WaitIfBusy {
		return "", signalbox.Invalid("wait_if_busy", "wait_if_busy %t contradicts overflow %s: leave one of them out", *req.WaitIfBusy, httpio.Clip(req.Overflow))
	}
	if !*req.WaitIfBusy {
		return signalbox.OverflowReject, nil
	}
	return given, nil
}

// bypass is POST /api/agents/{name}/task.
func (h *callHandlers) bypass(w http.ResponseWriter, r *http.Request) error {
	var req api.BypassRequest
	if err := httpio.Decode(w, r, &req, false); err != nil {
		return refused(h.metrics, err)
	}
	c, err := h.newCall(r, signalbox.ModeBypass, req.OnDisconnect)
	if err == nil {
		c.task.Prompt, err = promptOf(req.Prompt, req.Message)
	}
	if err != nil {
		return refused(h.metrics, err)
	}
	n := &c.task
	n.Model, n.Tier, n.TimeoutSeconds, n.Thinking, n.Env = req.Model, req.Tier, req.TimeoutSeconds, req.Thinking, req.Env
	n.AllowedTools, n.SystemPrompt = req.AllowedTools, req.SystemPrompt
	return h.call(w, r, c)
}

// newCall reads the common parts of chats and bypass tasks.
func (h *callHandlers) newCall(r *http.Request, mode signalbox.Mode, onDisconnect string) (*call, error) {
	name, who := r.PathValue("name"), access.CallerOf(r).Who
	if signalbox.IsExecutor(name) {
		return nil, noAgent(name)
	}
	if !signalbox.ValidName(name) {
		return nil, signalbox.Errorf(signalbox.CodeNotFound, "%q is not the name of an agent", httpio.Clip(name))
	}
	caller, err := access.ExecutionOf(r)
	if err != nil {
		return nil, err
	}
	key, err := httpio.IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if onDisconnect != "" && onDisconnect != "continue" && onDisconnect != "cancel" {
		return nil, signalbox.Invalid("on_disconnect", "on_disconnect must be continue or cancel, not %q", httpio.Clip(onDisconnect))
	}
	c := &call{agent: name, who: who, cancelIfGone: onDisconnect == "cancel", prefer: preferOf(r)}
	c.task = engine.NewTask{
		Mode: mode, Agent: name, By: who, CallerID: caller, Waits: !c.prefer.async(), Source: sourceOf(who), IdempotencyKey: key,
	}
	return c, nil
}

// sourceOf is the source of a call, by the kind of its caller.
func sourceOf(who signalbox.Principal) signalbox.Source {
	switch who.Kind {
	case signalbox.PrincipalAgent:
		return signalbox.SourceAgent
	case signalbox.PrincipalService:
		return signalbox.SourceAPI
	}
	return signalbox.SourceUser
}

// promptOf returns prompt or message, which are two names for one field.
func promptOf(prompt, message string) (string, error) {
	return httpio.EitherName("prompt", prompt, "message", message)
}

// name is the name of the call's kind in the log.
func (c *call) name() string {
	if c.task.Mode == signalbox.ModeBypass {
		return "Task"
	}
	return "Chat"
}

// call stores the task of a call, and answers in the form that the caller prefers. From
// then on every answer names the task.
func (h *callHandlers) call(w http.ResponseWriter, r *http.Request, c *call) error {
	streams := httpio.WantsStream(r) && !c.prefer.async()
	if streams { // before the task is stored, because it cannot be refused later
		leave, err := h.streams.Reserve()
		if err != nil {
			return refused(h.metrics, err)
		}
		defer leave()
	}
	// Even if the caller disconnects now, the task is stored or refused, and then
	// handled as the caller requested.
	got, err := h.engine.Submit(context.WithoutCancel(r.Context()), c.task)
	if err != nil {
		return h.callRefused(w, r, c, err)
	}
	t := &got.Task
	w.Header().Set(queueIDHeader, t.ID)
	w.Header().Set("Location", view.TaskURL(t.ID))
	if got.Replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	} else { // the seed's text
		h.log.Info(fmt.Sprintf("[%s] Agent '%s' execution %s: %s", c.name(), c.agent, t.ID, t.QueueStatus()))
	}
	switch {
	case c.prefer.async():
		w.Header().Set("Preference-Applied", "respond-async")
		return httpio.Answer(w, http.StatusAccepted, h.acceptedView(c, t, got.Position, got.ETA, ""))
	case streams:
		return h.streamCall(w, r, c, got)
	}
	return h.waitCall(w, r, c, *t)
}

// queueIDHeader names the task on every answer to a call that stored one.
const queueIDHeader = "X-Signalbox-Queue-Id"
