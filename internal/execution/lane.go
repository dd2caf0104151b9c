package execution

import (
	"container/list"
	"regexp"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Lane is the state of one agent, common to all transports. Everything but Name is guarded
// by Registry.Mu; Wake too, where a transport replaces it.
type Lane[R Follower] struct {
	Name string
	Wake Signal // it may have something to claim

	Row          signalbox.Agent // updated with what the agent reports
	Isolated     int             // slots for isolated executions, as reported
	HighestFence int64           // as reported
	Terminal     bool            // it offers terminals
	Full         string          // why it takes no tasks now, isolated ones aside, as reported
	Presence     Presence
	Health       Health
	Bypass       Bypass
	Runs         map[string]R // by task, isolated ones too
	Progress     time.Time    // wall clock: when one of its runs last printed something
	Removed      bool         // its row is gone; it is kept until its last run ends

	isolated     int           // number of isolated runs
	refusedFence int64         // the highest fence that it named when it refused one of ours as stale
	announced    []string      // queues it was woken for and has not claimed from yet
	missed       int64         // Registry.missed at its last claim
	drained      bool          // it is drained or its account is not open: no claims until a queue is resumed or an account changes
	short        bool          // what it could claim needs resources that others hold: no task of a shared queue is announced to it until one is given back
	all, kind    *list.Element // elements of Registry.ready and Registry.kinds; nil if not listed
	inKind       string
	reported     visibleState
}

// ReportFolder records where the agent's runs work, as it reports.
func (l *Lane[R]) ReportFolder(dir, workspace, id string) {
	l.Row.Folder, l.Row.Workplace = "", signalbox.WorkplaceFolder
	if folderID.MatchString(id) {
		l.Row.Folder = id
	}
	if l.Row.WorkDir == "" {
		l.Row.WorkDir = clip(SanitizeText(dir), maxText)
	}
	if workspace != "" && workspace != string(signalbox.WorkplaceFolder) {
		l.Row.Workplace = signalbox.WorkplaceOther
	}
}

// ReportFull records why the agent takes no tasks, as it reports; "" if it takes some.
func (l *Lane[R]) ReportFull(why string) { l.Full = SanitizeText(why) }

var folderID = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// NewLane returns the lane of a newly known agent.
func NewLane[R Follower](row signalbox.Agent, now time.Time) Lane[R] {
	return Lane[R]{Name: row.Name, Row: row, Wake: NewSignal(), Presence: NewPresence(now), Runs: map[string]R{}}
}

// Base implements part of Agent.
func (l *Lane[R]) Base() *Lane[R] { return l }

// Ready reports whether it has room for which no task was announced.
func (l *Lane[R]) Ready() bool { return l.all != nil }

// Announced is how many tasks it was woken for and has not tried to claim yet.
func (l *Lane[R]) Announced() int { return len(l.announced) }

// InUse counts the runs in its slots, or in its isolated slots.
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

// RemoveRun removes a run, and reports whether it was there.
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

// visibleState is the part of a LiveAgent that is in no row, LastHeard excluded. Equal
// values look the same.
type visibleState struct {
	slots, isolated                int
	kind, withheld, why, notes     string
	account                        string
	fencing, terminal, removed, up bool
	health                         Health
	printed                        int64 // sum of the seconds at which it and its runs last printed something
}

func (l *Lane[R]) visibleState(withheld string) visibleState {
	s := visibleState{
		slots: l.Row.Slots, isolated: l.Isolated, kind: l.Row.Kind, withheld: withheld, why: l.Presence.why, fencing: l.Row.Fencing, account: l.Row.Account,
		terminal: l.Terminal, removed: l.Removed, up: l.Presence.Up(), health: l.Health, printed: l.Progress.Unix(),
	}
	for _, f := range l.Runs {
		r := f.Execution()
		s.printed += r.Printed.Unix()
		s.notes += r.Note
	}
	return s
}

// live returns the LiveAgent of an agent. Mu is held.
func (b *Registry[A, R]) live(a A) engine.LiveAgent {
	l := a.Base()
	row := l.Row
	row.Full = l.Full
	v := engine.LiveAgent{
		Agent: row, Up: l.Presence.Up(), InUse: l.InUse(false), IsolatedSlots: l.Isolated, IsolatedInUse: l.InUse(true),
		Terminal: l.Terminal, LastHeard: l.Presence.LastHeard(), LastProgress: l.Progress, Closed: l.Health.Closed(l.Name), Message: l.Presence.why,
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
	if why := l.Health.Withholds(l.Name); why != "" && v.Up {
		v.Held, v.BackedOff, v.Message = true, true, why
	}
	if len(l.Runs) > 1 || l.Row.Slots > 1 { // the agent's progress says nothing about a single run
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
