package signalbox

import "time"

// Overlap says what becomes of a firing while the task of the one before has
// not ended.
type Overlap string

// The overlap policies. With all but OverlapAllow at most one task of the
// schedule is waiting or running at any time.
const (
	OverlapQueue  Overlap = "queue"           // it waits for the end of the one before; the default
	OverlapSkip   Overlap = "skip"            // it is left out, and recorded as SkippedBusy
	OverlapCancel Overlap = "cancel_previous" // the one before is cancelled; it is submitted when that has ended
	OverlapAllow  Overlap = "allow"           // it is submitted at once
)

// Overlaps lists the overlap policies.
func Overlaps() []Overlap {
	return []Overlap{OverlapQueue, OverlapSkip, OverlapCancel, OverlapAllow}
}

// Missed says what becomes of instants that passed while nothing could fire.
type Missed string

// The policies for missed instants. Those older than Schedule.MissedWindow are
// left out with all of them.
const (
	MissedSkip Missed = "skip" // they are left out
	MissedOnce Missed = "once" // the newest of them fires; the default
	MissedAll  Missed = "all"  // each fires, in order, at most MaxMissed of them
)

// MissedPolicies lists the policies for missed instants.
func MissedPolicies() []Missed { return []Missed{MissedSkip, MissedOnce, MissedAll} }

// OnFull says what becomes of a firing for which the queue has no room.
type OnFull string

// The policies for a full queue.
const (
	FullSkip  OnFull = "skip"  // it is left out, and recorded as SkippedQueueFull; the default
	FullRetry OnFull = "retry" // it is tried again until the next instant of the schedule
)

// OnFulls lists the policies for a full queue.
func OnFulls() []OnFull { return []OnFull{FullSkip, FullRetry} }

// Bounds of schedules.
const (
	MaxSchedules        = 20_000         // of one store
	MaxScheduleRuns     = 100            // that are kept of one schedule, the newest
	MaxMissed           = 1000           // instants that MissedAll makes up for at once, the newest
	MaxHeld             = 10             // firings of OverlapQueue that may wait for the one before; beyond them SkippedBusy
	DefaultMissedWindow = 24 * time.Hour // Schedule.MissedWindow unless given
	// OnTime is how late a firing may be before its instant counts as missed.
	OnTime = time.Minute
)

// ScheduleSource says where a schedule comes from.
type ScheduleSource string

// The sources of a schedule.
const (
	ScheduleFromAPI    ScheduleSource = "api"
	ScheduleFromConfig ScheduleSource = "config" // it is changed in the file, and follows it
)

// Schedule is the row of a schedule: what is submitted, when, and what it has
// come to. The seeds call it job (work-queue) and schedule (execution-queue).
type Schedule struct {
	ID  string // "sched-" and letters; of a job of the configuration, made of its name
	Rev int64  // grows by one with each write; set by the store

	Name        string // unique in a store, as ValidName has it
	Description string
	Cron        string // five fields or an @form, see internal/cron
	Timezone    string // IANA name, such as Europe/Berlin; "" is UTC
	Enabled     bool
	Source      ScheduleSource
	Owner       string // Principal.Key of who made it; its tasks are owned by the same
	OwnerEmail  string

	// What is submitted.
	Prompt         string
	Model          string
	Tier           string
	TimeoutSeconds int
	SessionID      string
	Project        *Project
	Thinking       *bool
	Agent          string
	Kind           string
	Priority       int
	OnLost         OnLost // "": as the director that fires it is configured

	Overlap      Overlap
	Missed       Missed
	MissedWindow time.Duration
	OnFull       OnFull

	CreatedAt time.Time
	UpdatedAt time.Time // of what a person changed

	// Cursor is the newest instant that was decided upon, whatever was decided:
	// none at or before it fires again. It moves forwards only, but that
	// enabling the schedule or changing its Cron or Timezone sets it to that
	// moment: what passed before is no missed instant.
	Cursor time.Time

	// What the newest firing came to, whose record is in its runs.
	LastRun     time.Time // when it fired
	LastStatus  RunStatus // "" before the first
	LastQueueID string    // of the newest firing that made a task
	LastError   string
	Workspace   *Workspace // of its tasks; nil: as their agent is configured
	Checking    Checking   // of its tasks
	Landing     *LandWish  // where the work of its tasks lands; nil: nowhere
}

// RunTrigger says what made a schedule fire.
type RunTrigger string

// The triggers.
const (
	TriggerCron   RunTrigger = "cron"
	TriggerMissed RunTrigger = "missed" // made up for
	TriggerManual RunTrigger = "manual"
)

// RunStatus says what a firing came to: the words of the seed work-queue for
// last_status, and two for what is not decided yet.
type RunStatus string

// The statuses. RunFiring and RunHeld are open: whoever runs the scheduler
// goes on with them after a restart.
const (
	RunFiring         RunStatus = "firing"              // it is being submitted, or will be tried again
	RunHeld           RunStatus = "held"                // it waits for the end of the task before
	RunQueued         RunStatus = "queued"              // it is a task
	SkippedQueueFull  RunStatus = "skipped_queue_full"  //
	SkippedBusy       RunStatus = "skipped_busy"        // the one before had not ended
	SkippedMissed     RunStatus = "skipped_missed"      // its instant had passed too long ago
	SkippedNoDirector RunStatus = "skipped_no_director" // there is nobody to submit to
	SkippedError      RunStatus = "skipped_error"       // the submit failed, see Error
)

// Open reports whether the firing is not decided yet.
func (s RunStatus) Open() bool { return s == RunFiring || s == RunHeld }

// Failed reports whether the firing made no task though it should have. One that
// the schedule's own policies left out has not failed.
func (s RunStatus) Failed() bool {
	return s == SkippedQueueFull || s == SkippedNoDirector || s == SkippedError
}

// ScheduleRun is the record of one firing of a schedule. Its task, where there
// is one, says itself how it fared: the record is not changed by that.
type ScheduleRun struct {
	// ID is RunID of the instant, so that an instant has one record at most;
	// of a manual trigger "run-" and letters.
	ID         string
	ScheduleID string
	Nominal    time.Time // the instant, UTC; of a manual trigger when it was asked for
	FiredAt    time.Time // when it was taken up
	EndedAt    time.Time // when Status was decided; zero while it is open
	Trigger    RunTrigger
	Status     RunStatus
	QueueID    string // RunQueued
	Previous   string // RunHeld: the task whose end it waits for
	Attempts   int    // submits that failed
	Error      string // why it made no task, or why the newest submit failed
	By         string // of a manual trigger: who
	Missed     int    // instants before it that were left out, with TriggerMissed and SkippedMissed
}

// RunID is the id of the firing of a schedule at an instant.
func RunID(nominal time.Time) string { return "at-" + nominal.UTC().Format("20060102T150405Z") }
