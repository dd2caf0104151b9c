package execution

import (
	"time"
)

// Presence says whether an agent is there, by what was heard of it. All times but
// those given as wall are monotonic.
type Presence struct {
	state presenceState
	why   string    // it is not up
	heard time.Time // when it was heard last
	since time.Time // when it went; before it was heard at all: when it became known
	until time.Time // leaving: what is heard before that does not bring it up
}

type presenceState int

const (
	unheard presenceState = iota
	up
	down
	leaving // down: it said that it stops
)

// ItStops is what is noted of an agent that said so. Any director may have heard it.
const StoppingMessage = "it said that it stops"

// NewPresence is of an agent that has just become known.
func NewPresence(now time.Time) Presence {
	return Presence{since: now, why: "not heard from yet"}
}

// Up reports whether the agent is there.
func (p *Presence) Up() bool { return p.state == up }

// Leaving reports whether the agent said last that it stops.
func (p *Presence) Leaving() bool { return p.state == leaving }

// Heard takes in that the agent said something. It reports whether it came up.
func (p *Presence) Heard(now time.Time) (news bool) {
	p.heard = now
	if p.state == up || (p.state == leaving && now.Before(p.until)) {
		return false
	}
	p.state, p.why = up, ""
	return true
}

// Gone takes in that the agent is not there. It reports whether it was until now.
func (p *Presence) Gone(now time.Time, why string) (news bool) {
	if news = p.state == up; news {
		p.since = now
	}
	p.state, p.why = down, why
	return news
}

// Leave takes in that the agent said that it stops: what it says until then does
// not bring it up. It reports whether it was up until now.
func (p *Presence) Leave(now, until time.Time, why string) (news bool) {
	news = p.Gone(now, why)
	p.state, p.until = leaving, until
	return news
}

// Stay takes back that it said that it stops.
func (p *Presence) CancelLeave() {
	if p.state == leaving {
		p.state = down
	}
}

// LastHeard is when the agent said something last; zero: not yet.
func (p *Presence) LastHeard() time.Time { return p.heard }

// Silence is how long the agent has said nothing.
func (p *Presence) Silence(now time.Time) time.Duration { return now.Sub(p.heard) }

// Away is how long the agent has not been there; 0 while it is.
func (p *Presence) Away(now time.Time) time.Duration {
	if p.state == up {
		return 0
	}
	return now.Sub(p.since)
}
