package stream

import (
	"context"
	"errors"
	"fmt"
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

// outputBackstop is how often a reader of a log looks at the task though
// nothing was announced: another director may follow its run.
const outputBackstop = 2 * time.Second

// Runs knows what running tasks have printed.
type Runs interface {
	// Output returns what is known of the log of a running task from byte
	// after. When nothing is there yet it waits until there is, the run ends,
	// wait is over or ctx ends. ok is false if no run of that task is
	// followed (the stored result is the truth then).
	Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool)
}

// Outputs answer what tasks print.
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

// streamOutput sends the log as events named output until the task has
// ended, whose last has done set.
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
	told := "" // the message that was told last
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

// LogReader reads the log of a task, piece by piece. The task itself it reads again
// when a change of it was announced, or none for a while: another director may follow
// its run. Make one with logOf.
type LogReader struct {
	outputs *Outputs
	id      string
	signs   <-chan struct{}
	Close   func()
	task    signalbox.Task
	read    time.Time // when that was read; zero: it is another by now
}

func (h *Outputs) Log(id string) *LogReader {
	l := &LogReader{outputs: h, id: id}
	l.signs, l.Close = h.Engine.WatchTask(id)
	return l
}

// refresh reads the task, unless it is as it was.
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

// Next returns what there is of the log from byte after. When nothing is there yet it
// waits until there is, the task ends or wait is over; with told also until there is a
// message that is another one. The log of a task that another director follows comes
// from there.
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
				live.Done = false // its end is not stored yet; the next read has it
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
		if over := time.Until(deadline); over <= 0 || !l.news(ctx, min(over, outputBackstop)) && ctx.Err() != nil {
			return out, nil
		}
	}
}

// news waits for a change of the task, and reports whether one was announced.
func (l *LogReader) news(ctx context.Context, within time.Duration) bool {
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

// storedOutput reads the log of a task that has ended: its tail, or the
// answer of an agent that keeps no log.
func (h *Outputs) storedOutput(ctx context.Context, t *signalbox.Task, after int64) (api.Output, error) {
	res, err := h.Engine.Read().Result(ctx, t.ID)
	if err != nil {
		return api.Output{}, err
	}
	text, begin := res.Tail, res.TailSeq
	if text == "" {
		text, begin = res.Output, 0
	}
	out := api.Output{QueueID: t.ID, State: string(t.State), Done: true, Truncated: after < begin}
	skip := min(max(0, after-begin), int64(len(text)))
	for skip < int64(len(text)) && !utf8.RuneStart(text[skip]) {
		skip++ // the asked position lies within a character
	}
	out.Seq = begin + skip
	out.Text = text[skip:]
	out.Next = begin + int64(len(text))
	return out, nil
}

const (
	// farPoll is how long one question for the output of a task at another
	// director lasts: within it that director may die and a third one take over.
	farPoll = 5 * time.Second
	// farRest is the least time between two such questions that brought nothing.
	farRest = time.Second
)

// liveOutput returns what a task in flight has printed behind position after,
// from its run here or from the director that follows it, and waits for it. The
// message says why there may be more. again says that to ask again at once is
// right: another director waited for output, and there was none.
func (h *Outputs) liveOutput(ctx context.Context, t *signalbox.Task, after int64, wait time.Duration) (out api.Output, again bool) {
	if live, ok := h.Runs.Output(ctx, t.ID, after, wait); ok {
		return live, false
	}
	holder, ok := h.Forwarder.HolderElsewhere(ctx, t.Agent)
	if !ok {
		return api.Output{}, false
	}
	begin := time.Now()
	out, err := h.askOutput(ctx, holder, t.ID, after, min(wait, farPoll))
	if err != nil {
		if ctx.Err() == nil {
			h.Logger.Debug("the output of a task is at another director, which does not say it", "queue_id", t.ID, "director", holder.ID, "error", err, "cause", errors.Unwrap(err))
		}
		return api.Output{Message: farMessage(holder, err)}, false
	}
	return out, out.Text == "" && (out.Done || time.Since(begin) > farRest)
}

// farMessage is what is shown in place of output.
func farMessage(holder store.Director, err error) string {
	return fmt.Sprintf("what it prints is at director %s (%s): %s; it is shown when that director answers, or when the task has ended", httpio.Clip(holder.ID), httpio.Clip(holder.URL), err)
}

// askOutput asks another director for the output of a task.
func (h *Outputs) askOutput(ctx context.Context, holder store.Director, id string, after int64, wait time.Duration) (out api.Output, err error) {
	wait = max(wait, 0)
	err = h.Forwarder.Ask(ctx, holder, httpio.Outgoing{Method: http.MethodGet, Path: view.TaskURL(id) + "/output", Query: url.Values{
		"after": {strconv.FormatInt(after, 10)}, "wait": {wait.Round(time.Millisecond).String()},
	}}, wait, &out)
	return out, err
}

// farLog is the log of a task that runs at another director, kept at hand for a
// reader that looks often.
type farLog struct {
	tail *tail.Tail
	seen atomic.Bool // it has been read once: the tail is as long as the log
	stop context.CancelFunc
}

// followFar reads the log of a task that another director follows until ctx
// ends, stop is called or the task is in flight no more.
func (h *Outputs) followFar(ctx context.Context, id string) *farLog {
	ctx, stop := context.WithCancel(ctx)
	l := &farLog{tail: tail.New(), stop: stop}
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if !h.readFar(ctx, l, id) {
				return
			}
		}
	}()
	return l
}

// readFar reads one piece. It reports whether there may be another.
func (h *Outputs) readFar(ctx context.Context, l *farLog, id string) bool {
	t, err := h.Engine.Read().Task(ctx, id)
	if err == nil && !t.State.InFlight() {
		return false
	}
	holder, ok := h.Forwarder.HolderElsewhere(ctx, t.Agent)
	wait := farPoll
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
	rest(ctx, farRest-time.Since(begin))
	return true
}

// rest waits, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
