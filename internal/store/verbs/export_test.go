package verbs

import (
	"context"
	"math"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Forgetful makes a store keep almost nothing of what it knows.
func Forgetful(o Options) Options {
	o.keep = bounds{ready: 2, rows: 6, turns: math.MaxInt, other: 40, bytes: 500}
	return o
}

// Narrow makes a store keep only the heads of its queues.
func Narrow(o Options) Options {
	o.keep = defaultBounds
	o.keep.ready = 2
	return o
}

// ShortTurns makes a store keep only the heads of its sessions, and sometimes forget everything.
func ShortTurns(o Options) Options {
	o.keep = defaultBounds
	o.keep.rows, o.keep.turns = 6, 2
	return o
}

// Pipelined makes a store pipeline every batch that it can, with any number of callers.
func Pipelined(o Options) Options {
	o.many = math.MinInt
	return o
}

// Drafted makes a store draft everything that it can, with any number of callers.
func Drafted(o Options) Options {
	o.drafts = true
	return o
}

// Expect makes an idle store expect that many callers. Came returns how many verbs wait for its batch.
func Expect(s *Store, callers int) { s.writer.callers = callers }

func Came(s *Store) int { return s.inbox.Len() }

// SubmitSaying submits, and signals each time that the verb has run.
func SubmitSaying(ctx context.Context, s *Shared, sub store.Submission, ran func()) (store.Submitted, error) {
	v := &saying{submit{sub: sub}, ran}
	err := s.do(ctx, v, 0)
	return v.got, err
}

type saying struct {
	submit
	ran func()
}

func (v *saying) run(x *workingSet) error {
	err := v.submit.run(x)
	v.ran()
	return err
}
