package verbs

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

type apply struct {
	change signalbox.Change
	now    time.Time
	got    signalbox.Task
}

// Apply writes a change where the row still has the revision that the change
// was made from.
func (s *Store) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	v := applies.Get().(*apply)
	v.change, v.now = c, now
	size := 0
	if c.Result != nil {
		v.change.Result = c.Result.Clone()
		size = len(c.Result.Output) + len(c.Result.Tail) + len(c.Result.Answer)
	}
	if err := s.do(ctx, v, size); err != nil {
		return signalbox.Task{}, err // the writer may have v still: it does not go back
	}
	got := v.got
	*v = apply{}
	applies.Put(v)
	return got, nil
}

var applies = sync.Pool{New: func() any { return new(apply) }}

func (v *apply) run(x *workingSet) error {
	c := &v.change
	r := x.byID(c.Task.ID)
	var u *usage
	if c.Slot == signalbox.SlotFree || c.Slot == signalbox.SlotWithhold {
		u = x.usage(c.Task.Agent)
	}
	if c.Task.SessionID != "" {
		x.headTurn(c.Task.SessionID)
	}
	if c.Session {
		x.doc(kindSession, c.Task.SessionID)
	}
	if x.short {
		if c.Task.State == signalbox.Pending {
			x.guess([]string{c.Task.Queue}, c.Task.Limit)
		} else if c.Task.State.Terminal() {
			x.wantCounter(x.kept(c.Task.Owner))
		}
		return errShort
	}
	if err := v.refused(r); err != nil {
		return err
	}
	binding, err := v.binding(x, r.task)
	if err != nil {
		return err
	}
	before := r.task
	x.change(r, v.merge(x, before, binding.denied))
	v.applySlot(x, u)
	if c.Result != nil {
		r.result = c.Result
	}
	if binding.binds {
		if err := x.bind(binding.held, binding.bound, r.task); err != nil {
			return err
		}
	}
	x.settle(r, v.now)
	x.note(c.Entry)
	v.got = *r.task
	return nil
}

func (v *apply) refused(r *row) error {
	c := &v.change
	switch {
	case r == nil || r.task == nil:
		return unknownTask(c.Task.ID)
	case r.task.Rev != c.Task.Rev:
		return store.ErrStale
	case c.Slot == signalbox.SlotTake:
		return signalbox.Errorf(signalbox.CodeConflict, "task %s: a slot is taken by Claim, not by Apply", c.Task.ID)
	}
	return nil
}

// merge returns the row that the change makes of before. What the store sets
// is taken from the stored row, never from the caller.
func (v *apply) merge(x *workingSet, before *signalbox.Task, denied bool) *signalbox.Task {
	c := &v.change
	t := new(signalbox.Task)
	*t = c.Task
	t.Seq, t.Rev = before.Seq, x.nextRev(before)
	t.Place, t.EnqueuedAt = before.Place, before.EnqueuedAt
	t.IdempotencyKey = before.IdempotencyKey // the index of keys stands on it
	if denied {
		t.SessionID = ""
	}
	t.Ready = before.Ready && t.State == signalbox.Pending && !c.Back
	if c.Back {
		x.enqueue(t, c.Entry.At)
	}
	if t.SessionID == "" && t.State == signalbox.Pending && due(t, v.now) {
		t.Ready = true
	}
	return t
}

// applySlot does to the slot of the changed task what the change says. A slot
// that is gone, or has another fence by now, is left alone.
func (v *apply) applySlot(x *workingSet, u *usage) {
	if u == nil {
		return
	}
	c := &v.change
	held := u.slot(c.Task.Slot, c.Task.Fence)
	if held == nil {
		return
	}
	if c.Slot == signalbox.SlotFree {
		x.setSlot(u, c.Task.Slot, nil)
		return
	}
	kept := *held
	kept.Withheld = true
	x.setSlot(u, c.Task.Slot, &kept)
}

// binding is what a change does to a session.
type binding struct {
	binds  bool
	denied bool               // the agent may not name it
	held   *signalbox.Session // as it was
	bound  signalbox.Session
}

// binding prepares the binding of a session, so that nothing can be short of
// it any more.
func (v *apply) binding(x *workingSet, before *signalbox.Task) (b binding, err error) {
	c := &v.change
	if !c.Session {
		return b, nil
	}
	after := c.Task
	if b.held, err = x.session(after.SessionID); err != nil {
		return b, err
	}
	if store.NotTheirs(b.held, before, &after) {
		b.denied = true
		return b, nil
	}
	if after.SessionID == "" || after.Agent == "" {
		return b, nil
	}
	if x.wholeTurn(after.SessionID); x.short {
		return b, errShort
	}
	b.binds, b.bound = true, store.BindSession(b.held, before, &after, v.now)
	return b, x.readyToKeep(b.held, &b.bound)
}

// bind notes which agent holds a task's session. Its tasks that wait where any
// agent could take them move to that agent's queue: each a change of the row,
// so that a change made from an older reading is stale.
func (x *workingSet) bind(held *signalbox.Session, bound signalbox.Session, t *signalbox.Task) error {
	if err := x.keepSession(held, bound); err != nil {
		return err
	}
	k := x.turn(t.SessionID)
	waiting := append([]spot(nil), k.pending.spots...)
	for i := range waiting {
		r := waiting[i].row
		if _, own := signalbox.QueueAgent(r.task.Queue); own {
			continue
		}
		moved := *r.task
		moved.Queue = signalbox.AgentQueue(t.Agent)
		moved.Rev = x.nextRev(&moved)
		x.change(r, &moved)
	}
	return nil
}
