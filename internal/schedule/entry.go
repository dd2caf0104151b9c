package schedule

import (
	"container/heap"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// entry is the in-memory state of a schedule. It is guarded by Scheduler.mu; open is changed
// only by the schedule's turn, and by load while no turn runs.
type entry struct {
	row  signalbox.Schedule // without its prompt: there may be many
	expr cron.Expr
	zone *time.Location
	next time.Time // next instant; zero: none

	open []firing // oldest first

	busy        bool // a turn runs, or waits for one of maxTurns
	runsStale   bool // a revision was not read: its runs are not in open
	endsPending bool // Queue.Ends signalled while a turn ran
	trigger     *trigger
	waiters     map[string]*trigger // by run ID

	failures int       // consecutive failed turns
	retryAt  time.Time // after a failed turn

	wakeAt time.Time // when the next turn is due; zero: never
	index  int       // in wakes; -1: not there
}

// firing is an open run.
type firing struct {
	run signalbox.ScheduleRun
	// owned: this scheduler completes it. recovered: another scheduler, or this one before a
	// restart, began it.
	owned, recovered bool
	retryAt          time.Time
	failure          signalbox.RunStatus // status if it is not submitted in time; "" before the first failure
	cancelSent       string              // the task that was asked to cancel
}

// wake returns when the firing is due for work.
func (f *firing) wake(now time.Time) time.Time {
	if f.owned {
		return f.retryAt
	}
	if f.abandoned(now) {
		return now
	}
	return f.run.FiredAt.Add(takeoverDelay)
}

// abandoned reports whether the takeover delay is over. If a firing is from the future, the clock was set
// back after it began.
func (f *firing) abandoned(now time.Time) bool { return now.Sub(f.run.FiredAt).Abs() >= takeoverDelay }

// withoutText drops the long texts of a row.
func withoutText(s signalbox.Schedule) signalbox.Schedule {
	s.Prompt, s.Description = "", ""
	return s
}

// set updates the row of an entry and computes its next instant.
func (s *Scheduler) set(e *entry, row signalbox.Schedule) {
	first := e.zone == nil
	changed := first || row.Cron != e.row.Cron || row.Timezone != e.row.Timezone
	moved := changed || !row.Cursor.Equal(e.row.Cursor) || row.Enabled != e.row.Enabled
	if !first && s.names[e.row.Name] == row.ID {
		delete(s.names, e.row.Name)
	}
	e.row = withoutText(row)
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

// times parses the expression and zone of a schedule. On error, the expression is never due.
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

// rearm computes when the next turn of the schedule is due.
func (s *Scheduler) rearm(e *entry) {
	now := s.now()
	held := slices.ContainsFunc(e.open, func(f firing) bool { return f.run.Status == signalbox.RunHeld })
	delete(s.holding, e.row.ID)
	if held {
		s.holding[e.row.ID] = e
	}
	if e.busy {
		return // finish rearms it
	}
	if e.endsPending {
		e.endsPending = false
		e.wakeHeld()
	}
	e.wakeAt = e.next
	for i := range e.open {
		if w := e.open[i].wake(now); e.wakeAt.IsZero() || w.Before(e.wakeAt) {
			e.wakeAt = w
			if w.IsZero() {
				e.wakeAt = now
			}
		}
	}
	if e.trigger != nil {
		e.wakeAt = now
	} else if !e.wakeAt.IsZero() && e.wakeAt.Before(e.retryAt) {
		e.wakeAt = e.retryAt
	}
	s.wakes.put(e)
}

// wakeHeld makes held firings due now.
func (e *entry) wakeHeld() {
	for i := range e.open {
		if f := &e.open[i]; f.owned && f.run.Status == signalbox.RunHeld {
			f.retryAt = time.Time{}
		}
	}
}

// checkHeld makes all held firings due: tasks of schedules may have ended.
func (s *Scheduler) checkHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.holding {
		if e.endsPending = true; !e.busy {
			s.rearm(e)
		}
	}
}

// rearmAll recomputes all wake times after a clock jump.
func (s *Scheduler) rearmAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest := s.now().Add(maxBackoff)
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
		s.rearm(e)
	}
}

// drop removes a schedule and answers its triggers with an error.
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

// wakes is a heap of schedules by wakeAt.
type wakes []*entry

func (w wakes) Len() int           { return len(w) }
func (w wakes) Less(i, j int) bool { return w[i].wakeAt.Before(w[j].wakeAt) }
func (w wakes) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

// Push implements heap.Interface.
func (w *wakes) Push(x any) {
	e := x.(*entry)
	e.index = len(*w)
	*w = append(*w, e)
}

// Pop implements heap.Interface.
func (w *wakes) Pop() any {
	last := len(*w) - 1
	e := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	e.index = -1
	return e
}

// put inserts, moves or removes an entry by its wakeAt.
func (w *wakes) put(e *entry) {
	switch {
	case e.wakeAt.IsZero():
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

// due pops the first entry if its wakeAt has passed.
func (w *wakes) due(now time.Time) *entry {
	if len(*w) == 0 || (*w)[0].wakeAt.After(now) {
		return nil
	}
	return heap.Pop(w).(*entry)
}

// next returns the first wakeAt; zero: none.
func (w *wakes) next() time.Time {
	if len(*w) == 0 {
		return time.Time{}
	}
	return (*w)[0].wakeAt
}
