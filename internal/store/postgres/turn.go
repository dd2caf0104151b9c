package postgres

import (
	"context"
	"fmt"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// turn is this process's lock, which consists of two: that of the table turn, in a transaction on its own
// connection, for preparing a batch; and that of storing, in the transaction that stores it. Each process
// takes both in that order, and keeps the first until it has the second. Then it writes the log of its batch
// and releases the turn: the next process prepares its batch while this one is stored. So batches are stored
// in the order of the turns, and at most one is prepared ahead.
type turn struct {
	session *session
	has     bool
	queued  chan error // the answer to the request for storing; nil: it has come
	cancel  context.CancelFunc
}

// storingLimit bounds the wait for the second lock. The server bounds it by lock_timeout.
const storingLimit = 2 * lockTimeout

// take records that the turn was taken, and requests storing. Processes that take no turn are excluded by the
// row of meta.
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

// storing waits for the second lock, if it was requested. If the context ends first, the storing connection
// is closed.
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

// handOn publishes the log of a batch, and releases the turn.
func (t *turn) handOn(ctx context.Context, d *verbs.Delta) error {
	x := t.session.exchange()
	writeLog(x, d)
	x.do(stCommit)
	_, err := x.run(ctx)
	return err
}

// stuck finds sessions of our processes that hold the store's lock and wait for their client
// within a message. The server does not count that as idle, so such a client (paused, or the
// network is gone) would hold the lock indefinitely. Sessions that wait for a standby or work
// are not included.
const stuck = `SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid, 2000)) FROM pg_stat_activity a
	WHERE a.pid <> pg_backend_pid() AND a.datname = current_database() AND a.usename = current_user
		AND a.application_name = current_setting('application_name') AND a.wait_event IN ('ClientRead', 'ClientWrite')
		AND a.state <> 'idle' AND a.state_change < clock_timestamp() - interval '%d milliseconds'
		AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.relation IN ('meta'::regclass, 'turn'::regclass, 'storing'::regclass)
			AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock'))`

// unblock terminates a stuck session with the store's lock, after err said that the lock was
// not available in time. It reports whether a retry may succeed.
func (g *Backend) unblock(ctx context.Context, err error) bool {
	if refused, said := isServer(err); !said || refused.Code != codeLockTimeout {
		return false
	}
	conn, err := g.params.dial(ctx, nil)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(ctx) }()
	got, err := query(ctx, conn, fmt.Sprintf(stuck, g.params.limit.still.Milliseconds()))
	if err != nil || got[0] == "0" {
		return false
	}
	g.log.Warn("a paused process held the lock of the store: its session was terminated", "sessions", got[0])
	return true
}
