package dispatch

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Output returns what is known of the log of a running task from byte after.
// While there is nothing it waits until there is, the run ends, the wait is
// over or ctx ends. ok is false if nobody follows the task here.
func (d *Dispatcher) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	r := d.findRun(id)
	if r == nil {
		return api.Output{}, false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		out, more := r.tail.read(after)
		t := r.row()
		out.QueueID, out.State = t.ID, string(t.State)
		// The stored result is the truth of a run that has ended.
		if out.Done {
			return out, false
		}
		if out.Text != "" {
			return out, true
		}
		select {
		case <-more:
		case <-timer.C:
			return out, true
		case <-ctx.Done():
			return out, true
		}
	}
}

func (d *Dispatcher) findRun(id string) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}
