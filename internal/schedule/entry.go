package schedule

import (
	"container/heap"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// entry is what is known of a schedule. It is guarded by Scheduler.mu; open
// is changed by the schedule's turn alone, and by load while there is none.
type entry struct {
	row  signalbox.Schedule // without its prompt: there may be many
	expr cron.Expr
	zone *time.Location
	next time.Time // its next instant; zero: none

	open []firing // oldest first

	busy    bool // a turn runs, or waits for its place
	skipped bool // there is a revision that was not read: its runs are not in open
	ends    bool // ends were announced while it was busy
	trigger *trigger
	waiters map[string]*trigger // by the run whose decision they wait for

	failed  int       // turns in a row that could not read or write
	retryAt time.Time // not before, because of that

	wake  time.Time // when a turn has to begin; zero: never
	index int       // in wakes; -1: not there
}

// firing is an open run as its scheduler sees it.
type firing struct {
	run signalbox.ScheduleRun
	// mine says that this scheduler goes on with it; recovered that another, or
	// this one before a restart, had begun.
	mine, recovered bool
	retryAt         time.Time
	failure         signalbox.RunStatus // what it comes to where its time is over; "" before the first failure
	asked           string              // the task that was asked to end
}

// wake is when something is to be done about the firing.
func (f *firing) wake(now time.Time) time.Time {
	if f.mine {
		return f.retryAt
	}
	if f.abandoned(now) {
		return now
	}
	return f.run.FiredAt.Add(takeOver)
}

// abandoned reports whether whoever began the firing had its time to end it. A
// firing of the future is one from before the clock was put back.
func (f *firing) abandoned(now time.Time) bool { return now.Sub(f.run.FiredAt).Abs() >= takeOver }

// slim is a row without what takes room.
func slim(s signalbox.Schedule) signalbox.Schedule {
	s.Prompt, s.Description = "", ""
	return s
}

// set makes row what is known of the schedule, and finds its next instant.
func (s *Scheduler) set(e *entry, row signalbox.Schedule) {
	first := e.zone == nil
	changed := first || row.Cron != e.row.Cron || row.Timezone != e.row.Timezone
	moved := changed || !row.Cursor.Equal(e.row.Cursor) || row.Enabled != e.row.Enabled
	if !first && s.names[e.row.Name] == row.ID {
		delete(s.names, e.row.Name)
	}
	e.row = slim(row)
	s.names[row.Name] = row.ID
	if changed {
		var err error
		if e.expr, e.zone, err = s.times(&row); err != nil {
			s.log.Error("a schedule is never due: edit it", "job", row.Name, "error", err)
		}
	}
	if moved {
		e.next = time.Time{}
		if row.Enabled {
			e.next = e.expr.Next(row.Cursor, e.zone)
		}
	}
}

// times reads the expression and the zone of a schedule. With an error the
// expression is one that is never due.
func (s *Scheduler) times(row *signalbox.Schedule) (cron.Expr, *time.Location, error) {
	expr, err := cron.Parse(row.Cron)
	if err != nil {
		return cron.Expr{}, s.zone, err
	}
	if row.Timezone == "" {
		return expr, s.zone, nil
	}
	zone, err := cron.Zone(row.Timezone)
	if err != nil {
		return cron.Expr{}, s.zone, err
	}
	return expr, zone, nil
}

// arrange finds out when the schedule has to be worked on next, and puts it
// there.
func (s *Scheduler) arrange(e *entry) {
	now := s.now()
	held := slices.ContainsFunc(e.open, func(f firing) bool { return f.run.Status == signalbox.RunHeld })
	delete(s.holding, e.row.ID)
	if held {
		s.holding[e.row.ID] = e
	}
	if e.busy {
		return // it is arranged when its turn ends
	}
	if e.ends {
		e.ends = false
		e.heldNow()
	}
	e.wake = e.next
	for i := range e.open {
		if w := e.open[i].wake(now); e.wake.IsZero() || w.Before(e.wake) {
			e.wake = w
			if w.IsZero() {
				e.wake = now
			}
		}
	}
	if e.trigger != nil {
		e.wake = now
	} else if !e.wake.IsZero() && e.wake.Before(e.retryAt) {
		e.wake = e.retryAt
	}
	s.wakes.put(e)
}

// heldNow lets held firings be looked at now.
func (e *entry) heldNow() {
	for i := range e.open {
		if f := &e.open[i]; f.mine && f.run.Status == signalbox.RunHeld {
			f.retryAt = time.Time{}
		}
	}
}

// lookAtHeld looks at all held firings: tasks of schedules may have ended.
func (s *Scheduler) lookAtHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.holding {
		if e.ends = true; !e.busy {
			s.arrange(e)
		}
	}
}

// rearrange looks at all schedules anew after the clock jumped.
func (s *Scheduler) rearrange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := s.now().Add(mostBackoff)
	for _, e := range s.entries {
		if e.busy {
			continue
		}
		if e.retryAt.After(latest) {
			e.retryAt = latest
		}
		for i := range e.open {
			if f := &e.open[i]; f.retryAt.After(latest) {
				f.retryAt = latest
			}
		}
		s.arrange(e)
	}
}

// drop forgets a schedule. Whoever waits for a firing of it is told so.
func (s *Scheduler) drop(e *entry) {
	id := e.row.ID
	if s.entries[id] == e {
		delete(s.entries, id)
		delete(s.holding, id)
		if s.names[e.row.Name] == id {
			delete(s.names, e.row.Name)
		}
		s.wakes.remove(e)
	}
	gone := notFound(e.row.Name)
	if e.trigger != nil {
		e.trigger.answer(signalbox.ScheduleRun{}, gone)
		e.trigger = nil
	}
	for run, t := range e.waiters {
		delete(e.waiters, run)
		t.answer(signalbox.ScheduleRun{}, gone)
	}
}

// wakes is a heap of schedules by their wake.
type wakes []*entry

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].wake.Before(w[j].wake) }
func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push is for package heap.
func (w *wakes) Push(x any) {
	e := x.(*entry)
	e.index = len(*w)
	*w = append(*w, e)
}

// Pop is for package heap.
func (w *wakes) Pop() any {
	last := len(*w) - 1
	e := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	e.index = -1
	return e
}

// put makes room for the wake of an entry.
func (w *wakes) put(e *entry) {
	switch {
	case e.wake.IsZero():
		w.remove(e)
	case e.index < 0:
		heap.Push(w, e)
	default:
		heap.Fix(w, e.index)
	}
}

func (w *wakes) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove(w, e.index)
	}
}

// due takes the first entry out whose wake has come.
func (w *wakes) due(now time.Time) *entry {
	if len(*w) == 0 || (*w)[0].wake.After(now) {
		return nil
	}
	return heap.Pop(w).(*entry)
}

// next is the first wake; zero: none.
func (w *wakes) next() time.Time {
	if len(*w) == 0 {
		return time.Time{}
	}
	return (*w)[0].wake
}
