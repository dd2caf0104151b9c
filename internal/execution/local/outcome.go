package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// maxMessage bounds the failure message in a task's row, in bytes. The answer has all of it.
const maxMessage = 64 << 10

// conclude ends a task with the result of its call.
func (r *run) conclude(res gateway.Result, err error) {
	r.line.Store(nil)
	t := r.row()
	switch {
	case r.lost:
		r.x.log.Warn("a tool task was taken away before it began", "queue_id", r.ID, "tool", t.Tool)
		return
	case res.Run != nil && res.Run.Alive != nil && !r.awaitKilled(res.Run.Alive):
		return // the next director handles it
	case r.deferred(err) && !r.stoppedByUs():
		r.putBack()
		return
	case err != nil && r.stoppedByUs() && interrupted(err):
		r.interrupt()
		return
	case res.Run != nil && res.Run.Reason == signalbox.ReasonCancelled && r.stoppedByUs():
		r.interrupt()
		return
	}
	r.finish(r.outcome(res, err))
}

// stoppedByUs reports whether the executor itself ended the run: because it stops,
// or because the director lease is over.
func (r *run) stoppedByUs() bool {
	return !r.cancelAsked() && (r.x.stopping() || errors.Is(context.Cause(r.ctx), errLapsed))
}

// cancelAsked reports whether a cancel of the task was requested.
func (r *run) cancelAsked() bool {
	return errors.Is(context.Cause(r.ctx), errCancelled) || r.row().CancelRequested
}

// interrupted reports whether err means that the executor or the gateway stopped the call.
func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errStopping) || errors.Is(err, errLapsed) || signalbox.CodeOf(err) == signalbox.CodeUnavailable
}

// interrupt ends or requeues a task as a restart does: see applyRestartPolicy.
func (r *run) interrupt() {
	t := r.row()
	result := &signalbox.Result{}
	r.Tail.Result(result)
	r.persist("interrupted tool task not stored", func(ctx context.Context) error {
		return r.x.applyRestartPolicy(ctx, t, result, r.interruptMessage())
	})
}

// interruptMessage is the message of a task that the executor itself ended.
func (r *run) interruptMessage() string {
	if errors.Is(context.Cause(r.ctx), errLapsed) {
		return fmt.Sprintf("Task interrupted before completion (director %s could not reach the store)", r.x.opts.Instance)
	}
	return Interrupted
}

// awaitKilled waits until no process is left of a run that could not be killed. It returns false if the
// executor stops first.
func (r *run) awaitKilled(alive func() []int) bool {
	pids := alive()
	if len(pids) == 0 {
		return true
	}
	t := r.row()
	r.x.log.Error("processes of a tool task cannot be killed: its slot stays taken until they are dead", "queue_id", r.ID, "tool", t.Tool, "pids", pids)
	r.addHung(1)
	defer r.addHung(-1)
	tick := time.NewTicker(killCheckInterval)
	defer tick.Stop()
	for len(pids) > 0 {
		select {
		case <-r.x.runCtx.Done():
			return false
		case <-tick.C:
		}
		pids = alive()
	}
	r.x.log.Info("the processes of a tool task that could not be killed are dead: its slot is free", "queue_id", r.ID, "tool", t.Tool)
	return true
}

// addHung changes the count of slots held by runs that cannot be killed.
func (r *run) addHung(n int) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.pool.hung += n
}

// finish stores the end of a task. The slot is free only once that is durable.
func (r *run) finish(o engine.Outcome) {
	r.persist("end of a tool task not stored", func(ctx context.Context) error {
		t, err := r.x.engine.Finish(ctx, r.row(), o)
		if err == nil {
			r.setRow(t)
		}
		return err
	})
}

// persist retries a write until it is stored or decided otherwise, or until storeGrace after Stop.
func (r *run) persist(what string, put func(context.Context) error) {
	how, err := execution.Settle(func() error { return put(context.Background()) }, func(err error, pause time.Duration) bool {
		r.x.log.Error(what+", trying again", "queue_id", r.ID, "error", err)
		return r.x.pauseForStore(pause)
	})
	if how == execution.Void {
		r.x.log.Warn(what+": the task no longer belongs to this director", "queue_id", r.ID, "error", err)
	}
}

// pauseForStore waits before a write is retried. It returns false once storeGrace after Stop is over.
func (x *Executor) pauseForStore(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.runCtx.Done(): // Stop has begun, so the retries will end
		<-timer.C
	}
	return x.writeCtx().Err() == nil
}

// outcome converts the result of a call to the engine's Outcome.
func (r *run) outcome(res gateway.Result, err error) engine.Outcome {
	o, text := engine.Outcome{Result: &signalbox.Result{}}, ""
	if err != nil {
		o.Reason, o.Message = r.reasonOf(err)
		o.Result.Answer = string(encodeRefusal(err))
	} else {
		o.Reason, o.Message = reasonOf(&res)
		o.Result.Answer = string(encodeResult(&res))
		text = gateway.TextOf(res.Content)
		o.Result.Output = clipText(text, signalbox.OutputBytes)
	}
	if !r.printed && o.Result.Output != "" {
		r.Tail.Append(o.Result.Output) // the tool printed nothing while it ran
	}
	r.Tail.Result(o.Result)
	o.Result.Truncated = o.Result.Truncated || len(o.Result.Output) < len(text)
	if !r.begun.IsZero() {
		o.Result.DurationSeconds = time.Since(r.begun).Seconds()
	}
	if run := res.Run; run != nil {
		o.Result.ExitCode = run.ExitCode
		o.Result.Truncated = o.Result.Truncated || run.Truncated
		o.Result.DurationSeconds = run.Took.Seconds()
	}
	if o.Reason != signalbox.ReasonCompleted {
		o.Result.ErrorType = string(signalbox.CodeOf(err))
	}
	o.Message = clipText(o.Message, maxMessage)
	return o
}

// reasonOf is the reason and message of a call that was answered.
func reasonOf(res *gateway.Result) (signalbox.Reason, string) {
	switch run := res.Run; {
	case run != nil && run.Reason == signalbox.ReasonCancelled:
		return run.Reason, "" // the engine's message names who cancelled it
	case run != nil && run.Reason != signalbox.ReasonCompleted:
		return run.Reason, run.Message
	case res.IsError:
		message := strings.TrimSpace(gateway.TextOf(res.Content))
		if message == "" {
			message = "the tool failed without a text"
		}
		return signalbox.ReasonAgentError, message
	}
	return signalbox.ReasonCompleted, ""
}

// reasonOf is the reason and message of a call without an answer. It is not retried, since the tool may have
// had its effect.
func (r *run) reasonOf(err error) (signalbox.Reason, string) {
	var protocol *gateway.ProtocolError
	var ours *signalbox.Error
	switch {
	case r.cancelAsked() && (errors.Is(err, errCancelled) || interrupted(err)):
		return signalbox.ReasonCancelled, ""
	case errors.As(err, &protocol):
		return signalbox.ReasonAgentError, fmt.Sprintf("the tool's server answered with the error %d: %s", protocol.Code, protocol.Message)
	case signalbox.CodeOf(err) == signalbox.CodeToolTimeout:
		return signalbox.ReasonRunTimeout, fmt.Sprintf("Task timed out after %dms", r.limit().Milliseconds())
	case errors.As(err, &ours) && ours.Message != "":
		return signalbox.ReasonAgentError, ours.Message
	}
	return signalbox.ReasonAgentError, "the tool call failed: " + err.Error()
}

// limit is the time limit of the run.
func (r *run) limit() time.Duration {
	if r.request.TimeoutMS > 0 {
		return time.Duration(r.request.TimeoutMS) * time.Millisecond
	}
	tool, _ := r.x.gateway.Tool(r.row().Tool)
	return tool.Timeout
}

// clipText cuts text to at most n bytes, at a character boundary.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
