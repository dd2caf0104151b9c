package execution

import "time"

// The bypass: isolated executions beside the slots of an agent, in slot rows
// of their own. What they do and what becomes of them says nothing about the
// agent's slots, and the other way round.

// Bypass says whether an agent's bypass queue is looked at.
type Bypass struct {
	state bypassState
	pause time.Duration // the last one; 0: it has taken an isolated task since
}

type bypassState int

const (
	bypassEmpty  bypassState = iota // nothing waits there, as far as is known
	bypassCheck                     // something may wait
	bypassPaused                    // the agent said busy to an isolated offer a moment ago
)

// The pause after which a busy agent is offered an isolated task again grows
// from the first to the second.
const (
	firstBypassPause = 100 * time.Millisecond
	maxBypassPause   = 2 * time.Second
)

// Look has the queue looked at, after a pause if there is one.
func (o *Bypass) Check() {
	if o.state == bypassEmpty {
		o.state = bypassCheck
	}
}

// take reports whether the queue is to be looked at, and takes that as done.
func (o *Bypass) take() bool {
	if o.state != bypassCheck {
		return false
	}
	o.state = bypassEmpty
	return true
}

// hold begins a pause, which grows each time, and returns how long it is.
func (o *Bypass) startPause() time.Duration {
	o.state, o.pause = bypassPaused, min(max(firstBypassPause, 2*o.pause), maxBypassPause)
	return o.pause
}

// Taken takes in that the agent took an isolated task.
func (o *Bypass) Accepted() { o.pause = 0 }

// holdBypass offers no more isolated executions for a while to an agent that
// said busy to one.
func (b *Registry[A, R]) pauseBypass(a A) {
	l := a.Base()
	b.Mu.Lock()
	pause := l.Bypass.startPause()
	b.Mu.Unlock()
	b.Spawn(func() {
		Sleep(b.Ctx, pause)
		b.Turn("bypass", l.Name, 0)
		b.Mu.Lock()
		l.Bypass.state = bypassEmpty
		b.KickBypass(a)
		b.Mu.Unlock()
	})
}
