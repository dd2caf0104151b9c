package postgres

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// company is for how long another process counts as being there after it was
// seen to write. Each beats every two seconds.
const company = 10 * time.Second

// Commit writes all of d in one exchange. Under the lock the transaction is
// open already; otherwise the exchange is one.
func (g *Backend) Commit(ctx context.Context, d *verbs.Delta) error {
	w := &g.writer
	if w.locked && !w.session.open() {
		w.locked = false
		return verbs.ErrMoved // the lock went with the connection
	}
	s, err := w.ready(ctx)
	if err != nil {
		return err
	}
	x := s.exchange()
	w.delta.write(x, d)
	if time.Since(w.others) < company {
		x.do(stNotify, text(g.ears.channel()), text(g.ears.own))
	}
	if w.locked {
		x.do(stCommit)
	}
	at, err := x.run(ctx)
	if err != nil && !x.sent {
		w.drop()
		return failed(err, "a commit")
	}
	if err == nil && s.warned {
		err = verbs.ErrUnknown
	}
	if err == nil {
		w.locked, w.moment = false, d.To.Moment
		return nil
	}
	w.drop()
	if g.unblock(ctx, err) {
		w.others = time.Now()
		return verbs.ErrMoved
	}
	return w.outcome(at, err)
}

// outcome says what an error means for a batch. at is the statement that had
// it; the first is that of the moment.
func (w *writer) outcome(at int, err error) error {
	refused, said := isServer(err)
	switch {
	case !said:
		return verbs.ErrUnknown
	case refused.Code == codeIdleTimeout: // the lock was lost before
		w.others = time.Now()
		return verbs.ErrMoved
	case isFatal(refused):
		return verbs.ErrUnknown
	case refused.Code == codeSerialization, refused.Code == codeDeadlock, refused.Code == codeZeroDivision && at == 0:
		w.others = time.Now()
		return verbs.ErrMoved
	case refused.Code == codeUnique && (refused.ConstraintName == "tasks_id" || refused.ConstraintName == "tasks_key"):
		return verbs.ErrTaken
	}
	return failed(err, "a commit")
}
