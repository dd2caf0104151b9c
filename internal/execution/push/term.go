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

// Where several directors are over one store, each agent has one that
// dispatches to it. The others have a lane for it as well, and ask it for its
// status, so that they can say how it is; but they offer it nothing, follow
// nothing at it, and judge nothing.

// term is the time in which this director dispatches to an agent.
type term struct {
	ctx  context.Context // of all that is done for it
	stop context.CancelFunc
	// group is all that is done for it, claims included. It grows only under
	// Mu, while the lane has this term.
	group sync.WaitGroup
	// ready says that what was in flight at its beginning has been taken up;
	// guarded by Mu.
	ready bool
}

// begin begins a term. Mu is held.
func (l *lane) begin(ctx context.Context) {
	t := &term{}
	t.ctx, t.stop = context.WithCancel(ctx)
	l.term = t
}

// ours reports whether this director dispatches to the agent, and has taken up
// what was in flight there.
func (l *lane) ours() bool { return l.term != nil && l.term.ready }

// in runs f as a part of a term of the lane, unless that is over. Mu
// is held.
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

// alone reports whether no other director is over the store.
func (d *Dispatcher) single() bool { return d.opts.Holds == nil }

// Names lists the agents of which each must be some director's: those that pull,
// too.
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

// Gained takes over agents: it goes on with what is in flight there, and then
// offers them tasks.
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

// takeOver takes up what is in flight at agents whose terms begin.
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
			d.Log.Error("tasks in flight not taken up, trying again", "error", err)
			execution.Sleep(d.Ctx, execution.StoreRetry)
			d.Turn("take over", who, 0)
		}
		d.startTerms(taken)
	})
}

// ready lets agents be offered tasks.
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

// Lost gives up agents that another director takes over, and returns when
// nothing is done for them here any more. What runs there is left as it is.
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

// Wants reports whether the row of the task that an entry of another director
// is about is needed here.
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

// Behind has all look for what they were not told of.
func (d *Dispatcher) Resync() {
	d.WakeAll()
	d.refresh.Request()
	d.Maintenance.RunNow()
	d.Spawn(func() { d.compareRuns(d.Ctx) })
}

// terms are the terms of all lanes that have one.
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
