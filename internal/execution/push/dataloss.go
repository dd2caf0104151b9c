package push

import (
	"context"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// reasonDataLoss is why agents are held after the store has lost data.
const reasonDataLoss = "the store lost what it had acknowledged last: it is offered nothing until it is idle, or runs only what is known"

// OnDataLoss handles that the store lost acknowledged data: agents may run tasks that it no
// longer knows. Each agent is held until it reports that it is idle, or what it runs; runs
// here that the store lost are told to stop.
func (d *Dispatcher) OnDataLoss() {
	d.Mu.Lock()
	n := 0
	for _, l := range d.Order {
		l.offers.onDataLoss()
		if l.ours() {
			n++
			l.epoch++
			l.stale = true
			d.Update(l)
			l.probing.Send()
		}
	}
	d.Mu.Unlock()
	d.Log.Error("the store lost what it had acknowledged: agents are asked what they run before they are offered anything", "agents", n)
	d.Spawn(func() { d.compareRuns(d.Ctx) })
}

// compareRuns compares all runs with their rows: runs that another director ended or the
// store lost become orphans, and missed cancels are sent.
func (d *Dispatcher) compareRuns(ctx context.Context) {
	d.Turn("compare", "", 0)
	var void []*run
	runs := d.running() // read before the rows, so that new runs are not compared
	execution.CompareRows(ctx, d.Engine.Read(), runs, func(r *run) { void = append(void, r) }, func(r *run, t *signalbox.Task) {
		if t.State == signalbox.Cancelling {
			r.setRow(*t)
			d.sendCancel(r)
		}
	})
	if len(void) == 0 {
		return
	}
	slept := execution.Sleep(ctx, d.opts.Confirm) // one that has just ended is about to be removed
	d.Turn("compare", "", 0)
	if !slept {
		return
	}
	d.Mu.Lock()
	defer d.Mu.Unlock()
	for _, r := range void {
		if d.Runs[r.ID] != r {
			continue
		}
		d.Log.Warn("an execution no longer belongs to this director", "queue_id", r.ID, "agent", r.lane.Name, "fence", r.Fence)
		d.remove(r)
		d.Update(r.lane)
		d.trackLocked(r)
	}
}

// foreignEnd handles that another director ended an execution, or took it from its agent.
func (d *Dispatcher) foreignEnd(t signalbox.Task, kind signalbox.EventKind) {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	l := d.Lanes[t.Agent]
	if l == nil {
		return
	}
	r := l.Runs[t.ID]
	if r == nil || r.Fence != t.Fence {
		return
	}
	d.remove(r)
	d.Update(l)
	if kind != signalbox.EventFinish && r.agentTask != "" {
		d.trackLocked(r)
		return
	}
	r.stop()
}

// CheckGeneration calls OnDataLoss if the store has started a new generation.
func (d *Dispatcher) CheckGeneration() {
	if d.opts.Generation == nil {
		return
	}
	if now := d.opts.Generation(); d.generation.Swap(now) != now {
		d.OnDataLoss()
	}
}

// dataLossSuspected reports whether a task just claimed for an agent must not be sent: the
// claim itself may have discovered that the store had lost data.
func (d *Dispatcher) dataLossSuspected(l *lane) bool {
	d.CheckGeneration()
	d.Mu.Lock()
	defer d.Mu.Unlock()
	return l.offers.lostData()
}
