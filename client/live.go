package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// The kinds of a LiveEvent.
const (
	LiveSnapshot = "snapshot" // everything
	LiveChange   = "change"   // the changes
	LiveResync   = "resync"   // everything again: changes in between are not known
	LiveBeat     = "beat"     // nothing changed; only Revision, At and Epoch are set
)

// LiveEvent is one event of the live stream.
type LiveEvent struct {
	Kind string
	Live api.Live
}

// liveIdle is how long the live stream may be silent before it counts as dead: the
// director sends something at least once a second.
const liveIdle = 5 * time.Second

// Live iterates over the live stream without an end: a snapshot, then changes. A
// broken stream is reopened after the last event seen. If the director cannot
// continue there, a resync contains everything. Board keeps the state that results
// from the events. An error is the last pair: the context's, the director's
// refusal, or an *UnreachableError when Options.Patience is over.
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

// liveReader keeps the position from one stream to the next.
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
	case LiveSnapshot, LiveChange, LiveResync, LiveBeat: // a beat has only fields of Live
	default: // a kind of a later version
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

// Board is the state that results from the events of Live. The zero Board is ready
// for use. A changed list is a new slice, so that callers may keep the old one.
type Board struct {
	Known    bool      // a snapshot or resync has arrived
	At       time.Time // the director's time of this state
	Revision int64
	Totals   api.Totals
	Health   api.Verdict
	Agents   []api.LiveAgent // by name
	Queues   []api.LiveQueue // by name
	Capacity []api.ToolQueue // by name
	Accounts []api.Account   // by name
	Tasks    []api.LiveTask  // in flight, the oldest first
	Pauses   []api.Pause
	Gates    []api.ClosedGate
	Pressure []api.Pressure // of the last 30 minutes, oldest first
}

// pressureFor is how long samples are kept.
const pressureFor = 30 * time.Minute

// Apply applies one event.
func (b *Board) Apply(e LiveEvent) {
	l := &e.Live
	switch {
	case e.Kind == LiveSnapshot || e.Kind == LiveResync:
		*b = Board{Known: true}
	case e.Kind == LiveBeat || !b.Known:
		b.At, b.Revision = l.At, l.Revision
		return
	}
	b.At, b.Revision = l.At, l.Revision
	b.Agents = merged(b.Agents, l.Agents, gone(l.Gone, "agent:"), func(a api.LiveAgent) string { return a.Name })
	b.Queues = merged(b.Queues, l.Queues, gone(l.Gone, "queue:"), func(q api.LiveQueue) string { return q.Name })
	b.Capacity = merged(b.Capacity, l.Capacity, gone(l.Gone, "capacity:"), func(q api.ToolQueue) string { return q.Name })
	b.Accounts = merged(b.Accounts, l.Accounts, gone(l.Gone, "account:"), func(a api.Account) string { return a.Name })
	b.tasks(l.Tasks, gone(l.Gone, "task:"))
	if l.Totals != nil {
		b.Totals = *l.Totals
	}
	if l.Health != nil {
		b.Health = *l.Health
	}
	if l.Pauses != nil {
		b.Pauses = *l.Pauses
	}
	if l.Gates != nil {
		b.Gates = *l.Gates
	}
	b.pressure(l.Pressure)
}

// tasks keeps the tasks that are in flight.
func (b *Board) tasks(changed []api.LiveTask, gone []string) {
	if len(changed)+len(gone) == 0 {
		return
	}
	// Ids sort by time.
	all := merged(b.Tasks, changed, gone, func(t api.LiveTask) string { return t.QueueID })
	b.Tasks = slices.DeleteFunc(all, func(t api.LiveTask) bool { return Ended(t.State) || t.State == "pending" || t.State == "parked" })
}

func (b *Board) pressure(samples []api.Pressure) {
	if len(samples) == 0 {
		return
	}
	all := append(slices.Clone(b.Pressure), samples...)
	newest := all[len(all)-1].At
	b.Pressure = slices.DeleteFunc(all, func(p api.Pressure) bool { return newest.Sub(p.At) > pressureFor })
}

// gone returns the names of the removed entities of one sort.
func gone(keys []string, sort string) []string {
	var names []string
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, sort); ok {
			names = append(names, name)
		}
	}
	return names
}

// merged returns the list with the changed entities in their places, by name.
func merged[T any](have, changed []T, gone []string, name func(T) string) []T {
	if len(changed)+len(gone) == 0 {
		return have
	}
	out := slices.DeleteFunc(slices.Clone(have), func(t T) bool { return slices.Contains(gone, name(t)) })
	for _, c := range changed {
		at, found := slices.BinarySearchFunc(out, name(c), func(t T, n string) int { return cmp.Compare(name(t), n) })
		if found {
			out[at] = c
		} else {
			out = slices.Insert(out, at, c)
		}
	}
	return out
}
