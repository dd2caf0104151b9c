package store

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// DirectorWriter renews the leases of directors, and tickets of the tool queues that they
// share.
type DirectorWriter interface {
	// Beat renews the lease of a director and returns the other live directors.
	// CodeConflict if CheckBeat refuses it; then nothing is done. No journal entry is
	// written.
	Beat(ctx context.Context, b Beat) (Peers, error)

	// Tickets takes one step of a shared tool queue, as defined by StepTickets, and returns
	// its state after it: holders by Fence, then waiting ones by Place. A ticket that
	// found no place is not among them. No journal entry is written; a step without a
	// change writes nothing.
	Tickets(ctx context.Context, s TicketStep) (ToolLine, error)
}

// DirectorReader reads directors and the agents that they hold.
type DirectorReader interface {
	// Directors lists the directors over the store, dead ones included, by ID.
	Directors(ctx context.Context) ([]Director, error)

	// Holders returns which director holds each agent, by agent; agents never held are
	// missing. A holder may be dead.
	Holders(ctx context.Context) (map[string]string, error)
}

// Director is one of the directors over a store.
type Director struct {
	// ID names the instance. It survives a restart, so that the director gets its agents
	// back at once.
	ID string
	// Run is random for each process, to tell apart two with one ID.
	Run string
	// URL is its address for the other directors.
	URL string
	// Version is that of its program, Key the fingerprint of its secret key.
	Version, Key string
	StartedAt    time.Time
	// Expires is when it counts as dead: the director lease (design §3).
	Expires time.Time
	// Draining: it takes no agents any more, and others take its agents while it is still
	// alive.
	Draining bool
	// Since is when its current series of uninterrupted leases started; set by the store.
	Since time.Time
}

// Alive reports whether the director's lease is valid.
func (d *Director) Alive(now time.Time) bool { return now.Before(d.Expires) }

// Beat is a director's heartbeat, sent several times per lease.
type Beat struct {
	// Director is its row. If Expires is not after Now, it leaves: the row is deleted, and
	// all that it held is free.
	Director Director
	// Take are agents that it wants to hold, Drop those that it gives up. An agent is
	// dispatched to by the one director that holds it; what a dead or unknown director
	// holds is free.
	Take, Drop []string
	// Heard are agents that sent requests to this director and that no other can ask: pull
	// agents.
	Heard []Heard
	// Silent are other directors, as read, whose rows did not change for a whole lease by the sender's clock.
	// If such a row is still unchanged (Run, Expires), the director is dead, even if its Expires is far
	// ahead: the row is deleted. So a server clock that was set back keeps no dead director alive.
	Silent []Director
	// Dead are other directors, as read, that the sender knows to be dead. If such a row is still unchanged,
	// it is deleted ForgetAfter after its end. Age alone is not enough: a live director may have noticed that
	// the server's clock was set back before the sender has.
	Dead []Director
	Now  time.Time
}

// silent and dead report whether the stored row of a director is one of Silent,
// or of Dead.
func (b *Beat) silent(d *Director) bool { return d.ID != b.Director.ID && unchanged(d, b.Silent) }
func (b *Beat) dead(d *Director) bool   { return d.ID != b.Director.ID && unchanged(d, b.Dead) }

func unchanged(d *Director, read []Director) bool {
	return slices.ContainsFunc(read, func(s Director) bool {
		return s.ID == d.ID && s.Run == d.Run && toMS(s.Expires).Equal(toMS(d.Expires))
	})
}

// Heard is when an agent that cannot be asked last sent a request, and its status then.
type Heard struct {
	Agent  string
	At     time.Time
	Status []byte // an api.AgentStatus, as JSON
}

// Peers is the answer to a Beat.
type Peers struct {
	// Directors are the live ones, the sender included, by ID.
	Directors []Director
	// Taken are those of Beat.Take that the director holds now, including those that it
	// held already.
	Taken []string
	// Lapsed: no lease of this process was valid when this beat came: it had expired, or
	// this is its first beat. It no longer holds what it held before, except what this beat
	// took.
	Lapsed bool
	// Heard is the newest message of each pull agent, by name.
	Heard []Heard
}

// CheckBeat refuses a director that may not join: stored is the row with its ID, if any,
// others are the rest.
func CheckBeat(stored *Director, others []Director, b *Beat) error {
	me := &b.Director
	if stored != nil && stored.Run != me.Run && stored.Alive(b.Now) && !toMS(stored.StartedAt).Before(toMS(me.StartedAt)) {
		return signalbox.Errorf(signalbox.CodeConflict,
			"a director that was not started before this one has the name %s too (at %s): give each its own name with --instance", me.ID, stored.URL)
	}
	for i := range others {
		o := &others[i]
		switch {
		case !o.Alive(b.Now):
		case o.Key != me.Key:
			return signalbox.Errorf(signalbox.CodeConflict,
				"director %s (%s) has another secret key: set the same SIGNALBOX_SECRET_KEY for all directors over one store", o.ID, o.URL)
		case !SameMinor(o.Version, me.Version):
			return signalbox.Errorf(signalbox.CodeConflict,
				"director %s (%s) runs version %s and this is %s: only versions of one minor run side by side; stop the others first", o.ID, o.URL, o.Version, me.Version)
		}
	}
	return nil
}
