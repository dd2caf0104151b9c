package postgres

import (
	"context"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// turn is the lock of this process, which is two: that of the table turn, in a
// transaction on a connection of its own, for who makes a batch, and that of
// storing, in the transaction which stores it. Each process takes both in that
// order, and keeps the first until it has the second. Then it writes the log of
// its batch and lets go of the turn: the next process makes its batch while this
// one is stored. So batches are stored in the order of the turns, and at most
// one is made ahead.
type turn struct {
	session *session
	has     bool
	queued  chan error // the answer to the request for storing; nil: it came
	cancel  context.CancelFunc
}

// storingLimit bounds the wait for the second lock, which the server bounds
// (lock_timeout).
const storingLimit = 2 * lockTimeout

// take notes that the turn was had, and stands in line for storing. The row of
// meta keeps out those who take no turn.
func (t *turn) take(stores *session) {
	ctx, cancel := context.WithTimeout(context.Background(), storingLimit)
	queued := make(chan error, 1)
	t.has, t.queued, t.cancel = true, queued, cancel
	go func() {
		x := stores.exchange()
		x.do(stBegin)
		x.do(stStoring)
		x.do(stMetaLock)
		_, err := x.run(ctx)
		queued <- err
	}()
}

// storing waits for the second lock, if it was asked for. Where the context ends
// before it is had, the connection that stores ends, too.
func (t *turn) storing(ctx context.Context) error {
	if t.queued == nil {
		return nil
	}
	defer func() { t.cancel(); t.queued = nil }()
	select {
	case err := <-t.queued:
		return err
	case <-ctx.Done():
		t.cancel()
		return <-t.queued
	}
}

// handOn publishes the log of a batch, and lets go of the turn.
func (t *turn) handOn(ctx context.Context, d *verbs.Delta) error {
	x := t.session.exchange()
	writeLog(x, d)
	x.do(stCommit)
	_, err := x.run(ctx)
	return err
}
