package sqlite

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// Submit stores a new pending task. A known idempotency key is answered
// before the limit is looked at: what was accepted once stays accepted.
func (s *Store) Submit(ctx context.Context, sub store.Submission) (got store.Submitted, err error) {
	rest := pack.Request(&sub.Request)
	size := len(sub.Request.Prompt) + len(sub.Request.SealedEnv) + len(rest)
	err = s.do(ctx, size, func(w *writer) (err error) {
		got, err = w.submit(&sub, rest)
		return err
	})
	if err != nil {
		return store.Submitted{}, err
	}
	return got, nil
}

func (w *writer) submit(sub *store.Submission, rest []byte) (store.Submitted, error) {
	known, err := w.byKey(sub.Task.IdempotencyKey)
	if err != nil {
		return store.Submitted{}, err
	}
	if known != nil {
		return store.Replay(known, &sub.Task)
	}
	t := sub.Task
	if err := w.chooseSession(&t, sub.Talk); err != nil {
		return store.Submitted{}, err
	}
	if err := w.followSession(sub.FollowSession, &t); err != nil {
		return store.Submitted{}, err
	}
	if err := w.checkTalk(&t, sub.Talk); err != nil {
		return store.Submitted{}, err
	}
	n := w.limits[sub.Task.Limit]
	if sub.Room != nil {
		c := w.crowd(&t, sub.Room, sub.Now)
		if err := sub.Room.Admit(&t, c); err != nil {
			return store.Submitted{}, w.taken(&t, err)
		}
		n -= sub.Room.Starting(c)
	}
	if sub.Cap > 0 && n >= sub.Cap {
		return store.Submitted{}, w.full(sub)
	}
	w.seq++
	t.Seq, t.Rev, t.Ready = w.seq, 1, false
	t.HasEnv = t.HasEnv || len(sub.Request.SealedEnv) > 0 // it is what gets the environment erased
	w.enqueue(&t, sub.Now)
	t.Ready = t.SessionID == "" && due(&t, sub.Now)
	if err := w.insert(&t, sub, rest); err != nil {
		return store.Submitted{}, err
	}
	if t.SessionID != "" {
		if err := w.converse(&t, sub.Talk, sub.Now); err != nil {
			return store.Submitted{}, err
		}
		if t, err = w.settledRow(&t, sub.Now); err != nil {
			return store.Submitted{}, err
		}
	}
	entry := signalbox.SubmitEntry(&t, sub.Now)
	w.note(&entry)
	return store.Submitted{Task: t, Depth: w.limits[t.Limit]}, nil
}

// insert writes the rows of a new task.
func (w *writer) insert(t *signalbox.Task, sub *store.Submission, rest []byte) error {
	var q query
	if isNew(t) {
		q = w.write(stTaskNew)
		bindNew(&q, t)
	} else {
		q = w.write(stTaskInsert)
		bindTask(&q, t)
	}
	if err := q.run(); err != nil {
		if isLocal(err) {
			return w.taken(t, err)
		}
		return err
	}
	q = w.write(stRequestInsert)
	if err := q.int(t.Seq).text(sub.Request.Prompt).bytes(rest).run(); err != nil {
		return err
	}
	if len(sub.Request.SealedEnv) > 0 {
		q = w.write(stEnvInsert)
		if err := q.int(t.Seq).bytes(sub.Request.SealedEnv).run(); err != nil {
			return err
		}
	}
	kept := *t
	w.row(nil, &kept)
	return nil
}

// taken explains why a row could not be inserted: most likely there is one
// with this id.
func (w *writer) taken(t *signalbox.Task, cause error) error {
	q := w.on(stTaskPlace)
	q.exact(t.ID)
	found := q.next()
	if err := q.end(); err != nil {
		return err
	}
	if found {
		return signalbox.Errorf(signalbox.CodeConflict, "there is a task %s already", t.ID)
	}
	return cause
}

// full is the refusal of a submission beyond its limit. An id that is taken
// is the greater mistake and is named first.
func (w *writer) full(sub *store.Submission) error {
	return w.taken(&sub.Task, signalbox.Errorf(signalbox.CodeQueueFull, "queue is at capacity (%d tasks)", sub.Cap))
}

func (w *writer) byKey(key string) (*signalbox.Task, error) {
	if key == "" {
		return nil, nil
	}
	q := w.on(stTaskByKey)
	return one(q.exact(key))
}

// crowd counts what stands before a task.
func (w *writer) crowd(t *signalbox.Task, r *store.Room, now time.Time) *store.Crowd {
	sort := store.SlotSort(r.Isolated)
	c := &store.Crowd{
		Fleet: w.inUse[sort], Waiting: w.lines[t.Queue], Later: t.NotBefore.After(now),
		Paused: w.paused("", now) || w.paused(t.Queue, now),
		Turn:   t.SessionID != "" && (w.turn[t.SessionID] != 0 || w.flying[t.SessionID] > 0),
	}
	for _, a := range r.Agents {
		if !r.Isolated && w.drained(a.Name, now) {
			c.Drained++
			continue
		}
		c.AddAgent(a.Slots, w.used(a.Name, sort))
	}
	for _, queue := range r.Queues {
		c.Ready += w.ready[queue]
	}
	return c
}

// enqueue gives t the next place. Its time never lies before that of an
// earlier enqueueing, so a clock that jumps back lets nobody jump the line.
func (w *writer) enqueue(t *signalbox.Task, now time.Time) {
	if now.After(w.enqueued) {
		w.enqueued = now
	}
	w.place++
	t.EnqueuedAt, t.Place = w.enqueued, w.place
}

// followSession lets the agent that holds the task's session decide its queue.
func (w *writer) followSession(follow bool, t *signalbox.Task) error {
	if !follow || t.SessionID == "" {
		return nil
	}
	held, err := w.session(t.SessionID)
	if err == nil && held != nil {
		t.Queue = signalbox.AgentQueue(held.Agent)
	}
	return err
}
