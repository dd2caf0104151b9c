package store

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// ErrStale is returned by Apply and PutSession when the row is no longer the
// one that the change was made from: read it again, decide again.
var ErrStale = errors.New("the row changed in the meantime")

// Store keeps everything that must outlive the process.
type Store interface {
	Writer
	Reader
	// Info says what the store is and what it promises.
	Info() Info
	// Close waits for running verbs and lets go of the store.
	Close() error
}

// Writer holds the verbs that change something. All are safe for concurrent
// use.
type Writer interface {
	// Submit stores a new pending task, unless its limit is reached
	// (CodeQueueFull) or its idempotency key was used before: with the same
	// hash the task of that time is returned with Replayed set, with another
	// one CodeIdempotency. If the task has a SessionID and a Session row
	// names its agent, and the submission says so, the task's queue becomes
	// the queue of that agent. With a Room it may be refused as
	// CodeAgentBusy; with a Talk the store chooses its session, and refuses
	// one that is not active (CodeConflict). The checks come in this order:
	// key, id, session, room, limit.
	Submit(ctx context.Context, s Submission) (Submitted, error)

	// Restore stores a task as another store had it: one that waits, at the end
	// of its queue (EnqueuedAt is the one it comes with, or the newest so far,
	// whichever is later), or one that has ended, with its result. It looks at
	// no limit, room or session. CodeConflict where its id or its idempotency
	// key is taken, and for a task in flight. Its entry is RestoreEntry.
	Restore(ctx context.Context, r Restored) (signalbox.Task, error)

	// Claim gives the best ready task of the request's queues to a free slot
	// of the agent: lowest order key, then lowest place. Found is false when
	// the agent has no free slot, the fleet's ceiling is reached, or nothing
	// ready waits in a queue that is not paused. A pause of the agent's own
	// queue keeps it from all queues: it is drained. Isolated slots are
	// counted and numbered apart from the others, and drained only by a pause
	// of their own queue or of all.
	Claim(ctx context.Context, c ClaimRequest) (Claimed, error)

	// Apply writes a change where the row still has revision
	// change.Task.Rev, else ErrStale. With it, in the same step: the slot
	// row, the session row (pending tasks of that session which wait in
	// another queue than an agent's own move to the agent's queue), the
	// result, the erased environment of a task that ended, the readiness of
	// the task and of the next one of its session, and the journal entry.
	// It returns the row as stored.
	Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error)

	// Renew moves the end of slot leases. Leases that no longer exist with
	// that fence are left out of the count.
	Renew(ctx context.Context, leases []Lease) (renewed int, err error)

	// FreeSlot removes a withheld slot row, if it is still there with that
	// fence. It does not touch a slot whose task is in flight.
	FreeSlot(ctx context.Context, agent string, slot int, fence int64) (freed bool, err error)

	// Wake makes due tasks ready, at most limit, and says when the next one
	// that waits for its time is due (zero: none).
	Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error)

	// PutAgent stores an agent by name. The entry is written when it is new
	// or differs from what was stored.
	PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) error
	// RemoveAgent forgets an agent. CodeConflict if it holds slots.
	RemoveAgent(ctx context.Context, name string, entry signalbox.Entry) error

	// PutSession stores after by its id where the stored row is still before
	// (the zero before: where there is none), else ErrStale. One that is not
	// to be active is refused with CodeConflict while a turn of it is pending
	// or in flight. One that is Current takes that from the agent's other
	// sessions; one without a State is active. The entry is written when it is
	// new or differs from what was stored.
	PutSession(ctx context.Context, before, after signalbox.Session, entry signalbox.Entry) error

	// KeepStale keeps what a void execution of a task said, beside what is
	// kept already, by its fence: the newest signalbox.MaxStale. It changes
	// nothing of the task. CodeNotFound if there is no task.
	KeepStale(ctx context.Context, id string, s signalbox.Stale) error

	// PutToken stores a token by id, PutUser a user by id. Delete forgets
	// them and reports whether they were there.
	PutToken(ctx context.Context, t signalbox.Token) error
	DeleteToken(ctx context.Context, id string) (was bool, err error)
	PutUser(ctx context.Context, u signalbox.User) error
	DeleteUser(ctx context.Context, id string) (was bool, err error)

	// AppendAudit adds a row to the audit log: Seq, Prev and Hash are set
	// here, in one step with the row. Audit rows are never pruned.
	AppendAudit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error)

	// SetPause pauses or changes the pause of a queue; Resume ends it.
	SetPause(ctx context.Context, p signalbox.Pause, entry signalbox.Entry) error
	Resume(ctx context.Context, queue string, entry signalbox.Entry) (was bool, err error)

	// PutSchedule stores a schedule where the stored row still has revision
	// s.Rev (0: where there is none with its id), else ErrStale, and its runs
	// in the same step: new ones, and those that are stored and open, by id;
	// one that is stored and no longer open is CodeConflict, so that an instant
	// is decided once. Of the runs of a schedule the newest MaxScheduleRuns, by
	// FiredAt then ID, and all that are open are kept. CodeConflict with the
	// field name if another schedule has its name, and where a new one
	// would be more than MaxSchedules. An entry with a Kind is written. It
	// returns the row as stored.
	PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error)
	// DeleteSchedule forgets a schedule with its runs, and reports whether it
	// was there; if not, no entry is written.
	DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error)

	// Note writes a journal entry that belongs to no change, such as an agent
	// that went down.
	Note(ctx context.Context, entry signalbox.Entry) error

	// Beat renews the lease of a director and says who else lives. It is
	// refused with CodeConflict where CheckBeat says so; then nothing is done.
	// No journal entry is written.
	Beat(ctx context.Context, b Beat) (Peers, error)

	// Tickets takes one step of a shared tool queue, as StepTickets says, and
	// returns its tickets after it: holders by Fence, then those in line by
	// Place. Who finds no place in line is not among them. No journal entry is
	// written; a step that changes nothing writes nothing.
	Tickets(ctx context.Context, s TicketStep) ([]Ticket, error)

	// Prune forgets ended tasks, with their requests and results, as p says;
	// and with a p.Ended what else is that old: journal entries, and sessions
	// that nobody has used since and no task names.
	Prune(ctx context.Context, p Pruning) (Pruned, error)
}

// Whole is a task with all that is kept of it.
type Whole struct {
	Task     signalbox.Task
	Request  signalbox.Request
	Result   signalbox.Result  // as Reader.Result has it
	Stales   []signalbox.Stale // as Reader.Stales has them
	Position Position          // as Reader.Position has it
}

// Reader holds the reads. They see every write that was acknowledged before
// they began.
type Reader interface {
	// Task returns the row of id, or CodeNotFound.
	Task(ctx context.Context, id string) (signalbox.Task, error)
	// Tasks returns the rows of those of the tasks that are there, at one moment,
	// in the order of ids.
	Tasks(ctx context.Context, ids []string) ([]signalbox.Task, error)
	// ByKey returns the row of the task with that idempotency key, or CodeNotFound.
	ByKey(ctx context.Context, key string) (signalbox.Task, error)
	// Request returns what was asked for, with SealedEnv while the task has
	// not ended.
	Request(ctx context.Context, id string) (signalbox.Request, error)
	// Result returns what the task left behind; the zero Result if it has
	// none yet.
	Result(ctx context.Context, id string) (signalbox.Result, error)

	// Whole returns all of a task in one read, or CodeNotFound.
	Whole(ctx context.Context, id string) (Whole, error)

	// Find returns the ids that begin or end with part, newest first, at
	// most limit. Beginnings are exact; endings are sought among the newest
	// 10,000 tasks.
	Find(ctx context.Context, part string, limit int) ([]string, error)

	// Position counts the pending tasks that stand before the task in its
	// queue, by order key and place, ready or not, and adds one; 0 if the
	// task is not pending. It counts at most MaxExactPosition of them; what
	// lies beyond is estimated and marked Approximate.
	Position(ctx context.Context, id string) (Position, error)

	// Counts returns how many tasks wait and run. It costs as much as there are
	// queues in which something waits: ask Lengths for those that matter.
	Counts(ctx context.Context) (Counts, error)
	// Lengths returns how many tasks wait in each of these queues, in their
	// order.
	Lengths(ctx context.Context, queues ...string) ([]int, error)

	// Waiting lists pending tasks of a queue, or of all queues if queue is
	// "", in the order in which they will be taken, after a cursor.
	Waiting(ctx context.Context, queue string, after Cursor, limit int) ([]signalbox.Task, error)
	// InFlight lists the tasks that are dispatching, working or cancelling,
	// in the order of their claims.
	InFlight(ctx context.Context) ([]signalbox.Task, error)
	// Overdue lists pending tasks whose WaitUntil is at or before now.
	Overdue(ctx context.Context, now time.Time, limit int) ([]signalbox.Task, error)
	// SessionTasks lists pending and in-flight tasks of a session by order.
	SessionTasks(ctx context.Context, sessionID string, limit int) ([]signalbox.Task, error)
	// History lists ended tasks, newest end first.
	History(ctx context.Context, q HistoryQuery) (HistoryPage, error)
	// Kept returns how many bytes ended tasks take, by owner, as Task.Kept counts
	// them; no zero entries.
	Kept(ctx context.Context) (map[string]int64, error)
	// Durations returns the run times of the newest completed tasks of an
	// agent, newest first, at most limit, and at most as many as the store
	// keeps: 100 or more, fewer after a restart if they are long ago.
	Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error)

	// Children lists the tasks that the execution of a task called, by Seq,
	// at most limit.
	Children(ctx context.Context, id string, limit int) ([]signalbox.Task, error)
	// Stales lists what void executions of a task said, by fence.
	Stales(ctx context.Context, id string) ([]signalbox.Stale, error)

	// Tokens and Users list all, by id.
	Tokens(ctx context.Context) ([]signalbox.Token, error)
	Users(ctx context.Context) ([]signalbox.User, error)

	// AuditLog lists rows of the audit log.
	AuditLog(ctx context.Context, q AuditQuery) ([]signalbox.Audit, error)
	// AuditHead returns the newest row; the zero Audit of an empty log.
	AuditHead(ctx context.Context) (signalbox.Audit, error)

	Agents(ctx context.Context) ([]signalbox.Agent, error)
	Slots(ctx context.Context) ([]signalbox.Slot, error)
	Pauses(ctx context.Context) ([]signalbox.Pause, error)
	// Session returns the row of a session, or CodeNotFound.
	Session(ctx context.Context, id string) (signalbox.Session, error)
	// Sessions lists sessions, the last used first; of those used at the same
	// time the one with the highest id, byte by byte.
	Sessions(ctx context.Context, q SessionQuery) (SessionPage, error)

	// Schedules lists all schedules by name; Schedule returns one by id, or
	// CodeNotFound.
	Schedules(ctx context.Context) ([]signalbox.Schedule, error)
	Schedule(ctx context.Context, id string) (signalbox.Schedule, error)
	// ScheduleRuns lists runs of a schedule, the newest first by FiredAt, then
	// ID, at most limit. Of a schedule that does not exist there are none.
	ScheduleRuns(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)
	// OpenRuns lists the runs of all schedules that are open, oldest first.
	OpenRuns(ctx context.Context) ([]signalbox.ScheduleRun, error)

	// Directors lists the directors over the store, dead ones too, by ID.
	Directors(ctx context.Context) ([]Director, error)
	// Holders says which director holds each agent, by agent; of agents that
	// nobody ever held there is nothing. A holder may be dead.
	Holders(ctx context.Context) (map[string]string, error)

	// Snapshot returns what waits and runs at one moment: no write stands
	// between its parts. Of each line it has the first heads tasks. It is
	// cheap, and holds up no writer, however many wait.
	Snapshot(ctx context.Context, heads int) (Snapshot, error)

	// Journal returns entries with a Seq above after, oldest first, at most
	// limit.
	Journal(ctx context.Context, after int64, limit int) ([]signalbox.Entry, error)
	// JournalRange returns the oldest and newest Seq that Journal can return;
	// both 0 if the journal is empty.
	JournalRange(ctx context.Context) (oldest, newest int64, err error)
}

// Shared is what a store has beyond Store where several directors use it.
type Shared interface {
	Store
	// Time is the time by the server's clock, to the millisecond. All directors
	// go by it, so that leases mean the same to all.
	Time(ctx context.Context) (time.Time, error)
	// Changed gets a sign, which stands for any number of changes, when
	// another process may have changed something. It is a hint: signs may be
	// missed, and who needs to know looks now and then all the same.
	Changed() <-chan struct{}
	// Others returns journal entries with a Seq above after that other
	// processes wrote, oldest first, and up to which Seq that is all there is:
	// the after of the next call. At most limit entries are looked at.
	Others(ctx context.Context, after int64, limit int) (entries []signalbox.Entry, through int64, err error)
	// Generation grows when the server turns out to have lost what it had
	// acknowledged. Numbers given before are never given again, so no fence of
	// before is accepted; but an agent may be at work of which the store knows
	// nothing any more.
	Generation() int64
}
