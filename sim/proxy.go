package sim

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// maxProxies is the maximum number of concurrent store operations.
const maxProxies = 16

// proxy executes calls outside of the bubble for a goroutine inside. Its channels are made
// outside.
type proxy struct {
	do   chan func() error
	done chan error
}

// Outside wraps a store that was opened outside of the bubble, with its own goroutines, files
// and connections: its operations run outside, too, while the bubble's time is stopped. stop
// ends the proxies.
func Outside(s store.Store) (out store.Store, stop func()) {
	idle, over := make(chan *proxy, maxProxies), make(chan struct{})
	for range maxProxies {
		c := &proxy{do: make(chan func() error), done: make(chan error)}
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
