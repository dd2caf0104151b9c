package store

import (
	"fmt"

	"github.com/signalbox-ai/signalbox"
)

// Crowd is what stands before a task where it would run, as a store counts it
// within the step that stores the task.
type Crowd struct {
	Slots   int // of the room's agents
	Used    int // of those, in use
	Free    int // of those, free; not the difference where an agent has fewer slots than it uses
	Fleet   int // slots of that sort in use over all agents
	Ready   int // tasks in the room's queues that could start now
	Waiting int // all tasks that wait in the queue of the task
	Turn    bool
	Later   bool
	Paused  bool
	Drained int // of the room's agents, those whose own queue is paused: none of their slots is counted
}

// AddAgent counts an agent that uses so many slots of the room's sort.
func (c *Crowd) AddAgent(slots, used int) {
	c.Slots += slots
	c.Used += used
	c.Free += max(0, slots-used)
}

// Admit sets how the task fares: whether it could start at once, or its place
// in line. It refuses the task where there is no room and there must be.
func (r *Room) Admit(t *signalbox.Task, c *Crowd) error {
	why := r.blocked(c)
	if why == "" {
		t.QueuedAs = 0
		return nil
	}
	if r.Must {
		return signalbox.Errorf(signalbox.CodeAgentBusy, "%s; wait for it, or try again later", why)
	}
	t.QueuedAs = max(1, c.Waiting+1-r.Starting(c))
	return nil
}

// Starting is how many of the tasks that wait have a slot free for them: a
// claim will take them in a moment. They stand in nobody's way and fill no
// limit.
func (r *Room) Starting(c *Crowd) int {
	n := min(c.Ready, c.Free)
	if r.Fleet > 0 {
		n = min(n, max(0, r.Fleet-c.Fleet))
	}
	if c.Paused {
		return 0
	}
	return n
}

// blocked says why the task could not start at once; "" if it could.
func (r *Room) blocked(c *Crowd) string {
	who := "no agent is free"
	if len(r.Agents) == 1 {
		who = "agent " + r.Agents[0].Name + " is busy"
	}
	count := fmt.Sprintf("%d of %d slots in use, %d waiting", c.Used, c.Slots, c.Waiting)
	switch {
	case c.Drained > 0 && c.Drained == len(r.Agents):
		return fmt.Sprintf("%s: %d waiting", r.drained(), c.Waiting)
	case c.Drained > 0:
		count += fmt.Sprintf(", %d of %d agents paused", c.Drained, len(r.Agents))
	}
	switch {
	case c.Paused:
		return "the queue is paused: " + count
	case c.Later:
		return "its time has not come: " + count
	case c.Turn:
		return who + " with another turn of the session: " + count
	case c.Ready >= c.Free:
		return who + ": " + count
	case r.Fleet > 0 && c.Fleet+c.Ready >= r.Fleet:
		return fmt.Sprintf("no more than %d executions may run at a time over all agents: %d run, %d waiting", r.Fleet, c.Fleet, c.Waiting)
	}
	return ""
}

// drained says that all agents of the room are paused.
func (r *Room) drained() string {
	if len(r.Agents) == 1 {
		name := r.Agents[0].Name
		return fmt.Sprintf("agent %s is paused and takes from no queue (signalbox resume %s)", name, signalbox.AgentQueue(name))
	}
	return fmt.Sprintf("all %d agents that could take it are paused (signalbox resume agent:NAME)", len(r.Agents))
}

// The sorts of slots: those for isolated executions are counted and numbered
// apart from the others.
const (
	CommonSlots = iota
	IsolatedSlots
	SlotSorts // how many sorts there are
)

// SlotSort is the sort of slots that are for isolated executions, or are not.
func SlotSort(isolated bool) int {
	if isolated {
		return IsolatedSlots
	}
	return CommonSlots
}

const (
	// FenceStep is how far above what the store has given a report of an agent
	// raises the next fence. An agent whose fences are further ahead, as after a
	// restore, is caught up with by its next claims.
	FenceStep = 1 << 20
	// FenceAhead is how far ahead a report is believed at all: what this store
	// gave before a restore is not further. At a thousand claims a second it is
	// 35 years.
	FenceAhead = 1 << 40
)

// NextFence returns the fence of a claim: one that is above last, the highest
// that the store has given, and above what the agent has seen, as far as that is
// believed. Otherwise one agent could use up the numbers of all.
//
// Errors: CodeValidation with the field highest_fence.
func NextFence(last, above int64) (int64, error) {
	if above-last > FenceAhead {
		return 0, signalbox.Invalid("highest_fence",
			"the agent reports fence %d, and this store has given %d at most: it cannot have seen that; empty the agent's data folder and start it anew", above, last)
	}
	return max(last, min(above, last+FenceStep)) + 1, nil
}
