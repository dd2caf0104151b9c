package verbs

import (
	"github.com/signalbox-ai/signalbox"
)

// row is a task that the set knows.
type row struct {
	task *signalbox.Task // never changed in place; nil: it is forgotten

	// Of the batch at hand.
	changed bool
	before  *signalbox.Task    // when it began; nil: it is new
	request *signalbox.Request // of a new one
	result  *signalbox.Result  // in place of the stored one
	draft   draft
}

// byID returns the row of a task, nil if there is none, or if the set does not
// know: then it is short.
func (x *workingSet) byID(id string) *row {
	if r := x.ids[id]; r != nil {
		return r
	}
	if _, none := x.noID[id]; !none {
		x.want.task(id)
		x.short = true
	}
	return nil
}

// byKey does the same by the idempotency key.
func (x *workingSet) byKey(key string) *row {
	if key == "" {
		return nil
	}
	if r := x.keys[key]; r != nil {
		return r
	}
	if _, none := x.noKey[key]; !none {
		x.want.key(key)
		x.short = true
	}
	return nil
}

// newID and newKey are for what is most likely new.
func (x *workingSet) newID(id string) *row {
	if x.look == lookAll {
		return x.byID(id)
	}
	return x.ids[id]
}

func (x *workingSet) newKey(key string) *row {
	if x.look != lookNothing {
		return x.byKey(key)
	}
	return x.keys[key]
}

// adopt puts a loaded row into the set, unless it knows it already.
func (x *workingSet) adopt(t *signalbox.Task) *row {
	if r := x.rows[t.Seq]; r != nil {
		return r
	}
	r := &row{task: t}
	x.hold(r)
	x.list(r)
	return r
}

// hold makes the row known by its number, id and key.
func (x *workingSet) hold(r *row) {
	t := r.task
	x.rows[t.Seq] = r
	x.ids[t.ID] = r
	delete(x.noID, t.ID)
	if t.IdempotencyKey != "" {
		x.keys[t.IdempotencyKey] = r
		delete(x.noKey, t.IdempotencyKey)
	}
}

// release makes the set know nothing of a row.
func (x *workingSet) release(r *row, t *signalbox.Task) {
	if r.task != nil {
		x.unlist(r)
		if t.SessionID != "" && !t.State.Terminal() {
			if k := x.turns[t.SessionID]; k != nil && k.covers(t) {
				k.known = false
			}
		}
	}
	delete(x.rows, t.Seq)
	delete(x.ids, t.ID)
	if t.IdempotencyKey != "" {
		delete(x.keys, t.IdempotencyKey)
	}
}

// insert makes a new row.
func (x *workingSet) insert(t *signalbox.Task, request *signalbox.Request) *row {
	r := &row{task: t, changed: true, request: request}
	x.changed = append(x.changed, r)
	x.wrote = true
	x.hold(r)
	x.list(r)
	x.count(t, 1)
	return r
}

// change gives a row new contents, and its new place in every index; nil
// forgets it.
func (x *workingSet) change(r *row, t *signalbox.Task) {
	if !r.changed {
		r.changed, r.before = true, r.task
		x.changed = append(x.changed, r)
	}
	x.wrote = true
	x.unlist(r)
	x.count(r.task, -1)
	r.task = t
	if t == nil {
		return
	}
	x.list(r)
	x.count(t, 1)
}

// list puts a row into every index that it belongs to.
func (x *workingSet) list(r *row) {
	t := r.task
	if t.State.Terminal() {
		return
	}
	if t.SessionID != "" {
		x.turn(t.SessionID).add(r)
	}
	if t.Ready && t.State == signalbox.Pending {
		x.line(t.Queue).add(t.OrderKey(), t.Place, r)
	}
}

// unlist takes a row out of every index that list put it into.
func (x *workingSet) unlist(r *row) {
	t := r.task
	if t.State.Terminal() {
		return
	}
	if t.SessionID != "" {
		x.turn(t.SessionID).remove(r)
	}
	if t.Ready && t.State == signalbox.Pending {
		x.line(t.Queue).remove(t.OrderKey(), t.Place)
	}
}

// kept is how many bytes the ended tasks of an owner take.
func (x *workingSet) kept(owner string) *counter { return x.counter(kindKept, keptBy+owner) }

// keptBy leads the owner in the id of such a doc: that of nobody is "".
const keptBy = "by "

// count counts a task among those that wait, or what is kept of it once it has
// ended.
func (x *workingSet) count(t *signalbox.Task, n int) {
	if t.State.Terminal() {
		if size := t.Kept(); size != 0 {
			x.add(x.kept(t.Owner), int64(n)*size)
		}
		return
	}
	if t.State != signalbox.Pending {
		return
	}
	ready := 0
	if t.Ready {
		ready = n
	} else if n > 0 && t.SessionID == "" && !t.NotBefore.IsZero() && t.NotBefore.UnixMilli() <= x.WokenMS {
		// A verb with an earlier time than Wake's: it must be looked at again.
		x.WokenMS = t.NotBefore.UnixMilli() - 1
	}
	c := x.bump(t.Queue, n, ready)
	if t.Bias != 0 {
		x.add(c.biased, int64(n))
	}
	x.bumpLimit(t.Limit, n)
}

// find returns the row of a task, or CodeNotFound, or errShort.
func (x *workingSet) find(id string) (*row, error) {
	r := x.byID(id)
	switch {
	case x.short:
		return nil, errShort
	case r == nil || r.task == nil:
		return nil, unknownTask(id)
	}
	return r, nil
}

func unknownTask(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
}
