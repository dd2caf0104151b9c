package verbs

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// wakeChunk is how many rows Wake loads at once.
const wakeChunk = 256

type wake struct {
	now   time.Time
	limit int

	begun int // x.run of the attempt that began it
	after DueWant
	woken []string
	next  time.Time
	again time.Time // earliest NotBefore of turns that gave way to an earlier one; zero: none did
}

// Wake makes due tasks ready, earliest NotBefore first. A task that waits for an earlier
// turn of its session is not due: the end of that turn makes it ready.
//
// Such tasks stay in the timed index. To skip them, WokenMS records up to which NotBefore
// all have been checked; a verb with an earlier time lowers it.
func (s *Store) Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error) {
	v := &wake{now: now, limit: limit}
	if err := s.doAlone(ctx, v); err != nil {
		return nil, time.Time{}, err
	}
	return v.woken, v.next, nil
}

// usually nothing is due
func (v *wake) likelyReadOnly() bool { return true }

func (v *wake) run(x *workingSet) error {
	if v.begun != x.run {
		v.begun, v.woken, v.next, v.again, v.after = x.run, nil, time.Time{}, time.Time{}, DueWant{}
	}
	if !x.results.has {
		return v.ask(x)
	}
	due := x.results.due
	for _, r := range due {
		if r.task.SessionID != "" {
			x.nextTurn(r.task.SessionID)
		}
	}
	if x.missing {
		return errMissing
	}
	x.results.has = false
	for _, r := range due {
		if r.task.Ready || r.task.State != signalbox.Pending || !x.mayBeReady(r, v.now) {
			continue
		}
		if len(v.woken) >= v.limit {
			v.next = r.task.NotBefore
			x.advanceWoken(v.next.UnixMilli() - 1)
			return nil
		}
		var was *row
		if r.task.SessionID != "" {
			was = x.sessionTurns(r.task.SessionID).ready
		}
		x.settle(r, v.now)
		if was != nil && was.task.NotBefore.After(v.now) { // after the clock went back
			v.again = earliest(v.again, was.task.NotBefore)
		}
		v.woken = append(v.woken, r.task.ID)
	}
	if len(due) == wakeChunk {
		last := due[len(due)-1].task
		v.after.After, v.after.AfterPlace = last.NotBefore, last.Place
		return v.ask(x)
	}
	x.advanceWoken(v.now.UnixMilli())
	v.next = earliest(x.results.nextDue, v.again)
	return nil
}

// earliest returns the earlier of two times; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// ask wants the next due tasks.
func (v *wake) ask(x *workingSet) error {
	if !x.known {
		return errMissing
	}
	if v.after.N == 0 {
		v.after = DueWant{After: time.UnixMilli(x.WokenMS).UTC(), AfterPlace: math.MaxInt64, Until: v.now, N: wakeChunk}
	}
	due := v.after
	x.want.any, x.want.Due = true, &due
	return errMissing
}

func (x *workingSet) advanceWoken(ms int64) { x.WokenMS = max(x.WokenMS, ms) }

// mayBeReady reports whether the pending task r would be ready at now.
func (x *workingSet) mayBeReady(r *row, now time.Time) bool {
	if r.task.SessionID == "" {
		return due(r.task, now)
	}
	return x.sessionTurns(r.task.SessionID).next(now) == r
}
