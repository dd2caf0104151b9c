package httpapi

import (
	"io"
	"time"
)

// SetTicketRandom makes tickets of what a test wants.
func (d *Server) SetTicketRandom(r io.Reader) { d.terms.random = r }

// SetTerminalLimits shortens the limits of terminals; 0 leaves one as it is.
func (d *Server) SetTerminalLimits(ticket, auth, whole, look time.Duration) {
	l := &d.terms.limits
	for p, v := range map[*time.Duration]time.Duration{&l.ticket: ticket, &l.auth: auth, &l.whole: whole, &l.look: look} {
		if v != 0 {
			*p = v
		}
	}
}

// TerminalBounds are how many tickets of one principal, and connections
// without a ticket, there may be.
const (
	MaxTicketsOf     = maxTicketsOf
	MaxTermsUnproved = maxTermsUnproved
)
