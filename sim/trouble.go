package sim

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// What happens to clocks, directors and agents.

// jump sets the directors' wall clock.
func (w *world) jump() {
	w.fault("clock jumps")
	w.skew = w.between(-10*time.Minute, 10*time.Minute).Truncate(time.Millisecond)
	w.ahead = max(w.ahead, w.skew)
	w.note("clock", w.skew.String())
}

// standStill lets a director stand still, or the one that does go on.
func (w *world) standStill() {
	alive := w.alive()
	switch {
	case w.still != nil:
		w.goOn()
	case len(alive) > 1:
		w.stop(alive[w.rng.IntN(len(alive))], &signalbox.Task{})
	}
}

// stop stops the process of a director, as SIGSTOP does, for so long that the
// other one takes its agents. When it goes on, it finds its lease over. It was
// about to say something of that task.
func (w *world) stop(d *director, about *signalbox.Task) {
	var other *director
	for _, o := range w.alive() {
		if o != d {
			other = o
		}
	}
	if other == nil || w.still != nil || w.handing.Load() {
		return
	}
	w.fault("director stands still")
	w.note(d.name(), "stands still")
	w.still, w.about, w.until = d, about.ID, w.now().Add(w.between(time.Second, 3*ttl))
	w.scheduler.freeze(d.name() + " ")
	var gained []string
	for _, a := range w.agents {
		if d.holds(a.name) {
			d.take(a.name, false) // by its own clock, when it goes on
			other.take(a.name, true)
			w.holder[a.name] = other.n
			gained = append(gained, a.name)
			if w.one(4) || (a.name == about.Agent && !w.one(3)) { // what it had goes out once more, under a new fence
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

// givenAgain has the director that stands still go on soon, now that the task which it
// had in hand has been given out once more.
func (w *world) givenAgain(id string) {
	if w.still != nil && id == w.about {
		w.until = w.now().Add(w.between(0, time.Second))
	}
}

// goOnInTime is goOn once it has stood still for long enough.
func (w *world) goOnInTime() {
	if w.still != nil && w.now().After(w.until) {
		w.goOn()
	}
}

// goOn lets the process go on that stood still. It learns soon that others have
// its agents.
func (w *world) goOn() {
	d := w.still
	if d == nil {
		return
	}
	w.still = nil
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
		w.scheduler.hand()
		d.d.Lost(lost)
	}()
}

// trouble happens to an agent.
func (w *world) trouble(a *agent) {
	what := ""
	switch n := w.rng.IntN(8); {
	case a.silent && w.now().Before(a.hung.Add(2*ttl)) && !w.one(4):
		return // not yet: its leases run out
	case a.down || a.silent || a.liar:
		what = "recovers"
		a.down, a.silent, a.liar = false, false, false
		a.change()
	case n < 2:
		what = "restarts"
		a.restart(true)
	case n < 3:
		what = "restarts and has forgotten"
		a.restart(false)
	case n < 5:
		what = "is down"
		a.restart(w.one(2))
		a.down = true
	case n < 7:
		what = "hangs"
		a.hang()
	default:
		what = "lies"
		a.liar, a.told = true, true
	}
	w.fault("agent " + what)
	w.note("agent", a.name, what)
}

// hang lets an agent answer nothing, and what it is at take longer than a lease:
// its directors have to do without its word.
func (a *agent) hang() {
	a.silent, a.hung = true, a.w.now()
	if a.plain || a.w.one(2) {
		for _, e := range a.live() {
			e.until = a.w.now().Add(a.w.between(ttl, 4*ttl))
		}
	}
	a.change()
}

// beat is a heartbeat of an agent, or what somebody takes for one.
func (w *world) beat(a *agent) {
	if a.pulls {
		w.onDirector("beat "+a.name, a.beats)
		return
	}
	if a.down || a.silent || a.plain {
		return
	}
	s := a.status()
	b := api.Heartbeat{State: s.State, CurrentTasks: s.CurrentTasks, URL: a.url()}
	if w.one(5) {
		b.State = "stopping"
	}
	w.onDirector("beat "+a.name, func(_ context.Context, d *director) { d.d.Heartbeat(a.name, b) })
}
