package redis

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Counts returns how many tasks wait and run.
func (g *backend) Counts(ctx context.Context) (c store.Counts, err error) {
	var q questions
	q.counts(&c)
	return c, g.answers(ctx, g.reader, &q)
}

// maxFields bounds the fields of a hash that one question asks for: a script can pass about 8,000 values to a
// command.
const maxFields = 1000

// Lengths returns how many tasks wait in each of these queues.
func (g *backend) Lengths(ctx context.Context, queues []string) (n []int, err error) {
	var q questions
	n = make([]int, 0, len(queues))
	for part := range slices.Chunk(queues, maxFields) {
		q.ask(eachText(func(_ int, text string) { n = append(n, queueCount(text).Waiting) }), "call", "HMGET", append([]string{"queues"}, part...)...)
	}
	return n, g.answers(ctx, g.reader, &q)
}

func (q *questions) counts(c *store.Counts) {
	*c = store.Counts{Queues: map[string]int{}, Limits: map[string]int{}, InFlight: map[signalbox.State]int{}}
	each := func(read func(name, text string)) func(m rueidis.RedisMessage) error {
		return func(m rueidis.RedisMessage) error {
			list, err := texts(m)
			for i := 0; i+1 < len(list); i += 2 {
				read(list[i], list[i+1])
			}
			return err
		}
	}
	q.ask(each(func(queue, text string) { c.Queues[queue] = queueCount(text).Waiting }), "call", "HGETALL", "queues")
	q.ask(each(func(limit, text string) { c.Limits[limit] = int(integer(text)) }), "call", "HGETALL", "limits")
	q.ask(each(func(state, text string) { c.InFlight[signalbox.State(state)] = int(integer(text)) }), "call", "HGETALL", "states")
	pending := func(m rueidis.RedisMessage) error {
		n, err := m.AsInt64()
		c.Pending += int(n)
		return err
	}
	q.ask(pending, "call", "ZCARD", "all")
	q.ask(pending, "call", "ZCARD", "shifted")
	oldest := eachText(func(_ int, member string) {
		if at := timeAt(member); c.Oldest.IsZero() || at.Before(c.Oldest) {
			c.Oldest = at
		}
	})
	q.ask(oldest, "call", "ZRANGE", "all", "0", "0")
	q.ask(oldest, "call", "ZRANGE", "created", "0", "0")
}

// Snapshot returns what waits and runs at one moment.
func (g *backend) Snapshot(ctx context.Context, heads int) (s store.Snapshot, pauses []verbs.Doc, err error) {
	var q questions
	q.head("", func(h storeCounters) { s.Entry = h.Entry })
	q.counts(&s.Counts)
	q.of(inFlying, "", tasksInto(&s.InFlight), "ZRANGE", "0", "-1")
	q.slots(&s.Slots)
	q.page(&verbs.Page{Kind: verbs.KindPause}, &pauses)
	s.Heads = map[string][]signalbox.Task{}
	if heads > 0 {
		q.heads(heads, s.Heads)
	}
	err = g.answers(ctx, g.reader, &q)
	return s, pauses, err
}

// heads asks for the first tasks of each queue: the script returns the name of a queue, then its ready tasks,
// then the others.
func (q *questions) heads(n int, to map[string][]signalbox.Task) {
	q.ask(func(m rueidis.RedisMessage) error {
		parts, err := m.ToArray()
		if err != nil || len(parts)%3 != 0 {
			return errAnswer
		}
		for i := 0; i < len(parts); i += 3 {
			queue, err := parts[i].ToString()
			if err != nil {
				return err
			}
			var ready, held []signalbox.Task
			if err := tasksInto(&ready)(parts[i+1]); err != nil {
				return err
			}
			if err := tasksInto(&held)(parts[i+2]); err != nil {
				return err
			}
			to[queue] = inOrder(ready, held, n)
		}
		return nil
	}, "heads", decimal(int64(n)))
}
