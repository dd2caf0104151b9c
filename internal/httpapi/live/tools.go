package live

import (
	"slices"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func capacityKey(name string) string { return "capacity:" + name }

// sharedInUse reports whether a tool queue that several directors share was in use at the
// last refresh.
func (b *builder) sharedInUse() bool {
	return slices.ContainsFunc(b.toolQueues, func(q toolqueue.Status) bool { return q.Shared && len(q.Holders)+len(q.Waiters) > 0 })
}

// compareTools rebuilds the tool queues that differ from the last refresh, or all of them,
// and marks tasks dirty whose calls differ.
func (r *refresh) compareTools(all bool) {
	if r.cfg.Tools == nil {
		return
	}
	queues, before := r.cfg.Tools.Queues(), r.toolQueues
	for i := range queues {
		at := slices.IndexFunc(before, func(q toolqueue.Status) bool { return q.Name == queues[i].Name })
		if at >= 0 && !all && sameStatus(&before[at], &queues[i]) {
			continue
		}
		q := queues[i]
		q.Waiters = q.Waiters[:min(len(q.Waiters), maxWaiters)]
		r.set(&entity{key: capacityKey(q.Name), toolQueue: &q})
	}
	for i := range before {
		if !slices.ContainsFunc(queues, func(q toolqueue.Status) bool { return q.Name == before[i].Name }) {
			r.drop(capacityKey(before[i].Name))
		}
	}
	calls := callsIn(queues)
	for id := range unionKeys(r.calls, calls) {
		if t := r.inFlight[id]; t != nil && r.calls[id] != calls[id] {
			r.markTask(t)
		}
	}
	r.toolQueues, r.calls = queues, calls
}

func sameStatus(a, b *toolqueue.Status) bool {
	return a.Concurrent == b.Concurrent && a.InUse == b.InUse && a.Depth == b.Depth && a.MaxWait == b.MaxWait && a.MaxWaiters == b.MaxWaiters &&
		a.Lease == b.Lease && a.Shared == b.Shared && a.Rate == b.Rate && sameClosed(a, b) && slices.Equal(a.Holders, b.Holders) && slices.Equal(a.Waiters, b.Waiters)
}

func sameClosed(a, b *toolqueue.Status) bool {
	closedA, keysA := a.Closed()
	closedB, keysB := b.Closed()
	return closedA == closedB && keysA == keysB
}

// callsIn returns the call of each task that holds or waits for a slot of a tool queue, by
// task id.
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
	for i := range queues { // if a task has several calls, a waiting one is shown
		q := &queues[i]
		for _, w := range q.Waiters {
			if w.Execution != "" && !calls[w.Execution].Waiting {
				calls[w.Execution] = api.LiveCall{Tool: w.Tool, Capacity: q.Name, Waiting: true, Since: w.Since.UTC(), InUse: q.InUse, Concurrent: q.Concurrent}
			}
		}
	}
	return calls
}
