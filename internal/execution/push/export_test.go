package push

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// CheckBooks says where what the dispatcher keeps beside its lanes does not
// agree with them.
func (d *Dispatcher) CheckBooks() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := map[*lane]bool{}
	for _, l := range d.open {
		open[l] = true
	}
	runs := 0
	for _, l := range d.order {
		if want := l.free() > len(l.signals); l.open != want || open[l] != want {
			return fmt.Errorf("lane %s: open is %v, listed %v, want %v", l.name, l.open, open[l], want)
		}
		isolated := 0
		for _, r := range l.runs {
			if r.isolated {
				isolated++
			}
		}
		if l.isolated != isolated {
			return fmt.Errorf("lane %s: counts %d isolated runs and has %d", l.name, l.isolated, isolated)
		}
		delete(open, l)
		runs += len(l.runs)
	}
	if len(open) > 0 {
		return fmt.Errorf("%d lanes are listed as open and not known", len(open))
	}
	if len(d.runs) > runs {
		return fmt.Errorf("%d runs are listed, the lanes have %d", len(d.runs), runs)
	}
	return nil
}

// Busy counts runs, and claims under way.
func (d *Dispatcher) Busy() int { return d.work.Left() }

// ResultOf is what is stored of an agent's last word.
func ResultOf(s api.AgentTaskStatus) *signalbox.Result { o, _ := execution.Outcome(s); return o.Result }

// HoldsLate reports whether an agent is held here that says busy to an offer of a
// term that is over: of one that another director has, or this one anew.
func HoldsLate() (theirs, anew bool) {
	before := &term{}
	for _, now := range []*term{nil, {}} {
		l := &lane{conn: &conn{}, probing: execution.NewSignal(), term: now}
		new(Dispatcher).hold(&run{lane: l, term: before}, "busy")
		if now == nil {
			theirs = l.offers.withheld()
		} else {
			anew = l.offers.withheld()
		}
	}
	return theirs, anew
}

// SlotsOf is how many slots an agent has that says it has n, and how many
// when its row has changed after that.
func SlotsOf(n int) (before, after int) {
	l := &lane{conn: &conn{}, probing: execution.NewSignal()}
	l.learn(api.AgentStatus{AgentKind: "demo", Slots: n})
	before = l.row.Slots
	l.change(signalbox.Agent{Slots: 1}, &conn{}, time.Time{})
	return before, l.row.Slots
}
