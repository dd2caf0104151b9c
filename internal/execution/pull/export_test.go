package pull

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Hear takes in a change, as the engine tells of it.
func (l *Lanes) Hear(c engine.Applied) { l.applied(&c) }

// LoseSilent ends the executions of agents that have been silent for the slot lease.
func (l *Lanes) LoseSilent(ctx context.Context) error { return l.loseSilent(ctx) }

// Parked is how many agents wait for a task.
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

// Waiting reports whether a claim of the agent is open.
func (l *Lanes) Waiting(agent string) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	a := l.Lanes[agent]
	return a != nil && a.poll != nil
}
