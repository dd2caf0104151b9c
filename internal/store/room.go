package store

import (
	"fmt"

	"github.com/signalbox-ai/signalbox"
)

// Occupancy is what is ahead of a task where it would run, as counted within the step that
// stores it.
type Occupancy struct {
	Slots   int // of the room's agents
	Used    int // of those, in use
	Free    int // those that are free; not the difference if an agent uses more slots than it has
	Fleet   int // slots of that sort in use over all agents
	Ready   int // tasks in the room's queues that could start now
	Waiting int // all waiting tasks in the task's queue
	// another turn of the session is ready, in flight or parked
	TurnBusy bool
	// its NotBefore has not passed
	NotDue  bool
	Paused  bool
	Drained int // agents of the room whose own queue is paused: their slots are not counted
}

// AddAgent adds an agent with slots of the room's sort, used of them in use.
func (c *Occupancy) AddAgent(slots, used int) {
	c.Slots += slots
	c.Used += used
	c.Free += max(0, slots-used)
}

// Admit sets whether the task could start at once, or its position. If it could not and
// Must is set, it refuses the task with CodeAgentBusy.
func (r *Room) Admit(t *signalbox.Task, c *Occupancy) error {
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

// Starting is how many waiting tasks have a free slot: a claim will take them in a moment.
// They are not ahead of others and do not count towards a limit.
func (r *Room) Starting(c *Occupancy) int {
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
func (r *Room) blocked(c *Occupancy) string {
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
	case c.NotDue:
		return "its time has not come: " + count
	case c.TurnBusy:
		return who + " with another turn of the session: " + count
	case c.Ready >= c.Free:
		return who + ": " + count
	case r.Fleet > 0 && c.Fleet+c.Ready >= r.Fleet:
		return fmt.Sprintf("no more than %d executions may run at a time over all agents: %d run, %d waiting", r.Fleet, c.Fleet, c.Waiting)
	}
	return ""
}

// drained says that all agents of the room are drained.
func (r *Room) drained() string {
	if len(r.Agents) == 1 {
		name := r.Agents[0].Name
		return fmt.Sprintf("agent %s is paused and takes from no queue (signalbox resume %s)", name, signalbox.AgentQueue(name))
	}
	return fmt.Sprintf("all %d agents that could take it are paused (signalbox resume agent:NAME)", len(r.Agents))
}

const (
	// The sorts of slots. Slots for isolated executions are counted and numbered
	// separately.
	CommonSlots = iota
	IsolatedSlots
	SlotSorts // how many sorts there are
)

func SlotSort(isolated bool) int {
	if isolated {
		return IsolatedSlots
	}
	return CommonSlots
}

const (
	// FenceStep is how far an agent's report can raise the next fence above what the store has given. If an
	// agent's fences are further ahead, as after a restore, its next claims catch up.
	FenceStep = 1 << 20
	// FenceAhead is how far ahead a reported fence is accepted. A store's fences before a restore are never
	// further ahead: at a thousand claims a second it is 35 years.
	FenceAhead = 1 << 40
)

// NextFence returns the fence of a claim: above last, the highest that the store has given, and above what
// the agent has seen, within FenceStep. Without that bound one agent could use up the numbers of all.
//
// Errors: CodeValidation with the field highest_fence.
func NextFence(last, above int64) (int64, error) {
	if above-last > FenceAhead {
		return 0, signalbox.Invalid("highest_fence",
			"the agent reports fence %d, and this store has given %d at most: it cannot have seen that; empty the agent's data folder and start it anew", above, last)
	}
	return max(last, min(above, last+FenceStep)) + 1, nil
}
