package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/forward"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// outputBackstop is the interval at which a reader of a log polls the task without
// notifications: another director may follow its run.
const outputBackstop = 2 * time.Second

// Runs reads the logs of running tasks.
type Runs interface {
	// Output returns the known log of a running task from byte after. If there is
	// nothing yet, it waits for output, the end of the run, the end of wait or the
	// end of ctx. ok is false if no run of that task is followed; then the stored
	// result is authoritative.
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
	// WholeLog returns a piece of the log of a task's last attempt from byte after, from
	// the task's agent. It does not wait for output.
	WholeLog(ctx context.Context, t *signalbox.Task, after int64) (api.AgentOutput, error)
	// Patch returns the patch of a task's last attempt, of size bytes, from its agent.
	Patch(ctx context.Context, t *signalbox.Task, size int64) (io.ReadCloser, error)
}

// Outputs has the handlers for the output of tasks.
type Outputs struct {
	Engine    *engine.Engine
	Runs      Runs
	Forwarder *forward.Forwarder
	Streams   *httpio.Streams
	Logger    *slog.Logger
	Life      context.Context
}

// Serve is GET /api/queue/{id}/output, as JSON or as a stream.
func (h *Outputs) Serve(w http.ResponseWriter, r *http.Request) error {
	id, err := httpio.TaskID(r)
	if err != nil {
		return err
	}
	after, err := httpio.Position("after", httpio.Param(r, "after"))
	if err != nil {
		return err
	}
	after = max(after, 0)
	switch whole, err := httpio.Bool(r, "whole"); {
	case err != nil:
		return err
	case whole:
		return h.wholeLog(w, r, id, after)
	}
	wait, err := httpio.Wait(r)
	if err != nil {
		return err
	}
	if httpio.WantsStream(r) {
		return h.streamOutput(w, r, id, after)
	}
	ctx, cancel := httpio.Until(r.Context(), h.Life)
	defer cancel()
	l := h.Log(id)
	defer l.Close()
	out, err := l.Next(ctx, after, wait, nil)
	return httpio.AnswerOr(w, out, err)
}

// streamOutput sends the log as events named output until the task has ended. The last
// event has done set.
func (h *Outputs) streamOutput(w http.ResponseWriter, r *http.Request, id string, after int64) error {
	l := h.Log(id)
	defer l.Close()
	if err := l.refresh(r.Context()); err != nil {
		return err
	}
	if seen, err := httpio.Position("Last-Event-ID", r.Header.Get("Last-Event-ID")); err != nil {
		return err
	} else if seen >= 0 {
		after = seen
	}
	s, err := h.Streams.Open(w)
	if err != nil {
		return err
	}
	defer s.Close()
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := httpio.Until(r.Context(), h.Life)
	defer cancel()
	told := "" // the message sent last
	for ctx.Err() == nil {
		out, err := l.Next(ctx, after, httpio.KeepAliveEvery, &told)
		if err != nil {
			return s.Fail(h.Logger, err)
		}
		news := out.Message != "" && out.Message != told
		if told = out.Message; out.Text == "" && !out.Done && !out.Truncated && !news {
			if s.KeepAlive() != nil {
				return nil
			}
			continue
		}
		if s.Send(out.Next, "output", out) != nil || out.Done {
			return nil
		}
		after = out.Next
	}
	return nil
}

// LogReader reads the log of a task in pieces. It reads the task again after a
// notification, or after outputBackstop without one. Outputs.Log makes one.
type LogReader struct {
	outputs *Outputs
	id      string
	signs   <-chan struct{}
	Close   func()
	task    signalbox.Task
	read    time.Time // when task was read; zero: it is stale
}

func (h *Outputs) Log(id string) *LogReader {
	l := &LogReader{outputs: h, id: id}
	l.signs, l.Close = h.Engine.WatchTask(id)
	return l
}

// refresh reads the task if it may have changed.
func (l *LogReader) refresh(ctx context.Context) (err error) {
	select {
	case <-l.signs:
		l.read = time.Time{}
	default:
	}
	if begin := time.Now(); begin.Sub(l.read) >= outputBackstop {
		if l.task, err = l.outputs.Engine.Read().Task(ctx, l.id); err == nil {
			l.read = begin
		}
	}
	return err
}

// Next returns the log from byte after. If there is nothing yet, it waits for output, the
// end of the task or the end of wait; with told also for a new message. If another
// director follows the task, the log comes from there.
func (l *LogReader) Next(ctx context.Context, after int64, wait time.Duration, told *string) (api.Output, error) {
	deadline := time.Now().Add(wait)
	for {
		// A context that has ended must not fail the reads of the last answer.
		if err := l.refresh(context.WithoutCancel(ctx)); err != nil {
			return api.Output{}, err
		}
		t := &l.task
		if t.State.Terminal() {
			return l.outputs.storedOutput(context.WithoutCancel(ctx), t, after)
		}
		out := api.Output{QueueID: l.id, State: string(t.State), Seq: after, Next: after}
		if t.State.InFlight() {
			live, again := l.outputs.liveOutput(ctx, t, after, time.Until(deadline))
			if live.Text != "" {
				live.QueueID, live.State = l.id, string(t.State)
				live.Done = false // the end is not stored yet; the next read has it
				return live, nil
			}
			l.read = time.Time{} // the run may be over
			out.Message = live.Message
			switch {
			case again && ctx.Err() == nil:
				continue
			case told != nil && out.Message != "" && out.Message != *told:
				return out, nil
			}
		}
		if over := time.Until(deadline); over <= 0 || !l.waitForChange(ctx, min(over, outputBackstop)) && ctx.Err() != nil {
			return out, nil
		}
	}
}

// waitForChange waits for a notification about the task, and reports whether one came.
func (l *LogReader) waitForChange(ctx context.Context, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-l.signs:
		l.read = time.Time{}
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// storedOutput returns the log of an ended task: its tail, or the answer if its agent keeps
// no log.
func (h *Outputs) storedOutput(ctx context.Context, t *signalbox.Task, after int64) (api.Output, error) {
	res, err := h.Engine.Read().Result(ctx, t.ID)
	if err != nil {
		return api.Output{}, err
	}
	text, begin, line := res.Tail, res.TailSeq, tail.FirstLine(&res)
	if text == "" {
		text, begin, line = res.Output, 0, 1
	}
	out := api.Output{QueueID: t.ID, State: string(t.State), Done: true, Truncated: after < begin}
	skip := min(max(0, after-begin), int64(len(text)))
	for skip < int64(len(text)) && !utf8.RuneStart(text[skip]) {
		skip++ // the requested position is within a character
	}
	out.Seq = begin + skip
	out.Text = text[skip:]
	out.Next = begin + int64(len(text))
	if out.Text != "" {
		out.Line = tail.LineAfter(line, []byte(text[:skip]))
	}
	out.Times = tail.Pairs(res.LogTimes)
	return out, nil
}

const (
	// remotePollTimeout limits a request for output to another director, because that
	// director may die meanwhile and a third one take over.
	remotePollTimeout = 5 * time.Second
	// remotePollPause is the minimum time between two such requests without output.
	remotePollPause = time.Second
)

// liveOutput waits for output of a task in flight after byte after, from its run here or
// from the director that follows it, and returns it. The message says why output may be
// missing. again says that the caller may ask again at once, because another director
// has waited already.
func (h *Outputs) liveOutput(ctx context.Context, t *signalbox.Task, after int64, wait time.Duration) (out api.Output, again bool) {
	if live, ok := h.Runs.Output(ctx, t.ID, after, wait); ok {
		return live, false
	}
	holder, ok := h.Forwarder.RemoteHolder(ctx, t.Agent)
	if !ok {
		return api.Output{}, false
	}
	begin := time.Now()
	out, err := h.askOutput(ctx, holder, t.ID, after, min(wait, remotePollTimeout))
	if err != nil {
		if ctx.Err() == nil {
			h.Logger.Debug("another director has the output of a task, and does not send it", "queue_id", t.ID, "director", holder.ID, "error", err, "cause", errors.Unwrap(err))
		}
		return api.Output{Message: remoteMessage(holder, err)}, false
	}
	return out, out.Text == "" && (out.Done || time.Since(begin) > remotePollPause)
}

// remoteMessage is shown in place of output that cannot be read.
func remoteMessage(holder store.Director, err error) string {
	return fmt.Sprintf("director %s (%s) has the output: %s; the output is shown when that director answers, or when the task has ended", httpio.Clip(holder.ID), httpio.Clip(holder.URL), err)
}

// askOutput asks another director for the output of a task.
func (h *Outputs) askOutput(ctx context.Context, holder store.Director, id string, after int64, wait time.Duration) (out api.Output, err error) {
	wait = max(wait, 0)
	err = h.Forwarder.Ask(ctx, holder, httpio.Outgoing{Method: http.MethodGet, Path: view.TaskURL(id) + "/output", Query: url.Values{
		"after": {strconv.FormatInt(after, 10)}, "wait": {wait.Round(time.Millisecond).String()},
	}}, wait, &out)
	return out, err
}

// remoteLog caches the log of a task that another director follows, for readers that
// poll often.
type remoteLog struct {
	tail *tail.Tail
	seen atomic.Bool // the log was read at least once
	stop context.CancelFunc
}

// followRemote reads the log of a task that another director follows, until ctx
// ends, stop is called or the task is no longer in flight.
func (h *Outputs) followRemote(ctx context.Context, id string) *remoteLog {
	ctx, stop := context.WithCancel(ctx)
	l := &remoteLog{tail: tail.New(h.Engine.Now), stop: stop}
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if !h.readRemote(ctx, l, id) {
				return
			}
		}
	}()
	return l
}

// readRemote reads one piece. It reports whether there may be another.
func (h *Outputs) readRemote(ctx context.Context, l *remoteLog, id string) bool {
	t, err := h.Engine.Read().Task(ctx, id)
	if err == nil && !t.State.InFlight() {
		return false
	}
	holder, ok := h.Forwarder.RemoteHolder(ctx, t.Agent)
	wait := remotePollTimeout
	if !l.seen.Load() {
		wait = 0
	}
	begin := time.Now()
	if err == nil && ok {
		var out api.Output
		if out, err = h.askOutput(ctx, holder, id, l.tail.Position(), wait); err == nil {
			if out.Text != "" {
				l.tail.Add(out.Seq, out.Text, out.Next)
			}
			if l.seen.Store(true); out.Text != "" || wait == 0 {
				return true
			}
		}
	}
	sleep(ctx, remotePollPause-time.Since(begin))
	return true
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
