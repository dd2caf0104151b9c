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

// maxSessions is the maximum number of instances of one server that is not shared.
const maxSessions = 100

var (
	errSessionEnded = errors.New("the session has ended")
	errSessionIdle  = errors.New("the session was idle")
)

// sessions are the instances of a server that is not shared, one per session.
type sessions struct {
	p    *Provider
	ctx  context.Context // ends all instances
	mu   sync.Mutex
	open map[string]*sessionInstance
	once int // numbers the calls without a session
	all  sync.WaitGroup

	closed bool
}

// sessionInstance is the instance of one session.
type sessionInstance struct {
	started chan struct{} // closed when inst or err is set
	inst    *instance
	err     error
	fail    context.CancelCauseFunc
	calls   int         // in flight
	idle    *time.Timer // runs while no call is in flight
}

// call calls a tool in the session's instance. A caller without a session gets an instance for
// the call.
func (s *sessions) call(ctx context.Context, name string, c gateway.Call) (gateway.Result, error) {
	o, key, err := s.acquire(c.Caller.Session)
	if err != nil {
		return gateway.Result{}, err
	}
	defer s.release(key, o, c.Caller.Session == "")
	select {
	case <-o.started:
	case <-ctx.Done():
		return gateway.Result{}, ctx.Err()
	}
	if o.err != nil {
		return gateway.Result{}, s.p.downError(o.err.Error())
	}
	return o.inst.call(ctx, name, c)
}

// acquire finds the instance of a session, or starts one.
func (s *sessions) acquire(session string) (*sessionInstance, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return nil, "", s.p.downError(errClosed.Error())
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
	o := &sessionInstance{started: make(chan struct{}), fail: fail, calls: 1}
	o.idle = time.AfterFunc(s.p.opts.SessionIdle, func() { s.expireIdle(key, o) })
	o.idle.Stop()
	s.open[key] = o
	s.all.Go(func() { s.run(ctx, key, o) })
	return o, key, nil
}

// run runs one instance until it ends.
func (s *sessions) run(ctx context.Context, key string, o *sessionInstance) {
	inst, err := s.p.connect(ctx, false)
	o.inst, o.err = inst, err
	if err != nil {
		s.drop(key, o)
		close(o.started)
		return
	}
	close(o.started)
	<-inst.ctx.Done()
	s.drop(key, o) // the session's next call starts a new instance
	inst.end()
}

func (s *sessions) drop(key string, o *sessionInstance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.idle.Stop()
	if s.open[key] == o {
		delete(s.open, key)
	}
}

func (s *sessions) release(key string, o *sessionInstance, single bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.calls--
	if single {
		o.fail(errSessionEnded)
	} else if o.calls == 0 && s.open[key] == o {
		o.idle.Reset(s.p.opts.SessionIdle)
	}
}

// expireIdle ends an instance that has been idle for a while.
func (s *sessions) expireIdle(key string, o *sessionInstance) {
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

// pids lists the programs without their children, which would be slow to find.
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

// running returns the instance if it is started and not down.
func (o *sessionInstance) running() *instance {
	select {
	case <-o.started:
		if o.inst != nil && o.inst.ctx.Err() == nil {
			return o.inst
		}
	default:
	}
	return nil
}

// down reports whether the instance has ended.
func (o *sessionInstance) down() bool {
	select {
	case <-o.started:
		return o.running() == nil
	default:
		return false
	}
}

// close waits until all have ended; their context must be cancelled first.
func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.all.Wait()
}
