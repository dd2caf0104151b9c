package postgres

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// list collects the tasks of a statement.
func list(to *[]signalbox.Task) func(row) error {
	return func(r row) error {
		t, err := taskOf(r[0])
		*to = append(*to, *t)
		return err
	}
}

// Task returns a row.
func (g *Backend) Task(ctx context.Context, id string) (*signalbox.Task, error) {
	all, err := g.Tasks(ctx, []string{id})
	return all[0], err
}

// Tasks returns rows, nil for tasks that do not exist.
func (g *Backend) Tasks(ctx context.Context, ids []string) ([]*signalbox.Task, error) {
	all := make([]*signalbox.Task, len(ids))
	err := g.read(ctx, func(x *exchange) {
		clear(all) // drop rows of an exchange that failed
		x.ask(stTasks, taskAt(all), texts(ids))
	})
	return all, err
}

// Whole returns everything stored of a task.
func (g *Backend) Whole(ctx context.Context, id string) (w verbs.Whole, err error) {
	err = g.read(ctx, func(x *exchange) {
		x.ask(stWhole, func(r row) (err error) {
			if w.Task, err = taskOf(r[0]); err == nil && r[1] != nil {
				w.Request, err = pack.ReadRequestRow(r[1], r.bytes(2))
			}
			if err == nil && r[3] != nil {
				w.Result, err = pack.ReadResultRow(r[3])
			}
			w.Stales = r.bytes(4)
			return err
		}, text(id), text(verbs.KindStale))
	})
	return w, err
}

// findRows is how many of the newest tasks Find searches.
const findRows = 10_000

// maxString sorts after every id and name.
var maxString = strings.Repeat("\xff", 64)

// Find returns the ids that start or end with part, newest first.
func (g *Backend) Find(ctx context.Context, part string, limit int) ([]string, error) {
	found := map[int64]string{}
	take := func(fits func(id string) bool) func(row) error {
		return func(r row) error {
			if id := r.text(0); fits(id) {
				found[r.int(1)] = id
			}
			return nil
		}
	}
	err := g.read(ctx, func(x *exchange) {
		clear(found)
		x.ask(stIDsFrom, take(func(id string) bool { return strings.HasPrefix(id, part) }), text(part), endOf(part), number(findRows))
		x.ask(stIDsNewest, take(func(id string) bool { return strings.HasSuffix(id, part) }), number(findRows))
	})
	if err != nil {
		return nil, err
	}
	seqs := slices.Sorted(maps.Keys(found))
	slices.Reverse(seqs)
	var ids []string
	for _, seq := range seqs[:max(0, min(limit, len(seqs)))] {
		ids = append(ids, found[seq])
	}
	return ids, nil
}

// endOf returns a bound after all strings that start with part.
func endOf(part string) []byte {
	end := bytes.TrimRight([]byte(part), "\xff")
	if len(end) == 0 {
		return []byte(maxString)
	}
	end[len(end)-1]++
	return end
}

// Waiting lists pending tasks of a queue, or of all queues.
func (g *Backend) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) (tasks []signalbox.Task, err error) {
	key, place := position(after)
	err = g.read(ctx, func(x *exchange) {
		tasks = nil
		if queue == "" {
			x.ask(stWaitingAll, list(&tasks), number(key), number(place), number(int64(limit)))
			return
		}
		x.ask(stWaiting, list(&tasks), number(key), number(place), text(queue), number(int64(limit)))
	})
	return tasks, err
}

// tasks runs a statement that returns tasks.
func (g *Backend) tasks(ctx context.Context, id stmtID, params ...[]byte) (tasks []signalbox.Task, err error) {
	err = g.read(ctx, func(x *exchange) {
		tasks = nil
		x.ask(id, list(&tasks), params...)
	})
	return tasks, err
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (g *Backend) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	return g.tasks(ctx, stInFlight)
}

// Overdue lists pending tasks that have waited too long.
func (g *Backend) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	return g.tasks(ctx, stOverdue, number(now.UnixMilli()), number(int64(limit)))
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (g *Backend) SessionTasks(ctx context.Context, session string, limit int) ([]signalbox.Task, error) {
	return g.tasks(ctx, stSessionTasks, text(session), number(int64(limit)))
}

// Children lists the tasks of a parent.
func (g *Backend) Children(ctx context.Context, parent string, limit int) ([]signalbox.Task, error) {
	return g.tasks(ctx, stChildren, text(parent), number(int64(limit)))
}

// Ended lists ended tasks before a cursor, newest end first.
func (g *Backend) Ended(ctx context.Context, before store.EndedCursor, limit int) ([]signalbox.Task, error) {
	return g.tasks(ctx, stEnded, number(before.EndedMS), number(before.Seq), number(int64(limit)))
}

// Durations returns the run times of the newest completed tasks of an agent.
func (g *Backend) Durations(ctx context.Context, agent string, limit int) (took []time.Duration, err error) {
	err = g.read(ctx, func(x *exchange) {
		took = nil
		x.ask(stDurations, func(r row) error {
			took = append(took, time.Duration(r.int(0))*time.Millisecond)
			return nil
		}, text(agent), number(int64(limit)))
	})
	return took, err
}

// Slots lists the slots in use by agent and slot.
func (g *Backend) Slots(ctx context.Context) (slots []signalbox.Slot, err error) {
	err = g.read(ctx, func(x *exchange) {
		slots = nil
		askSlots(x, &slots)
	})
	return slots, err
}

func askSlots(x *exchange, to *[]signalbox.Slot) {
	x.ask(stSlots, func(r row) error { *to = append(*to, slotOf(r)); return nil })
}

// Before counts the pending tasks before a pending task in its queue.
func (g *Backend) Before(ctx context.Context, id string, most int) (n int, exact bool, task *signalbox.Task, err error) {
	if task, err = g.Task(ctx, id); err != nil || task == nil || !task.State.Waiting() {
		return 0, false, task, err
	}
	err = g.read(ctx, func(x *exchange) {
		x.ask(stBefore, func(r row) error { n = int(r.int(0)); return nil },
			text(task.Queue), number(task.OrderKey()), number(task.Place), number(int64(most)))
	})
	return n, n < most, task, err
}

// Time is the time by the server's clock.
func (g *Backend) Time(ctx context.Context) (at time.Time, err error) {
	err = g.read(ctx, func(x *exchange) { x.ask(stTime, func(r row) error { at = r.time(0); return nil }) })
	return at, err
}

// Doc returns a doc.
func (g *Backend) Doc(ctx context.Context, k verbs.DocKey) (doc *verbs.Doc, err error) {
	w := verbs.Want{Docs: []verbs.DocKey{k}}
	err = g.read(ctx, func(x *exchange) {
		l := &verbs.Loaded{}
		loadDocs(x, &w, l)
		x.then(func() error { doc = l.Docs[0]; return nil })
	})
	return doc, err
}

// Docs lists docs of a kind.
func (g *Backend) Docs(ctx context.Context, p verbs.Page) (docs []verbs.Doc, err error) {
	err = g.read(ctx, func(x *exchange) {
		docs = nil
		askPage(x, &p, &docs)
	})
	return docs, err
}
