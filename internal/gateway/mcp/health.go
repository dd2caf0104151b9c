package mcp

import (
	"context"
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
	_, _, fault, got := r.answer()
	return got && fault == nil || i.ctx.Err() != nil
}
