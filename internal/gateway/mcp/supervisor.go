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
	maxRestartDelay = time.Minute     // between two starts
	stableAfter     = time.Minute     // uptime that resets the restart delay
	restartWait     = 3 * time.Second // how long a call waits for a restart
)

// supervisor keeps one instance of a server running. If the server is not shared, it only lists
// the tools, once.
type supervisor struct {
	p *Provider

	mu       sync.Mutex
	inst     *instance // set while a shared server is ready
	state    gateway.State
	since    time.Time
	err      string
	next     time.Time     // next start of a failed server
	changed  chan struct{} // closed at the next change of state
	restarts int
}

func (k *supervisor) set(state gateway.State, inst *instance, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.inst, k.since = state, inst, time.Now()
	switch {
	case err != nil:
		k.err = err.Error()
	case state == gateway.StateReady || state == gateway.StateStopped:
		k.err = ""
	}
	close(k.changed)
	k.changed = make(chan struct{})
}

// run restarts the server until ctx ends.
func (k *supervisor) run(ctx context.Context) {
	wait := k.p.opts.Backoff
	legacy := false
	for {
		k.set(gateway.StateStarting, nil, nil)
		born := time.Now()
		heard, err := k.runOnce(ctx, legacy)
		if ctx.Err() != nil {
			break
		}
		if err == nil { // only the tools had to be listed
			<-ctx.Done()
			break
		}
		if time.Since(born) > stableAfter {
			wait = k.p.opts.Backoff
		}
		if !heard && k.p.server.Transport == toolconf.Stdio {
			legacy = !legacy // it may have crashed on a request of the newer era
		}
		if errors.Is(err, errSessionLost) { // the server is up, and a call waits
			k.down(err, 0)
			continue
		}
		pause := wait/2 + rand.N(wait)
		k.down(err, pause)
		if !sleep(ctx, pause) {
			break
		}
		wait = min(2*wait, maxRestartDelay)
	}
	k.set(gateway.StateStopped, nil, nil)
}

// runOnce starts the server and, if it is shared, returns once it is down and all
// its processes ended.
func (k *supervisor) runOnce(ctx context.Context, legacy bool) (heard bool, err error) {
	inst, err := k.p.connect(ctx, legacy)
	if err != nil {
		return false, err
	}
	defer inst.end()
	news, err := k.p.setTools(inst)
	if err != nil {
		inst.fail(err)
		inst.end()
		return true, inst.explain(err)
	}
	shared := inst
	if !k.p.server.Shared {
		shared = nil
	}
	news() // lists the tools before the server is reported ready
	k.set(gateway.StateReady, shared, nil)
	news() // for those that wait until the server is ready
	if shared == nil {
		return true, nil
	}
	<-inst.ctx.Done()
	k.set(gateway.StateStarting, nil, nil) // no new call gets it
	inst.end()
	cause := context.Cause(inst.ctx)
	if errors.Is(cause, errSessionLost) {
		return true, cause
	}
	return true, inst.explain(cause)
}

// down records the reason and the time of the next start.
func (k *supervisor) down(err error, pause time.Duration) {
	k.mu.Lock()
	k.restarts++
	k.next = time.Now().Add(pause)
	k.mu.Unlock()
	k.set(gateway.StateFailed, nil, err)
	k.p.log.Warn("a tool server is down", "server", k.p.server.Name, "reason", err.Error(), "again_in_ms", pause.Milliseconds())
}

// ready returns the instance. If it is being restarted, it waits for a short
// time.
func (k *supervisor) ready(ctx context.Context) (*instance, error) {
	until := time.Now().Add(restartWait)
	t := time.NewTimer(restartWait)
	defer t.Stop()
	for {
		k.mu.Lock()
		inst, state, why, next, news := k.inst, k.state, k.err, k.next, k.changed
		k.mu.Unlock()
		if inst != nil && inst.ctx.Err() == nil {
			return inst, nil
		}
		if state == gateway.StateStopped || state == gateway.StateFailed && next.After(until) {
			return nil, k.p.downError(why)
		}
		select {
		case <-news:
		case <-t.C:
			return nil, k.p.downError(why)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// downError is the error of a call to a server that is down.
func (p *Provider) downError(why string) error {
	if why != "" {
		why = ": " + why
	}
	return signalbox.Errorf(signalbox.CodeToolDown, "The server %q is down%s. It is restarted automatically.", p.server.Name, why)
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
	// reprobeDelay is the delay after a failed probe.
	reprobeDelay = time.Second
)

// monitor probes the instance while it is idle, and lists its tools again when they change.
func (i *instance) monitor() {
	failed := 0
	every := i.p.opts.ProbeEvery
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		suspect := false
		select {
		case <-i.ctx.Done():
			return
		case <-i.toolsChanged:
			i.p.refreshTools(i)
			continue
		case <-i.probeNow: // triggered by a call that may not have ended yet
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
			t.Reset(min(every, reprobeDelay))
		}
	}
}

// probe reports whether the server answers. A protocol error counts as an answer: servers of
// the newer era have no ping.
func (i *instance) probe() bool {
	ctx, cancel := context.WithTimeout(i.ctx, i.p.opts.ProbeTimeout)
	defer cancel()
	r := newReply()
	defer i.interceptor.forget(r)
	asked := withReply(ctx, r)
	var err error
	if i.p.server.HealthProbe == "listTools" {
		r.passOn = true
		_, err = i.session.ListTools(asked, &sdk.ListToolsParams{})
	}
	if _, _, _, got := r.answer(); !got && err == nil { // no list was requested, or the SDK answered from its cache
		_ = i.session.Ping(asked, &sdk.PingParams{}) // the reply has the outcome
	}
	if r.got404.Load() {
		i.checkSessionLost(ctx)
		return true // it answers; if the session is lost, the instance is being ended
	}
	_, _, fault, got := r.answer()
	return got && fault == nil || i.ctx.Err() != nil
}

// checkSessionLost reports whether the server has lost the session, and if so ends the
// instance. One 404 is no proof: it may be about a tool. A server that knows the session
// answers at least one of two well-known requests.
func (i *instance) checkSessionLost(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, i.p.opts.ProbeTimeout)
	defer cancel()
	defer context.AfterFunc(i.ctx, cancel)()
	denied, _ := i.probeKnown(ctx, func(ctx context.Context) { _ = i.session.Ping(ctx, &sdk.PingParams{}) })
	if denied {
		_, known := i.probeKnown(ctx, func(ctx context.Context) { _, _ = i.session.ListTools(ctx, &sdk.ListToolsParams{}) })
		if !known && ctx.Err() == nil {
			i.fail(errSessionLost)
		}
	}
	return i.sessionLost() // another call may have found out
}

// sessionLost reports whether the instance ended because its session was lost.
func (i *instance) sessionLost() bool { return errors.Is(context.Cause(i.ctx), errSessionLost) }

// probeKnown sends a well-known request. denied is a 404, known any other answer.
func (i *instance) probeKnown(ctx context.Context, ask func(context.Context)) (denied, known bool) {
	r := newReply()
	defer i.interceptor.forget(r)
	ask(withReply(ctx, r))
	_, _, _, got := r.answer()
	denied = r.got404.Load()
	return denied, got && !denied
}
