package verbs

import (
	"github.com/signalbox-ai/signalbox"
)

// prefetchReady is how many ready tasks are loaded beyond those that are claimed, if the
// set will be used by the next batch.
const prefetchReady = 256

const (
	// maxFullRead bounds the queues that are read completely in a batch of largeBatch verbs
	// or more: changes by others can then be followed without another read.
	maxFullRead = 2048
	largeBatch  = 16
)

// ask completes the want of a batch of that many verbs.
func (x *workingSet) ask(writer string, verbs int) *Want {
	w := &x.want.Want
	w.Writer = writer
	if !x.known {
		w.InUse = true
		x.want.page(KindPause)
		x.want.page(kindAccount)
	}
	for _, l := range x.want.readyQueues {
		w.Lines = append(w.Lines, LineWant{Queue: l.queue, After: l.upTo, N: l.need + x.prefetchOf(l, verbs)})
	}
	return w
}

// prefetchOf is how many tasks of a queue are loaded beyond those needed. If loads are cheap it is an eighth
// of the queue: with many short queues, most are not needed soon.
func (x *workingSet) prefetchOf(l *readyQueue, verbs int) int {
	ready := 0
	if c := x.queues[l.queue]; c != nil && c.known {
		ready = c.Ready
	}
	switch {
	case x.local:
		return min(max(l.need, ready/8), prefetchReady)
	case verbs >= largeBatch && ready > 0 && ready < maxFullRead:
		return max(x.prefetch, ready+1-l.need)
	}
	return x.prefetch
}

// merge adds what was loaded to the set. What the set already has takes precedence: the
// backend has the state before the batch.
func (x *workingSet) merge(l *Loaded) {
	w := &x.want.Want
	if !x.known {
		x.known, x.stored, x.Counters, x.inUse = true, l.Counters, l.Counters, l.InUse
	}
	x.mergeTasks(w, l)
	x.mergeCounts(w, l)
	for i, key := range w.Docs {
		x.adoptDoc(key, l.Docs[i])
	}
	for i := range w.Pages {
		if p := &w.Pages[i]; p.Limit == 0 && p.After == nil {
			x.adoptPage(p.Kind, l.Pages[i])
		} else {
			x.results.page, x.results.has = l.Pages[i], true
		}
	}
	x.mergeAnswers(w, l)
	x.want.clear()
}

func (x *workingSet) mergeTasks(w *Want, l *Loaded) {
	for i, id := range w.Tasks {
		if t := l.Tasks[i]; t != nil {
			x.addLoaded(t)
		} else if x.ids[id] == nil {
			x.absentIDs[id] = struct{}{}
		}
	}
	for i, key := range w.Keys {
		if t := l.Keys[i]; t != nil {
			x.addLoaded(t)
		} else if x.keys[key] == nil {
			x.absentKeys[key] = struct{}{}
		}
	}
	for i := range w.Lines {
		rows := x.addAllLoaded(l.Lines[i])
		if len(l.LineRequests) > 0 {
			x.keepRequests(rows, l.LineRequests[i])
		}
		x.readyQueue(w.Lines[i].Queue).loaded(l.Lines[i], w.Lines[i].N)
	}
	for i, session := range w.Turns {
		x.addAllLoaded(l.Turns[i])
		x.sessionTurns(session).setKnown(EndOfLine)
	}
	for i, want := range w.Heads {
		x.addAllLoaded(l.Heads[i].Tasks)
		x.sessionTurns(want.Session).setKnown(l.Heads[i].UpTo)
	}
	for i, seq := range w.Requests {
		x.fetched[seq] = l.Requests[i]
	}
}

// keepRequests keeps the requests loaded with tasks that still wait.
func (x *workingSet) keepRequests(rows []*row, requests []*signalbox.Request) {
	for i, q := range requests {
		if r := rows[i]; q != nil && r.task != nil && r.task.State.Waiting() && r.request == nil {
			x.requests.keep(r.task.Seq, q)
		}
	}
}

func (x *workingSet) addAllLoaded(tasks []*signalbox.Task) []*row {
	rows := make([]*row, 0, len(tasks))
	for _, t := range tasks {
		rows = append(rows, x.addLoaded(t))
	}
	return rows
}

func (x *workingSet) mergeCounts(w *Want, l *Loaded) {
	for i, queue := range w.Queues {
		if c := x.queue(queue); !c.known {
			c.known = true
			c.Waiting += l.Queues[i].Waiting
			c.Ready += l.Queues[i].Ready
		}
	}
	for i, limit := range w.Limits {
		if c := x.limit(limit); !c.known {
			c.known = true
			c.n += l.Limits[i]
		}
	}
	for i, agent := range w.Slots {
		if u := x.agents[agent]; !u.known {
			u.loaded(l.Slots[i])
		}
	}
}

func (x *workingSet) mergeAnswers(w *Want, l *Loaded) {
	a := &x.results
	if w.Due != nil {
		a.due, a.nextDue, a.has = x.addAllLoaded(l.Due), l.NextDue, true
	}
	if w.Ended != nil {
		a.ended, a.has = x.addAllLoaded(l.Ended), true
	}
	if w.Cut != nil {
		a.cut, a.has = l.Cut, true
	}
	if len(w.Named) > 0 {
		a.named = make(map[string]bool, len(w.Named))
		for i, session := range w.Named {
			a.named[session] = l.Named[i]
		}
	}
}
