package signalbox

import "time"

// Overlap says what happens to a firing while the task of the previous firing
// has not ended.
type Overlap string

// The overlap policies. With all except OverlapAllow, at most one task of the
// schedule is waiting or running at any time.
const (
	OverlapQueue  Overlap = "queue"           // it waits for the end of the previous task; the default
	OverlapSkip   Overlap = "skip"            // it is skipped and recorded as SkippedBusy
	OverlapCancel Overlap = "cancel_previous" // the previous task is cancelled; it is submitted once that has ended
	OverlapAllow  Overlap = "allow"           // it is submitted at once
)

// Overlaps lists the overlap policies.
func Overlaps() []Overlap {
	return []Overlap{OverlapQueue, OverlapSkip, OverlapCancel, OverlapAllow}
}

// Missed says what happens to instants that passed while nothing could fire.
type Missed string

// The policies for missed instants. All of them skip instants older than
// Schedule.MissedWindow.
const (
	MissedSkip Missed = "skip" // none fires
	MissedOnce Missed = "once" // the newest fires; the default
	MissedAll  Missed = "all"  // each fires, in order, at most MaxMissed
)

// MissedPolicies lists the policies for missed instants.
func MissedPolicies() []Missed { return []Missed{MissedSkip, MissedOnce, MissedAll} }

// OnFull says what happens to a firing when the queue is full.
type OnFull string

// The policies for a full queue.
const (
	FullSkip  OnFull = "skip"  // it is skipped and recorded as SkippedQueueFull; the default
	FullRetry OnFull = "retry" // it is retried until the next instant of the schedule
)

// OnFulls lists the policies for a full queue.
func OnFulls() []OnFull { return []OnFull{FullSkip, FullRetry} }

// Limits of schedules.
const (
	MaxSchedules        = 20_000         // per store
	MaxScheduleRuns     = 100            // newest runs kept per schedule
	MaxMissed           = 1000           // newest instants that MissedAll fires at once
	MaxHeld             = 10             // firings of OverlapQueue that may wait for the previous task; further ones are SkippedBusy
	DefaultMissedWindow = 24 * time.Hour // Schedule.MissedWindow unless given
	// OnTime is how late a firing may be before its instant counts as missed.
	OnTime = time.Minute
)

// ScheduleSource says where a schedule comes from.
type ScheduleSource string

// The sources of a schedule.
const (
	ScheduleFromAPI    ScheduleSource = "api"
	ScheduleFromConfig ScheduleSource = "config" // it follows the configuration file and is changed only there
)

// Schedule is the row of a schedule: what is submitted, when, and the outcome of
// its newest firing. The seeds call it job (work-queue) and schedule
// (execution-queue).
type Schedule struct {
	ID  string // "sched-" and letters; for a job of the configuration, derived from its name
	Rev int64  // grows by one with each write; set by the store

	Name        string // unique in a store, a valid name (ValidName)
	Description string
	Cron        string // five fields or an @form, see internal/cron
	Timezone    string // IANA name, such as Europe/Berlin; "" is UTC
	Enabled     bool
	Source      ScheduleSource
	Owner       string // Principal.Key of its creator, who also owns its tasks
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
	OnLost         OnLost // "": the default of the director that fires it

	Overlap      Overlap
	Missed       Missed
	MissedWindow time.Duration
	OnFull       OnFull

	CreatedAt time.Time
	UpdatedAt time.Time // when a person last changed it

	// Cursor is the newest instant that was decided. No instant at or before it
	// fires again. It only moves forwards, with one exception: enabling the
	// schedule or changing its Cron or Timezone sets it to the current time, so
	// that earlier instants do not count as missed.
	Cursor time.Time

	// The outcome of the newest firing, whose record is in its runs.
	LastRun     time.Time // when it fired
	LastStatus  RunStatus // "" before the first
	LastQueueID string    // of the newest firing that created a task
	LastError   string
	Workspace   *Workspace // of its tasks; nil: the agent's default
	Checking    Checking   // of its tasks
	Landing     *LandWish  // where the work of its tasks lands; nil: nowhere
}

// RunTrigger says what made a schedule fire.
type RunTrigger string

// The triggers.
const (
	TriggerCron   RunTrigger = "cron"
	TriggerMissed RunTrigger = "missed" // a missed instant
	TriggerManual RunTrigger = "manual"
)

// RunStatus is the outcome of a firing: the values that the seed work-queue has for
// last_status, and two for firings that are not decided yet.
type RunStatus string

// The statuses. RunFiring and RunHeld are open: the scheduler continues them
// after a restart.
const (
	RunFiring         RunStatus = "firing"              // it is being submitted or will be retried
	RunHeld           RunStatus = "held"                // it waits for the end of the previous task
	RunQueued         RunStatus = "queued"              // it was submitted as a task
	SkippedQueueFull  RunStatus = "skipped_queue_full"  //
	SkippedBusy       RunStatus = "skipped_busy"        // the previous task had not ended
	SkippedMissed     RunStatus = "skipped_missed"      // its instant had passed too long ago
	SkippedNoDirector RunStatus = "skipped_no_director" // there is no director to submit to
	SkippedError      RunStatus = "skipped_error"       // the submit failed, see Error
)

// Open reports whether the firing is not decided yet.
func (s RunStatus) Open() bool { return s == RunFiring || s == RunHeld }

// Failed reports whether the firing should have created a task but did not. A firing
// that the schedule's own policies skipped has not failed.
func (s RunStatus) Failed() bool {
	return s == SkippedQueueFull || s == SkippedNoDirector || s == SkippedError
}

// ScheduleRun is the record of one firing of a schedule. It does not change with
// the outcome of its task, which the task's own row holds.
type ScheduleRun struct {
	// ID is RunID of the instant, so that an instant has at most one record. For a
	// manual trigger it is "run-" and letters.
	ID         string
	ScheduleID string
	Nominal    time.Time // the instant, UTC; for a manual trigger the time of the request
	FiredAt    time.Time // when the scheduler handled it
	EndedAt    time.Time // when Status was decided; zero while it is open
	Trigger    RunTrigger
	Status     RunStatus
	QueueID    string // RunQueued
	Previous   string // RunHeld: the task whose end it waits for
	Attempts   int    // submits that failed
	Error      string // why it created no task, or why the newest submit failed
	By         string // who fired it, for a manual trigger
	Missed     int    // earlier instants that were skipped, with TriggerMissed and SkippedMissed
}

// RunID returns the id of the firing of a schedule at an instant.
func RunID(nominal time.Time) string { return "at-" + nominal.UTC().Format("20060102T150405Z") }
