package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-ai/signalbox/api"
)

// Now as EventsOptions.After begins with what happens from here on.
const Now int64 = -1

// KindReset is the kind of an event that says: between the event before and
// this one there may be others that will not come. What was derived from the
// events has to be read anew.
const KindReset = "reset"

// EventsOptions say which events come.
type EventsOptions struct {
	After   int64  // the seq after which to begin; 0: the oldest that is kept; Now
	QueueID string // only events of this task
	Agent   string // only events of this agent and its queue
	// Include asks for events of the moment besides: position, output. They
	// have no seq, and those that were missed do not come again.
	Include []string
	// OnOpen, if set, is called each time the stream is open. What is read
	// from the director after the first time cannot be missed by the stream.
	OnOpen func()
}

// Events goes through what happens, without an end. A broken stream is
// opened anew after the last event seen, so that none is missed or comes
// twice; where the director cannot go on there, an event of KindReset says
// so. An error is the last pair: the context's, the director's refusal, or
// an *UnreachableError once Options.Patience is over.
func (c *Client) Events(ctx context.Context, opts EventsOptions) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		r := eventReader{after: opts.After, yield: yield, onOpen: opts.OnOpen}
		p := c.newPatience()
		for {
			err := c.stream(ctx, r.call(opts), p, &r)
			if r.stopped {
				return
			}
			if r.err != nil {
				yield(api.Event{}, r.err)
				return
			}
			if err := p.wait(ctx, err); err != nil {
				yield(api.Event{}, err)
				return
			}
		}
	}
}

// eventReader keeps the place in the journal from one stream to the next.
type eventReader struct {
	after   int64
	yield   func(api.Event, error) bool
	onOpen  func()
	opened  bool // before
	stopped bool
	err     error
}

func (r *eventReader) call(opts EventsOptions) call {
	query := values("queue_id", opts.QueueID, "agent", opts.Agent, "include", strings.Join(opts.Include, ","))
	req := call{method: http.MethodGet, path: "/api/events", query: query}
	if r.after == Now {
		return req
	}
	place := strconv.FormatInt(r.after, 10)
	query.Set("after", place)
	req.seen = place
	return req
}

func (r *eventReader) open() bool {
	again := r.opened
	r.opened = true
	if again && r.after == Now {
		// The stream before broke without having said where now was.
		r.stopped = !r.yield(api.Event{Kind: KindReset, Message: "the stream broke before its first event; others may have been missed"}, nil)
	}
	if r.onOpen != nil && !r.stopped {
		r.onOpen()
	}
	return !r.stopped
}

func (r *eventReader) message(m message) bool {
	seq, err := strconv.ParseInt(m.id, 10, 64)
	if len(m.data) == 0 { // an id alone tells where the stream stands
		if err == nil {
			r.after = seq
		}
		return true
	}
	var event api.Event
	if err := json.Unmarshal(m.data, &event); err != nil {
		r.err = fmt.Errorf("the stream of events holds one that is not JSON: %w", err)
		return false
	}
	switch {
	case m.id == "" && event.Seq == 0 && event.Kind != KindReset: // of the moment
	case m.name == KindReset || event.Kind == KindReset:
		event.Kind = KindReset
		r.after = max(0, event.Seq-1) // it goes on with the event of that seq
	case r.after != Now && event.Seq <= r.after:
		return true // it came before the stream broke
	default:
		r.after = event.Seq
	}
	r.stopped = !r.yield(event, nil)
	return !r.stopped
}
