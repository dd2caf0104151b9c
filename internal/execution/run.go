package execution

import (
	"context"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// Run is what is known of one execution. Whoever follows it guards it, but for what
// never changes; the tail guards itself.
type Run struct {
	ID       string // of the task; it, the fence and the slot never change
	Fence    int64
	Slot     int
	Isolated bool // the slot is one of the bypass

	Task    signalbox.Task // the row as it was last seen
	Tail    *tail.Tail
	Mask    Mask          // of what its agent says of it
	Timeout time.Duration // timeout_seconds; 0: it has none
	Heard   time.Time     // monotonic: when its agent spoke of it last
	Printed time.Time     // when it printed something last, by the wall clock; zero: not yet
	Note    string        // the trouble that its agent tells of, as people may read it
	Renewed bool          // its lease was renewed from here since that was looked at
}

// NewRun is an execution that was heard of now.
func NewRun(c engine.Claimed, now time.Time) Run {
	t := &c.Task
	r := Run{ID: t.ID, Fence: t.Fence, Slot: t.Slot, Isolated: signalbox.Isolated(t.Slot), Task: *t, Tail: tail.New(), Heard: now}
	r.SetRequest(&c)
	return r
}

// Learn takes in what the request of the task says.
func (r *Run) SetRequest(c *engine.Claimed) {
	r.Mask, r.Timeout = MaskOf(c), time.Duration(c.Request.TimeoutSeconds)*time.Second
}

// Is reports whether a row is that of this execution, and of no other of the
// same task.
func (r *Run) Matches(t *signalbox.Task) bool { return t.ID == r.ID && t.Fence == r.Fence }

// Take takes in a newer row. One of another execution is not taken: this one must
// not come to speak with the other's fence.
func (r *Run) Update(t signalbox.Task) {
	if r.Matches(&t) && t.Rev > r.Task.Rev {
		r.Task = t
	}
}

// Tell takes in what trouble the agent says that the run has, "" for none.
func (r *Run) SetNote(note string) { r.Note = r.Mask.Hide(SanitizeText(note)) }

// Lost is the result of a run that nobody will report on: what it printed.
func (r *Run) LostResult() *signalbox.Result {
	result := &signalbox.Result{}
	r.Tail.Result(result)
	result.Output = strings.TrimSpace(result.Tail)
	return result
}

// Output is what is known of the log of a run from byte after. While there is
// nothing it waits until there is, the run ends, wait is over or ctx ends. ok is
// false once the run has ended: then the stored result is the truth.
func Output(ctx context.Context, t *signalbox.Task, log *tail.Tail, after int64, wait time.Duration) (out api.Output, ok bool) {
	p := log.Read(ctx, after, wait)
	return api.Output{
		QueueID: t.ID, State: string(t.State), Text: p.Text, Seq: p.Seq, Next: p.Next, Truncated: p.Truncated, Done: p.Done,
	}, !p.Done
}

// Results reads what is stored of a task's log.
type Results interface {
	Result(ctx context.Context, id string) (signalbox.Result, error)
}

// FollowEarlier begins a log behind that of an attempt that was lost.
func ContinueLog(ctx context.Context, from Results, t *signalbox.Task, log *tail.Tail) error {
	if t.Attempts == 0 {
		return nil
	}
	earlier, err := from.Result(ctx, t.ID)
	if err == nil {
		log.Follow(earlier)
	}
	return err
}

// Follower is a transport's own run, with a Run in it.
type Follower interface{ Execution() *Run }

// Execution implements Follower for whatever a Run is embedded in.
func (r *Run) Execution() *Run { return r }

// InFlight reads what is in flight.
type InFlight interface {
	InFlight(ctx context.Context) ([]signalbox.Task, error)
}

// Compare looks at the rows of runs. over is told of those that somebody else ended
// or that the store forgot, cancel of those that are to be cancelled. Where the rows
// cannot be read, the next look finds out.
func CompareRows[R Follower](ctx context.Context, from InFlight, runs []R, gone func(R), cancel func(R, *signalbox.Task)) {
	tasks, err := from.InFlight(ctx)
	if err != nil {
		return
	}
	rows := make(map[string]*signalbox.Task, len(tasks))
	for i := range tasks {
		rows[tasks[i].ID] = &tasks[i]
	}
	for _, f := range runs {
		r := f.Execution()
		switch t := rows[r.ID]; {
		case t == nil || !r.Matches(t):
			gone(f)
		case t.CancelRequested || t.State == signalbox.Cancelling:
			cancel(f, t)
		}
	}
}
