package terminal

import "time"

// SetLimits shortens the limits of terminals; 0 leaves a limit unchanged.
func (t *Terminals) SetLimits(ticket, auth, whole, look time.Duration) {
	l := &t.limits
	for p, v := range map[*time.Duration]time.Duration{&l.ticket: ticket, &l.auth: auth, &l.whole: whole, &l.look: look} {
		if v != 0 {
			*p = v
		}
	}
}

const (
	MaxTicketsOf = maxTicketsOf
	MaxUnproved  = maxUnproved
)
