package pull

import "github.com/signalbox-ai/signalbox/internal/engine"

// Hear takes in a change, as the engine tells of it.
func (l *Lanes) Hear(c engine.Applied) { l.applied(&c) }

// Parked is how many agents wait for a task.
func (l *Lanes) Parked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle.Len()
}

// Waiting reports whether a claim of the agent is open.
func (l *Lanes) Waiting(agent string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lanes[agent]
	return a != nil && a.poll != nil
}
