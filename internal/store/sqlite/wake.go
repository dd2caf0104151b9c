package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// wakeChunk is how many rows Wake looks at between two writes.
const wakeChunk = 256

// Wake makes due tasks ready, those first whose time came first. A task that
// waits for the turn before it in its session is not due: the end of that
// turn readies it.
//
// Such tasks stay in the index of what waits for its time. So that they are
// not looked at again and again, the ledger remembers up to which time all
// has been looked at; a verb that comes with an earlier time sets it back.
func (s *Store) Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error) {
	err = s.do(ctx, 0, func(w *writer) (err error) {
		woken, next, err = w.wake(now, limit)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return woken, next, nil
}

// timed is a task that waits for its time.
type timed struct{ notBefore, place, seq int64 }

func (w *writer) wake(now time.Time, limit int) (woken []string, next time.Time, err error) {
	after := timed{notBefore: w.woken.UnixMilli(), place: math.MaxInt64}
	for {
		chunk, err := w.timedDue(after, now)
		if err != nil {
			return nil, time.Time{}, err
		}
		for _, c := range chunk {
			t, mine, err := w.mayWake(c.seq, now)
			if err != nil {
				return nil, time.Time{}, err
			}
			if !mine {
				continue
			}
			if len(woken) >= limit {
				w.looked(time.UnixMilli(c.notBefore - 1).UTC())
				return woken, t.NotBefore, nil
			}
			if err := w.wakeUp(t, now); err != nil {
				return nil, time.Time{}, err
			}
			woken = append(woken, t.ID)
		}
		if len(chunk) < wakeChunk {
			break
		}
		after = chunk[len(chunk)-1]
	}
	w.looked(now)
	next, err = w.timedNext(now)
	return woken, next, err
}

// looked notes that all up to a time has been looked at.
func (w *writer) looked(at time.Time) {
	if at.After(w.woken) {
		w.woken = at
	}
}

func (w *writer) timedDue(after timed, now time.Time) (chunk []timed, err error) {
	q := w.on(stTimedDue)
	q.int(after.notBefore).int(after.place).int(now.UnixMilli()).int(wakeChunk)
	for q.next() {
		chunk = append(chunk, timed{q.intAt(0), q.intAt(1), q.intAt(2)})
	}
	return chunk, q.end()
}

func (w *writer) timedNext(now time.Time) (next time.Time, err error) {
	q := w.on(stTimedNext)
	q.int(now.UnixMilli())
	if q.next() {
		next = q.timeAt(0)
	}
	return next, q.end()
}

// mayWake returns the row of a due task if it is its turn.
func (w *writer) mayWake(seq int64, now time.Time) (*signalbox.Task, bool, error) {
	t, err := w.bySeq(seq)
	if err != nil || t == nil || t.State != signalbox.Pending || t.Ready {
		return nil, false, err
	}
	if t.SessionID == "" {
		return t, true, nil
	}
	turn, err := w.turnOf(t.SessionID, now)
	return t, turn == seq, err
}

func (w *writer) wakeUp(t *signalbox.Task, now time.Time) error {
	if t.SessionID != "" {
		return w.settle(t.SessionID, now)
	}
	return w.setReady(t.Seq, true)
}
