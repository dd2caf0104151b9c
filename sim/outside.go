package sim

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// clerks is how many verbs of a store can be under way at a time.
const clerks = 16

// clerk does for a goroutine within a bubble what can only be done outside. Its
// channels are made there.
type clerk struct {
	do   chan func() error
	done chan error
}

// Outside lets a history use a store that was opened outside of its bubble, with
// its own goroutines, files and connections: what a verb of it makes is made
// outside, too. Time stands still meanwhile. stop ends what it began.
func Outside(s store.Store) (out store.Store, stop func()) {
	idle, over := make(chan *clerk, clerks), make(chan struct{})
	for range clerks {
		c := &clerk{do: make(chan func() error), done: make(chan error)}
		idle <- c
		go func() {
			for {
				select {
				case f := <-c.do:
					c.done <- f()
				case <-over:
					return
				}
			}
		}()
	}
	ask := func(_ context.Context, _ string, do func(context.Context) error) error {
		c := <-idle
		defer func() { idle <- c }()
		c.do <- func() error { return do(context.Background()) }
		return <-c.done
	}
	return failpoint.Wrap(s, ask, ask), func() { close(over) }
}
