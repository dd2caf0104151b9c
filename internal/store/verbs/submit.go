package verbs

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

type submit struct {
	sub  store.Submission
	got  store.Submitted
	sure bool // id and key were looked up
}

// Submit stores a new pending task. A known idempotency key is answered before limits are
// checked: what was accepted once stays accepted.
func (s *Store) Submit(ctx context.Context, sub store.Submission) (store.Submitted, error) {
	v := submits.Get().(*submit)
	v.sub = sub
	if err := s.do(ctx, v, sizeOf(&sub.Request)); err != nil {
		return store.Submitted{}, err // the writer may still use v, so it is not returned to the pool
	}
	got := v.got
	*v = submit{}
	submits.Put(v)
	return got, nil
}

var submits = sync.Pool{New: func() any { return new(submit) }}

func (v *submit) run(x *workingSet) error {
	sub := &v.sub
	known, taken := v.lookup(x)
	t := new(signalbox.Task)
	*t = sub.Task
	held, err := x.resolveSession(t, sub)
	if err != nil {
		return err
	}
	var crowd *store.Occupancy
	if sub.Room != nil {
		crowd = x.occupancy(t, sub.Room, sub.Now)
	}
	n := x.waiting(t.Limit)
	if x.missing {
		x.prefetchCounts([]string{t.Queue}, t.Limit)
		return errMissing
	}
	if known != nil {
		v.got, err = store.Replay(known.task, &sub.Task)
		return err
	}
	if err := v.admit(t, taken, held, crowd, n); err != nil {
		return v.refuse(x, err)
	}
	return v.store(x, t, held, n)
}

// lookup returns the tasks that have the key and the id.
func (v *submit) lookup(x *workingSet) (byKey, byID *row) {
	key, id := v.sub.Task.IdempotencyKey, v.sub.Task.ID
	if v.sure {
		return x.byKey(key), x.byID(id)
	}
	return x.newKey(key), x.newID(id)
}

// foresee wants the key, which another process may have stored. Keys of verbs that join the
// batch while it waits for the lock are not looked up: a duplicate is then found at the
// commit.
func (v *submit) foresee(x *workingSet) {
	if key := v.sub.Task.IdempotencyKey; key != "" && x.keys[key] == nil {
		x.want.key(key)
	}
}

// refuse refuses the task, unless its key or id turns out to exist, which takes precedence.
func (v *submit) refuse(x *workingSet, err error) error {
	if v.sure {
		return err
	}
	v.sure = true
	if v.lookup(x); x.missing {
		return errMissing
	}
	return v.run(x)
}

// admit refuses a task for which there is no room.
func (v *submit) admit(t *signalbox.Task, taken *row, held *signalbox.Session, crowd *store.Occupancy, n int) error {
	if taken != nil {
		return signalbox.Errorf(signalbox.CodeConflict, "there is a task %s already", t.ID)
	}
	if held != nil && v.sub.Chat != nil {
		if err := store.CheckChatSession(held); err != nil {
			return err
		}
	}
	if crowd != nil {
		if err := v.sub.Room.Admit(t, crowd); err != nil {
			return err
		}
		n -= v.sub.Room.Starting(crowd)
	}
	if v.sub.Cap > 0 && n >= v.sub.Cap {
		return signalbox.Errorf(signalbox.CodeQueueFull, "queue is at capacity (%d tasks)", v.sub.Cap)
	}
	return nil
}

// store makes the rows of the task.
func (v *submit) store(x *workingSet, t *signalbox.Task, held *signalbox.Session, waiting int) error {
	sub := &v.sub
	begins, err := x.chatSession(t, held, sub)
	if err != nil {
		return err
	}
	x.Seq++
	t.Seq, t.Rev = x.Seq, 1
	t.HasEnv = t.HasEnv || len(sub.Request.SealedEnv) > 0 // so that the environment is erased at the end
	x.enqueue(t, sub.Now)
	t.Ready = t.SessionID == "" && !t.NotBefore.After(sub.Now)
	r := x.insert(t, sub.Request.Clone())
	if begins != nil {
		if err := x.storeSession(held, *begins); err != nil {
			return err
		}
	}
	x.settle(r, sub.Now)
	x.note(signalbox.SubmitEntry(r.task, sub.Now))
	v.got = store.Submitted{Task: *r.task, Depth: waiting + 1, Position: x.lastPosition(r.task)}
	return nil
}

// resolveSession chooses the session of a task, and its queue if that follows the session.
// It returns the session's row, if there is one and it is needed.
func (x *workingSet) resolveSession(t *signalbox.Task, sub *store.Submission) (*signalbox.Session, error) {
	if err := x.chooseSession(t, sub.Chat); err != nil || t.SessionID == "" {
		return nil, err
	}
	x.nextTurn(t.SessionID)
	if sub.Chat == nil && !sub.FollowSession {
		return nil, nil
	}
	held, err := x.session(t.SessionID)
	if err == nil && held != nil && sub.FollowSession {
		t.Queue = signalbox.AgentQueue(held.Agent)
	}
	return held, err
}

// occupancy counts what is ahead of a task.
func (x *workingSet) occupancy(t *signalbox.Task, r *store.Room, now time.Time) *store.Occupancy {
	sort := store.SlotSort(r.Isolated)
	c := &store.Occupancy{
		Fleet: x.inUse[sort], Waiting: x.depth(t.Queue).Waiting, NotDue: t.NotBefore.After(now),
		Paused: x.paused("", now) || x.paused(t.Queue, now),
	}
	for _, a := range r.Agents {
		if !r.Isolated && x.drained(a.Name, now) {
			c.Drained++
			continue
		}
		c.AddAgent(a.Slots, x.agentSlots(a.Name).count[sort])
	}
	for _, queue := range r.Queues {
		c.Ready += x.depth(queue).Ready
	}
	if t.SessionID != "" {
		c.TurnBusy = x.nextTurn(t.SessionID).busy()
	}
	return c
}

type restore struct {
	row store.Restored
	got signalbox.Task
}

// Restore stores a task from another store.
func (s *Store) Restore(ctx context.Context, r store.Restored) (signalbox.Task, error) {
	v := &restore{row: r}
	size := sizeOf(&r.Request)
	if r.Result != nil {
		size += len(r.Result.Output) + len(r.Result.Tail)
	}
	if err := s.do(ctx, v, size); err != nil {
		return signalbox.Task{}, err
	}
	return v.got, nil
}

func (v *restore) run(x *workingSet) error {
	if err := store.CheckRestored(&v.row); err != nil {
		return err
	}
	t := new(signalbox.Task)
	*t = v.row.Task
	stored, known := x.byID(t.ID), x.byKey(t.IdempotencyKey)
	if t.SessionID != "" {
		x.nextTurn(t.SessionID)
	}
	if x.missing {
		x.prefetchCounts([]string{t.Queue}, t.Limit)
		return errMissing
	}
	if stored != nil || known != nil {
		return store.AlreadyStored(t)
	}
	x.Seq++
	t.Seq, t.Rev, t.Ready = x.Seq, 1, false
	request := v.row.Request.Clone()
	if t.State.Terminal() {
		x.Place++
		t.Place = x.Place
		request.SealedEnv, t.HasEnv = nil, false
	} else {
		t.HasEnv = t.HasEnv || len(request.SealedEnv) > 0
		x.enqueue(t, t.EnqueuedAt)
		t.Ready = t.SessionID == "" && !t.NotBefore.After(v.row.Now)
	}
	r := x.insert(t, request)
	if v.row.Result != nil {
		r.result = v.row.Result.Clone()
	}
	x.settle(r, v.row.Now)
	x.note(store.RestoreEntry(r.task, v.row.Now))
	v.got = *r.task
	return nil
}
