package postgres

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// activeWindow is how long another process counts as active after it was seen to write. Each
// beats every two seconds.
const activeWindow = 10 * time.Second

// Commit writes d in one exchange. With the lock, the transaction is open already and the log
// is sent with it.
func (g *Backend) Commit(ctx context.Context, d *verbs.Delta) error {
	w := &g.writer
	if err := w.turn.storing(ctx); err != nil {
		w.drop()
		if g.unblock(ctx, err) {
			return verbs.ErrMoved
		}
		return failed(err, "waiting for the store's lock")
	}
	locked := w.turn.has
	if locked && !w.locked() {
		w.drop()
		return verbs.ErrMoved // the lock was lost with the connection
	}
	s, err := w.ready(ctx)
	if err != nil {
		return err
	}
	x := s.exchange()
	w.delta.write(x, d)
	if time.Since(w.othersSeenAt) < activeWindow {
		x.do(stNotify, text(g.listener.channel()), text(g.listener.ownName))
	}
	handed := make(chan struct{})
	switch {
	case locked && d.Log != nil:
		x.do(stCommit)
		go func() {
			defer close(handed)
			_ = w.turn.handOn(ctx, d) // a process without the log loads what it needs
		}()
	case locked:
		x.do(stCommit)
		close(handed)
	default:
		if d.Log != nil {
			writeLog(x, d)
		}
		close(handed)
	}
	at, err := x.run(ctx)
	<-handed
	if err != nil && !x.sent {
		w.drop()
		return failed(err, "a commit")
	}
	if err == nil && s.warned {
		err = verbs.ErrUnknown
	}
	if err == nil {
		w.moment = d.To.Moment
		w.drop()
		return nil
	}
	w.drop()
	if g.unblock(ctx, err) {
		w.othersSeenAt = time.Now()
		return verbs.ErrMoved
	}
	return w.outcome(at, err)
}

// outcome maps an error to the outcome of a batch. at is the failed statement; the first one is that of the
// moment.
func (w *writer) outcome(at int, err error) error {
	refused, said := isServer(err)
	switch {
	case !said:
		return verbs.ErrUnknown
	case refused.Code == codeIdleTimeout: // the lock was lost before
		w.othersSeenAt = time.Now()
		return verbs.ErrMoved
	case isFatal(refused):
		return verbs.ErrUnknown
	case refused.Code == codeSerialization, refused.Code == codeDeadlock, refused.Code == codeZeroDivision && at == 0:
		w.othersSeenAt = time.Now()
		return verbs.ErrMoved
	case refused.Code == codeUnique && (refused.ConstraintName == "tasks_id" || refused.ConstraintName == "tasks_key"):
		return verbs.ErrTaken
	}
	return failed(err, "a commit")
}
