package postgres

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// writer is the one connection that writes. Its methods are called from one
// goroutine.
type writer struct {
	backend *Backend
	session *session
	locked  bool
	moment  int64     // as this process wrote or read it last
	others  time.Time // when another process was last seen to have written
	delta   delta     // what a Commit sends, kept for its memory
}

// ready returns the session, a new one where the old one broke.
func (w *writer) ready(ctx context.Context) (*session, error) {
	if w.session.open() {
		return w.session, nil
	}
	w.locked = false
	s, err := w.backend.session(ctx, w.backend.params.limits(false))
	if err != nil {
		return nil, err
	}
	w.session = s
	return s, nil
}

// drop ends what is under way on the connection, and the lock with it. Where
// that is not sure, it ends the connection.
func (w *writer) drop() {
	w.locked = false
	if !w.session.open() || w.session.conn.TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	x := w.session.exchange()
	x.do(stRollback)
	if _, err := x.run(ctx); err != nil {
		w.session.close(ctx)
	}
}

// see notes the moment that was read. One that we did not write says that
// someone else does.
func (w *writer) see(l *verbs.Loaded) {
	if w.moment != 0 && l.Moment != w.moment {
		w.others = time.Now()
	}
	w.moment = l.Moment
}

// Lock takes the lock of the row that every batch writes, and loads behind it.
// The server ends a session that holds it and says nothing for some seconds.
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

func (g *Backend) lock(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	s, err := g.writer.ready(ctx)
	if err != nil {
		return nil, err
	}
	x := s.exchange()
	x.do(stBegin)
	x.do(stTurn)
	x.do(stMetaLock)
	l := load(x, w)
	if _, err := x.run(ctx); err != nil {
		g.writer.drop()
		return nil, err
	}
	g.writer.locked = true
	g.writer.see(l)
	return l, nil
}

// Unlock gives the lock back.
func (g *Backend) Unlock(context.Context) {
	if g.writer.locked {
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
