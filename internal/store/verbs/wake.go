package verbs

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// wakeChunk is how many rows Wake looks at between two looks at the backend.
const wakeChunk = 256

type wake struct {
	now   time.Time
	limit int

	begun int // x.run of the batch that it goes on in
	after DueWant
	woken []string
	next  time.Time
}

// Wake makes due tasks ready, those first whose time came first. A task that
// waits for the turn before it in its session is not due: the end of that
// turn readies it.
//
// Such tasks stay in the index of what waits for its time. So that they are
// not looked at again and again, the counters remember up to which time all
// has been looked at; a verb that comes with an earlier time sets it back.
func (s *Store) Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error) {
	v := &wake{now: now, limit: limit}
	if err := s.alone(ctx, v); err != nil {
		return nil, time.Time{}, err
	}
	return v.woken, v.next, nil
}

// looksOnly: most often nothing is due.
func (v *wake) looksOnly() bool { return true }

func (v *wake) run(x *workingSet) error {
	if v.begun != x.run {
		v.begun, v.woken, v.next, v.after = x.run, nil, time.Time{}, DueWant{}
	}
	if !x.answered.has {
		return v.ask(x)
	}
	due := x.answered.due
	for _, r := range due {
		if r.task.SessionID != "" {
			x.headTurn(r.task.SessionID)
		}
	}
	if x.short {
		return errShort
	}
	x.answered.has = false
	for _, r := range due {
		if r.task.Ready || r.task.State != signalbox.Pending || !x.mayBeReady(r, v.now) {
			continue
		}
		if len(v.woken) >= v.limit {
			v.next = r.task.NotBefore
			x.looked(v.next.UnixMilli() - 1)
			return nil
		}
		x.settle(r, v.now)
		v.woken = append(v.woken, r.task.ID)
	}
	if len(due) == wakeChunk {
		last := due[len(due)-1].task
		v.after.After, v.after.AfterPlace = last.NotBefore, last.Place
		return v.ask(x)
	}
	x.looked(v.now.UnixMilli())
	v.next = x.answered.nextDue
	return nil
}

// ask wants the next tasks whose time has come.
func (v *wake) ask(x *workingSet) error {
	if !x.known {
		return errShort
	}
	if v.after.N == 0 {
		v.after = DueWant{After: time.UnixMilli(x.WokenMS).UTC(), AfterPlace: math.MaxInt64, Until: v.now, N: wakeChunk}
	}
	due := v.after
	x.want.any, x.want.Due = true, &due
	return errShort
}

// looked notes that all up to a time has been looked at.
func (x *workingSet) looked(ms int64) { x.WokenMS = max(x.WokenMS, ms) }

// mayBeReady reports whether the pending task r would be ready at now.
func (x *workingSet) mayBeReady(r *row, now time.Time) bool {
	if r.task.SessionID == "" {
		return due(r.task, now)
	}
	return x.turn(r.task.SessionID).next(now) == r
}
