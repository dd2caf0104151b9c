package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// chatLive is a chat that waits for its answer.
type chatLive struct {
	*app
	s   *chatFlags
	out io.Writer
	// drawing: the place in the queue is one terminal line that is redrawn.
	drawing bool

	id    string // of the task, once it is stored
	state string // queued or running
	tail  tail   // the end of the output that was printed
}

func (a *app) chatLive(ctx context.Context, c *client.Client, s *chatFlags, opts client.ChatOptions) error {
	l := &chatLive{app: a, s: s, out: a.outWriter(), drawing: a.drawing(), state: "queued"}
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.waitTimeout != 0 {
		defer time.AfterFunc(time.Duration(s.waitTimeout), func() { cancel(errWaitOver) }).Stop()
	}
	var end api.ChatResponse
	var err error
	if s.bypass {
		end, err = c.BypassStream(wait, s.agent, s.bypassRequest(), opts, l.event)
	} else {
		end, err = c.ChatStream(wait, s.agent, s.req, opts, l.event)
	}
	a.line.clear()
	switch {
	case err == nil:
		return l.answer(end)
	case ctx.Err() != nil:
		return l.interrupted(ctx, c)
	case errors.Is(context.Cause(wait), errWaitOver):
		return l.waitOver()
	}
	return l.failed(err)
}

// event prints an event of the stream.
func (l *chatLive) event(e client.ChatEvent) error {
	switch {
	case e.Accepted != nil:
		l.id = e.Accepted.Execution.ID
	case e.Name == "started":
		l.state = "running"
	}
	if l.json {
		return l.printEvent(e)
	}
	switch {
	case e.Accepted != nil && e.Accepted.Position > 0:
		l.showPosition(e.Accepted.Position, e.Accepted.ETA, e.Accepted.WaitingFor)
	case e.Position != nil && e.Position.Position > 0:
		l.showPosition(e.Position.Position, e.Position.ETA, e.Position.WaitingFor)
	case e.Name == "started":
		l.note("%s", "Running on "+l.s.agent+": "+l.id)
	case e.Output != nil && l.s.follow:
		if e.Output.Truncated {
			l.note("(part of the output is no longer kept)")
		}
		l.tail.add(e.Output.Text)
		_, err := io.WriteString(l.out, e.Output.Text)
		return err
	}
	return nil
}

// showPosition prints the place in the queue.
func (l *chatLive) showPosition(n int, e *api.ETA, w *api.WaitingFor) {
	if l.drawing {
		l.line.draw(shortID(l.id)+" · "+queuedAt(n, e, w), l.io.Columns)
		return
	}
	l.note("%s", queuedAt(n, e, w))
}

// chatDocument is the JSON of an event with --follow.
type chatDocument struct {
	Event string `json:"event"`
	Data  any    `json:"data"`
}

func (l *chatLive) printEvent(e client.ChatEvent) error {
	if !l.s.follow {
		return nil
	}
	d := chatDocument{Event: e.Name, Data: struct{}{}}
	switch {
	case e.Accepted != nil:
		d.Data = e.Accepted
	case e.Position != nil:
		d.Data = e.Position
	case e.Output != nil:
		d.Data = e.Output
	}
	return writeLine(l.io.Out, d)
}

// answer prints the response, unless the output already ended with it.
func (l *chatLive) answer(end api.ChatResponse) error {
	if l.json && l.s.follow {
		return writeLine(l.io.Out, chatDocument{"result", end})
	}
	return l.print(end, func() { l.result(api.Task{Result: &api.Result{Output: end.Response}}, string(l.tail)) })
}

// interrupted detaches from the task, or cancels it with --cancel-on-interrupt.
func (l *chatLive) interrupted(ctx context.Context, c *client.Client) error {
	switch {
	case l.id == "":
		return failure(exitDetached, "interrupted", "interrupted before the director answered").again(storedHint, l.s.key)
	case l.s.cancelOnInterrupt:
		return l.cancel(context.WithoutCancel(ctx), c)
	}
	return l.detached(l.id, l.state, comeBack(l.id)).about(l.id)
}

// cancel cancels the task and reports the outcome.
func (l *chatLive) cancel(ctx context.Context, c *client.Client) error {
	const patience = 10 * time.Second
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	got, err := c.Cancel(ctx, l.id)
	var f *fault
	switch {
	case client.Code(err) == "already_ended":
		f = failure(exitDetached, "already_ended", "%s ended before it could be cancelled", l.id).withHint("signalbox status %s", l.id)
	case err != nil:
		f = failure(exitDetached, "detached", "%s could not be cancelled and goes on: %v", l.id, err).withHint("%s", comeBack(l.id))
	case got.State == "cancelled":
		f = failure(exitCancelled, "task_cancelled", "%s cancelled", l.id)
	default:
		f = failure(exitDetached, "task_cancelling", "%s is being cancelled: its agent has not confirmed yet", l.id).withHint("signalbox status %s", l.id)
	}
	return f.about(l.id)
}

func (l *chatLive) waitOver() error {
	if l.id == "" {
		return failure(exitWaitOver, "wait_over", "the wait is over before the director answered").again(storedHint, l.s.key)
	}
	return waitOver(l.id, l.state, comeBack(l.id)).about(l.id)
}

// failed is the error of a chat that got no answer.
func (l *chatLive) failed(err error) error {
	var chat *client.ChatError
	if errors.As(err, &chat) || l.id == "" {
		return toFault(err)
	}
	return interruptedBy(err, l.id, comeBack(l.id)).about(l.id) // only the connection ended
}

// chatFault is the error of a chat that was refused or did not complete.
func chatFault(e *client.ChatError) *fault {
	var plain *client.Error
	_ = errors.As(error(e), &plain) // a ChatError wraps one
	f := apiFault(plain)
	if f.id = e.ID(); f.id != "" && e.Body.State != "" {
		end := endFault(api.Task{QueueID: f.id, State: e.Body.State, Reason: e.Body.Code, Message: e.Body.Message})
		if end != nil {
			f.exit, f.message, f.hint = end.exit, end.message, end.hint
		}
	}
	if cure := chatCure(e); cure != "" {
		f.hint = cure
	}
	if e.Body.RetryAfter > 0 && f.exit == exitQueueFull {
		f.hint = strings.TrimPrefix(fmt.Sprintf("%s; or again in %s", f.hint, time.Duration(e.Body.RetryAfter)*time.Second), "; or ")
	}
	return f
}

// chatCure returns a hint with the flag that helps. The bypass and the backlog use
// the same codes with other statuses.
func chatCure(e *client.ChatError) string {
	switch code := e.Body.Code; {
	case code == "agent_busy" && e.Status == http.StatusConflict:
		return "without --no-wait the chat waits for its turn"
	case code == "queue_full" && e.Status == http.StatusTooManyRequests:
		return "--persist waits in the backlog instead"
	case code == "call_cycle":
		return "--async does not wait for the answer, --bypass runs it outside the agent's line"
	case code == "wait_timeout":
		return "--start-within waits longer, --persist waits in the backlog"
	}
	return ""
}
