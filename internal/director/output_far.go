package director

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

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
func (d *Director) liveOutput(ctx context.Context, t *signalbox.Task, after int64, wait time.Duration) (out api.Output, again bool) {
	if live, ok := d.runs.Output(ctx, t.ID, after, wait); ok {
		return live, false
	}
	holder, ok := d.otherHolder(ctx, t.Agent)
	if !ok {
		return api.Output{}, false
	}
	begin := time.Now()
	out, err := d.askOutput(ctx, holder, t.ID, after, min(wait, farPoll))
	if err != nil {
		if ctx.Err() == nil {
			d.log.Debug("the output of a task is at another director, which does not say it", "queue_id", t.ID, "director", holder.ID, "error", err, "cause", errors.Unwrap(err))
		}
		return api.Output{Message: farMessage(holder, err)}, false
	}
	return out, out.Text == "" && (out.Done || time.Since(begin) > farRest)
}

// farMessage is what is shown in place of output.
func farMessage(holder store.Director, err error) string {
	return fmt.Sprintf("what it prints is at director %s (%s): %s; it is shown when that director answers, or when the task has ended", clip(holder.ID), clip(holder.URL), err)
}

// askOutput asks another director for the output of a task.
func (d *Director) askOutput(ctx context.Context, holder store.Director, id string, after int64, wait time.Duration) (out api.Output, err error) {
	wait = max(wait, 0)
	err = d.ask(ctx, holder, question{method: http.MethodGet, path: taskURL(id) + "/output", query: url.Values{
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
func (d *Director) followFar(ctx context.Context, id string) *farLog {
	ctx, stop := context.WithCancel(ctx)
	l := &farLog{tail: tail.New(), stop: stop}
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if !d.readFar(ctx, l, id) {
				return
			}
		}
	}()
	return l
}

// readFar reads one piece. It reports whether there may be another.
func (d *Director) readFar(ctx context.Context, l *farLog, id string) bool {
	t, err := d.engine.Read().Task(ctx, id)
	if err == nil && !t.State.InFlight() {
		return false
	}
	holder, ok := d.otherHolder(ctx, t.Agent)
	wait := farPoll
	if !l.seen.Load() {
		wait = 0
	}
	begin := time.Now()
	if err == nil && ok {
		var out api.Output
		if out, err = d.askOutput(ctx, holder, id, l.tail.Position(), wait); err == nil {
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
