package execution

import (
	"time"
)

// Presence says whether an agent is connected, from what was heard of it. All times are
// monotonic.
type Presence struct {
	state presenceState
	why   string    // why it is not up
	heard time.Time // when it was last heard from
	since time.Time // when it went down; if it was never up, when it became known
	until time.Time // leaving: messages before this time do not bring it up
}

type presenceState int

const (
	unheard presenceState = iota
	up
	down
	leaving // down: it announced that it stops
)

// StoppingMessage is the reason for an agent that announced that it stops. Any director may have received the
// announcement.
const StoppingMessage = "it said that it stops"

// NewPresence is the presence of a newly known agent.
func NewPresence(now time.Time) Presence {
	return Presence{since: now, why: "not heard from yet"}
}

// Up reports whether the agent is connected.
func (p *Presence) Up() bool { return p.state == up }

// Leaving reports whether the agent last announced that it stops.
func (p *Presence) Leaving() bool { return p.state == leaving }

// Heard records a message of the agent, and reports whether it came up.
func (p *Presence) Heard(now time.Time) (news bool) {
	p.heard = now
	if p.state == up || (p.state == leaving && now.Before(p.until)) {
		return false
	}
	p.state, p.why = up, ""
	return true
}

// Gone records that the agent is not reachable, and reports whether it was up.
func (p *Presence) Gone(now time.Time, why string) (news bool) {
	if news = p.state == up; news {
		p.since = now
	}
	p.state, p.why = down, why
	return news
}

// Leave records that the agent stops: messages before until do not bring it up. It reports
// whether it was up.
func (p *Presence) Leave(now, until time.Time, why string) (news bool) {
	news = p.Gone(now, why)
	p.state, p.until = leaving, until
	return news
}

// CancelLeave revokes Leave: the next message brings the agent up.
func (p *Presence) CancelLeave() {
	if p.state == leaving {
		p.state = down
	}
}

// LastHeard is when the agent was last heard from; zero: not yet.
func (p *Presence) LastHeard() time.Time { return p.heard }

// Silence is the time since the agent was last heard from.
func (p *Presence) Silence(now time.Time) time.Duration { return now.Sub(p.heard) }

// Away is how long the agent has been down; 0 while it is up.
func (p *Presence) Away(now time.Time) time.Duration {
	if p.state == up {
		return 0
	}
	return now.Sub(p.since)
}
