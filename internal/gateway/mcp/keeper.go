package mcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

const (
	longestWait = time.Minute     // between two starts
	goodLife    = time.Minute     // after which a server starts anew as if for the first time
	restartWait = 3 * time.Second // what a call waits for a server that is being restarted
)

// keeper keeps one instance of a server running, or for a server that is not
// shared learns its tools from one.
type keeper struct {
	p *Provider

	mu       sync.Mutex
	inst     *instance // while ready, of a shared server
	state    gateway.State
	since    time.Time
	err      string
	next     time.Time     // of a failed server, when it is tried again
	news     chan struct{} // closed at the next change of state
	restarts int
}

func (k *keeper) set(state gateway.State, inst *instance, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.inst, k.since = state, inst, time.Now()
	switch {
	case err != nil:
		k.err = err.Error()
	case state == gateway.StateReady || state == gateway.StateStopped:
		k.err = ""
	}
	close(k.news)
	k.news = make(chan struct{})
}

// run starts the server again and again until ctx ends.
func (k *keeper) run(ctx context.Context) {
	wait := k.p.opts.Backoff
	legacy := false
	for {
		k.set(gateway.StateStarting, nil, nil)
		born := time.Now()
		heard, err := k.once(ctx, legacy)
		if ctx.Err() != nil {
			break
		}
		if err == nil { // its tools are learnt, and that was all
			<-ctx.Done()
			break
		}
		if time.Since(born) > goodLife {
			wait = k.p.opts.Backoff
		}
		if !heard && k.p.server.Transport == toolconf.Stdio {
			legacy = !legacy // it may have died of a question of the newer era
		}
		if errors.Is(err, errSessionLost) { // it is there, and a call waits
			k.down(err, 0)
			continue
		}
		pause := wait/2 + rand.N(wait)
		k.down(err, pause)
		if !sleep(ctx, pause) {
			break
		}
		wait = min(2*wait, longestWait)
	}
	k.set(gateway.StateStopped, nil, nil)
}

// once starts the server and, where it is shared, stays until it is down. It
// returns when nothing of it is left.
func (k *keeper) once(ctx context.Context, legacy bool) (heard bool, err error) {
	inst, err := k.p.connect(ctx, legacy)
	if err != nil {
		return false, err
	}
	defer inst.end()
	news, err := k.p.learn(inst)
	if err != nil {
		inst.fail(err)
		inst.end()
		return true, inst.explain(err)
	}
	shared := inst
	if !k.p.server.Shared {
		shared = nil
	}
	news() // nobody sees the server ready and its tools not there
	k.set(gateway.StateReady, shared, nil)
	news() // for those who wait for a server that is ready
	if shared == nil {
		return true, nil
	}
	<-inst.ctx.Done()
	k.set(gateway.StateStarting, nil, nil) // no call gets it any more
	inst.end()
	cause := context.Cause(inst.ctx)
	if errors.Is(cause, errSessionLost) {
		return true, cause
	}
	return true, inst.explain(cause)
}

// down notes why the server is not there and when it is tried again.
func (k *keeper) down(err error, pause time.Duration) {
	k.mu.Lock()
	k.restarts++
	k.next = time.Now().Add(pause)
	k.mu.Unlock()
	k.set(gateway.StateFailed, nil, err)
	k.p.log.Warn("a tool server is down", "server", k.p.server.Name, "reason", err.Error(), "again_in_ms", pause.Milliseconds())
}

// ready returns the instance, waiting a little for a server that is just being
// started again.
func (k *keeper) ready(ctx context.Context) (*instance, error) {
	until := time.Now().Add(restartWait)
	t := time.NewTimer(restartWait)
	defer t.Stop()
	for {
		k.mu.Lock()
		inst, state, why, next, news := k.inst, k.state, k.err, k.next, k.news
		k.mu.Unlock()
		if inst != nil && inst.ctx.Err() == nil {
			return inst, nil
		}
		if state == gateway.StateStopped || state == gateway.StateFailed && next.After(until) {
			return nil, k.p.notThere(why)
		}
		select {
		case <-news:
		case <-t.C:
			return nil, k.p.notThere(why)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// notThere is the error of a call to a server that is down.
func (p *Provider) notThere(why string) error {
	if why != "" {
		why = ": " + why
	}
	return signalbox.Errorf(signalbox.CodeToolDown, "The server %q is not there%s. It is started again by itself.", p.server.Name, why)
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	// probeTimeout bounds one health probe.
	probeTimeout = 10 * time.Second
	// secondLook is the time from a probe that failed to the next.
	secondLook = time.Second
)

// look keeps an eye on the instance while it lives: it probes it when nobody
// calls, and learns its tools anew when they change.
func (i *instance) look() {
	failed := 0
	every := i.p.opts.ProbeEvery
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		suspect := false
		select {
		case <-i.ctx.Done():
			return
		case <-i.relist:
			i.p.relearn(i)
			continue
		case <-i.kick: // by a call that may not be quite over
			suspect = true
		case <-t.C:
		}
		switch {
		case i.p.server.HealthProbe == "off" || i.calls.Load() > 0 && failed == 0 && !suspect:
			t.Reset(every)
		case i.probe():
			failed = 0
			t.Reset(every)
		default:
			if failed++; failed == 2 {
				i.fail(errNoAnswer)
				return
			}
			t.Reset(min(every, secondLook))
		}
	}
}

// probe reports whether the server answers. An error of the protocol is an
// answer too: servers of the newer era no longer know ping.
func (i *instance) probe() bool {
	ctx, cancel := context.WithTimeout(i.ctx, i.p.opts.ProbeTimeout)
	defer cancel()
	r := newReply()
	defer i.tap.forget(r)
	asked := withReply(ctx, r)
	var err error
	if i.p.server.HealthProbe == "listTools" {
		r.passOn = true
		_, err = i.session.ListTools(asked, &sdk.ListToolsParams{})
	}
	if _, _, _, got := r.answer(); !got && err == nil { // not asked to list, or answered from the SDK's memory
		_ = i.session.Ping(asked, &sdk.PingParams{}) // the reply says how it went
	}
	if r.forgotten.Load() {
		i.isForgotten(ctx)
		return true // it answers; and where the session is forgotten, its end is on the way
	}
	_, _, fault, got := r.answer()
	return got && fault == nil || i.ctx.Err() != nil
}

// isForgotten reports whether the server has forgotten the session, and ends
// the instance if so. One 404 does not say it: it may be about a single tool.
// A server that knows the session answers something else to one of two things
// that all servers know.
func (i *instance) isForgotten(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, i.p.opts.ProbeTimeout)
	defer cancel()
	defer context.AfterFunc(i.ctx, cancel)()
	denied, _ := i.word(ctx, func(ctx context.Context) { _ = i.session.Ping(ctx, &sdk.PingParams{}) })
	if denied {
		_, known := i.word(ctx, func(ctx context.Context) { _, _ = i.session.ListTools(ctx, &sdk.ListToolsParams{}) })
		if !known && ctx.Err() == nil {
			i.fail(errSessionLost)
		}
	}
	return i.forgotten() // also by what another call has found
}

// forgotten reports whether the instance has ended with its session.
func (i *instance) forgotten() bool { return errors.Is(context.Cause(i.ctx), errSessionLost) }

// word asks the server something: denied is a 404, known any other answer.
func (i *instance) word(ctx context.Context, ask func(context.Context)) (denied, known bool) {
	r := newReply()
	defer i.tap.forget(r)
	ask(withReply(ctx, r))
	_, _, _, got := r.answer()
	denied = r.forgotten.Load()
	return denied, got && !denied
}
