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

// Apply writes a change if the row still has the revision that the change was made from,
// else ErrStale.
func (s *Store) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	v := applies.Get().(*apply)
	v.change, v.now = c, now
	size := 0
	if c.Result != nil {
		v.change.Result = c.Result.Clone()
		size = len(c.Result.Output) + len(c.Result.Tail) + len(c.Result.Answer)
	}
	if c.Request != nil {
		v.change.Request = c.Request.Clone()
		size += sizeOf(c.Request)
	}
	if err := s.do(ctx, v, size); err != nil {
		return signalbox.Task{}, err // the writer may still use v, so it is not returned to the pool
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
	var u *agentSlots
	if c.Slot == signalbox.SlotFree || c.Slot == signalbox.SlotWithhold {
		u = x.agentSlots(c.Task.Agent)
	}
	if c.Task.SessionID != "" {
		x.nextTurn(c.Task.SessionID)
	}
	if c.Session {
		x.doc(kindSession, c.Task.SessionID)
	}
	var account *signalbox.Account
	if c.Account != nil {
		account = x.account(c.Account.Account)
	}
	used, sum := c.Used(), usageRow{}
	if used.Runs > 0 {
		sum = x.usageRow(&used)
	}
	if x.missing {
		if c.Task.State.Waiting() {
			x.prefetchCounts([]string{c.Task.Queue}, c.Task.Limit)
		} else if c.Task.State.Terminal() {
			x.wantCounter(x.keptBytes(c.Task.Owner))
		}
		return errMissing
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
	if c.Request != nil {
		r.request = c.Request
	}
	if used.Runs > 0 {
		x.use(sum, used)
	}
	if binding.binds {
		if err := x.bind(binding.held, binding.bound, r.task); err != nil {
			return err
		}
	}
	x.settle(r, v.now)
	x.note(c.Entry)
	if c.Account != nil {
		x.changeAccount(account, *c.Account, nil) // a run's outcome can only close its account
	}
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

// merge returns the changed row. What the store sets comes from the stored row, never from
// the caller.
func (v *apply) merge(x *workingSet, before *signalbox.Task, denied bool) *signalbox.Task {
	c := &v.change
	t := new(signalbox.Task)
	*t = c.Task
	t.Seq, t.Rev = before.Seq, x.nextRev(before)
	t.Place, t.EnqueuedAt = before.Place, before.EnqueuedAt
	t.IdempotencyKey = before.IdempotencyKey // the key index depends on it
	if denied {
		t.SessionID = ""
	}
	t.Ready = before.Ready && t.State == signalbox.Pending && c.Order != signalbox.OrderBack
	x.order(t, c)
	if t.SessionID == "" && t.State == signalbox.Pending && due(t, v.now) {
		t.Ready = true
	}
	return t
}

// order moves the task within its queue. The key of a task moved to the top is below the keys of all tasks
// enqueued or moved there before.
func (x *workingSet) order(t *signalbox.Task, c *signalbox.Change) {
	switch c.Order {
	case signalbox.OrderBack:
		x.enqueue(t, c.Entry.At)
	case signalbox.OrderTop:
		x.Place++
		t.Bias = time.Duration(t.EnqueuedAt.UnixMilli()+x.Place) * time.Millisecond
	}
}

// applySlot applies the change to the task's slot, unless the slot is gone or has another
// fence.
func (v *apply) applySlot(x *workingSet, u *agentSlots) {
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

// binding is the effect of a change on a session.
type binding struct {
	binds  bool
	denied bool               // the agent may not name it
	held   *signalbox.Session // before
	bound  signalbox.Session
}

// binding prepares the binding of a session, so that everything it needs is loaded.
func (v *apply) binding(x *workingSet, before *signalbox.Task) (b binding, err error) {
	c := &v.change
	if !c.Session {
		return b, nil
	}
	after := c.Task
	if b.held, err = x.session(after.SessionID); err != nil {
		return b, err
	}
	if store.HeldByOther(b.held, before, &after) {
		b.denied = true
		return b, nil
	}
	if after.SessionID == "" || after.Agent == "" {
		return b, nil
	}
	if x.allTurns(after.SessionID); x.missing {
		return b, errMissing
	}
	b.binds, b.bound = true, store.BindSession(b.held, before, &after, v.now)
	return b, x.prepareStore(b.held, &b.bound)
}

// bind stores which agent holds a task's session. Waiting tasks of the session that any
// agent could take move to that agent's queue. This changes their revision, so that a
// change made from an older read is stale.
func (x *workingSet) bind(held *signalbox.Session, bound signalbox.Session, t *signalbox.Task) error {
	if err := x.storeSession(held, bound); err != nil {
		return err
	}
	k := x.sessionTurns(t.SessionID)
	waiting := append([]item(nil), k.pending.items...)
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
