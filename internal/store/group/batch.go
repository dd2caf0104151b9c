package group

import (
	"runtime"
	"time"
)

// Batch is the jobs of one commit.
type Batch[V any] struct {
	Jobs []*Job[V]

	size   int           // approximate bytes
	idle   time.Duration // time spent waiting for more
	follow int           // verbs announced to follow (store.Followed)
}

// A batch ends at these bounds, so that its first verb does not wait for too many others, and transactions
// need little memory.
const (
	batchJobs  = 1024
	batchBytes = 8 << 20
)

// Full reports whether the batch has reached its limits.
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

// Answer answers all callers, and empties the batch.
func (b *Batch[V]) Answer() {
	for _, j := range b.Jobs {
		j.done <- struct{}{}
	}
	clear(b.Jobs)
	b.Jobs, b.size, b.idle, b.follow = b.Jobs[:0], 0, 0, 0
}

// Fail sets the error of all jobs.
func (b *Batch[V]) Fail(err error) {
	for _, j := range b.Jobs {
		j.Err = err
	}
}

// Bounds on the time that a batch waits for more verbs.
const (
	quietTime  = 30 * time.Microsecond  // since the last job arrived
	followTime = 100 * time.Microsecond // the same, if one is announced
	maxGather  = 300 * time.Microsecond // in total
)

// Joined adds jobs that arrived meanwhile to a batch whose verbs have run, and reports whether there were
// any. company is the number of callers around the last commit.
//
// Callers that were just answered need a moment to return with their next verb. A writer that commits without
// them splits them into two groups that wait for each other's commits, so that there are twice as many
// commits, each half empty. So the commit waits until as many callers have come as were around the last
// commit, or until no more come. A single caller does not wait, unless its verb is announced to be followed.
func (b *Inbox[V]) Joined(batch *Batch[V], company int) bool {
	if (len(batch.Jobs) >= company && batch.follow == 0) || batch.Full() {
		return false
	}
	start, quiet := time.Now(), quietTime
	if batch.follow > 0 {
		quiet = followTime
	}
	for {
		came, waited := b.Take(batch), time.Since(start)
		if came || waited > quiet || batch.idle+waited > maxGather {
			batch.idle += waited
			return came
		}
		runtime.Gosched()
	}
}
