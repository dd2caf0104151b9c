package dispatch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// followWait is how long one long poll lasts.
const followWait = 30 * time.Second

// follow stays with a running task until the agent says how it ended, no
// longer knows it, or has been silent for the slot lease.
func (r *run) follow(ctx context.Context) {
	for delay := 100 * time.Millisecond; ctx.Err() == nil; {
		s, err := r.step(ctx)
		switch {
		case ctx.Err() != nil: // we stop, or the task was taken away
			return
		case err == nil && s.State != "working" && s.State != "":
			r.heard()
			r.ended(ctx, s)
			return
		case err == nil:
			r.heard()
			delay = 100 * time.Millisecond
			continue
		case statusOf(err) == http.StatusNotFound:
			r.heard()
			r.neverSeen(ctx, nil)
			return
		case r.silence() >= r.d.engine.ExecutionTTL():
			r.lose(ctx, signalbox.ReasonLost, fmt.Sprintf("agent %s has been silent for %s: %v", r.lane.name, r.silence().Round(time.Second), err))
			return
		}
		r.d.probe(r.lane)
		if !sleep(ctx, delay) {
			return
		}
		delay = min(2*delay, 2*time.Second)
	}
}

// step waits for news of the task: its state, once it has ended.
func (r *run) step(ctx context.Context) (api.AgentTaskStatus, error) {
	id := r.row().TaskID
	if id == "" {
		id = r.row().ID
	}
	longPoll, err := r.longPoll(ctx)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if !longPoll {
		return r.poll(ctx, id)
	}
	ctx, cancel := context.WithTimeout(ctx, followWait+askTimeout)
	defer cancel()
	o, err := r.conn().output(ctx, id, r.tail.position(), followWait)
	if err != nil {
		return api.AgentTaskStatus{}, err
	}
	if o.Text != "" || o.Next > r.tail.position() {
		r.tail.add(o.Seq, o.Text, o.Next)
		r.d.progress(r.lane)
	}
	if !o.Done {
		return api.AgentTaskStatus{}, nil
	}
	return r.conn().task(ctx, id, followWait)
}

// poll asks an agent that has no long poll, every PollInterval (the seed: 5 s).
func (r *run) poll(ctx context.Context, id string) (api.AgentTaskStatus, error) {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	s, err := r.conn().task(asking, id, 0)
	cancel()
	if err != nil {
		return s, err
	}
	if at := r.tail.position(); int64(len(s.Output)) > at {
		r.tail.add(at, s.Output[at:], int64(len(s.Output)))
		r.d.progress(r.lane)
	}
	if s.State == "working" {
		sleep(ctx, r.d.opts.PollInterval)
	}
	return s, nil
}

// longPoll reports whether the agent offers it, asking the agent what it is
// where that is not known yet.
func (r *run) longPoll(ctx context.Context) (bool, error) {
	r.d.mu.Lock()
	known, longPoll := r.lane.status.AgentKind != "", r.lane.status.LongPoll
	r.d.mu.Unlock()
	if known {
		return longPoll, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := r.conn().status(ctx)
	if err != nil {
		return false, err
	}
	r.d.learn(r.lane, s)
	return s.LongPoll, nil
}

// ended brings the agent's last word to the engine.
func (r *run) ended(ctx context.Context, s api.AgentTaskStatus) {
	r.catchUp(ctx, s)
	o, lost := outcome(s)
	r.tail.result(o.Result)
	if lost {
		r.loseWith(ctx, o.Reason, o.Message, o.Result)
		return
	}
	r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) { return r.d.engine.Finish(ctx, t, o) })
}

// catchUp reads what was not yet read of the log of a run that ended while
// nobody followed it.
func (r *run) catchUp(ctx context.Context, s api.AgentTaskStatus) {
	longPoll, err := r.longPoll(ctx)
	if err != nil {
		return
	}
	if !longPoll {
		if at := r.tail.position(); int64(len(s.Output)) > at {
			r.tail.add(at, s.Output[at:], int64(len(s.Output)))
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	from := max(r.tail.position(), s.OutputSeq-signalbox.TailBytes)
	for from < s.OutputSeq {
		o, err := r.conn().output(ctx, s.TaskID, from, 0)
		if err != nil || o.Next <= from {
			return // the answer itself is in s; the log stays on the agent
		}
		r.tail.add(o.Seq, o.Text, o.Next)
		from = o.Next
	}
}

// lose ends an execution that nobody will report on.
func (r *run) lose(ctx context.Context, reason signalbox.Reason, message string) {
	result := &signalbox.Result{}
	r.tail.result(result)
	result.Output = strings.TrimSpace(result.Tail)
	r.loseWith(ctx, reason, message, result)
}

func (r *run) loseWith(ctx context.Context, reason signalbox.Reason, message string, result *signalbox.Result) {
	// An agent that ignores fences may still be at it: its slot is not free
	// before it says so. One that answered has said so.
	withhold := !r.fencing() && r.silence() >= r.d.engine.ExecutionTTL()
	running := r.settle(ctx, func(t signalbox.Task) (signalbox.Task, error) {
		return r.d.engine.Lose(ctx, t, reason, message, withhold, result)
	})
	if !running && withhold {
		r.d.mu.Lock()
		r.withheld = true
		r.d.mu.Unlock()
	}
}
