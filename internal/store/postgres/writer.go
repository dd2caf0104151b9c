package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// writer is the connections that write. Its methods are called from one goroutine.
type writer struct {
	backend      *Backend
	session      *session // stores batches
	turn         turn
	moment       int64     // last one read or written here
	othersSeenAt time.Time // when another process was last seen to write
	delta        delta     // buffer of Commit, reused
}

// ready returns the session, a new one if the old one broke.
func (w *writer) ready(ctx context.Context) (*session, error) {
	return w.backend.renewed(ctx, &w.session)
}

// renewed returns a writing session, a new one if the old one broke.
func (g *Backend) renewed(ctx context.Context, s **session) (*session, error) {
	if (*s).open() {
		return *s, nil
	}
	fresh, err := g.session(ctx, g.params.limits(false))
	if err != nil {
		return nil, err
	}
	*s = fresh
	return fresh, nil
}

// drop closes the connections, which ends what is in flight and the locks.
func (w *writer) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w.turn.session.rollback(ctx)
	if err := w.turn.storing(ctx); err != nil {
		w.session.close(ctx)
	}
	w.session.rollback(ctx)
	w.turn.has = false
}

// locked reports whether this process still has the lock, which is lost with either connection.
func (w *writer) locked() bool {
	return w.turn.has && w.session.inTransaction() && w.turn.session.inTransaction()
}

func (s *session) inTransaction() bool { return s.open() && s.conn.TxStatus() == 'T' }

// rollback rolls back. If that is uncertain, it closes the connection.
func (s *session) rollback(ctx context.Context) {
	if !s.open() || s.conn.TxStatus() == 'I' {
		return
	}
	x := s.exchange()
	x.do(stRollback)
	if _, err := x.run(ctx); err != nil {
		s.close(ctx)
	}
}

// noteMoment records the moment read. An unknown moment means that other processes write.
func (w *writer) noteMoment(l *verbs.Loaded) {
	if w.moment != 0 && (l.Moment != w.moment || l.Handed != nil) {
		w.othersSeenAt = time.Now()
	}
	w.moment = l.Moment
}

// Load reads what is wanted as of one moment: the statements of an exchange are one transaction with one
// snapshot; and no other process writes while this one has the lock.
func (g *Backend) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if err := g.writer.turn.storing(ctx); err != nil {
		g.writer.drop()
		g.unblock(ctx, err)
		return nil, failed(err, "waiting for the store's lock")
	}
	if g.writer.turn.has && !g.writer.locked() {
		g.writer.drop() // what was prepared with the lock can be stored without, unless another batch comes first
	}
	s, err := g.writer.ready(ctx)
	if err != nil {
		return nil, err
	}
	x := s.exchange()
	l := load(x, w)
	if _, err := x.run(ctx); errors.Is(err, verbs.ErrMoved) {
		return nil, err
	} else if err != nil {
		g.writer.drop()
		return nil, failed(err, "reading the store")
	}
	l.Handed = nil // it was waited for with the lock, and no other process may follow it
	g.writer.noteMoment(l)
	return l, nil
}

// Lock takes the turn, and loads. The server ends a session that is idle with the lock for some seconds.
func (g *Backend) Lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	l, err := g.lock(ctx, w)
	if err != nil && g.unblock(ctx, err) {
		l, err = g.lock(ctx, w)
	}
	if err != nil {
		return nil, failed(err, "waiting for the store's lock")
	}
	return l, nil
}

func (g *Backend) lock(ctx context.Context, want *verbs.Want) (*verbs.Loaded, error) {
	w := &g.writer
	stores, err := w.ready(ctx)
	if err != nil {
		return nil, err
	}
	s, err := g.renewed(ctx, &w.turn.session)
	if err != nil {
		return nil, err
	}
	x := s.exchange()
	x.do(stBeginTurn)
	x.do(stTurn)
	var l *verbs.Loaded
	if want.Since != 0 {
		l = load(x, want)
	}
	if _, err := x.run(ctx); err != nil {
		w.drop()
		return nil, err
	}
	w.turn.take(stores)
	if want.Since == 0 {
		return g.lockStored(ctx, want)
	}
	w.noteMoment(l)
	return l, nil
}

// lockStored waits until batches handed on by others are stored, and loads.
func (g *Backend) lockStored(ctx context.Context, want *verbs.Want) (*verbs.Loaded, error) {
	w := &g.writer
	err := w.turn.storing(ctx)
	if err == nil {
		x := w.session.exchange()
		l := load(x, want)
		if _, err = x.run(ctx); err == nil {
			w.noteMoment(l)
			return l, nil
		}
	}
	w.drop()
	return nil, err
}

// Unlock releases the lock.
func (g *Backend) Unlock(context.Context) {
	if g.writer.turn.has {
		g.writer.drop()
	}
}

// Committed reports whether a batch is stored. It writes the row that the batch must write: so
// it waits for a batch in flight, prevents one that has not begun, and its result is as durable
// as the batch.
func (g *Backend) Committed(ctx context.Context, writer string, number int64) (bool, error) {
	g.writer.session.close(ctx)
	yes, err := g.committed(ctx, writer, number)
	if err != nil && g.unblock(ctx, err) {
		yes, err = g.committed(ctx, writer, number)
	}
	if err != nil {
		return false, failed(err, "asking what became of a commit")
	}
	return yes, nil
}

func (g *Backend) committed(ctx context.Context, writer string, number int64) (bool, error) {
	s, err := g.writer.ready(ctx)
	if err != nil {
		return false, err
	}
	var last int64
	x := s.exchange()
	x.do(stBegin)
	x.do(stMetaFence)
	x.ask(stNumber, func(r row) error { last = r.int(0); return nil }, text(writer))
	x.do(stCommit)
	if _, err := x.run(ctx); err != nil {
		g.writer.drop()
		return false, err
	}
	if s.warned {
		return false, unsafeCommit()
	}
	return last >= number, nil
}

// unsafeCommit is the error if the server did not wait for a standby.
func unsafeCommit() error {
	return signalbox.Errorf(signalbox.CodeUnavailable, "a commit must wait: PostgreSQL stopped waiting for its standby, and it is not known whether that has the commit")
}
