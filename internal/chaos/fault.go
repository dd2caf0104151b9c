package chaos

import (
	"math/rand/v2"
	"time"
)

// Way is a direction through the proxy.
type Way int

// The directions.
const (
	Up   Way = iota // what clients say
	Down            // what the server says
)

// Fault is one way in which a network breaks.
type Fault string

// The faults. The first group strikes what a client says, the second what
// either side says, the third all connections at once.
const (
	DropBefore Fault = "drop before" // it is not passed on, and the connection breaks
	DropAfter  Fault = "drop after"  // it is passed on; the answer is lost with the connection
	Duplicate  Fault = "duplicate"   // a whole HTTP request is said twice, the second time over a connection of its own
	KeepBack   Fault = "keep back"   // the connection breaks; it is passed on at Release
	KeepHalf   Fault = "keep half"   // one half is passed on, and the server waits for the other until Release

	DelayUp      Fault = "delay up"
	DelayDown    Fault = "delay down"
	TruncateUp   Fault = "truncate up" // one half is passed on, then the connection ends as if all were said
	TruncateDown Fault = "truncate down"
	ResetUp      Fault = "reset up" // both sides get a reset
	ResetDown    Fault = "reset down"
	DripUp       Fault = "drip up" // it is passed on a few bytes at a time
	DripDown     Fault = "drip down"

	PartitionUp   Fault = "partition up" // nothing more gets to the server for a while
	PartitionDown Fault = "partition down"
	PartitionBoth Fault = "partition both"
)

// Faults are those that a network strikes with by itself, in turn.
var Faults = []Fault{
	DropBefore, DropAfter, Duplicate, DelayUp, DelayDown, TruncateUp, TruncateDown, ResetUp, ResetDown,
	DripUp, DripDown, PartitionUp, PartitionDown, PartitionBoth,
}

// strikes reports whether a fault can strike what is said in a direction. What
// it strikes in both begins with what a client says.
func (f Fault) strikes(way Way, said []byte) bool {
	switch f {
	case DelayDown, TruncateDown, ResetDown, DripDown, PartitionDown:
		return way == Down
	case Duplicate:
		return way == Up && wholeRequest(said)
	}
	return way == Up
}

// strike is a fault that waits for what it will strike.
type strike struct {
	fault Fault
	match func(said []byte) bool // nil: anything that the fault can strike
	done  chan struct{}          // closed when it has struck
	after time.Time
}

// deck deals faults by a seed: all of them in each round, in another order.
type deck struct {
	rng   *rand.Rand
	all   []Fault
	left  []Fault
	pace  time.Duration
	ready *strike
}

// next is the fault that is due, or nil.
func (d *deck) next(now time.Time) *strike {
	if d.ready == nil {
		if len(d.left) == 0 {
			d.left = append(d.left, d.all...)
			d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
		}
		wait := d.pace/2 + time.Duration(d.rng.Int64N(int64(d.pace)))
		d.ready = &strike{fault: d.left[0], done: make(chan struct{}), after: now.Add(wait)}
		d.left = d.left[1:]
	}
	if now.Before(d.ready.after) {
		return nil
	}
	return d.ready
}
