package director

import (
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// addCapacity tells of a running task what it waits for or holds at the tool
// queues: a task that runs can stand still all the same.
func (d *Director) addCapacity(out *api.Why, state signalbox.State, c caller) {
	if d.cfg.Tools == nil || state != signalbox.Working && state != signalbox.Cancelling {
		return
	}
	now := d.engine.Now()
	queues := d.cfg.Tools.Queues()
	for i := range queues {
		q := &queues[i]
		for _, w := range q.Waiters {
			if w.Execution == out.QueueID {
				addGate(out, waitingGate(q, w, now, c))
			}
		}
		for _, h := range q.Holders {
			if h.Execution == out.QueueID && !h.Idle {
				addGate(out, api.Gate{
					Name: gateCapacity, OK: true, Text: fmt.Sprintf("It holds a slot of %s", q.Name),
					Detail: fmt.Sprintf("calling %s for %s; %d of %d in use", h.Tool, span(now, h.Since), q.InUse, q.Concurrent),
				})
			}
		}
	}
}

// gateCapacity is the name of what a task waits for or holds at a tool queue.
const gateCapacity = "tool_capacity"

// addGate adds such a gate, and says it where it is shut.
func addGate(out *api.Why, g api.Gate) {
	out.Gates = append(out.Gates, g)
	if !g.OK {
		out.Summary += " It waits for capacity: " + g.Text + "."
	}
}

// waitingGate says what a call waits for, who has it, and what can be done.
func waitingGate(q *toolqueue.Status, w toolqueue.Waiter, now time.Time, c caller) api.Gate {
	g := api.Gate{
		Name: gateCapacity, Text: fmt.Sprintf("%s is full, %d of %d in use", q.Name, q.InUse, q.Concurrent),
		Detail: fmt.Sprintf("waiting %s to call %s, position %d of %d", span(now, w.Since), w.Tool, w.Position, q.Depth),
		Cure:   fmt.Sprintf("wait; signalbox tools queues shows who holds what, and queues.%s.concurrent is its capacity", q.Name),
	}
	var by []string
	for _, h := range q.Holders {
		if h.Agent == "" || !c.who.MayUse(h.Agent) {
			continue
		}
		by = append(by, h.Agent)
		g.Agent = h.Agent
	}
	if len(by) > 0 {
		g.Text += " by " + strings.Join(by, ", ")
	}
	return g
}

func span(now, since time.Time) time.Duration { return max(0, now.Sub(since)).Round(time.Second) }
