package mcp

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// maxSessions bounds the instances of one server that is not shared.
const maxSessions = 100

var (
	errSessionEnded = errors.New("the session has ended")
	errSessionIdle  = errors.New("the session was idle")
)

// sessions are the instances of a server that is not shared, one for each
// session.
type sessions struct {
	p    *Provider
	ctx  context.Context // all end with it
	mu   sync.Mutex
	open map[string]*own
	once int // names of calls without a session
	all  sync.WaitGroup

	closed bool
}

// own is the instance of one session.
type own struct {
	started chan struct{} // closed when inst or err says how that went
	inst    *instance
	err     error
	fail    context.CancelCauseFunc
	calls   int         // under way
	idle    *time.Timer // runs while there are none
}

// call calls a tool in the caller's own instance. A caller without a session
// has one for this call.
func (s *sessions) call(ctx context.Context, name string, c gateway.Call) (gateway.Result, error) {
	o, key, err := s.enter(c.Caller.Session)
	if err != nil {
		return gateway.Result{}, err
	}
	defer s.leave(key, o, c.Caller.Session == "")
	select {
	case <-o.started:
	case <-ctx.Done():
		return gateway.Result{}, ctx.Err()
	}
	if o.err != nil {
		return gateway.Result{}, s.p.notThere(o.err.Error())
	}
	return o.inst.call(ctx, name, c)
}

// enter finds the instance of a session, or begins to start it.
func (s *sessions) enter(session string) (*own, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return nil, "", s.p.notThere(errClosed.Error())
	}
	key := "s" + session
	if session == "" {
		s.once++
		key = "c" + strconv.Itoa(s.once)
	}
	if o := s.open[key]; o != nil && !o.down() {
		o.calls++
		o.idle.Stop()
		return o, key, nil
	}
	if len(s.open) >= maxSessions {
		return nil, "", signalbox.Errorf(signalbox.CodeToolDown,
			"The server %q is not shared, and %d sessions have their own already, which is the limit. Try again when one has ended, or let its tool queue have a lower capacity.", s.p.server.Name, maxSessions)
	}
	ctx, fail := context.WithCancelCause(s.ctx)
	o := &own{started: make(chan struct{}), fail: fail, calls: 1}
	o.idle = time.AfterFunc(s.p.opts.SessionIdle, func() { s.tooLong(key, o) })
	o.idle.Stop()
	s.open[key] = o
	s.all.Go(func() { s.run(ctx, key, o) })
	return o, key, nil
}

// run is the life of one instance.
func (s *sessions) run(ctx context.Context, key string, o *own) {
	inst, err := s.p.connect(ctx, false)
	o.inst, o.err = inst, err
	if err != nil {
		s.drop(key, o)
		close(o.started)
		return
	}
	close(o.started)
	<-inst.ctx.Done()
	s.drop(key, o) // the next call of the session starts anew
	inst.end()
}

func (s *sessions) drop(key string, o *own) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.idle.Stop()
	if s.open[key] == o {
		delete(s.open, key)
	}
}

func (s *sessions) leave(key string, o *own, single bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.calls--
	if single {
		o.fail(errSessionEnded)
	} else if o.calls == 0 && s.open[key] == o {
		o.idle.Reset(s.p.opts.SessionIdle)
	}
}

// tooLong ends an instance that nobody has called for a while.
func (s *sessions) tooLong(key string, o *own) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.calls == 0 && s.open[key] == o {
		delete(s.open, key)
		o.fail(errSessionIdle)
	}
}

// end ends the instance of a session.
func (s *sessions) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := "s" + session
	if o := s.open[key]; o != nil {
		delete(s.open, key)
		o.idle.Stop()
		o.fail(errSessionEnded)
	}
}

// pids are the programs that run now, without what they started: to look for
// that, a hundred times over, would take a while.
func (s *sessions) pids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pids []int
	for _, o := range s.open {
		if i := o.running(); i != nil && i.child != nil {
			pids = append(pids, i.child.proc.Ident().PID)
		}
	}
	return pids
}

// running is the instance, once it has started and until it is down.
func (o *own) running() *instance {
	select {
	case <-o.started:
		if o.inst != nil && o.inst.ctx.Err() == nil {
			return o.inst
		}
	default:
	}
	return nil
}

// down reports whether the instance has come to its end already.
func (o *own) down() bool {
	select {
	case <-o.started:
		return o.running() == nil
	default:
		return false
	}
}

// close waits for the end of all, which their context has been told.
func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.all.Wait()
}
