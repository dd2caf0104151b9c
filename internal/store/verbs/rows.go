package verbs

import (
	"github.com/signalbox-ai/signalbox"
)

// row is a task in the set.
type row struct {
	task *signalbox.Task // immutable; nil: it is deleted

	// Fields of the current batch.
	changed bool
	before  *signalbox.Task    // at the start of the batch; nil: it is new
	request *signalbox.Request // of a new task; of another one, it replaces the stored one
	result  *signalbox.Result  // replaces the stored one
	draft   draft
}

// byID returns the row of a task, nil if there is none, or if that is unknown: then missing
// is set.
func (x *workingSet) byID(id string) *row {
	if r := x.ids[id]; r != nil {
		return r
	}
	if _, none := x.absentIDs[id]; !none {
		x.want.task(id)
		x.missing = true
	}
	return nil
}

// byKey is byID for an idempotency key.
func (x *workingSet) byKey(key string) *row {
	if key == "" {
		return nil
	}
	if r := x.keys[key]; r != nil {
		return r
	}
	if _, none := x.absentKeys[key]; !none {
		x.want.key(key)
		x.missing = true
	}
	return nil
}

// newID and newKey are byID and byKey for values that are most likely new.
func (x *workingSet) newID(id string) *row {
	if x.lookup == lookAll {
		return x.byID(id)
	}
	return x.ids[id]
}

func (x *workingSet) newKey(key string) *row {
	if x.lookup != lookNothing {
		return x.byKey(key)
	}
	return x.keys[key]
}

// addLoaded adds a loaded row, unless the set has it already.
func (x *workingSet) addLoaded(t *signalbox.Task) *row {
	if r := x.rows[t.Seq]; r != nil {
		return r
	}
	r := &row{task: t}
	x.index(r)
	x.addToIndexes(r)
	return r
}

// index adds the row by Seq, id and key.
func (x *workingSet) index(r *row) {
	t := r.task
	x.rows[t.Seq] = r
	x.ids[t.ID] = r
	delete(x.absentIDs, t.ID)
	if t.IdempotencyKey != "" {
		x.keys[t.IdempotencyKey] = r
		delete(x.absentKeys, t.IdempotencyKey)
	}
}

// unload removes a row from the set.
func (x *workingSet) unload(r *row, t *signalbox.Task) {
	if r.task != nil {
		x.removeFromIndexes(r)
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

// insert adds a new row.
func (x *workingSet) insert(t *signalbox.Task, request *signalbox.Request) *row {
	r := &row{task: t, changed: true, request: request}
	x.changed = append(x.changed, r)
	x.wrote = true
	x.index(r)
	x.addToIndexes(r)
	x.count(t, 1)
	return r
}

// change replaces the contents of a row and updates every index; nil deletes it.
func (x *workingSet) change(r *row, t *signalbox.Task) {
	if !r.changed {
		r.changed, r.before = true, r.task
		x.changed = append(x.changed, r)
	}
	x.wrote = true
	x.removeFromIndexes(r)
	x.count(r.task, -1)
	r.task = t
	if t == nil {
		return
	}
	x.addToIndexes(r)
	x.count(t, 1)
}

func (x *workingSet) addToIndexes(r *row) {
	t := r.task
	if t.State.Terminal() {
		return
	}
	if t.SessionID != "" {
		x.sessionTurns(t.SessionID).add(r)
	}
	if t.Ready && t.State == signalbox.Pending {
		x.readyQueue(t.Queue).add(t.OrderKey(), t.Place, r)
	}
}

func (x *workingSet) removeFromIndexes(r *row) {
	t := r.task
	if t.State.Terminal() {
		return
	}
	if t.SessionID != "" {
		x.sessionTurns(t.SessionID).remove(r)
	}
	if t.Ready && t.State == signalbox.Pending {
		x.readyQueue(t.Queue).remove(t.OrderKey(), t.Place)
	}
}

// keptBytes counts the bytes of an owner's ended tasks.
func (x *workingSet) keptBytes(owner string) *counter { return x.counter(kindKept, keptPrefix+owner) }

// keptPrefix precedes the owner in the id of such a doc; an empty owner is allowed.
const keptPrefix = "by "

// count adds n to the counts that a task belongs to: waiting tasks, or the bytes kept of ended ones.
func (x *workingSet) count(t *signalbox.Task, n int) {
	if t.State.Terminal() {
		if size := t.Kept(); size != 0 {
			x.addCounter(x.keptBytes(t.Owner), int64(n)*size)
		}
		x.countLanding(t, n)
		return
	}
	if !t.State.Waiting() {
		return
	}
	if t.State == signalbox.Parked {
		x.countParked(t, n)
	}
	ready := 0
	if t.Ready {
		ready = n
	} else if n > 0 && t.SessionID == "" && !t.NotBefore.IsZero() && t.NotBefore.UnixMilli() <= x.WokenMS {
		// NotBefore is earlier than what Wake has checked: check again.
		x.WokenMS = t.NotBefore.UnixMilli() - 1
	}
	c := x.addQueueCount(t.Queue, n, ready)
	if t.Bias != 0 {
		x.addCounter(c.biased, int64(n))
	}
	x.addLimitCount(t.Limit, n)
}

// countLanding adds an ended task with an open landing to the list, or removes it.
func (x *workingSet) countLanding(t *signalbox.Task, n int) {
	switch {
	case !t.Landing.Open():
	case n > 0:
		x.put(kindLanding, t.ID, t.Landing.At.UnixMilli(), []byte{1}, nil)
	default:
		x.drop(kindLanding, t.ID)
	}
}

// countParked adds a task to the list of its gate, or removes it.
func (x *workingSet) countParked(t *signalbox.Task, n int) {
	if id := parkedPrefix(t.Parking.Kind, t.Parking.Name) + t.ID; n > 0 {
		x.put(kindParked, id, t.Parking.At.UnixMilli(), []byte{1}, nil)
	} else {
		x.drop(kindParked, id)
	}
}

// parkedPrefix is the prefix of the ids of docs of tasks parked at a gate; the id of the task follows.
func parkedPrefix(kind signalbox.GateKind, name string) string {
	return string(kind) + "/" + name + "/"
}

// find returns the row of a task, CodeNotFound, or errMissing.
func (x *workingSet) find(id string) (*row, error) {
	r := x.byID(id)
	switch {
	case x.missing:
		return nil, errMissing
	case r == nil || r.task == nil:
		return nil, unknownTask(id)
	}
	return r, nil
}

func unknownTask(id string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "there is no task %q: it never existed or has been pruned", id)
}
