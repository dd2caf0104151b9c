package execution

import (
	"container/list"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Lane is what is known of one agent, whichever transport it has. All but Name is
// guarded by its book's lock, and Wake where a transport replaces it.
type Lane[R Follower] struct {
	Name string
	Wake Signal // something may be there for it

	Row          signalbox.Agent // with what the agent says of itself
	Isolated     int             // its slots for isolated executions, by its word
	HighestFence int64           // by its word
	Terminal     bool            // it offers terminals
	Presence     Presence
	Health       Health
	Bypass       Bypass
	Runs         map[string]R // by task, isolated ones too
	Progress     time.Time    // when one of them printed last, by the wall clock
	Removed      bool         // it is no longer known; it goes with its last run

	isolated     int           // runs that are
	refusedFence int64         // the highest fence for which it refused one of ours
	announced    []string      // queues it was woken for and has not looked at yet
	missed       int64         // Book.missed when it was last to be offered something
	drained      bool          // its own queue is paused: it is offered nothing until a queue is resumed
	all, kind    *list.Element // in Book.ready and Book.kinds, while it is there
	inKind       string
	reported     visibleState
}

// NewLane is of an agent that has just become known.
func NewLane[R Follower](row signalbox.Agent, now time.Time) Lane[R] {
	return Lane[R]{Name: row.Name, Row: row, Wake: NewSignal(), Presence: NewPresence(now), Runs: map[string]R{}}
}

// Base implements a part of Agent for whatever a Lane is embedded in.
func (l *Lane[R]) Base() *Lane[R] { return l }

// Ready reports whether it has room for which no task was announced.
func (l *Lane[R]) Ready() bool { return l.all != nil }

// Announced is how many tasks it was woken for and has not looked for yet.
func (l *Lane[R]) Announced() int { return len(l.announced) }

// InUse counts the runs in its slots, or in those for isolated executions.
func (l *Lane[R]) InUse(isolated bool) int {
	if isolated {
		return l.isolated
	}
	return len(l.Runs) - l.isolated
}

// PutRun adds a run.
func (l *Lane[R]) PutRun(f R) {
	r := f.Execution()
	l.Runs[r.ID] = f
	if r.Isolated {
		l.isolated++
	}
}

// TakeRun removes a run, and reports whether it was there.
func (l *Lane[R]) RemoveRun(r *Run) bool {
	f, there := l.Runs[r.ID]
	if !there || f.Execution() != r {
		return false
	}
	delete(l.Runs, r.ID)
	if r.Isolated {
		l.isolated--
	}
	return true
}

// shown is what is shown of an agent that no row says, apart from when it was
// heard. Two that are equal show the same.
type visibleState struct {
	slots, isolated                int
	kind, withheld, why, notes     string
	fencing, terminal, removed, up bool
	health                         Health
	printed                        int64 // sums up the seconds in which it and its runs printed last
}

func (l *Lane[R]) visibleState(withheld string) visibleState {
	s := visibleState{
		slots: l.Row.Slots, isolated: l.Isolated, kind: l.Row.Kind, withheld: withheld, why: l.Presence.why, fencing: l.Row.Fencing,
		terminal: l.Terminal, removed: l.Removed, up: l.Presence.Up(), health: l.Health, printed: l.Progress.Unix(),
	}
	for _, f := range l.Runs {
		r := f.Execution()
		s.printed += r.Printed.Unix()
		s.notes += r.Note
	}
	return s
}

// live is an agent as the engine sees it. Mu is held.
func (b *Registry[A, R]) live(a A) engine.LiveAgent {
	l := a.Base()
	v := engine.LiveAgent{
		Agent: l.Row, Up: l.Presence.Up(), InUse: l.InUse(false), IsolatedSlots: l.Isolated, IsolatedInUse: l.InUse(true),
		Terminal: l.Terminal, LastHeard: l.Presence.LastHeard(), LastProgress: l.Progress, Closed: l.Health.Closed(), Message: l.Presence.why,
	}
	if !v.Up {
		v.DownSince = b.Engine.Now().Add(-l.Presence.Away(b.opts.Monotonic()))
		v.StrandedAt = v.DownSince.Add(b.opts.SessionGrace)
	}
	if why := a.Withheld(); why != "" {
		v.Held = true
		if v.Up {
			v.Message = why
		}
	}
	if why := l.Health.Withholds(); why != "" && v.Up {
		v.Held, v.BackedOff, v.Message = true, true, why
	}
	if len(l.Runs) > 1 || l.Row.Slots > 1 { // what it says of its progress says nothing of one of them
		v.Progress = make(map[string]time.Time, len(l.Runs))
	}
	for id, f := range l.Runs {
		r := f.Execution()
		if v.Progress != nil {
			v.Progress[id] = r.Printed
		}
		if r.Note == "" {
			continue
		}
		if v.Notes == nil {
			v.Notes = map[string]string{}
		}
		v.Notes[id] = r.Note
	}
	a.Describe(&v)
	return v
}
