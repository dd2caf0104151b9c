package verbs

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// follow takes what other processes changed into the set, which has no changes
// of its own. Where not all logs are there the set is forgotten.
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

// followHanded takes a batch into the set that is not stored yet. Where it
// cannot the set is forgotten.
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

// followed notes what the set is now: what was looked up before may be there.
func (x *workingSet) followed(c Counters, inUse [store.SlotSorts]int) {
	x.stored, x.Counters, x.inUse = c, c, inUse
	clear(x.noID)
	clear(x.noKey)
	x.bound()
}

// apply takes the changes of one batch into the set. It reports whether the
// log could be read: if not, the set is wrong.
func (x *workingSet) apply(d *pack.Reader) bool {
	var queues []QueueChange
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		c := QueueChange{Queue: d.Text(), QueueCount: QueueCount{int(d.Int()), int(d.Int())}}
		if l := x.lines[c.Queue]; l != nil {
			x.complete(l) // as it was
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
		x.trim(x.lines[queues[i].Queue])
	}
	return !d.Bad
}

// applyTask takes a task as it is now, if the set knew it, or would be wrong
// without it.
func (x *workingSet) applyTask(d *pack.Reader) bool {
	if !d.Bool() {
		x.gone(d.Int())
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
		matters = x.matters(queue, session, ready, at)
	}
	if !pending {
		x.requests.drop(seq)
	}
	r := x.rows[seq]
	if d.Bad || (r == nil && !matters) {
		return !d.Bad
	}
	if r != nil && (ended || len(body) == 0 || (pending && !matters)) {
		x.drops(r)
		return true
	}
	t, err := pack.ReadTask(body)
	if err != nil {
		return false
	}
	if r == nil {
		x.adopt(&t)
		return true
	}
	x.unlist(r)
	r.task = &t
	x.list(r)
	return true
}

// matters reports whether the set would be wrong without a task that has not
// ended, since it says that it knows all of a session, or of the beginning of a
// line.
func (x *workingSet) matters(queue, session []byte, ready bool, at store.Cursor) bool {
	if k := x.turns[string(session)]; len(session) > 0 && k != nil && k.whole() {
		return true
	}
	l := x.lines[string(queue)]
	return ready && l != nil && (l.whole || !l.upTo.Before(at))
}

// gone forgets a task that is forgotten.
func (x *workingSet) gone(seq int64) {
	if r := x.rows[seq]; r != nil {
		x.drops(r)
	}
	x.requests.drop(seq)
}

// drops makes the set know nothing of a task that is not what it was. It stays
// right for all else: the session is as whole as before.
func (x *workingSet) drops(r *row) {
	t := r.task
	k := x.turns[t.SessionID]
	known := k != nil && k.known
	x.release(r, t)
	if t.SessionID == "" {
		return
	}
	if k != nil {
		k.known = known
	}
	x.dropTurn(t.SessionID)
}

// applyRequests keeps what was asked for of the tasks that the set knows now.
func (x *workingSet) applyRequests(d *pack.Reader) bool {
	for seq := d.Int(); seq > 0 && !d.Bad; seq = d.Int() {
		prompt, rest := d.Bytes(), d.Bytes()
		if r := x.rows[seq]; r == nil || r.task.State != signalbox.Pending || d.Bad {
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
		u.low[sort] = min(u.low[sort], n)
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
