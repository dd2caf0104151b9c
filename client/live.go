package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// The kinds of a LiveEvent.
const (
	LiveSnapshot = "snapshot" // all of it
	LiveChange   = "change"   // what changed
	LiveResync   = "resync"   // all of it anew: what lies between is not known
	LiveBeat     = "beat"     // nothing changed; only Revision, At and Epoch are set
)

// LiveEvent is one event of the live stream.
type LiveEvent struct {
	Kind string
	Live api.Live
}

// liveIdle is how long the live stream may be silent before it is taken for
// dead: something comes at least once a second.
const liveIdle = 5 * time.Second

// Live goes through everything as it is and what changes in it, without an
// end: a snapshot, then changes. A broken stream is opened anew behind the
// last event seen; where the director cannot go on there, a resync has all of
// it. Board keeps the state that the events come to. An error is the last
// pair: the context's, the director's refusal, or an *UnreachableError once
// Options.Patience is over.
func (c *Client) Live(ctx context.Context) iter.Seq2[LiveEvent, error] {
	impatient := *c
	impatient.opts.StreamIdle = min(c.opts.StreamIdle, liveIdle)
	return func(yield func(LiveEvent, error) bool) {
		r := liveReader{yield: yield}
		p := c.newPatience()
		for {
			req := get("/api/live", nil)
			req.seen = r.place
			err := impatient.stream(ctx, req, p, &r)
			if r.stopped {
				return
			}
			if r.err != nil {
				yield(LiveEvent{}, r.err)
				return
			}
			if err := p.wait(ctx, err); err != nil {
				yield(LiveEvent{}, err)
				return
			}
		}
	}
}

// liveReader keeps the place from one stream to the next.
type liveReader struct {
	place   string // id of the last event seen
	yield   func(LiveEvent, error) bool
	stopped bool
	err     error
}

func (r *liveReader) open() bool { return true }

func (r *liveReader) message(m message) bool {
	e := LiveEvent{Kind: m.name}
	switch m.name {
	case LiveSnapshot, LiveChange, LiveResync, LiveBeat: // a beat has fields of Live alone
	default: // of later days
		return true
	}
	if err := json.Unmarshal(m.data, &e.Live); err != nil {
		r.err = fmt.Errorf("the live stream holds an event that is not JSON: %w", err)
		return false
	}
	if m.id != "" {
		r.place = m.id
	}
	r.stopped = !r.yield(e, nil)
	return !r.stopped
}
