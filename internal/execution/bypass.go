package execution

import "time"

// The bypass: isolated executions beside the slots of an agent, in slot rows of their own.
// Their outcome says nothing about the agent's other slots, and vice versa.

// Bypass says whether an agent's bypass queue is checked.
type Bypass struct {
	state bypassState
	pause time.Duration // the last pause; 0: it has accepted an isolated task since
}

type bypassState int

const (
	bypassEmpty  bypassState = iota // no task waits, as far as is known
	bypassCheck                     // a task may wait
	bypassPaused                    // the agent just said busy to an isolated offer
)

// The backoff after a busy answer to an isolated offer.
const (
	firstBypassPause = 100 * time.Millisecond
	maxBypassPause   = 2 * time.Second
)

// Check requests a check of the queue, after the pause if there is one.
func (o *Bypass) Check() {
	if o.state == bypassEmpty {
		o.state = bypassCheck
	}
}

// take reports whether a check was requested, and clears the request.
func (o *Bypass) take() bool {
	if o.state != bypassCheck {
		return false
	}
	o.state = bypassEmpty
	return true
}

// startPause starts a pause and returns its length, which grows each time.
func (o *Bypass) startPause() time.Duration {
	o.state, o.pause = bypassPaused, min(max(firstBypassPause, 2*o.pause), maxBypassPause)
	return o.pause
}

// Accepted resets the backoff: the agent accepted an isolated task.
func (o *Bypass) Accepted() { o.pause = 0 }

// pauseBypass pauses isolated offers to an agent that said busy to one.
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
