package verbs

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/group"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// ready refuses a read if its context has ended or the store is closed.
func (s *Store) ready(ctx context.Context) error {
	if err := group.Gone(ctx); err != nil {
		return err
	}
	return s.inbox.Closed()
}

// readFrom reads from the backend. While the server cannot be reached it retries, for Options.Patience like a
// verb.
func readFrom[T any](ctx context.Context, s *Store, read func(context.Context) (T, error)) (got T, err error) {
	s.reads.RLock()
	defer s.reads.RUnlock()
	if err := s.ready(ctx); err != nil {
		return got, err
	}
	within, cancel := s.within(ctx)
	defer cancel()
	for wait := retryFirst; ; wait = min(2*wait, retryLast) {
		got, err = read(within)
		if err == nil || signalbox.CodeOf(err) != signalbox.CodeUnavailable || s.inbox.Closed() != nil {
			break
		}
		select {
		case <-within.Done():
			return got, unread(ctx, err)
		case <-time.After(wait):
		}
	}
	if err != nil {
		return got, unread(ctx, err)
	}
	return got, nil
}

// unread converts the error of a failed read.
func unread(ctx context.Context, err error) error {
	if gone := group.Gone(ctx); gone != nil {
		return gone
	}
	if _, ok := errors.AsType[*signalbox.Error](err); ok {
		return err
	}
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: "the store could not be read", Err: err}
}

func (s *Store) page(ctx context.Context, p Page) ([]Doc, error) {
	return readFrom(ctx, s, func(ctx context.Context) ([]Doc, error) { return s.backend.Docs(ctx, p) })
}

// readDoc returns the value of a doc, nil if it does not exist.
func readDoc[T any](ctx context.Context, s *Store, kind, id string, read func(id string, body []byte) (T, error)) (*T, error) {
	doc, err := readFrom(ctx, s, func(ctx context.Context) (*Doc, error) { return s.backend.Doc(ctx, DocKey{kind, id}) })
	if err != nil || doc == nil {
		return nil, err
	}
	v, err := read(doc.ID, doc.Body)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// readAll returns the values of all docs of a kind, by ID.
func readAll[T any](ctx context.Context, s *Store, kind string, read func(id string, body []byte) (T, error)) ([]T, error) {
	docs, err := s.page(ctx, Page{Kind: kind})
	if err != nil {
		return nil, err
	}
	return decodeAll(docs, read)
}

// Task returns the row of id, or CodeNotFound.
func (s *Store) Task(ctx context.Context, id string) (signalbox.Task, error) {
	t, err := readFrom(ctx, s, func(ctx context.Context) (*signalbox.Task, error) { return s.backend.Task(ctx, id) })
	if err != nil {
		return signalbox.Task{}, err
	}
	if t == nil {
		return signalbox.Task{}, unknownTask(id)
	}
	return *t, nil
}

// Tasks returns the rows of those tasks that exist.
func (s *Store) Tasks(ctx context.Context, ids []string) (there []signalbox.Task, err error) {
	if len(ids) == 0 {
		return nil, s.ready(ctx)
	}
	all, err := readFrom(ctx, s, func(ctx context.Context) ([]*signalbox.Task, error) { return s.backend.Tasks(ctx, ids) })
	for _, t := range all {
		if t != nil {
			there = append(there, *t)
		}
	}
	return there, err
}

// whole returns everything stored of a task, or CodeNotFound.
func (s *Store) whole(ctx context.Context, id string) (Whole, error) {
	w, err := readFrom(ctx, s, func(ctx context.Context) (Whole, error) { return s.backend.Whole(ctx, id) })
	if err == nil && w.Task == nil {
		err = unknownTask(id)
	}
	return w, err
}

// Whole returns everything stored of a task.
func (s *Store) Whole(ctx context.Context, id string) (store.Whole, error) {
	w, err := s.whole(ctx, id)
	if err != nil {
		return store.Whole{}, err
	}
	all := store.Whole{Task: *w.Task, Request: valueOf(w.Request), Result: valueOf(w.Result)}
	if all.Stales, err = stalesOf(&w); err == nil && w.Task.State.Waiting() {
		all.Position, err = s.Position(ctx, id)
	}
	return all, err
}

// Request returns the request of a task.
func (s *Store) Request(ctx context.Context, id string) (signalbox.Request, error) {
	w, err := s.whole(ctx, id)
	return valueOf(w.Request), err
}

// Result returns the result of a task.
func (s *Store) Result(ctx context.Context, id string) (signalbox.Result, error) {
	w, err := s.whole(ctx, id)
	return valueOf(w.Result), err
}

// valueOf returns what p points to, or the zero value.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Find returns the ids that start or end with part, newest first.
func (s *Store) Find(ctx context.Context, part string, limit int) ([]string, error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	return readFrom(ctx, s, func(ctx context.Context) ([]string, error) { return s.backend.Find(ctx, part, limit) })
}

// Position returns the task's position in its queue. Beyond the exact ones it is estimated from the places
// given since the head of the queue got its own.
func (s *Store) Position(ctx context.Context, id string) (store.Position, error) {
	type place struct {
		n     int
		exact bool
		task  *signalbox.Task
	}
	p, err := readFrom(ctx, s, func(ctx context.Context) (p place, err error) {
		p.n, p.exact, p.task, err = s.backend.Before(ctx, id, store.MaxExactPosition)
		return p, err
	})
	switch {
	case err != nil:
		return store.Position{}, err
	case p.task == nil:
		return store.Position{}, unknownTask(id)
	case !p.task.State.Waiting():
		return store.Position{}, nil
	case p.exact:
		return store.Position{N: p.n + 1, Approximate: p.n+1 > store.MaxExactPosition}, nil
	}
	heads, err := s.Waiting(ctx, p.task.Queue, store.Cursor{}, 1)
	if err != nil {
		return store.Position{}, err
	}
	length, err := s.Lengths(ctx, p.task.Queue)
	if err != nil {
		return store.Position{}, err
	}
	n := math.MaxInt64
	if len(heads) > 0 {
		n = int(p.task.Place-heads[0].Place) + 1
	}
	n = max(p.n+1, min(n, length[0]))
	return store.Position{N: n, Approximate: true}, nil
}

// Counts returns how many tasks wait and run.
func (s *Store) Counts(ctx context.Context) (store.Counts, error) {
	return readFrom(ctx, s, func(ctx context.Context) (store.Counts, error) { return s.backend.Counts(ctx) })
}

// Lengths returns how many tasks wait in each of these queues.
func (s *Store) Lengths(ctx context.Context, queues ...string) ([]int, error) {
	if len(queues) == 0 {
		return nil, s.ready(ctx)
	}
	return readFrom(ctx, s, func(ctx context.Context) ([]int, error) { return s.backend.Lengths(ctx, queues) })
}

// Agents lists the agents by name.
func (s *Store) Agents(ctx context.Context) ([]signalbox.Agent, error) {
	return readAll(ctx, s, kindAgent, pack.ReadAgent)
}

// Slots lists the slots in use by agent and slot.
func (s *Store) Slots(ctx context.Context) ([]signalbox.Slot, error) {
	return readFrom(ctx, s, func(ctx context.Context) ([]signalbox.Slot, error) { return s.backend.Slots(ctx) })
}

// Pauses lists the pauses by queue.
func (s *Store) Pauses(ctx context.Context) ([]signalbox.Pause, error) {
	return readAll(ctx, s, KindPause, pack.ReadPause)
}

// Kept returns how many bytes ended tasks take, by owner.
func (s *Store) Kept(ctx context.Context) (map[string]int64, error) {
	docs, err := s.page(ctx, Page{Kind: kindKept})
	if err != nil {
		return nil, err
	}
	kept := make(map[string]int64, len(docs))
	for i := range docs {
		kept[strings.TrimPrefix(docs[i].ID, keptPrefix)] = docs[i].Sort
	}
	return kept, nil
}

// Durations returns the run times of the newest completed tasks of an agent.
func (s *Store) Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error) {
	if limit <= 0 {
		return nil, s.ready(ctx)
	}
	return readFrom(ctx, s, func(ctx context.Context) ([]time.Duration, error) { return s.backend.Durations(ctx, agent, limit) })
}

// Snapshot returns what waits and runs at one moment.
func (s *Store) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	var docs []Doc
	shot, err := readFrom(ctx, s, func(ctx context.Context) (shot store.Snapshot, err error) {
		shot, docs, err = s.backend.Snapshot(ctx, max(0, heads))
		return shot, err
	})
	if err != nil {
		return store.Snapshot{}, err
	}
	if shot.Pauses, err = decodeAll(docs, pack.ReadPause); err != nil {
		return store.Snapshot{}, err
	}
	return shot, nil
}

// ByKey returns the row of the task with an idempotency key. It is a verb, since it is called too seldom to
// deserve a read of its own in Backend.
func (s *Store) ByKey(ctx context.Context, key string) (signalbox.Task, error) {
	v := &byKey{key: key}
	err := s.do(ctx, v, 0)
	return v.got, err
}

type byKey struct {
	key string
	got signalbox.Task
}

func (v *byKey) likelyReadOnly() bool { return true }

func (v *byKey) run(x *workingSet) error {
	r := x.byKey(v.key)
	switch {
	case x.missing:
		return errMissing
	case r == nil || r.task == nil:
		return store.UnknownKey(v.key)
	}
	v.got = *r.task
	return nil
}
