package push

import (
	"context"
	"net/http"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// withheld is a slot whose task was lost while its agent may still run it.
type withheld struct {
	signalbox.Slot
	id string // the agent's own id of the task, "" if unknown
}

// freeWithheld frees the slots of lost tasks that the agent no longer runs. lost are those
// that were withheld before its status s was requested.
func (d *Dispatcher) freeWithheld(ctx context.Context, l *lane, s api.AgentStatus, lost []withheld) {
	for _, w := range lost {
		if s.State != "idle" && d.stillRuns(ctx, l, w) {
			continue
		}
		if _, err := d.Engine.FreeSlot(ctx, w.Slot); err != nil {
			d.Log.Error("slot not freed, trying again", "agent", l.Name, "slot", w.Slot.Slot, "error", err)
			continue
		}
		d.Mu.Lock()
		l.withheld = slices.DeleteFunc(l.withheld, func(o withheld) bool { return o == w })
		if signalbox.Isolated(w.Slot.Slot) {
			l.Bypass.Check()
		}
		d.Update(l)
		d.SlotFreed()
		d.Mu.Unlock()
		d.Log.Info("", "agent", "slot_freed", "name", l.Name, "slot", w.Slot.Slot, "queue_id", w.TaskID)
	}
}

// stillRuns asks whether the agent still runs a lost task. Without the agent's id for it,
// only an idle status ends it.
func (d *Dispatcher) stillRuns(ctx context.Context, l *lane, w withheld) bool {
	if w.id == "" {
		return true
	}
	d.Mu.Lock()
	conn := l.conn
	d.Mu.Unlock()
	asking, cancel := context.WithTimeout(ctx, min(probeTimeout, d.opts.AskTimeout))
	defer cancel()
	s, err := conn.task(asking, w.id, 0)
	if statusOf(err) == http.StatusNotFound {
		return false
	}
	return err != nil || !execution.Ended(s.State)
}
