package engine

import (
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Lane is what an agent runs and what waits for it.
type Lane struct {
	Agent    signalbox.Agent
	Slots    int
	Running  []signalbox.Task // that hold a slot, by slot; bypass excluded
	Isolated []signalbox.Task // that hold a bypass slot
	Withheld []signalbox.Task // lost tasks that the agent may still run, by slot; bypass excluded
	Waiting  []signalbox.Task // in its own queue, in order; at most MaxLane
	Length   int              // of the queue
	Pauses   []signalbox.Pause
}

// MaxLane bounds the waiting tasks that a Lane lists.
const MaxLane = 1000

// Busy reports whether no slot is free.
func (l *Lane) Busy() bool { return len(l.Running)+len(l.Withheld) >= l.Slots }

// Lane returns the state of an agent's queue, or CodeNotFound.
func (e *Engine) Lane(ctx context.Context, name string) (Lane, error) {
	a, err := e.Agent(ctx, name)
	if err != nil {
		return Lane{}, err
	}
	l := Lane{Agent: a, Slots: a.Slots}
	if live, ok := e.LiveAgent(name); ok {
		l.Slots = live.Slots
	}
	if err := e.laneSlots(ctx, &l); err != nil {
		return l, err
	}
	queue := signalbox.AgentQueue(name)
	if signalbox.IsExecutor(name) {
		queue = a.Queues()[0]
	}
	if l.Waiting, err = e.store.Waiting(ctx, queue, store.Cursor{}, MaxLane); err != nil {
		return l, err
	}
	length, err := e.store.Lengths(ctx, queue)
	if err != nil {
		return l, err
	}
	l.Length = length[0]
	pauses, err := e.store.Pauses(ctx)
	l.Pauses = slices.DeleteFunc(pauses, func(p signalbox.Pause) bool { return p.Queue != "" && p.Queue != queue })
	return l, err
}

// laneSlots reads the tasks that hold slots, from the slot rows.
func (e *Engine) laneSlots(ctx context.Context, l *Lane) error {
	slots, err := e.store.Slots(ctx)
	if err != nil {
		return err
	}
	for _, s := range slots {
		isolated := signalbox.Isolated(s.Slot)
		if s.Agent != l.Agent.Name || s.Withheld && isolated {
			continue
		}
		t, err := e.store.Task(ctx, s.TaskID)
		gone := signalbox.CodeOf(err) == signalbox.CodeNotFound
		switch {
		case err != nil && !gone:
			return err
		case s.Withheld && gone: // the slot outlives its task
			l.Withheld = append(l.Withheld, signalbox.Task{ID: s.TaskID, Agent: s.Agent})
		case s.Withheld:
			l.Withheld = append(l.Withheld, t)
		case gone || !t.State.InFlight(): // it ended after the slots were read
		case isolated:
			l.Isolated = append(l.Isolated, t)
		default:
			l.Running = append(l.Running, t)
		}
	}
	return nil
}
