package group

import (
	"runtime"
	"time"
)

// Batch is the jobs of one commit.
type Batch[V any] struct {
	Jobs []*Job[V]

	size   int           // bytes, about
	idle   time.Duration // spent waiting for more
	follow int           // verbs that are still to come behind one that is in (store.Followed)
}

// A batch ends at these bounds, so that the first one in it need not wait for
// too much, and the memory of a transaction stays small.
const (
	batchJobs  = 1024
	batchBytes = 8 << 20
)

// Full reports whether no more jobs fit in.
func (b *Batch[V]) Full() bool {
	return len(b.Jobs) >= batchJobs || b.size >= batchBytes || (len(b.Jobs) > 0 && b.Jobs[0].Alone)
}

func (b *Batch[V]) add(j *Job[V]) {
	b.Jobs = append(b.Jobs, j)
	b.size += j.Size
	if j.followed {
		b.follow++
	} else if b.follow > 0 {
		b.follow--
	}
}

// Answer tells all callers what became of their verbs, and empties the batch.
func (b *Batch[V]) Answer() {
	for _, j := range b.Jobs {
		j.done <- struct{}{}
	}
	clear(b.Jobs)
	b.Jobs, b.size, b.idle, b.follow = b.Jobs[:0], 0, 0, 0
}

// Fail sets the answer of all.
func (b *Batch[V]) Fail(err error) {
	for _, j := range b.Jobs {
		j.Err = err
	}
}

// Bounds on the time that a batch waits for company.
const (
	quiet    = 30 * time.Microsecond  // since the last one came
	behind   = 100 * time.Microsecond // likewise, where one is known to come
	patience = 300 * time.Microsecond // in all
)

// Joined moves into the batch, all of whose verbs have run, what came
// meanwhile, and reports whether anything did. company is how many callers
// were around the last commit.
//
// Callers who were just answered need a moment to come back with their next
// verb. A writer that commits without them splits them into two groups, of
// which each waits for the commit of the other, and makes twice as many
// commits, each half empty. So the first who come back are served while the
// others are on their way, and the commit waits until as many have come as
// were around the last one, or nobody comes any more. Someone who is alone
// does not wait, unless his verb is known to be followed.
func (b *Inbox[V]) Joined(batch *Batch[V], company int) bool {
	if (len(batch.Jobs) >= company && batch.follow == 0) || batch.Full() {
		return false
	}
	start, quiet := time.Now(), quiet
	if batch.follow > 0 {
		quiet = behind
	}
	for {
		came, waited := b.Take(batch), time.Since(start)
		if came || waited > quiet || batch.idle+waited > patience {
			batch.idle += waited
			return came
		}
		runtime.Gosched()
	}
}
