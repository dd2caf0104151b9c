package pull

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Hear passes a change to the observer.
func (l *Lanes) Hear(c engine.Applied) { l.applied(&c) }

// LoseSilent ends the executions of agents that have been silent for the slot lease.
func (l *Lanes) LoseSilent(ctx context.Context) error { return l.loseSilent(ctx) }

// Parked is how many claims wait.
func (l *Lanes) Parked() int {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	n := 0
	for _, a := range l.Order {
		if a.Ready() {
			n++
		}
	}
	return n
}

// Waiting reports whether a claim of the agent waits.
func (l *Lanes) Waiting(agent string) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	a := l.Lanes[agent]
	return a != nil && a.poll != nil
}
