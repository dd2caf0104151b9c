package director

import (
	"context"
	"time"
)

// What tests need to see of the live stream.

const (
	MaxSteps  = maxSteps
	LookEvery = lookEvery
)

// Look takes a look now.
func (d *Director) Look(ctx context.Context) error { return d.sight.look(ctx) }

// Looks reports whether the loop that looks for readers runs.
func (d *Director) Looks() bool {
	d.sight.mu.Lock()
	defer d.sight.mu.Unlock()
	return d.sight.stop != nil
}

// LookOnlyWhenAsked has no looks taken by the clock while nobody reads.
func (d *Director) LookOnlyWhenAsked() {
	d.sight.mu.Lock()
	defer d.sight.mu.Unlock()
	if d.sight.alone == nil {
		d.sight.alone = time.NewTimer(0)
	}
	d.sight.alone.Stop()
}

// SetPlace makes the stream stand at a place that is the same in every run.
func (d *Director) SetPlace(epoch string, revision int64) {
	s := &d.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.revision, s.steps, s.full = epoch, revision, nil, nil
}
