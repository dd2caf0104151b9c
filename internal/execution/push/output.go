package push

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// Output returns what is known of the log of a running task from byte after.
// While there is nothing it waits until there is, the run ends, the wait is
// over or ctx ends. ok is false if nobody follows the task here.
func (d *Dispatcher) Output(ctx context.Context, id string, after int64, wait time.Duration) (out api.Output, ok bool) {
	r := d.findRun(id)
	if r == nil {
		return api.Output{}, false
	}
	t := r.row()
	return execution.Output(ctx, &t, r.Tail, after, wait)
}

func (d *Dispatcher) findRun(id string) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}
