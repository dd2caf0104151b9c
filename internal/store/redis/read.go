package redis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Task returns a row, nil if there is none.
func (g *backend) Task(ctx context.Context, id string) (*signalbox.Task, error) {
	found, err := g.Tasks(ctx, []string{id})
	return found[0], err
}

// Tasks returns rows, nil for tasks that do not exist.
func (g *backend) Tasks(ctx context.Context, ids []string) ([]*signalbox.Task, error) {
	found := make([]*signalbox.Task, len(ids))
	var q questions
	q.ask(rowsInto(found), "get", "tasks", ids...)
	return found, g.answers(ctx, g.reader, &q)
}

// Whole returns everything stored of a task.
func (g *backend) Whole(ctx context.Context, id string) (w verbs.Whole, err error) {
	var q questions
	q.ask(func(m rueidis.RedisMessage) error {
		list, err := texts(m)
		if err != nil || len(list) != 5 || list[0] == "" {
			return err
		}
		if w.Task, err = readTask(list[0]); err == nil && list[1] != "" {
			w.Request, err = readRequest(list[1], bytesOf(list[2]))
		}
		if err == nil && list[3] != "" {
			w.Result, err = readResult(list[3])
		}
		if err == nil && list[4] != "" {
			var d verbs.Doc
			d, err = readDoc(verbs.KindStale, list[4])
			w.Stales = d.Body
		}
		return err
	}, "whole", verbs.KindStale, id)
	return w, g.answers(ctx, g.reader, &q)
}

// Find returns the ids that start or end with part, newest first.
func (g *backend) Find(ctx context.Context, part string, limit int) ([]string, error) {
	type found struct {
		id  string
		seq int64
	}
	var list []found
	var q questions
	q.ask(func(m rueidis.RedisMessage) error {
		both, err := m.ToArray()
		if err != nil || len(both) != 2 {
			return errAnswer
		}
		ids, err := texts(both[0])
		if err != nil {
			return err
		}
		seqs, err := texts(both[1])
		for i := 0; err == nil && i < len(ids) && i < len(seqs); i++ {
			if seqs[i] == "" {
				continue // a recent task that was deleted
			}
			list = append(list, found{ids[i], number(seqs[i])})
		}
		return err
	}, "find", part)
	if err := g.answers(ctx, g.reader, &q); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Compare(b.seq, a.seq) })
	var ids []string
	for _, f := range list[:min(limit, len(list))] {
		ids = append(ids, f.id)
	}
	return ids, nil
}

// Waiting lists pending tasks of a queue, or of all queues, in claim order.
func (g *backend) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) ([]signalbox.Task, error) {
	least := "-"
	if after != (store.Cursor{}) {
		least = behind(prefixOf(after.OrderKey, after.Place))
	}
	one, other := inReady, inHeld
	if queue == "" {
		one, other = inAll, inShifted
	}
	var list, more []signalbox.Task
	var q questions
	q.of(one, queue, tasksInto(&list), "ZRANGEBYLEX", least, "+", "LIMIT", "0", strconv.Itoa(limit))
	q.of(other, queue, tasksInto(&more), "ZRANGEBYLEX", least, "+", "LIMIT", "0", strconv.Itoa(limit))
	if err := g.answers(ctx, g.reader, &q); err != nil {
		return nil, err
	}
	return inOrder(list, more, limit), nil
}

// inOrder merges two lists in queue order.
func inOrder(list, more []signalbox.Task, limit int) []signalbox.Task {
	if len(more) > 0 {
		list = append(list, more...)
		slices.SortFunc(list, func(a, b signalbox.Task) int {
			return cmp.Or(cmp.Compare(a.OrderKey(), b.OrderKey()), cmp.Compare(a.Place, b.Place))
		})
	}
	return list[:min(limit, len(list))]
}

// InFlight lists the tasks that hold a slot, in the order of their claims.
func (g *backend) InFlight(ctx context.Context) ([]signalbox.Task, error) {
	return g.listed(ctx, inFlying, "", "ZRANGE", "0", "-1")
}

// Overdue lists tasks that have waited too long, most overdue first.
func (g *backend) Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error) {
	return g.listed(ctx, inBounded, "", "ZRANGEBYLEX", "-", behind(prefixOf(now.UnixMilli(), math.MaxInt64)), "LIMIT", "0", strconv.Itoa(limit))
}

// SessionTasks lists pending and in-flight tasks of a session by order.
func (g *backend) SessionTasks(ctx context.Context, session string, limit int) ([]signalbox.Task, error) {
	return g.listed(ctx, inTurn, session, "ZRANGE", "0", strconv.Itoa(limit-1))
}

// Children lists the tasks of a parent.
func (g *backend) Children(ctx context.Context, parent string, limit int) ([]signalbox.Task, error) {
	return g.listed(ctx, inChildren, parent, "ZRANGE", "0", strconv.Itoa(limit-1))
}

// Ended lists ended tasks before a cursor, newest end first.
func (g *backend) Ended(ctx context.Context, at store.EndedCursor, limit int) ([]signalbox.Task, error) {
	return g.listed(ctx, inEnded, "", "ZREVRANGEBYLEX", before(prefixOf(at.EndedMS, at.Seq)), "-", "LIMIT", "0", strconv.Itoa(limit))
}

func (g *backend) listed(ctx context.Context, in index, name, command string, args ...string) (list []signalbox.Task, err error) {
	var q questions
	q.of(in, name, tasksInto(&list), command, args...)
	return list, g.answers(ctx, g.reader, &q)
}

// Durations returns the run times of the newest completed tasks of an agent.
func (g *backend) Durations(ctx context.Context, agent string, limit int) (took []time.Duration, err error) {
	var q questions
	q.ask(eachText(func(_ int, member string) {
		if len(member) == 24 {
			took = append(took, time.Duration(number(member[16:]))*time.Millisecond)
		}
	}), "call", "ZREVRANGE", indexes[inRuns].key+agent, "0", strconv.Itoa(limit-1))
	return took, g.answers(ctx, g.reader, &q)
}

// Slots lists the slots in use by agent and slot.
func (g *backend) Slots(ctx context.Context) (list []signalbox.Slot, err error) {
	var q questions
	q.slots(&list)
	return list, g.answers(ctx, g.reader, &q)
}

func (q *questions) slots(to *[]signalbox.Slot) {
	q.ask(slotsInto(to), "of", "slots", "1", "ZRANGE", "slots.name", "0", "-1")
}

// Before counts the tasks before a pending one, at a cost independent of the length.
func (g *backend) Before(ctx context.Context, id string, _ int) (n int, exact bool, task *signalbox.Task, err error) {
	var q questions
	q.ask(func(m rueidis.RedisMessage) error {
		list, err := m.ToArray()
		if err != nil || len(list) != 2 {
			return errAnswer
		}
		before, err := list[1].AsInt64()
		if err != nil || list[0].IsNil() {
			return err
		}
		row, err := list[0].ToString()
		if err != nil {
			return err
		}
		n = int(max(0, before))
		task, err = readTask(row)
		return err
	}, "before", id)
	if err = g.answers(ctx, g.reader, &q); err != nil {
		return 0, false, nil, err
	}
	return n, true, task, nil
}
