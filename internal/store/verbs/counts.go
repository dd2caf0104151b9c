package verbs

import (
	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// queueCount is the number of waiting tasks of a queue: the total if known, else the change
// by this batch.
type queueCount struct {
	queue string
	QueueCount
	known, changed bool
	biased         *counter // waiting tasks with a non-default priority
}

// counter is a number stored in a doc unless it is 0: the total if known, else the change
// by this batch.
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

// depth returns the counts of a queue; missing is set if they are not loaded.
func (x *workingSet) depth(queue string) QueueCount {
	c := x.queue(queue)
	if !c.known {
		x.want.queue(queue)
		x.missing = true
	}
	return c.QueueCount
}

// waiting returns how many tasks wait under a limit; missing is set if that is not loaded.
func (x *workingSet) waiting(limit string) int {
	c := x.limit(limit)
	if !c.known {
		x.want.limit(limit)
		x.missing = true
	}
	return c.n
}

func (x *workingSet) addQueueCount(queue string, waiting, ready int) *queueCount {
	c := x.queue(queue)
	c.Waiting += waiting
	c.Ready += ready
	if !c.changed {
		c.changed = true
		x.changedQueues = append(x.changedQueues, c)
	}
	return c
}

func (x *workingSet) addLimitCount(limit string, n int) {
	c := x.limit(limit)
	c.n += n
	if !c.changed {
		c.changed = true
		x.changedLimits = append(x.changedLimits, c)
	}
}

// prefetchCounts wants counts that a verb will change if it succeeds. It is called by verbs
// that miss something anyway, so loading more costs nothing.
func (x *workingSet) prefetchCounts(queues []string, limits ...string) {
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

func (x *workingSet) addCounter(c *counter, n int64) {
	c.n += n
	if !c.changed {
		c.changed = true
		x.changedCounters = append(x.changedCounters, c)
	}
}

// knowsCounter reports whether the total of a counter is known.
func (x *workingSet) knowsCounter(c *counter) bool {
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

func (x *workingSet) wantCounter(c *counter) {
	if !x.knowsCounter(c) {
		x.want.doc(c.key)
	}
}

func (x *workingSet) putCounter(c *counter) {
	if c.n == 0 {
		x.drop(c.key.Kind, c.key.ID)
	} else {
		x.put(c.key.Kind, c.key.ID, c.n, []byte{1}, nil)
	}
}

// lastPosition returns the position of a task just stored, if it is known to be last: no waiting task of its
// queue has its own priority, so the order is that of places.
func (x *workingSet) lastPosition(t *signalbox.Task) store.Position {
	c := x.queue(t.Queue)
	if t.Bias != 0 || !c.known || !x.knowsCounter(c.biased) || c.biased.n > 0 {
		return store.Position{}
	}
	return store.Position{N: c.Waiting, Approximate: c.Waiting > store.MaxExactPosition}
}
