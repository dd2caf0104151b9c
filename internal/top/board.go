package top

import (
	"cmp"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// maxEnded bounds the ended tasks that a board remembers.
const maxEnded = 300

// board is what the stream has said so far: what is, and what has ended since
// the view was opened.
type board struct {
	client.Board
	ended []api.LiveTask // newest first
}

// take takes one event in.
func (b *board) take(e client.LiveEvent) {
	b.Apply(e)
	if !b.Known || e.Kind == client.LiveBeat {
		return
	}
	for _, t := range e.Live.Tasks {
		if client.Ended(t.State) {
			b.ended = slices.DeleteFunc(slices.Clone(b.ended), func(have api.LiveTask) bool { return have.QueueID == t.QueueID })
			b.ended = slices.Insert(b.ended, 0, t)
		}
	}
	slices.SortStableFunc(b.ended, func(x, y api.LiveTask) int { return endOf(y).Compare(endOf(x)) })
	b.ended = b.ended[:min(len(b.ended), maxEnded)]
}

func endOf(t api.LiveTask) time.Time {
	if t.EndedAt == nil {
		return t.CreatedAt
	}
	return *t.EndedAt
}

// task finds what is known of a task. That it has ended is the last word.
func (b *board) task(id string) (api.LiveTask, bool) {
	lists := [][]api.LiveTask{b.ended}
	for i := range b.Agents {
		lists = append(lists, b.Agents[i].Current, b.Agents[i].Line)
	}
	for i := range b.Queues {
		lists = append(lists, b.Queues[i].Line)
	}
	for _, list := range append(lists, b.Tasks) {
		if at := indexOf(list, id); at >= 0 {
			return list[at], true
		}
	}
	return api.LiveTask{}, false
}

func (b *board) agent(name string) (api.LiveAgent, bool) {
	at, found := slices.BinarySearchFunc(b.Agents, name, func(a api.LiveAgent, n string) int { return cmp.Compare(a.Name, n) })
	if !found {
		return api.LiveAgent{}, false
	}
	return b.Agents[at], true
}

// live are all tasks that are known to run or wait, running ones first, each
// once.
func (b *board) live() []api.LiveTask {
	var out []api.LiveTask
	seen := map[string]bool{}
	add := func(list []api.LiveTask) {
		for _, t := range list {
			if !seen[t.QueueID] {
				seen[t.QueueID] = true
				out = append(out, t)
			}
		}
	}
	add(b.Tasks)
	for i := range b.Agents {
		add(b.Agents[i].Line)
	}
	for i := range b.Queues {
		add(b.Queues[i].Line)
	}
	return out
}
