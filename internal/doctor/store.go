package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// pause is what lies between two looks at rows that move.
const pause = 100 * time.Millisecond

// looks is how often something must be seen wrong before it is said: what
// moves between two reads looks wrong for a moment, and not twice in the same
// way.
const looks = 3

// Store checks those invariants of the design (§4) that can be seen in a store
// that is in use: slots in use are exactly the rows that hold them (6), none is
// held twice (3), and a task that runs is in exactly one place (7). It reads what
// waits and runs, never what has ended: a look must not cost more with each
// task that ever was.
func Store(r store.Reader) Look {
	return func(ctx context.Context, _ bool) []api.Check {
		found, err := seenEachTime(ctx, r)
		switch {
		case err != nil && ctx.Err() != nil:
			return []api.Check{{Area: areaStore, State: "fail", Text: "its rows could not be read in time", Cure: "see whether the disk is slow or the machine busy"}}
		case err != nil:
			return []api.Check{{Area: areaStore, State: "fail", Text: "its rows cannot be read", Cure: "see the director's log"}}
		case len(found) == 0:
			return []api.Check{{Area: areaStore, State: "ok", Text: "its rows agree: slots, and the one place of each task"}}
		}
		const most = 10
		var out []api.Check
		for i, text := range found {
			if i == most {
				text = fmt.Sprintf("%d more findings in the rows", len(found)-most)
			}
			out = append(out, api.Check{Area: areaStore, State: "fail", Text: text, Cure: "keep a copy of the store and report it; signalbox release frees the slots of an agent"})
			if i == most {
				break
			}
		}
		return out
	}
}

// seenEachTime returns what every one of several looks finds.
func seenEachTime(ctx context.Context, r store.Reader) ([]string, error) {
	var still []string
	for i := range looks {
		found, err := rows(ctx, r)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			still = found
		} else {
			still = both(still, found)
		}
		if len(still) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
	return still, nil
}

func both(a, b []string) []string {
	in := map[string]bool{}
	for _, text := range b {
		in[text] = true
	}
	var out []string
	for _, text := range a {
		if in[text] {
			out = append(out, text)
		}
	}
	return out
}

// rows is one look at the slots and at the tasks that run.
func rows(ctx context.Context, r store.Reader) ([]string, error) {
	slots, err1 := r.Slots(ctx)
	tasks, err2 := r.InFlight(ctx)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	v := view{tasks: map[string]signalbox.Task{}, held: map[string]int{}}
	for _, t := range tasks {
		v.task(t)
	}
	for _, s := range slots {
		v.slot(s)
	}
	for id, t := range v.tasks {
		if v.held[id] == 0 {
			v.wrong("task %s is %s and holds no slot", id, t.State)
		}
	}
	v.twice(slots)
	return v.found, nil
}

type view struct {
	tasks map[string]signalbox.Task // in flight
	held  map[string]int            // slots by task
	found []string
}

func (v *view) wrong(format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf(format, args...))
}

func (v *view) task(t signalbox.Task) {
	if _, twice := v.tasks[t.ID]; twice {
		v.wrong("task %s stands twice among those that run", t.ID)
	}
	v.tasks[t.ID] = t
	switch {
	case !t.State.InFlight():
		v.wrong("task %s stands among those that run and is %s", t.ID, t.State)
	case t.Agent == "" || t.Fence < 1:
		v.wrong("task %s is %s without an agent or a fence", t.ID, t.State)
	}
}

// slot checks that the row of a slot is that of a task that runs, unless it is
// withheld after the task's end.
func (v *view) slot(s signalbox.Slot) {
	if s.Withheld {
		return
	}
	v.held[s.TaskID]++
	t, ok := v.tasks[s.TaskID]
	switch {
	case !ok:
		v.wrong("slot %d of agent %s is held by task %s, which does not run", s.Slot, s.Agent, s.TaskID)
	case v.held[s.TaskID] > 1:
		v.wrong("task %s holds more than one slot", s.TaskID)
	case t.Agent != s.Agent || t.Fence != s.Fence:
		v.wrong("slot %d of agent %s has fence %d, its task %s has agent %s and fence %d", s.Slot, s.Agent, s.Fence, s.TaskID, t.Agent, t.Fence)
	}
}

// twice checks that no slot is held twice.
func (v *view) twice(slots []signalbox.Slot) {
	type place struct {
		agent string
		slot  int
	}
	taken := map[place]bool{}
	for _, s := range slots {
		at := place{s.Agent, s.Slot}
		if taken[at] {
			v.wrong("slot %d of agent %s is held twice", s.Slot, s.Agent)
		}
		taken[at] = true
	}
}
