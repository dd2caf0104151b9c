package signalbox

import (
	"cmp"
	"fmt"
	"time"
)

// LandingState is the state of the landing of a task's work on a branch.
type LandingState string

// The states of a landing.
//
//	wanted ─the task completes─▶ queued ─submitted─▶ landing ─its task completes─▶ landed
//	                               ▲ ▲                 │ │ └─cannot be tried, or failed too often─▶ stands
//	                               │ └──────failed─────┘ └─conflict or checks─▶ returned ─turn failed─▶ stands
//	                               └────────────────the turn completes─────────────┘
//	stands, dropped ─someone asks─▶ queued      any but landed ─dropped─▶ dropped
const (
	LandingWanted   LandingState = "wanted"   // it is queued when the task completes
	LandingQueued   LandingState = "queued"   // its landing task is submitted next
	LandingActive   LandingState = "landing"  // LandTask is waiting or running
	LandingReturned LandingState = "returned" // Turn, a turn of the conversation, fixes the work
	LandingLanded   LandingState = "landed"
	LandingStands   LandingState = "stands" // a person must decide
	LandingDropped  LandingState = "dropped"
)

// LandingStates lists all states.
func LandingStates() []LandingState {
	return []LandingState{LandingWanted, LandingQueued, LandingActive, LandingReturned, LandingLanded, LandingStands, LandingDropped}
}

// Landing is the progress of a task's work towards a branch.
type Landing struct {
	LandWish
	State    LandingState
	LandTask string // current or last landing task
	Turn     string // current or last turn that fixes the work
	Submits  int    // landing tasks so far
	Failures int    // landing tasks that failed in a row, except for conflicts and checks
	Rounds   int    // fixing turns in a row
	// NotBefore is the earliest time of the next submit after a failure.
	NotBefore time.Time
	Commit    string // head of the branch with the work
	Was       string // head of the branch before; "" for a pull request
	URL       string // of the pull request
	Text      string // why it did not land, at most MaxLandingText bytes
	By        string // who asked for it
	At        time.Time
	Since     time.Time // when it entered State
}

// Bounds on landings.
const (
	MaxLandingText     = 1000 // bytes
	MaxLandingRounds   = 10
	MaxLandingFailures = 5
	maxLandOnto        = 200 // bytes

	firstLandingRetry = 5 * time.Second // doubles with each failure
)

// LandingEventKind names what happens to a landing.
type LandingEventKind string

// The events of a landing.
const (
	LandingAsked        LandingEventKind = "asked"     // someone asked to land the work of a completed task on Wish.Onto
	LandingSubmitted    LandingEventKind = "submitted" // Task was submitted to land it
	LandingDone         LandingEventKind = "done"      // it has landed; Done says where
	LandingBack         LandingEventKind = "back"      // conflict or failed checks: the conversation has to fix it, at most Rounds times
	LandingFixSubmitted LandingEventKind = "turned"    // Task, a turn of the conversation, was submitted to fix it
	LandingFixed        LandingEventKind = "mended"    // that turn has completed
	LandingFailed       LandingEventKind = "failed"    // the landing task failed for another reason: it is retried
	LandingStopped      LandingEventKind = "stopped"   // only a person can resolve it
	LandingDrop         LandingEventKind = "drop"      // it is no longer wanted
)

// LandingEventKinds lists all events of landings.
func LandingEventKinds() []LandingEventKind {
	return []LandingEventKind{LandingAsked, LandingSubmitted, LandingDone, LandingBack, LandingFixSubmitted, LandingFixed, LandingFailed, LandingStopped, LandingDrop}
}

// LandingEvent is something that happened to a landing.
type LandingEvent struct {
	Kind   LandingEventKind
	Now    time.Time
	Wish   LandWish // asked
	By     string   // asked, drop: who
	Task   string   // id. submitted, turned: of the new task; done, back, failed: of the landing task; mended, stopped: of the task that ended
	Done   Landed   // done
	Rounds int      // back: the maximum
	Text   string   // back, failed, stopped, drop: why
}

// Active reports whether the landing proceeds without a person.
func (l *Landing) Active() bool {
	return l != nil && (l.State == LandingQueued || l.State == LandingActive || l.State == LandingReturned)
}

// Open reports whether the landing of an ended task is neither done nor dropped.
func (l *Landing) Open() bool { return l.Active() || l != nil && l.State == LandingStands }

// NextLanding applies an event to the landing of a task (nil: none so far) and returns the
// landing after it. It returns l itself and a nil error if nothing changes.
//
// Errors: CodeConflict if the event is not possible in that state.
func NextLanding(l *Landing, ev LandingEvent) (*Landing, error) {
	var n Landing
	if l != nil {
		n = *l
	}
	at := func(state LandingState, text string) (*Landing, error) {
		if n.State != state {
			n.Since = ev.Now
		}
		n.State, n.Text = state, clip(text, MaxLandingText)
		return &n, nil
	}
	current := n.State == LandingActive && n.LandTask == ev.Task || n.State == LandingReturned && n.Turn == ev.Task
	switch ev.Kind {
	case LandingAsked:
		switch {
		case n.State == LandingLanded:
			return l, Errorf(CodeConflict, "it has landed on %s already, as %s: the work of a later turn lands with that turn", n.Onto, cmp.Or(n.Commit, n.URL))
		case n.Active() && n.LandWish == ev.Wish:
			return l, nil
		case n.Active():
			return l, Errorf(CodeConflict, "it is on its way to %s already: drop that first", n.Onto)
		}
		n.LandWish, n.By, n.At, n.Failures, n.Rounds, n.NotBefore = ev.Wish, ev.By, ev.Now, 0, 0, time.Time{}
		return at(LandingQueued, "")
	case LandingSubmitted:
		if n.State == LandingQueued {
			n.LandTask, n.Turn, n.Submits = ev.Task, "", n.Submits+1
			return at(LandingActive, n.Text)
		}
	case LandingDone:
		if n.State == LandingActive && current {
			n.Commit, n.Was, n.URL = ev.Done.Commit, ev.Done.Was, ev.Done.URL
			return at(LandingLanded, "")
		}
	case LandingBack:
		if n.State == LandingActive && current {
			if n.Failures = 0; n.Rounds >= ev.Rounds {
				return at(LandingStands, ev.Text)
			}
			n.Rounds++
			return at(LandingReturned, ev.Text)
		}
	case LandingFixSubmitted:
		if n.State == LandingReturned && n.Turn == "" {
			n.Turn = ev.Task
			return at(LandingReturned, n.Text)
		}
	case LandingFixed:
		if n.State == LandingReturned && current {
			return at(LandingQueued, "")
		}
	case LandingFailed:
		if n.State == LandingActive && current {
			if n.Failures++; n.Failures >= MaxLandingFailures {
				return at(LandingStands, fmt.Sprintf("gave up after %d tries: %s", n.Failures, ev.Text))
			}
			n.NotBefore = ev.Now.Add(firstLandingRetry << (n.Failures - 1))
			return at(LandingQueued, ev.Text)
		}
	case LandingStopped:
		if n.State == LandingQueued || current {
			return at(LandingStands, ev.Text)
		}
	case LandingDrop:
		switch n.State {
		case LandingLanded:
			return l, Errorf(CodeConflict, "it has landed on %s already", n.Onto)
		case LandingDropped, "":
			return l, nil
		}
		return at(LandingDropped, ev.Text)
	}
	return l, Errorf(CodeConflict, "a landing that is %s cannot be %s", cmp.Or(string(n.State), "not wanted"), ev.Kind)
}

// String describes the state of the landing, as shown to users.
func (l *Landing) String() string {
	why := ""
	if l.Text != "" {
		why = ": " + l.Text
	}
	onto := "on " + l.Onto
	if l.Onto == LandPR {
		onto = "as a pull request"
	}
	switch l.State {
	case LandingWanted:
		return "it lands " + onto + " when it is completed"
	case LandingQueued:
		return "it is to land " + onto + why
	case LandingActive:
		return "it lands " + onto + " by " + l.LandTask
	case LandingReturned:
		return "its conversation fixes what keeps it from landing " + onto + why
	case LandingLanded:
		return "it has landed " + onto + " as " + cmp.Or(l.URL, l.Commit)
	case LandingStands:
		return "it has not landed " + onto + ", and needs you" + why
	}
	return "it does not land" + why
}

// SettleLanding queues or drops the wanted landing of a task that has just ended. Only the work
// of a completed task lands, and only if no cancel was requested.
func (t *Task) SettleLanding(now time.Time) {
	if t.Landing == nil || t.Landing.State != LandingWanted {
		return
	}
	l := *t.Landing
	if l.State, l.Since = LandingQueued, now; t.State != Completed || t.CancelRequested {
		l.State, l.Text = LandingDropped, "the task "+map[bool]string{false: "is " + string(t.State), true: "was to be cancelled"}[t.State == Completed]
	}
	t.Landing = &l
}

// ChangeLanding returns the change that ev makes to the landing of a task, ready to be stored; ok
// is false if there is no change.
//
// Errors: those of NextLanding; CodeConflict if the task has not completed. A wish can be dropped
// before the task ends.
func (t *Task) ChangeLanding(ev LandingEvent) (c Change, ok bool, err error) {
	if t.State != Completed && (ev.Kind != LandingDrop || t.State.Terminal()) {
		return c, false, Errorf(CodeConflict, "task %s is %s: only completed tasks land", t.ID, t.State)
	}
	l, err := NextLanding(t.Landing, ev)
	if err != nil || l == t.Landing {
		return c, false, err
	}
	c.Task = *t
	c.Task.Landing = l
	// The entry has no state, because the state of the task does not change.
	c.Entry = Entry{At: ev.Now, Kind: EventLanding, QueueID: t.ID, Message: l.String(), Queue: t.Queue, Agent: t.Agent, Source: t.Source, By: ev.By, Owner: t.Owner}
	return c, true, nil
}

// WishAgain returns where the work of a retry is to land: where the work of the task was to land.
// It returns nil if someone dropped the landing; a landing that the end of the task dropped is
// kept.
func (t *Task) WishAgain() *LandWish {
	l := t.Landing
	if l == nil || l.State == LandingDropped && (t.State == Completed || l.Since.Before(t.EndedAt)) {
		return nil
	}
	return &l.LandWish
}

// CheckRetry refuses a task that cannot be submitted again.
func (t *Task) CheckRetry() error {
	switch {
	case !t.State.Terminal():
		return Errorf(CodeConflict, "task %s is %s: it can be retried when it has ended; cancel it first", t.ID, t.State)
	case t.Mode == ModeTool: // only the gateway knows the current requirements of the tool
		return Errorf(CodeUnsupported, "task %s is a call of the tool %s: call the tool anew", t.ID, t.Tool)
	case t.Mode == ModeLand:
		return Errorf(CodeConflict, "task %s lands the work of another one: signalbox land %s", t.ID, t.RetryOf)
	case t.Landing != nil && t.Landing.State == LandingLanded:
		return Errorf(CodeConflict, "the work of task %s has landed on %s: submit what else is to be done as a task of its own", t.ID, t.Landing.Onto)
	case t.Landing.Active():
		return Errorf(CodeConflict, "the work of task %s is on its way to %s: drop that first, or wait", t.ID, t.Landing.Onto)
	}
	return nil
}
