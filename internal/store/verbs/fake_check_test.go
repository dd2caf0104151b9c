package verbs_test

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// checked commits a delta, and compares it with the server's state before and after.
func (s *server) checked(d *verbs.Delta) error {
	had := s.had(d)
	was := make([]*signalbox.Task, len(d.Tasks))
	for i := range d.Tasks {
		if before := d.Tasks[i].Before; before != nil {
			was[i], _ = s.rows.Task(context.Background(), before.ID)
		}
	}
	if err := s.write(d); err != nil {
		return err
	}
	if d.From != had.Counters && had.Moment != 0 {
		s.t.Errorf("the delta begins at %+v, the server was at %+v", d.From, had.Counters)
	}
	for i := range d.Tasks {
		switch c := &d.Tasks[i]; {
		case c.Before == nil && c.After.Seq <= had.Seq:
			s.t.Errorf("a new task has the number %d, the last one was %d", c.After.Seq, had.Seq)
		case c.Before != nil && !reflect.DeepEqual(was[i], c.Before):
			s.t.Errorf("the delta says that the task was\n%+v\nand it was\n%+v", c.Before, was[i])
		}
	}
	for i := range d.Slots {
		c := &d.Slots[i]
		var was *signalbox.Slot
		for n := range had.Slots[i] {
			if had.Slots[i][n].Slot == c.Slot {
				was = &had.Slots[i][n]
			}
		}
		if (was == nil) != (c.Before == nil) || (was != nil && was.Fence != c.Before.Fence) {
			s.t.Errorf("the delta says that the slot was %+v, and it was %+v", c.Before, was)
		}
	}
	if d.Log != nil {
		if from, to := verbs.LogSpan(d.Log); from != d.From.Moment || to != d.To.Moment {
			s.t.Errorf("the log is of the moments %d to %d, the delta of %d to %d", from, to, d.From.Moment, d.To.Moment)
		}
	}
	s.checkCounts(d)
	s.checkLandings(d)
	return nil
}

// checkLandings compares the rows of the list of open landings with the tasks of a delta, since reads skip
// rows that should not exist.
func (s *server) checkLandings(d *verbs.Delta) {
	if !slices.ContainsFunc(d.Tasks, func(c verbs.TaskChange) bool {
		return c.Before != nil && c.Before.Landing != nil || c.After != nil && c.After.Landing != nil
	}) {
		return
	}
	list, err := s.rows.Load(context.Background(), &verbs.Want{Pages: []verbs.Page{{Kind: "landing"}}})
	if err != nil {
		s.t.Error(err)
	}
	docs := list.Pages[0]
	for i := range d.Tasks {
		c := &d.Tasks[i]
		task := cmp.Or(c.After, c.Before)
		listed := slices.ContainsFunc(docs, func(doc verbs.Doc) bool { return doc.ID == task.ID })
		if open := c.After != nil && c.After.Landing.Open(); open != listed {
			s.t.Errorf("task %s has a landing that is %+v, and a row that says it is open: %v", task.ID, task.Landing, listed)
		}
	}
}

// had returns the server's state of all rows in a delta.
func (s *server) had(d *verbs.Delta) *verbs.Loaded {
	w := &verbs.Want{}
	for i := range d.Slots {
		w.Slots = append(w.Slots, d.Slots[i].Agent)
	}
	l, err := s.rows.Load(context.Background(), w)
	if err != nil {
		s.t.Error(err)
	}
	return l
}

// checkCounts compares the counts in the deltas with the rows.
func (s *server) checkCounts(d *verbs.Delta) {
	queues, limits := maps.Clone(s.queues), maps.Clone(s.limits)
	for i := range d.Tasks { // a count that changed must be in the delta
		if t := d.Tasks[i].After; t != nil {
			queues[t.Queue], limits[t.Limit] = s.queues[t.Queue], s.limits[t.Limit]
		}
	}
	w := &verbs.Want{Queues: slices.Collect(maps.Keys(queues)), Limits: slices.Collect(maps.Keys(limits))}
	has, err := s.rows.Load(context.Background(), w)
	if err != nil {
		s.t.Error(err)
	}
	for i, queue := range w.Queues {
		if queues[queue] != has.Queues[i] {
			s.t.Errorf("the deltas say that the queue %q has %+v, and it has %+v", queue, queues[queue], has.Queues[i])
		}
	}
	for i, limit := range w.Limits {
		if limits[limit] != has.Limits[i] {
			s.t.Errorf("the deltas say that of the limit %q %d wait, and it has %d", limit, limits[limit], has.Limits[i])
		}
	}
	slots, err := s.rows.Slots(context.Background())
	if err != nil {
		s.t.Error(err)
	}
	var inUse [2]int
	for _, slot := range slots {
		if signalbox.IsExecutor(slot.Agent) {
			continue
		}
		if signalbox.Isolated(slot.Slot) {
			inUse[1]++
		} else {
			inUse[0]++
		}
	}
	if inUse != d.InUse {
		s.t.Errorf("the delta says that %v slots are in use, and %v are", d.InUse, inUse)
	}
}
