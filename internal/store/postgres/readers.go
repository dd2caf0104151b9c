package postgres

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// readers are the connections for reads. One is opened when all that are open are in use, and again after
// it broke.
type readers struct {
	idle     chan *session
	unopened chan struct{} // one for each connection that may be opened
}

func (r *readers) init(conns int) {
	r.idle, r.unopened = make(chan *session, conns), make(chan struct{}, conns)
	for range conns {
		r.unopened <- struct{}{}
	}
}

// read runs an exchange that ask fills. It is one transaction with one snapshot. If the connection broke it
// is tried once more, since the server may have been restarted.
func (g *Backend) read(ctx context.Context, ask func(x *exchange)) error {
	s, err := g.readers.get(ctx)
	if err != nil {
		return err
	}
	fresh := !s.open()
	for {
		if !s.open() {
			if s, err = g.session(ctx, g.params.limits(true)); err != nil {
				g.readers.unopened <- struct{}{}
				return err
			}
		}
		x := s.exchange()
		ask(x)
		_, err = x.run(ctx)
		if err == nil || s.open() || fresh || ctx.Err() != nil {
			break
		}
		fresh = true
	}
	g.readers.idle <- s
	if err != nil {
		return failed(err, "reading the store")
	}
	return nil
}

// get returns a connection, or nil for the right to open one.
func (r *readers) get(ctx context.Context) (*session, error) {
	select {
	case s := <-r.idle:
		return s, nil
	default:
	}
	select {
	case s := <-r.idle:
		return s, nil
	case <-r.unopened:
		return nil, nil
	case <-ctx.Done():
		return nil, &signalbox.Error{Code: signalbox.CodeUnavailable, Message: "reading the store must wait: all connections are in use", Err: ctx.Err()}
	}
}

func (r *readers) close(ctx context.Context) {
	for range cap(r.idle) {
		select {
		case s := <-r.idle:
			s.close(ctx)
		case <-r.unopened:
		}
	}
}
