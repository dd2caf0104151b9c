package sim

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Faults of clocks, directors and agents.

// jump sets the directors' wall clock.
func (w *world) jump() {
	w.fault("clock jumps")
	w.skew = w.between(-10*time.Minute, 10*time.Minute).Truncate(time.Millisecond)
	w.ahead = max(w.ahead, w.skew)
	w.allowBackstop() // for an account whose claims are or were spread
	w.note("clock", w.skew.String())
}

// pauseDirector pauses a director, or lets a paused one resume.
func (w *world) pauseDirector() {
	alive := w.alive()
	switch {
	case w.paused != nil:
		w.resumeDirector()
	case len(alive) > 1:
		w.stop(alive[w.rng.IntN(len(alive))], &signalbox.Task{})
	}
}

// stop stops a director's process, like SIGSTOP, until another has its agents and its lease has expired. It
// was about to act on the task about.
func (w *world) stop(d *director, about *signalbox.Task) {
	var other *director
	for _, o := range w.alive() {
		if o != d {
			other = o
		}
	}
	if other == nil || w.paused != nil || w.moveRate.Load() {
		return
	}
	w.fault("director stands still")
	w.note(d.name(), "stands still")
	w.paused, w.pausedTask, w.pausedUntil = d, about.ID, w.now().Add(w.between(time.Second, 3*ttl))
	w.scheduler.freeze(d.name() + " ")
	var gained []string
	for _, a := range w.agents {
		if d.holds(a.name) {
			d.take(a.name, false) // by its own clock, when it continues
			other.take(a.name, true)
			w.holder[a.name] = other.n
			gained = append(gained, a.name)
			if w.oneIn(4) || (a.name == about.Agent && !w.oneIn(3)) { // its task is offered again, with a new fence
				w.note("agent", a.name, "restarts and has forgotten")
				a.restart(false)
			}
		}
	}
	go func() {
		w.scheduler.turn(other.name()+" gains", "gain", other.isDead)
		other.d.Gained(gained)
	}()
}

// resumeAfterReoffer resumes the paused director soon, now that its task was claimed again.
func (w *world) resumeAfterReoffer(id string) {
	if w.paused != nil && id == w.pausedTask {
		w.pausedUntil = w.now().Add(w.between(0, time.Second))
	}
}

// resumeIfDue resumes the director once it was paused for long enough.
func (w *world) resumeIfDue() {
	if w.paused != nil && w.now().After(w.pausedUntil) {
		w.resumeDirector()
	}
}

// resumeDirector resumes the paused process. It learns soon that others have its agents.
func (w *world) resumeDirector() {
	d := w.paused
	if d == nil {
		return
	}
	w.paused = nil
	w.note(d.name(), "goes on")
	w.scheduler.freeze("")
	go func() {
		w.scheduler.turn(d.name()+" lapses", "lose", d.isDead)
		var lost []string
		for _, a := range w.agents {
			if !d.holds(a.name) {
				lost = append(lost, a.name)
			}
		}
		w.scheduler.publish()
		d.d.Lost(lost)
	}()
}

// agentFault makes an agent fail.
func (w *world) agentFault(a *agent) {
	what := ""
	switch n := w.rng.IntN(8); {
	case a.silent && w.now().Before(a.hung.Add(2*ttl)) && !w.oneIn(4):
		return // not yet: its leases would expire
	case a.down || a.silent || a.claimsIdle:
		what = "recovers"
		a.down, a.silent, a.claimsIdle = false, false, false
		a.change()
	case n < 2:
		what = "restarts"
		a.restart(true)
	case n < 3:
		what = "restarts and has forgotten"
		a.restart(false)
	case n < 5:
		what = "is down"
		a.restart(w.oneIn(2))
		a.down = true
	case n < 7:
		what = "hangs"
		a.hang()
	default:
		what = "lies"
		a.claimsIdle, a.overlapAllowed = true, true
	}
	w.fault("agent " + what)
	w.note("agent", a.name, what)
}

// hang makes an agent unresponsive, with runs longer than a lease.
func (a *agent) hang() {
	a.silent, a.hung = true, a.w.now()
	if a.plain || a.w.oneIn(2) {
		for _, e := range a.live() {
			e.until = a.w.now().Add(a.w.between(ttl, 4*ttl))
		}
	}
	a.change()
}

// sendHeartbeat sends a heartbeat of an agent, or a forged one.
func (w *world) sendHeartbeat(a *agent) {
	if a.pulls {
		w.onDirector("beat "+a.name, a.heartbeat)
		return
	}
	if a.down || a.silent || a.plain {
		return
	}
	s := a.status()
	b := api.Heartbeat{State: s.State, CurrentTasks: s.CurrentTasks, URL: a.url()}
	if w.oneIn(5) {
		b.State = "stopping"
	}
	w.onDirector("beat "+a.name, func(_ context.Context, d *director) { d.d.Heartbeat(a.name, b) })
}
