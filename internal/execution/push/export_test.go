package push

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// CheckBooks checks that the dispatcher's other records agree with its lanes.
func (d *Dispatcher) CheckBooks() error {
	d.Mu.Lock()
	defer d.Mu.Unlock()
	runs, ready := 0, false
	for _, l := range d.Order {
		if want := d.Free(l, false) > l.Announced(); l.Ready() != want {
			return fmt.Errorf("lane %s: ready is %v, want %v", l.Name, l.Ready(), want)
		}
		ready = ready || l.Ready()
		isolated := 0
		for _, r := range l.Runs {
			if r.Isolated {
				isolated++
			}
		}
		if l.InUse(true) != isolated {
			return fmt.Errorf("lane %s: counts %d isolated runs and has %d", l.Name, l.InUse(true), isolated)
		}
		runs += len(l.Runs)
	}
	if ready != d.AnyReady() {
		return fmt.Errorf("an agent is ready: %v, listed %v", ready, d.AnyReady())
	}
	if len(d.Runs) > runs {
		return fmt.Errorf("%d runs are listed, the lanes have %d", len(d.Runs), runs)
	}
	return nil
}

// Busy counts runs, and claims in progress.
func (d *Dispatcher) Busy() int { return d.work.Left() }

// ResultOf is the stored result of an agent's final report.
func ResultOf(s api.AgentTaskStatus) *signalbox.Result {
	o, _ := execution.Outcome(s, "", time.Time{})
	return o.Result
}

// HoldsLate reports whether an agent that says busy to an offer of an earlier term is held: theirs, if
// another director has it; anew, if this one has it again.
func HoldsLate() (theirs, anew bool) {
	before := &term{}
	for _, now := range []*term{nil, {}} {
		l := &lane{conn: &conn{}, probing: execution.NewSignal(), term: now}
		(&run{lane: l, term: before}).busy("busy")
		if now == nil {
			theirs = l.offers.withheld()
		} else {
			anew = l.offers.withheld()
		}
	}
	return theirs, anew
}

// SlotsOf returns the slots of an agent that reports n slots, before and after a change of its row.
func SlotsOf(n int) (before, after int) {
	l := &lane{conn: &conn{}, probing: execution.NewSignal()}
	l.applyStatus(api.AgentStatus{AgentKind: "demo", Slots: n})
	before = l.Row.Slots
	l.change(signalbox.Agent{Slots: 1}, &conn{}, time.Time{})
	return before, l.Row.Slots
}
