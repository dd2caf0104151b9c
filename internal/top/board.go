package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// maxEnded bounds the ended tasks that a board remembers.
const maxEnded = 300

// board is what the stream has said so far.
type board struct {
	seen     bool // a snapshot came
	at       time.Time
	revision int64
	totals   api.Totals
	health   *api.Verdict
	agents   []api.LiveAgent // by name, as are queues and capacity
	queues   []api.LiveQueue
	capacity []api.ToolQueue
	pauses   []api.Pause
	tasks    map[string]api.LiveTask // in flight, and those that changed since
}

// apply takes one event in. A snapshot is all there is; a change has the
// entities that changed, whole, and the keys of those that are gone.
func (b *board) apply(kind string, l *api.Live) {
	b.at, b.revision = l.At, l.Revision
	if kind == kindBeat {
		return
	}
	if kind != kindChange {
		*b = board{seen: true, at: l.At, revision: l.Revision, tasks: map[string]api.LiveTask{}}
	}
	if !b.seen {
		return // a change of something that is not known
	}
	if l.Totals != nil {
		b.totals = *l.Totals
	}
	if l.Health != nil {
		b.health = l.Health
	}
	if l.Pauses != nil {
		b.pauses = *l.Pauses
	}
	b.agents = merge(b.agents, l.Agents, agentName)
	b.queues = merge(b.queues, l.Queues, queueName)
	b.capacity = merge(b.capacity, l.Capacity, capacityName)
	for _, t := range l.Tasks {
		b.tasks[t.QueueID] = t
	}
	b.drop(l.Gone)
	b.prune()
}

func agentName(a api.LiveAgent) string    { return a.Name }
func queueName(q api.LiveQueue) string    { return q.Name }
func capacityName(q api.ToolQueue) string { return q.Name }

// merge puts the entities that changed in their places, by name. The list
// before stays as it is: a frame may still be made of it.
func merge[T any](have, changed []T, name func(T) string) []T {
	if len(changed) == 0 {
		return have
	}
	out := slices.Clone(have)
	for _, c := range changed {
		at, found := slices.BinarySearchFunc(out, name(c), func(t T, n string) int { return cmp.Compare(name(t), n) })
		if found {
			out[at] = c
		} else {
			out = slices.Insert(out, at, c)
		}
	}
	return out
}

func without[T any](have []T, gone string, name func(T) string) []T {
	return slices.DeleteFunc(slices.Clone(have), func(t T) bool { return name(t) == gone })
}

func (b *board) drop(gone []string) {
	for _, key := range gone {
		sort, name, _ := strings.Cut(key, ":")
		switch sort {
		case "agent":
			b.agents = without(b.agents, name, agentName)
		case "queue":
			b.queues = without(b.queues, name, queueName)
		case "capacity":
			b.capacity = without(b.capacity, name, capacityName)
		case "task":
			delete(b.tasks, name)
		}
	}
}

// prune forgets the tasks that ended first, where there are many.
func (b *board) prune() {
	if len(b.tasks) <= 2*maxEnded {
		return
	}
	ended := b.ended()
	for _, t := range ended[min(maxEnded, len(ended)):] {
		delete(b.tasks, t.QueueID)
	}
}

// ended are the ended tasks that are known, the newest first.
func (b *board) ended() []api.LiveTask {
	all := slices.DeleteFunc(slices.Collect(maps.Values(b.tasks)), func(t api.LiveTask) bool { return !client.Ended(t.State) })
	slices.SortFunc(all, func(x, y api.LiveTask) int {
		return cmp.Or(endOf(y).Compare(endOf(x)), cmp.Compare(x.QueueID, y.QueueID))
	})
	return all
}

func endOf(t api.LiveTask) time.Time {
	if t.EndedAt == nil {
		return t.CreatedAt
	}
	return *t.EndedAt
}

// task finds what is known of a task.
func (b *board) task(id string) (api.LiveTask, bool) {
	for i := range b.agents {
		for _, list := range [][]api.LiveTask{b.agents[i].Current, b.agents[i].Line} {
			if at := slices.IndexFunc(list, func(t api.LiveTask) bool { return t.QueueID == id }); at >= 0 {
				return list[at], true
			}
		}
	}
	for i := range b.queues {
		list := b.queues[i].Line
		if at := slices.IndexFunc(list, func(t api.LiveTask) bool { return t.QueueID == id }); at >= 0 {
			return list[at], true
		}
	}
	t, ok := b.tasks[id]
	return t, ok
}

func (b *board) agent(name string) (api.LiveAgent, bool) {
	at, found := slices.BinarySearchFunc(b.agents, name, func(a api.LiveAgent, n string) int { return cmp.Compare(a.Name, n) })
	if !found {
		return api.LiveAgent{}, false
	}
	return b.agents[at], true
}

// live are all tasks that are known to run or wait, running ones first, each
// once.
func (b *board) live() []api.LiveTask {
	var out []api.LiveTask
	seen := map[string]bool{}
	add := func(list []api.LiveTask) {
		for _, t := range list {
			if !seen[t.QueueID] && !client.Ended(t.State) {
				seen[t.QueueID] = true
				out = append(out, t)
			}
		}
	}
	for i := range b.agents {
		add(b.agents[i].Current)
	}
	known := slices.Collect(maps.Values(b.tasks))
	slices.SortFunc(known, func(x, y api.LiveTask) int {
		return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.QueueID, y.QueueID))
	})
	add(slices.DeleteFunc(slices.Clone(known), func(t api.LiveTask) bool { return t.State == "pending" }))
	for i := range b.agents {
		add(b.agents[i].Line)
	}
	for i := range b.queues {
		add(b.queues[i].Line)
	}
	add(known)
	return out
}
