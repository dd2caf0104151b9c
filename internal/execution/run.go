package execution

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// Run is the state of one execution. Its transport guards it, except fields that never
// change; Tail has its own lock.
type Run struct {
	ID       string // of the task; ID, Fence and Slot never change
	Fence    int64
	Slot     int
	Isolated bool // it has a bypass slot

	Task    signalbox.Task // the row as last seen
	Tail    *tail.Tail
	Mask    Mask            // for what its agent says about it
	Timeout time.Duration   // timeout_seconds; 0: none
	Heard   time.Time       // monotonic: when its agent last reported on it
	Printed time.Time       // wall clock: when it last printed something; zero: not yet
	Note    string          // the problem that its agent reports, masked
	Spent   signalbox.Spent // what its agent says that it has used so far
	Renewed bool            // its lease was renewed here since the flag was last cleared
}

// NewRun returns the run of a claimed task, heard of now. clock is the wall clock.
func NewRun(c engine.Claimed, now time.Time, clock func() time.Time) Run {
	t := &c.Task
	r := Run{ID: t.ID, Fence: t.Fence, Slot: t.Slot, Isolated: signalbox.Isolated(t.Slot), Task: *t, Tail: tail.New(clock), Heard: now}
	r.SetRequest(&c)
	return r
}

// SetRequest takes mask and timeout from the task's request.
func (r *Run) SetRequest(c *engine.Claimed) {
	r.Mask, r.Timeout = MaskOf(c), time.Duration(c.Request.TimeoutSeconds)*time.Second
}

// Matches reports whether a row is that of this execution, and not of another one of the
// same task.
func (r *Run) Matches(t *signalbox.Task) bool { return t.ID == r.ID && t.Fence == r.Fence }

// Update stores a newer row. A row of another execution is ignored: this run must never
// write with the other's fence.
func (r *Run) Update(t signalbox.Task) {
	if r.Matches(&t) && t.Rev > r.Task.Rev {
		r.Task = t
	}
}

// SetNote records the problem that the agent reports for the run, "" for none.
func (r *Run) SetNote(note string) { r.Note = r.Mask.Hide(SanitizeText(note)) }

// Output returns the log of a run from byte after. Without new output it waits until there
// is some, the run ends, wait is over or ctx ends. ok is false once the run has ended: then
// the stored result counts.
func Output(ctx context.Context, t *signalbox.Task, log *tail.Tail, after int64, wait time.Duration) (out api.Output, ok bool) {
	p := log.Read(ctx, after, wait)
	return api.Output{
		QueueID: t.ID, State: string(t.State), Text: p.Text, Seq: p.Seq, Next: p.Next, Truncated: p.Truncated, Done: p.Done,
		Line: p.Line, Times: tail.Pairs(p.Times),
	}, !p.Done
}

type Results interface {
	Result(ctx context.Context, id string) (signalbox.Result, error)
}

// ContinueLog makes a log continue that of an earlier, lost attempt.
func ContinueLog(ctx context.Context, from Results, t *signalbox.Task, log *tail.Tail) error {
	if t.Attempts == 0 && t.Parking == nil {
		return nil
	}
	earlier, err := from.Result(ctx, t.ID)
	if err == nil {
		log.Follow(earlier)
	}
	return err
}

// Follower is a transport's own run, which embeds a Run.
type Follower interface{ Execution() *Run }

// Execution implements Follower.
func (r *Run) Execution() *Run { return r }

type InFlight interface {
	InFlight(ctx context.Context) ([]signalbox.Task, error)
}

// CompareRows compares runs with their rows. gone is called for runs that someone else
// ended or that the store lost, cancel for those to be cancelled. If the rows cannot be
// read, it does nothing.
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
