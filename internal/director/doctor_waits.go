package director

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

const (
	// passedOver is how long the first of a line may wait beside a free slot
	// before that is worth a word: a claim takes milliseconds.
	passedOver = 10 * time.Second
	// lookAgain is what lies between two looks at such a task.
	lookAgain = time.Second
	// mostLines bounds the lines that are looked at.
	mostLines = 50
)

// checkWaits looks for tasks that nobody takes though nothing stands in their
// way (design §4, 9): the first of each line, by the same gates as why.
func (d *Director) checkWaits(ctx context.Context) []api.Check {
	shot, err := d.engine.Read().Snapshot(ctx, 1)
	if err != nil {
		return nil // the look at the store says it
	}
	var over []string
	for _, queue := range slices.Sorted(maps.Keys(shot.Heads)) {
		if heads := shot.Heads[queue]; len(heads) > 0 && len(over) < mostLines && d.passedOver(ctx, &heads[0]) {
			over = append(over, heads[0].ID)
		}
	}
	if len(over) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(lookAgain):
	}
	var out []api.Check
	for _, id := range over {
		t, err := d.engine.Read().Task(ctx, id)
		if err == nil && d.passedOver(ctx, &t) {
			out = append(out, failure("queue", "see the director's log; a restart of the director takes it up", "task %s has waited for %s in %s, nothing stands in its way, and nobody takes it",
				t.ID, d.engine.Now().Sub(t.EnqueuedAt).Truncate(time.Second), t.Queue))
		}
	}
	return out
}

// passedOver reports whether a task could have started for a while.
func (d *Director) passedOver(ctx context.Context, t *signalbox.Task) bool {
	if t.State != signalbox.Pending || !t.Ready || d.engine.Now().Sub(t.EnqueuedAt) < passedOver || d.draining.Load() {
		return false
	}
	w, err := d.engine.Why(ctx, t.ID)
	return err == nil && len(w.Gates) > 0 && !slices.ContainsFunc(w.Gates, func(g engine.Gate) bool { return !g.OK })
}
