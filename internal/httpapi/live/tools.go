package live

import (
	"slices"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func capacityKey(name string) string { return "capacity:" + name }

// sharedBusy reports whether a shared tool queue was in use when it was looked at.
func (b *builder) sharedBusy() bool {
	return slices.ContainsFunc(b.queues, func(q toolqueue.Status) bool { return q.Shared && len(q.Holders)+len(q.Waiters) > 0 })
}

// compareTools compares the tool queues with what they were, and makes those anew that are
// others.
func (l *refresh) compareTools(all bool) {
	if l.cfg.Tools == nil {
		return
	}
	queues, before := l.cfg.Tools.Queues(), l.queues
	for i := range queues {
		at := slices.IndexFunc(before, func(q toolqueue.Status) bool { return q.Name == queues[i].Name })
		if at >= 0 && !all && sameStatus(&before[at], &queues[i]) {
			continue
		}
		q := queues[i]
		q.Waiters = q.Waiters[:min(len(q.Waiters), shownWaiters)]
		l.set(&entity{key: capacityKey(q.Name), tools: &q})
	}
	for i := range before {
		if !slices.ContainsFunc(queues, func(q toolqueue.Status) bool { return q.Name == before[i].Name }) {
			l.drop(capacityKey(before[i].Name))
		}
	}
	calls := callsIn(queues)
	for id := range keysOfBoth(l.calls, calls) {
		if t := l.inFlight[id]; t != nil && l.calls[id] != calls[id] {
			l.dirtyTask(t)
		}
	}
	l.queues, l.calls = queues, calls
}

func sameStatus(a, b *toolqueue.Status) bool {
	return a.Concurrent == b.Concurrent && a.InUse == b.InUse && a.Depth == b.Depth && a.MaxWait == b.MaxWait && a.MaxWaiters == b.MaxWaiters &&
		a.Lease == b.Lease && a.Shared == b.Shared && slices.Equal(a.Holders, b.Holders) && slices.Equal(a.Waiters, b.Waiters)
}

// callsIn finds the tasks whose calls hold the slots of tool queues, or wait
// for one.
func callsIn(queues []toolqueue.Status) map[string]api.LiveCall {
	calls := map[string]api.LiveCall{}
	for i := range queues {
		q := &queues[i]
		for _, h := range q.Holders {
			if h.Execution != "" && !h.Idle {
				calls[h.Execution] = api.LiveCall{Tool: h.Tool, Capacity: q.Name, Since: h.Since.UTC(), InUse: q.InUse, Concurrent: q.Concurrent}
			}
		}
	}
	for i := range queues { // of several calls, that which waits says more
		q := &queues[i]
		for _, w := range q.Waiters {
			if w.Execution != "" && !calls[w.Execution].Waiting {
				calls[w.Execution] = api.LiveCall{Tool: w.Tool, Capacity: q.Name, Waiting: true, Since: w.Since.UTC(), InUse: q.InUse, Concurrent: q.Concurrent}
			}
		}
	}
	return calls
}
