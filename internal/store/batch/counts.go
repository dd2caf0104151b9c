package batch

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// queueCount is how many tasks of a queue wait: of all directors where it is
// known, else what the batch changed of that.
type queueCount struct {
	queue string
	QueueCount
	known, changed bool
	// biased is how many of those that wait have a priority other than the
	// usual one, kept in a doc where there are any.
	biased                     int
	biasedKnown, biasedChanged bool
}

type limitCount struct {
	limit          string
	n              int
	known, changed bool
}

func (x *set) queue(name string) *queueCount {
	c := x.queues[name]
	if c == nil {
		c = &queueCount{queue: name}
		x.queues[name] = c
	}
	return c
}

func (x *set) limit(name string) *limitCount {
	c := x.limits[name]
	if c == nil {
		c = &limitCount{limit: name}
		x.limits[name] = c
	}
	return c
}

// depth returns the counts of a queue, if the set knows them; else it is short.
func (x *set) depth(queue string) QueueCount {
	c := x.queue(queue)
	if !c.known {
		x.want.queue(queue)
		x.short = true
	}
	return c.QueueCount
}

// waiting returns how many wait under a limit, likewise.
func (x *set) waiting(limit string) int {
	c := x.limit(limit)
	if !c.known {
		x.want.limit(limit)
		x.short = true
	}
	return c.n
}

func (x *set) bump(queue string, waiting, ready int) *queueCount {
	c := x.queue(queue)
	c.Waiting += waiting
	c.Ready += ready
	if !c.changed {
		c.changed = true
		x.bumped = append(x.bumped, c)
	}
	return c
}

func (x *set) bumpLimit(limit string, n int) {
	c := x.limit(limit)
	c.n += n
	if !c.changed {
		c.changed = true
		x.limited = append(x.limited, c)
	}
}

// guess wants counts that a verb will change if it comes to something. It is
// called by one that is short anyway: what is loaded with the rest costs
// nothing.
func (x *set) guess(queues []string, limits ...string) {
	for _, q := range queues {
		c := x.queue(q)
		if !c.known {
			x.want.queue(q)
		}
		x.wantBiased(c)
	}
	for _, l := range limits {
		if !x.limit(l).known {
			x.want.limit(l)
		}
	}
}

// knowsBiased reports whether the set knows how many tasks of a queue have a
// priority of their own.
func (x *set) knowsBiased(c *queueCount) bool {
	if c.biasedKnown {
		return true
	}
	r := x.docs.kind(kindBiased).rows[c.queue]
	if r == nil {
		return false
	}
	c.biased += counted(r)
	c.biasedKnown = true
	return true
}

// wantBiased wants to know it.
func (x *set) wantBiased(c *queueCount) {
	if !x.knowsBiased(c) {
		x.want.doc(DocKey{kindBiased, c.queue})
	}
}

// putBiased stores it.
func (x *set) putBiased(c *queueCount) {
	if c.biased == 0 {
		x.drop(kindBiased, c.queue)
	} else {
		x.put(kindBiased, c.queue, int64(c.biased), []byte{1}, nil)
	}
}

// standsLast returns the place of a task that was just stored, where all that
// wait in its queue stand before it: none of them has a priority of its own,
// and so their order is that of their places.
func (x *set) standsLast(t *signalbox.Task) store.Position {
	c := x.queue(t.Queue)
	if t.Bias != 0 || !c.known || !x.knowsBiased(c) || c.biased > 0 {
		return store.Position{}
	}
	return store.Position{N: c.Waiting, Approximate: c.Waiting > store.MaxExactPosition}
}
