package client

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// Board is the state that the events of Live come to. The zero Board is ready
// for use. Its lists are made anew where they change, so that who has one may
// keep it.
type Board struct {
	Known    bool      // a snapshot or resync came
	At       time.Time // when the director saw it so
	Revision int64
	Totals   api.Totals
	Health   api.Verdict
	Agents   []api.LiveAgent // by name
	Queues   []api.LiveQueue // by name
	Capacity []api.ToolQueue // by name
	Tasks    []api.LiveTask  // in flight, the oldest first
	Pauses   []api.Pause
	Pressure []api.Pressure // of the last 30 minutes, oldest first
}

// pressureFor is how long samples are kept.
const pressureFor = 30 * time.Minute

// Apply takes one event in.
func (b *Board) Apply(e LiveEvent) {
	l := &e.Live
	switch {
	case e.Kind == LiveSnapshot || e.Kind == LiveResync:
		*b = Board{Known: true}
	case e.Kind == LiveBeat || !b.Known:
		b.At, b.Revision = l.At, l.Revision
		return
	}
	b.At, b.Revision = l.At, l.Revision
	b.Agents = merged(b.Agents, l.Agents, gone(l.Gone, "agent:"), func(a api.LiveAgent) string { return a.Name })
	b.Queues = merged(b.Queues, l.Queues, gone(l.Gone, "queue:"), func(q api.LiveQueue) string { return q.Name })
	b.Capacity = merged(b.Capacity, l.Capacity, gone(l.Gone, "capacity:"), func(q api.ToolQueue) string { return q.Name })
	b.tasks(l.Tasks, gone(l.Gone, "task:"))
	if l.Totals != nil {
		b.Totals = *l.Totals
	}
	if l.Health != nil {
		b.Health = *l.Health
	}
	if l.Pauses != nil {
		b.Pauses = *l.Pauses
	}
	b.pressure(l.Pressure)
}

// tasks keeps those that are in flight.
func (b *Board) tasks(changed []api.LiveTask, gone []string) {
	if len(changed)+len(gone) == 0 {
		return
	}
	// Ids sort by time.
	all := merged(b.Tasks, changed, gone, func(t api.LiveTask) string { return t.QueueID })
	b.Tasks = slices.DeleteFunc(all, func(t api.LiveTask) bool { return Ended(t.State) || t.State == "pending" })
}

func (b *Board) pressure(samples []api.Pressure) {
	if len(samples) == 0 {
		return
	}
	all := append(slices.Clone(b.Pressure), samples...)
	newest := all[len(all)-1].At
	b.Pressure = slices.DeleteFunc(all, func(p api.Pressure) bool { return newest.Sub(p.At) > pressureFor })
}

// gone are the names of what is gone of one sort.
func gone(keys []string, sort string) []string {
	var names []string
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, sort); ok {
			names = append(names, name)
		}
	}
	return names
}

// merged is a list with what changed in it put in its place, by name.
func merged[T any](have, changed []T, gone []string, name func(T) string) []T {
	if len(changed)+len(gone) == 0 {
		return have
	}
	out := slices.DeleteFunc(slices.Clone(have), func(t T) bool { return slices.Contains(gone, name(t)) })
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
