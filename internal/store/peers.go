package store

import (
	"context"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// DirectorWriter renews what directors hold: their leases, and tickets of the tool queues that they share.
type DirectorWriter interface {
	// Beat renews the lease of a director and says who else lives. It is
	// refused with CodeConflict where CheckBeat says so; then nothing is done.
	// No journal entry is written.
	Beat(ctx context.Context, b Beat) (Peers, error)

	// Tickets takes one step of a shared tool queue, as StepTickets says, and
	// returns its tickets after it: holders by Fence, then those in line by
	// Place. Who finds no place in line is not among them. No journal entry is
	// written; a step that changes nothing writes nothing.
	Tickets(ctx context.Context, s TicketStep) ([]Ticket, error)
}

// DirectorReader reads which directors there are, and what they hold.
type DirectorReader interface {
	// Directors lists the directors over the store, dead ones too, by ID.
	Directors(ctx context.Context) ([]Director, error)

	// Holders says which director holds each agent, by agent; of agents that
	// nobody ever held there is nothing. A holder may be dead.
	Holders(ctx context.Context) (map[string]string, error)
}

// Director is one of the directors over a store.
type Director struct {
	// ID names the instance. It is the same after a restart, so that what it
	// followed is its own again at once.
	ID string
	// Run is random for each process: two that go by one ID are told apart.
	Run string
	// URL is where the other directors reach it.
	URL string
	// Version is that of its program, Key the fingerprint of its secret key.
	Version, Key string
	StartedAt    time.Time
	// Expires is when it counts as dead: the director lease (design §3).
	Expires time.Time
	// Draining says that it takes no agents any more: they are for the others,
	// while it still lives.
	Draining bool
	// Since is when its first lease began, or the one after its lease was over
	// and it went on all the same: the store's to set.
	Since time.Time
}

// Alive reports whether the director's lease holds.
func (d *Director) Alive(now time.Time) bool { return now.Before(d.Expires) }

// Beat is what a director says while it lives, several times within its lease.
type Beat struct {
	// Director is its row. Where Expires is not after Now it leaves: the row
	// goes, and all that it held is free.
	Director Director
	// Take are agents that it wants to dispatch to, Drop those that it gives
	// up. An agent is dispatched to by the one director that holds it; what a
	// dead or unknown director holds is free.
	Take, Drop []string
	// Heard are agents that spoke to this director and that no other can ask:
	// those that pull.
	Heard []Heard
	// Silent are others as they were read, whose rows did not change for a whole
	// lease by the clock of who beats. One whose row still is like that (Run,
	// Expires) is dead, however far ahead its Expires lies: the row goes. So a
	// server whose clock went back keeps nobody alive.
	Silent []Director
	// Dead are others as they were read, of which who beats knows that they are
	// dead. The row of one that still is like that goes ForgetAfter after its
	// end. Age alone says nothing: one that beats may know of a server's clock
	// that was set back, while who beats here does not yet.
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

// Heard is when an agent that cannot be asked last spoke, and what it said.
type Heard struct {
	Agent  string
	At     time.Time
	Status []byte // an api.AgentStatus, as JSON
}

// Peers is the answer to a Beat.
type Peers struct {
	// Directors are those that live, the one that asks among them, by ID.
	Directors []Director
	// Taken are those of Beat.Take that are held by the director now, those
	// that it held already among them.
	Taken []string
	// Lapsed says that no lease of this process held when this beat came: it
	// was over, or this is its first beat. Whatever it held it holds no more,
	// but for what this beat took.
	Lapsed bool
	// Heard is the newest word of all agents that pull, by name.
	Heard []Heard
}

// CheckBeat refuses a director that may not be one of those that live: stored
// is the row with its ID, where there is one, others are the rest.
func CheckBeat(stored *Director, others []Director, b *Beat) error {
	me := &b.Director
	if stored != nil && stored.Run != me.Run && stored.Alive(b.Now) && !toMS(stored.StartedAt).Before(toMS(me.StartedAt)) {
		return signalbox.Errorf(signalbox.CodeConflict,
			"a director that was not started before this one goes by the name %s too (at %s): give each its own name with --instance", me.ID, stored.URL)
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
