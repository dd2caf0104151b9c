package push

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// If several directors share a store, each agent is dispatched to by one of them. The
// others have a lane for it as well, and request its status to show it, but offer it
// nothing, follow nothing there, and decide nothing.

// term is a period in which this director dispatches to an agent.
type term struct {
	ctx  context.Context // of everything done in the term
	stop context.CancelFunc
	// group counts everything done in the term, claims included. It grows only under Mu,
	// while the lane has this term.
	group sync.WaitGroup
	// ready: the tasks in flight at its start have been adopted; guarded by Mu.
	ready bool
}

// begin starts a term. Mu is held.
func (l *lane) begin(ctx context.Context) {
	t := &term{}
	t.ctx, t.stop = context.WithCancel(ctx)
	l.term = t
}

// ours reports whether this director dispatches to the agent, and has adopted the tasks in
// flight there.
func (l *lane) ours() bool { return l.term != nil && l.term.ready }

// goInTerm runs f on a goroutine of a term, unless the term is over. Mu is held.
func (d *Dispatcher) goInTerm(l *lane, t *term, f func()) bool {
	if d.Stopped || t == nil || l.term != t {
		return false
	}
	t.group.Add(1)
	d.Group.Go(func() {
		defer t.group.Done()
		f()
	})
	return true
}

// single reports whether this is the only director over the store.
func (d *Dispatcher) single() bool { return d.opts.Holds == nil }

// Names lists the agents that some director must hold, pull agents included.
func (d *Dispatcher) Names() []string {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	names := slices.AppendSeq(make([]string, 0, len(d.Order)+len(d.pulls)), maps.Keys(d.pulls))
	for _, l := range d.Order {
		if !l.Removed {
			names = append(names, l.Name)
		}
	}
	return names
}

// Gained starts terms for agents: their tasks in flight are adopted, then they are offered
// tasks.
func (d *Dispatcher) Gained(agents []string) {
	d.Mu.Lock()
	taken := map[string]*term{}
	for _, name := range agents {
		d.mine[name] = true
		if l := d.Lanes[name]; l != nil && l.term == nil && !d.Stopped {
			l.begin(d.Ctx)
			taken[name] = l.term
		}
	}
	d.Mu.Unlock()
	d.adoptAgents(taken)
}

// adoptAgents adopts the tasks in flight at agents whose terms start.
func (d *Dispatcher) adoptAgents(taken map[string]*term) {
	if len(taken) == 0 {
		return
	}
	d.Spawn(func() {
		who := strings.Join(slices.Sorted(maps.Keys(taken)), " ")
		d.Turn("take over", who, 0)
		for d.Ctx.Err() == nil {
			err := d.adopt(d.Ctx, taken)
			if err == nil {
				break
			}
			d.Log.Error("tasks in flight not adopted, trying again", "error", err)
			execution.Sleep(d.Ctx, execution.StoreRetry)
			d.Turn("take over", who, 0)
		}
		d.startTerms(taken)
	})
}

// startTerms allows offers to agents.
func (d *Dispatcher) startTerms(taken map[string]*term) {
	var lanes []*lane
	d.Mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		t, l := taken[name], d.Lanes[name]
		if l == nil || l.term != t {
			continue
		}
		t.ready = true
		l.stale = true
		l.Bypass.Check()
		l.sessionSync.request()
		if l.offers.lostData() {
			l.hold(reasonDataLoss)
		}
		d.Update(l)
		l.probing.Send()
		l.Wake.Send()
		lanes = append(lanes, l)
	}
	d.Mu.Unlock()
	for _, l := range lanes {
		d.syncSessions(l)
	}
}

// Lost ends the terms of agents that another director takes over. When it returns, nothing more is done for
// them here. Their runs continue.
func (d *Dispatcher) Lost(agents []string) {
	var over []*term
	d.Mu.Lock()
	for _, name := range agents {
		delete(d.mine, name)
		l := d.Lanes[name]
		if l == nil || l.term == nil {
			continue
		}
		over = append(over, l.term)
		l.term.stop()
		l.term = nil
		l.withheld = nil
		l.offers.handedOver()
		d.PassOn(l)
	}
	d.Mu.Unlock()
	for _, t := range over {
		t.group.Wait()
	}
	d.Turn("lost", strings.Join(agents, " "), 0)
}

// NeedsRow reports whether the row of the task that a foreign journal entry is about is
// needed here.
func (d *Dispatcher) NeedsRow(e *signalbox.Entry) bool {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	switch {
	case d.Runs[e.QueueID] != nil:
		return true
	case e.State == signalbox.Pending:
		return d.WantsOf(e.Queue)
	}
	// The end of a turn may have made the next one of its session ready.
	return e.State.Terminal() && d.AnyReady()
}

// Resync recovers from missed journal entries.
func (d *Dispatcher) Resync() {
	d.WakeAll()
	d.refresh.Request()
	d.Maintenance.RunNow()
	d.Spawn(func() { d.compareRuns(d.Ctx) })
}

// terms returns all current terms, by agent.
func (d *Dispatcher) terms() map[string]*term {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	all := map[string]*term{}
	for name, l := range d.Lanes {
		if l.term != nil {
			all[name] = l.term
		}
	}
	return all
}
