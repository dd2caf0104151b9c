package director

import "context"

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
