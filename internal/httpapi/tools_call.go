package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/queuetools"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// callTool is POST /api/tools/{tool}/call. If the caller disconnects, the call leaves the
// tool's queue or is cancelled.
func (h *toolHandlers) callTool(w http.ResponseWriter, r *http.Request) error {
	if h.tools == nil {
		return errNoTools()
	}
	var req api.ToolCall
	if err := httpio.DecodeCall(w, r, &req); err != nil {
		return err
	}
	if header := r.Header.Get(sessionHeader); req.Session != "" && header != "" && header != req.Session {
		return signalbox.Invalid("session", "session contradicts the header %s: leave one of them out", sessionHeader)
	}
	who, err := h.toolCaller(r, req.Session)
	if err != nil {
		return err
	}
	call := gateway.Call{Tool: r.PathValue("tool"), Arguments: req.Arguments, Caller: who}
	ctx, cancel := httpio.Until(h.within(queuetools.WithCaller(r, access.CallerOf(r).Who), who), h.life)
	defer cancel()
	if httpio.WantsStream(r) {
		return h.streamTool(ctx, w, r, call)
	}
	res, err := h.callOrQueue(ctx, call)
	if err != nil {
		return h.toolError(r, err)
	}
	return httpio.Answer(w, http.StatusOK, view.ToolResult(res))
}

// callOrQueue calls a tool. A call of an async tool becomes a task and is answered at once
// with its id (seed async-task-queue).
func (h *toolHandlers) callOrQueue(ctx context.Context, call gateway.Call) (gateway.Result, error) {
	if tool, ok := h.tools.Tool(call.Tool); !ok || !tool.Async {
		return h.tools.Call(ctx, call)
	}
	tasks, err := h.toolTasksOr(signalbox.CodeUnsupported)
	if err != nil {
		return gateway.Result{}, err
	}
	// The task is stored or refused even if the caller disconnects.
	t, err := tasks.Submit(context.WithoutCancel(ctx), gateway.TaskCall{Call: call, Source: signalbox.SourceAPI})
	if err != nil {
		return gateway.Result{}, err
	}
	return gateway.Queued(t, h.agentName), nil
}

// toolError converts the error of a call for its caller.
func (h *toolHandlers) toolError(r *http.Request, err error) error {
	var said *gateway.ProtocolError
	switch {
	case errors.As(err, &said):
		return signalbox.Errorf(signalbox.CodeToolFailed, "the tool's server answered with the error %d: %s", said.Code, clipText(said.Message))
	case r.Context().Err() != nil:
		return context.Canceled
	case h.life.Err() != nil:
		return &httpio.Refusal{Err: signalbox.Errorf(signalbox.CodeUnavailable, "the director is stopping: call the tool again when it is back"), RetryAfter: 5}
	}
	return err
}

// maxToolText limits the error text of an upstream.
const maxToolText = 4 << 10

func clipText(s string) string {
	if len(s) > maxToolText {
		s = s[:maxToolText] + "..."
	}
	return s
}

// toolStream sends the caller of a tool the progress of the call, then result or error.
type toolStream struct {
	*httpio.Stream
	news chan api.ToolProgress
	end  chan toolEnd
	done chan struct{} // closed after the end
}

type toolEnd struct {
	res gateway.Result
	err error
}

// streamTool answers a call with a stream. Even early errors are sent in the stream, because
// it has started by then.
func (h *toolHandlers) streamTool(ctx context.Context, w http.ResponseWriter, r *http.Request, call gateway.Call) error {
	out, err := h.streams.Open(w)
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithCancel(ctx)
	s := &toolStream{Stream: out, news: make(chan api.ToolProgress, 16), end: make(chan toolEnd, 1), done: make(chan struct{})}
	call.Progress = s.take
	go func() {
		defer close(s.done)
		res, err := h.callOrQueue(ctx, call)
		s.end <- toolEnd{res, err}
	}()
	end, err := s.follow()
	cancel()
	if err != nil { // the caller has disconnected; the call ends with the answer
		<-s.done
		return nil
	}
	if end.err == nil {
		_ = s.SendTransient("result", view.ToolResult(end.res)) // an error means that the caller is gone
		return nil
	}
	err = h.toolError(r, end.err)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	body, what := httpio.ErrorBody(err)
	body.RequestID = w.Header().Get(httpio.RequestIDHeader)
	if what.Hidden {
		h.log.Error("tool call failed", "request_id", body.RequestID, "tool", httpio.Clip(call.Tool), "error", end.err)
	}
	_ = s.SendTransient("error", body) // as above
	return nil
}

// take passes on progress without blocking the call: progress that the caller does not read
// in time is dropped.
func (s *toolStream) take(p gateway.Progress) {
	select {
	case s.news <- api.ToolProgress{Progress: p.Progress, Total: p.Total, Message: p.Message, Position: p.Position, StartsAt: view.Time(p.StartsAt.UTC())}:
	default:
	}
}

// follow writes progress until the call has ended. An error means that the caller is gone.
func (s *toolStream) follow() (toolEnd, error) {
	beat := time.Tick(httpio.KeepAliveEvery)
	for {
		var err error
		select {
		case p := <-s.news:
			err = s.SendTransient("progress", p)
		case <-beat:
			err = s.KeepAlive()
		case end := <-s.end:
			return end, s.rest()
		}
		if err != nil {
			return toolEnd{}, err
		}
	}
}

// rest writes the progress that came before the end. An error means that the caller is gone.
func (s *toolStream) rest() error {
	for {
		select {
		case p := <-s.news:
			if err := s.SendTransient("progress", p); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// toolTasksOr returns the ToolTasks, or an error with this code if there is none.
func (h *toolHandlers) toolTasksOr(code signalbox.Code) (ToolTasks, error) {
	switch {
	case h.tasks != nil:
		return h.tasks, nil
	case h.tools == nil:
		return nil, errNoTools()
	}
	return nil, httpio.Refuse(code, "call the tool and wait for its answer (POST /api/tools/{tool}/call), or start signalbox up or signalbox director, which have a queue",
		"this gateway cannot run calls as tasks")
}
