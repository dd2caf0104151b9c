package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// PutSchedule stores a schedule with its runs, and tells those who watch the
// journal.
//
// Errors: store.ErrStale; CodeConflict where the name is taken, a run is
// decided already, or there are too many.
func (e *Engine) PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := e.store.PutSchedule(ctx, s, runs, entry)
	if err == nil && entry.Kind != "" {
		e.hub.noted()
	}
	return stored, err
}

// DeleteSchedule forgets a schedule with its runs, and reports whether it was
// there.
func (e *Engine) DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error) {
	was, err = e.store.DeleteSchedule(ctx, id, entry)
	if was {
		e.hub.noted()
	}
	return was, err
}

// Check refuses what Submit would refuse, but for want of room.
func (e *Engine) Check(ctx context.Context, n NewTask) error {
	if err := n.normalize(); err != nil {
		return err
	}
	return e.checkRoute(ctx, n)
}
