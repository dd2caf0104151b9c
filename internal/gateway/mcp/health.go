package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
