package verbs

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// follow applies the changes of other processes to the set, which has no changes of its
// own. If a log is missing, the set is discarded.
func (x *workingSet) follow(l *Loaded) {
	at := x.stored.Moment
	if at == l.Moment {
		return
	}
	for _, log := range l.Logs {
		d := pack.Read(log[logHead:])
		if from, to := LogSpan(log); from == at && x.apply(&d) {
			at = to
			continue
		}
		at = 0
		break
	}
	if at != l.Moment {
		x.forget()
		return
	}
	x.followed(l.Counters, l.InUse)
}

// followHanded applies a batch that is not stored yet. If it cannot, the set is discarded.
func (x *workingSet) followHanded(h *Handed) {
	d := pack.Read(h.Log[logHead:])
	from, to := LogSpan(h.Log)
	if from != x.stored.Moment || !x.apply(&d) {
		x.forget()
		return
	}
	c := Counters{
		Moment: to, Generation: d.Int(), Seq: d.Int(), Place: d.Int(), Fence: d.Int(), Entry: d.Int(), EnqueuedMS: d.Int(), WokenMS: d.Int(),
	}
	if inUse := [store.SlotSorts]int{int(d.Int()), int(d.Int())}; !d.Bad {
		x.followed(c, inUse)
	} else {
		x.forget()
	}
}

// followed sets the new state: what was absent may exist now.
func (x *workingSet) followed(c Counters, inUse [store.SlotSorts]int) {
	x.stored, x.Counters, x.inUse = c, c, inUse
	clear(x.absentIDs)
	clear(x.absentKeys)
	x.bound()
}

// apply applies the changes of one batch. It reports whether the log could be read: if not,
// the set is invalid.
func (x *workingSet) apply(d *pack.Reader) bool {
	var queues []QueueChange
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		c := QueueChange{Queue: d.Text(), QueueCount: QueueCount{int(d.Int()), int(d.Int())}}
		if l := x.readyQueues[c.Queue]; l != nil {
			x.updateComplete(l) // as it was
		}
		queues = append(queues, c)
	}
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		if c, now := x.limits[d.Text()], int(d.Int()); c != nil {
			c.n, c.known = now, true
		}
	}
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		if !x.applyTask(d) {
			return false
		}
	}
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		x.applySlot(d)
	}
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		x.applyDoc(d)
	}
	if !x.applyRequests(d) {
		return false
	}
	for i := range queues {
		if c := x.queues[queues[i].Queue]; c != nil {
			c.QueueCount, c.known = queues[i].QueueCount, true
		}
		x.trim(x.readyQueues[queues[i].Queue])
	}
	return !d.Bad
}

// applyTask updates a task if the set has it, or must have it.
func (x *workingSet) applyTask(d *pack.Reader) bool {
	if !d.Bool() {
		x.taskGone(d.Int())
		return true
	}
	var pending, ready, ended, placed bool
	seq := d.Int()
	d.Flags(&pending, &ready, &ended, &placed)
	var body []byte
	matters := false
	if placed {
		queue, session, at := d.Bytes(), d.Bytes(), store.Cursor{OrderKey: d.Int(), Place: d.Int()}
		body = d.Bytes()
		matters = x.relevant(queue, session, ready, at)
	}
	if !pending {
		x.requests.drop(seq)
	}
	r := x.rows[seq]
	if d.Bad || (r == nil && !matters) {
		return !d.Bad
	}
	if r != nil && (ended || len(body) == 0 || (pending && !matters)) {
		x.dropChanged(r)
		return true
	}
	t, err := pack.ReadTask(body)
	if err != nil {
		return false
	}
	if r == nil {
		x.addLoaded(&t)
		return true
	}
	x.removeFromIndexes(r)
	r.task = &t
	x.addToIndexes(r)
	return true
}

// relevant reports whether the set must have a task that has not ended, because it claims
// to know all of its session, or of the beginning of its queue.
func (x *workingSet) relevant(queue, session []byte, ready bool, at store.Cursor) bool {
	if k := x.turns[string(session)]; len(session) > 0 && k != nil && k.whole() {
		return true
	}
	l := x.readyQueues[string(queue)]
	return ready && l != nil && (l.complete || !l.upTo.Before(at))
}

// taskGone removes a deleted task.
func (x *workingSet) taskGone(seq int64) {
	if r := x.rows[seq]; r != nil {
		x.dropChanged(r)
	}
	x.requests.drop(seq)
}

// dropChanged unloads a task that has changed. The session stays as complete as before.
func (x *workingSet) dropChanged(r *row) {
	t := r.task
	k := x.turns[t.SessionID]
	known := k != nil && k.known
	x.unload(r, t)
	if t.SessionID == "" {
		return
	}
	if k != nil {
		k.known = known
	}
	x.dropTurns(t.SessionID)
}

// applyRequests keeps the requests of tasks that are now in the set.
func (x *workingSet) applyRequests(d *pack.Reader) bool {
	for seq := d.Int(); seq > 0 && !d.Bad; seq = d.Int() {
		prompt, rest := d.Bytes(), d.Bytes()
		if r := x.rows[seq]; r == nil || !r.task.State.Waiting() || d.Bad {
			continue
		}
		q, err := pack.ReadRequest(string(prompt), rest, nil)
		if err != nil {
			return false
		}
		x.requests.keep(seq, &q)
	}
	return true
}

func (x *workingSet) applySlot(d *pack.Reader) {
	name, n := d.Bytes(), int(d.Int())
	var task []byte
	var fence int64
	var expires time.Time
	has, withheld := d.Bool(), false
	if has {
		task, fence, expires, withheld = d.Bytes(), d.Int(), d.Time(), d.Bool()
	}
	u := x.agents[string(name)]
	if u == nil || !u.known || d.Bad {
		return
	}
	agent := string(name)
	var s *signalbox.Slot
	if has {
		s = &signalbox.Slot{Agent: agent, Slot: n, TaskID: string(task), Fence: fence, Expires: expires, Withheld: withheld}
	}
	sort, was := store.SlotSort(signalbox.Isolated(n)), u.rows[n]
	if was != nil && was.slot != nil {
		u.count[sort]--
	}
	if s == nil {
		delete(u.rows, n)
		u.firstFree[sort] = min(u.firstFree[sort], n)
		return
	}
	u.rows[n] = &slotRow{agent: agent, n: n, slot: s}
	u.count[sort]++
}

func (x *workingSet) applyDoc(d *pack.Reader) {
	key := DocKey{Kind: d.Text(), ID: d.Text()}
	doc := Doc{DocKey: key, Sort: d.Int()}
	if has, body := d.Bool(), d.Bytes(); has {
		doc.Body = append([]byte{}, body...)
	}
	if c := x.counters[key]; c != nil && c.known {
		c.n = doc.Sort
		if doc.Body == nil {
			c.n = 0
		}
	}
	k := x.docs.kinds[key.Kind]
	if k == nil || d.Bad {
		return
	}
	r := k.rows[key.ID]
	if r == nil {
		if !k.whole || doc.Body == nil {
			return
		}
		r = x.docs.add(k, key)
	}
	x.docs.size += len(doc.Body) - len(r.doc.Body)
	r.doc, r.value = doc, nil
	if doc.Body == nil && k.whole {
		x.docs.remove(r)
	}
}
