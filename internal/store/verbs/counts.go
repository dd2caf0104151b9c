package verbs

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
	biased         *counter // of those that wait: the ones with a priority other than the usual one
}

// counter is a number that is kept in a doc where it is not 0: of all directors
// where it is known, else what the batch changed of it.
type counter struct {
	key            DocKey
	n              int64
	known, changed bool
}

type limitCount struct {
	limit          string
	n              int
	known, changed bool
}

func (x *workingSet) queue(name string) *queueCount {
	c := x.queues[name]
	if c == nil {
		c = &queueCount{queue: name, biased: x.counter(kindBiased, name)}
		x.queues[name] = c
	}
	return c
}

func (x *workingSet) limit(name string) *limitCount {
	c := x.limits[name]
	if c == nil {
		c = &limitCount{limit: name}
		x.limits[name] = c
	}
	return c
}

// depth returns the counts of a queue, if the set knows them; else it is short.
func (x *workingSet) depth(queue string) QueueCount {
	c := x.queue(queue)
	if !c.known {
		x.want.queue(queue)
		x.short = true
	}
	return c.QueueCount
}

// waiting returns how many wait under a limit, likewise.
func (x *workingSet) waiting(limit string) int {
	c := x.limit(limit)
	if !c.known {
		x.want.limit(limit)
		x.short = true
	}
	return c.n
}

func (x *workingSet) bump(queue string, waiting, ready int) *queueCount {
	c := x.queue(queue)
	c.Waiting += waiting
	c.Ready += ready
	if !c.changed {
		c.changed = true
		x.bumped = append(x.bumped, c)
	}
	return c
}

func (x *workingSet) bumpLimit(limit string, n int) {
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
func (x *workingSet) guess(queues []string, limits ...string) {
	for _, q := range queues {
		c := x.queue(q)
		if !c.known {
			x.want.queue(q)
		}
		x.wantCounter(c.biased)
	}
	for _, l := range limits {
		if !x.limit(l).known {
			x.want.limit(l)
		}
	}
}

func (x *workingSet) counter(kind, id string) *counter {
	key := DocKey{kind, id}
	c := x.counters[key]
	if c == nil {
		c = &counter{key: key}
		x.counters[key] = c
	}
	return c
}

func (x *workingSet) add(c *counter, n int64) {
	c.n += n
	if !c.changed {
		c.changed = true
		x.counted = append(x.counted, c)
	}
}

// knows reports whether the set knows a number as it is over all directors.
func (x *workingSet) knows(c *counter) bool {
	if c.known {
		return true
	}
	r := x.docs.kind(c.key.Kind).rows[c.key.ID]
	if r == nil {
		return false
	}
	if r.doc.Body != nil {
		c.n += r.doc.Sort
	}
	c.known = true
	return true
}

// wantCounter wants to know it.
func (x *workingSet) wantCounter(c *counter) {
	if !x.knows(c) {
		x.want.doc(c.key)
	}
}

// putCounter stores it.
func (x *workingSet) putCounter(c *counter) {
	if c.n == 0 {
		x.drop(c.key.Kind, c.key.ID)
	} else {
		x.put(c.key.Kind, c.key.ID, c.n, []byte{1}, nil)
	}
}

// standsLast returns the place of a task that was just stored, where all that
// wait in its queue stand before it: none of them has a priority of its own,
// and so their order is that of their places.
func (x *workingSet) standsLast(t *signalbox.Task) store.Position {
	c := x.queue(t.Queue)
	if t.Bias != 0 || !c.known || !x.knows(c.biased) || c.biased.n > 0 {
		return store.Position{}
	}
	return store.Position{N: c.Waiting, Approximate: c.Waiting > store.MaxExactPosition}
}
