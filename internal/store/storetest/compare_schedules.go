package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// schedule adds, changes or removes a schedule, of a revision that is mostly
// the stored one, with firings of a few instants.
func (p *pair) schedule(t *rapid.T) {
	name := pick(t, "id", "x", "y", "z")
	e := signalbox.Entry{At: p.now, Kind: pick(t, "kind", "", signalbox.EventScheduleFired, signalbox.EventScheduleChanged), Schedule: name}
	if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
		_, _ = both(t, p, "DeleteSchedule", func(s store.Store) (bool, error) { return s.DeleteSchedule(p.ctx, name, e) })
		return
	}
	row := aSchedule(name)
	row.ID, row.Name = name, pick(t, "name", name, name, name, "x")
	row.Cursor, row.LastStatus = p.soon(t, "cursor"), pick(t, "status", "", signalbox.RunQueued)
	if held, err := p.a.Schedule(p.ctx, name); err == nil {
		row.Rev = held.Rev
	}
	row.Rev += pick[int64](t, "revision", 0, 0, 0, 0, 1, -1)
	runs := p.firings(t)
	_, _ = both(t, p, "PutSchedule", func(s store.Store) (signalbox.Schedule, error) { return s.PutSchedule(p.ctx, row, runs, e) })
}

// firings are none, a few, or more than are kept.
func (p *pair) firings(t *rapid.T) (runs []signalbox.ScheduleRun) {
	count := pick(t, "runs", 0, 1, 1, 1, 2, 40)
	for n := range count {
		name, at := fmt.Sprintf("r%d", rapid.IntRange(0, 9).Draw(t, "run")), p.now
		if count > 2 {
			p.fired++
			name, at = fmt.Sprintf("m%d", p.fired), at.Add(time.Duration(n)*time.Second)
		}
		run := aRun(name, at)
		if rapid.IntRange(0, 2).Draw(t, "open") == 0 {
			run = opened(name, at)
		}
		runs = append(runs, run)
	}
	return runs
}
