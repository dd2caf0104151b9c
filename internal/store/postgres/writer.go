package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// writer is the connections that write. Its methods are called from one
// goroutine.
type writer struct {
	backend *Backend
	session *session // stores batches
	turn    turn
	moment  int64     // as this process wrote or read it last
	others  time.Time // when another process was last seen to have written
	delta   delta     // what a Commit sends, kept for its memory
}

// ready returns the session, a new one where the old one broke.
func (w *writer) ready(ctx context.Context) (*session, error) {
	return w.backend.renewed(ctx, &w.session)
}

// renewed returns a session that writes, a new one where the old one broke.
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

// drop ends what is under way on the connections, and the locks with it.
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

// locked reports whether this process has the lock still: it goes with either
// of the connections.
func (w *writer) locked() bool {
	return w.turn.has && w.session.inTransaction() && w.turn.session.inTransaction()
}

func (s *session) inTransaction() bool { return s.open() && s.conn.TxStatus() == 'T' }

// rollback ends what is under way on a connection. Where that is not sure, it
// ends the connection.
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

// see notes the moment that was read. One that we did not write says that
// someone else does.
func (w *writer) see(l *verbs.Loaded) {
	if w.moment != 0 && (l.Moment != w.moment || l.Handed != nil) {
		w.others = time.Now()
	}
	w.moment = l.Moment
}

// Load reads what is wanted at one moment: the statements of an exchange are
// one transaction, and see what its first one saw; and nobody writes while this
// process has the lock.
func (g *Backend) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if err := g.writer.turn.storing(ctx); err != nil {
		g.writer.drop()
		g.unblock(ctx, err)
		return nil, failed(err, "waiting for the store's lock")
	}
	if g.writer.turn.has && !g.writer.locked() {
		g.writer.drop() // what was made with the lock can be stored without, if nobody comes between
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
	l.Handed = nil // who has the lock has waited for it, and nobody else may follow it
	g.writer.see(l)
	return l, nil
}

// Lock takes the turn, and loads. The server ends a session that has it and
// says nothing for some seconds.
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
	w.see(l)
	return l, nil
}

// lockStored waits until what others handed on is stored, and loads.
func (g *Backend) lockStored(ctx context.Context, want *verbs.Want) (*verbs.Loaded, error) {
	w := &g.writer
	err := w.turn.storing(ctx)
	if err == nil {
		x := w.session.exchange()
		l := load(x, want)
		if _, err = x.run(ctx); err == nil {
			w.see(l)
			return l, nil
		}
	}
	w.drop()
	return nil, err
}

// Unlock gives the lock back.
func (g *Backend) Unlock(context.Context) {
	if g.writer.turn.has {
		g.writer.drop()
	}
}

// Committed reports whether a batch is stored. It writes the row that the batch
// would have to write: so it waits for a batch that is under way, it makes sure
// that one which has not begun never will, and what it has read is as durable
// as what it wrote.
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

// unsafeCommit is the answer where the server says that it did not wait for a
// standby.
func unsafeCommit() error {
	return signalbox.Errorf(signalbox.CodeUnavailable, "a commit must wait: PostgreSQL stopped waiting for its standby, and it is not known whether that has the commit")
}
