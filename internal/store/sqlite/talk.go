package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// One turn of a session is ready or in flight at a time. Whatever changes the
// line of a session settles it: the ready mark goes to the task whose turn it
// is now.

// due reports whether a pending task's time has come. What has been ready
// stays so when the clock goes back.
func due(t *signalbox.Task, now time.Time) bool { return t.Ready || !t.NotBefore.After(now) }

// settle gives the ready mark of a session to the task whose turn it is.
func (w *writer) settle(session string, now time.Time) error {
	if session == "" {
		return nil
	}
	if now.Before(w.woken) {
		// The clock went back: what Wake found due then is not due for us.
		w.woken = now
	}
	turn, err := w.turnOf(session, now)
	was := w.turn[session]
	if err != nil || turn == was {
		return err
	}
	if was != 0 {
		if err := w.setReady(was, false); err != nil {
			return err
		}
	}
	if turn != 0 {
		return w.setReady(turn, true)
	}
	return nil
}

// turnOf returns the Seq of the task whose turn it is: 0 while one is in
// flight, else the first whose time has come.
func (w *writer) turnOf(session string, now time.Time) (seq int64, err error) {
	if w.flying[session] > 0 {
		return 0, nil
	}
	q := w.on(stSessionTurn)
	q.exact(session).int(now.UnixMilli())
	if q.next() {
		seq = q.intAt(0)
	}
	return seq, q.end()
}

func (w *writer) setReady(seq int64, ready bool) error {
	before, err := w.bySeq(seq)
	if err != nil || before == nil {
		return err
	}
	after := *before
	after.Ready = ready
	q := w.write(stTaskReady)
	if err := q.int(seq).bool(ready).run(); err != nil {
		return err
	}
	w.row(before, &after)
	return nil
}

// settledRow settles the session of a row that was just written and returns the
// row as it is after that.
func (w *writer) settledRow(t *signalbox.Task, now time.Time) (signalbox.Task, error) {
	if err := w.settle(t.SessionID, now); err != nil {
		return *t, err
	}
	row, err := w.bySeq(t.Seq)
	if err != nil || row == nil {
		return *t, err
	}
	return *row, nil
}

// bind notes which agent holds the task's session. Its tasks that wait where
// any agent could take them move to that agent's queue: each a change of the
// row, so that a change made from an older reading is stale.
func (w *writer) bind(before, t *signalbox.Task, now time.Time) error {
	if t.SessionID == "" || t.Agent == "" {
		return nil
	}
	was, err := w.session(t.SessionID)
	if err != nil {
		return err
	}
	if err := w.keepSession(store.BindSession(was, before, t, now)); err != nil {
		return err
	}
	if w.loose[t.SessionID] == 0 {
		return nil
	}
	q := w.on(stSessionWaiting)
	waiting, err := all(q.exact(t.SessionID))
	if err != nil {
		return err
	}
	for i := range waiting {
		if _, own := signalbox.QueueAgent(waiting[i].Queue); own {
			continue
		}
		moved := waiting[i]
		moved.Queue = signalbox.AgentQueue(t.Agent)
		moved.Rev++
		if err := w.update(&waiting[i], &moved); err != nil {
			return err
		}
	}
	return nil
}
