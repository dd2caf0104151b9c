package verbs

import (
	"github.com/signalbox-ai/signalbox"
)

// readAhead is how many ready tasks are loaded beyond those that are claimed,
// where the set will be of use for the next batch.
const readAhead = 256

// readWhole bounds the lines that are read as a whole where a batch has many
// verbs, busyVerbs: what others do to one can be followed then, and it need not
// be read again.
const (
	readWhole = 2048
	busyVerbs = 16
)

// ask finishes the want of a batch of so many verbs: with what each set needs
// at its beginning, and how many tasks of each line.
func (x *workingSet) ask(writer string, verbs int) *Want {
	w := &x.want.Want
	w.Writer = writer
	if !x.known {
		w.InUse = true
		x.want.page(KindPause)
	}
	for _, l := range x.want.lines {
		w.Lines = append(w.Lines, LineWant{Queue: l.queue, After: l.upTo, N: l.need + x.beyond(l, verbs)})
	}
	return w
}

// beyond is how many tasks of a line are loaded beyond those that are needed. Where
// a load costs no exchange it is an eighth of the line: of many short lines most
// are not needed soon.
func (x *workingSet) beyond(l *line, verbs int) int {
	ready := 0
	if c := x.queues[l.queue]; c != nil && c.known {
		ready = c.Ready
	}
	switch {
	case x.near:
		return min(max(l.need, ready/8), readAhead)
	case verbs >= busyVerbs && ready > 0 && ready < readWhole:
		return max(x.ahead, ready+1-l.need)
	}
	return x.ahead
}

// merge takes what was loaded into the set. What the set knows stands: the
// backend has it as it was before the batch.
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
			x.answered.page, x.answered.has = l.Pages[i], true
		}
	}
	x.mergeAnswers(w, l)
	x.want.clear()
}

func (x *workingSet) mergeTasks(w *Want, l *Loaded) {
	for i, id := range w.Tasks {
		if t := l.Tasks[i]; t != nil {
			x.adopt(t)
		} else if x.ids[id] == nil {
			x.noID[id] = struct{}{}
		}
	}
	for i, key := range w.Keys {
		if t := l.Keys[i]; t != nil {
			x.adopt(t)
		} else if x.keys[key] == nil {
			x.noKey[key] = struct{}{}
		}
	}
	for i := range w.Lines {
		rows := x.adoptAll(l.Lines[i])
		if len(l.LineRequests) > 0 {
			x.keepRequests(rows, l.LineRequests[i])
		}
		x.line(w.Lines[i].Queue).loaded(l.Lines[i], w.Lines[i].N)
	}
	for i, session := range w.Turns {
		x.adoptAll(l.Turns[i])
		x.turn(session).know(EndOfLine)
	}
	for i, want := range w.Heads {
		x.adoptAll(l.Heads[i].Tasks)
		x.turn(want.Session).know(l.Heads[i].UpTo)
	}
	for i, seq := range w.Requests {
		x.fetched[seq] = l.Requests[i]
	}
}

// keepRequests keeps what came with the tasks of a line that still wait.
func (x *workingSet) keepRequests(rows []*row, requests []*signalbox.Request) {
	for i, q := range requests {
		if r := rows[i]; q != nil && r.task != nil && r.task.State == signalbox.Pending && r.request == nil {
			x.requests.keep(r.task.Seq, q)
		}
	}
}

func (x *workingSet) adoptAll(tasks []*signalbox.Task) []*row {
	rows := make([]*row, 0, len(tasks))
	for _, t := range tasks {
		rows = append(rows, x.adopt(t))
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
	a := &x.answered
	if w.Due != nil {
		a.due, a.nextDue, a.has = x.adoptAll(l.Due), l.NextDue, true
	}
	if w.Ended != nil {
		a.ended, a.has = x.adoptAll(l.Ended), true
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
