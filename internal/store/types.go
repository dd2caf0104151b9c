package store

import (
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Snapshot is a store's queue at one moment.
type Snapshot struct {
	Entry    int64 // Seq of the newest journal entry at that moment, pruned or not; 0: none
	Counts   Counts
	InFlight []signalbox.Task            // in the order of their claims
	Slots    []signalbox.Slot            // by agent and slot
	Heads    map[string][]signalbox.Task // by queue, in claim order; no empty ones
	Pauses   []signalbox.Pause           // by queue
}

// MaxExactPosition is the position up to which positions are exact.
const MaxExactPosition = 1000

// Submission is a task to be stored.
type Submission struct {
	// Task is the row with State pending. The store sets Seq, Rev, Place, EnqueuedAt and Ready.
	Task    signalbox.Task
	Request signalbox.Request
	// Cap is the maximum number of pending tasks under Task.Limit; 0: no limit.
	Cap int
	// FollowSession: the agent that holds Task.SessionID decides the queue.
	FollowSession bool
	// Room, if set, is where the task could start at once.
	Room *Room
	// Chat, if set, chooses the session of a chat.
	Chat *ChatSession
	Now  time.Time
}

// Room is where a task could start at once. It has room while fewer tasks of Queues could
// start now than slots are free at Agents and, with a Fleet, than may still start over all
// agents. Only slots that are isolated, or only those that are not, count, and none of a
// drained agent. There is no room while the task's queue is paused, the task is not due, or
// another turn of its session is ready or in flight.
//
// Task.QueuedAs becomes 0 if there is room, else one more than the number of tasks that
// wait in Task.Queue without a free slot. Those with a free slot do not count towards
// Submission.Cap either.
type Room struct {
	Queues   []string
	Agents   []RoomAgent
	Isolated bool
	Fleet    int // 0: no limit
	// Must: without room the task is refused with CodeAgentBusy.
	Must bool
}

// RoomAgent is an agent with the number of its slots.
type RoomAgent struct {
	Name  string
	Slots int
}

// ChatSession says in which session of an agent a chat takes place. That session becomes
// Task.SessionID and the agent's current one. A requested Task.SessionID is kept: the
// session becomes current if the agent holds it, and is started if nobody does; if another
// agent holds it, it stays unchanged. One that is archived or gone is refused with
// CodeConflict, whoever holds it.
type ChatSession struct {
	Agent string
	// Continue the agent's current session, if it has an active one.
	Continue bool
	// New is the id of the session to start otherwise, active, with the task's Source,
	// Owner and Preview; "" starts none.
	New string
}

// Submitted is the answer to a Submission.
type Submitted struct {
	Task     signalbox.Task
	Replayed bool // the idempotency key was known; Task is the existing task
	Depth    int  // pending tasks under its Limit, itself included; 0 if Replayed
	// Position in its queue, if known without a read; else its N is 0, see Reader.Position.
	Position Position
}

// ClaimRequest asks for work for one slot of an agent.
type ClaimRequest struct {
	Agent      string
	AgentURL   string
	Slots      int                           // how many the agent has
	Queues     []string                      // that it serves
	FenceAbove int64                         // highest fence that the agent reports, bounded by NextFence; 0: unknown
	Isolated   bool                          // claim an isolated slot: Slots is the number of those
	Fleet      int                           // limit on slots of that sort in use over all agents, the director's own executor excluded; 0: none
	Account    string                        // of the agent; "": none
	Folder     string                        // in which its runs work one at a time; "": none
	Workplace  signalbox.Workplace           // of runs whose task names none
	Resources  map[string]signalbox.Resource // that tasks may need
	Closed     bool                          // only a task that runs anyway is claimed, if it is the first
	Except     Except
	Expires    time.Time
	Now        time.Time
}

// Except names tasks that are not claimed, unless they run anyway.
type Except struct {
	Sources []signalbox.Source
	Owners  []string // by key or e-mail address
}

// Contains reports whether a task is among them.
func (e *Except) Contains(t *signalbox.Task) bool {
	return !t.IgnoreGates && (slices.Contains(e.Sources, t.Source) || len(e.Owners) > 0 &&
		(t.Owner != "" && slices.Contains(e.Owners, t.Owner) || t.OwnerEmail != "" && slices.Contains(e.Owners, t.OwnerEmail)))
}

// Requires lists what a task would hold, by resource.
func (c *ClaimRequest) Requires(t *signalbox.Task) []signalbox.Need {
	if t.Needs == nil && c.Folder == "" {
		return nil
	}
	a := signalbox.Agent{Folder: c.Folder, Workplace: c.Workplace}
	return t.Requires(a.FolderOf(t.Workplace))
}

// Claimed is a claimed task, state dispatching.
type Claimed struct {
	Found bool
	// Short: a task was passed over because others hold what it needs. Try again when a slot is given back.
	Short bool
	Holds []signalbox.Hold // of the claim
	// Held: the agent is drained or its account is not open, or the request was Closed. Try again when a
	// queue is resumed or the account changes; both are in the journal.
	Held    bool
	Task    signalbox.Task
	Request signalbox.Request
}

// Lease names a slot lease and its new end.
type Lease struct {
	Agent   string
	Slot    int
	Fence   int64
	Expires time.Time
}

// Position is a place in a queue, from 1.
type Position struct {
	N           int
	Approximate bool
}

// Counts are the numbers of waiting and running tasks.
type Counts struct {
	Queues   map[string]int // pending tasks by queue; no zero entries
	Limits   map[string]int // pending tasks by limit; no zero entries
	Pending  int
	InFlight map[signalbox.State]int // dispatching, working, cancelling; no zero entries
	// Oldest is when the longest waiting pending task was created; zero: none waits.
	Oldest time.Time
}

// WaitingCalls is how many tool calls wait as tasks.
func (c Counts) WaitingCalls() int {
	return c.Queues[signalbox.QueueCommands] + c.Queues[signalbox.QueueCalls]
}

// HistoryQuery selects ended tasks. Empty fields select all.
type HistoryQuery struct {
	State     signalbox.State
	Reason    signalbox.Reason
	Agent     string
	Queue     string
	Source    signalbox.Source
	SourceJob string
	SessionID string
	Mode      signalbox.Mode // "": all, not ModeQueue alone
	Tool      string
	Text      string    // part of the preview, ignoring case
	Since     time.Time // ended at or after
	Until     time.Time // ended before
	Before    string    // cursor of an earlier page
	Limit     int       // 1 to 1000
}

// HistoryPage is a page of ended tasks.
type HistoryPage struct {
	Tasks []signalbox.Task
	// Next is the cursor of the next page, "" at the end. A page may be shorter than the limit, even empty,
	// and still have a Next: a store reads at most 10,000 rows for one page.
	Next string
}

// SessionQuery selects sessions. Empty fields select all.
type SessionQuery struct {
	Agent   string
	Owner   string
	Source  signalbox.Source
	State   signalbox.SessionState
	Current bool   // only current ones
	Before  string // cursor of an earlier page
	Limit   int    // 1 to 1000
}

// SessionPage is a page of sessions; it may be short like a HistoryPage.
type SessionPage struct {
	Sessions []signalbox.Session
	Next     string // "" at the end
}

// AuditQuery selects rows of the audit log. Empty fields select all.
type AuditQuery struct {
	After     int64 // Seq above this, oldest first; with Newest: Seq below this (0: from the end), newest first
	Newest    bool
	EventType string
	Action    string
	UserID    string
	AgentName string
	Severity  string
	Since     time.Time
	Limit     int // 1 to 1000
}

// Grade is how durable a store is.
type Grade string

// The grades, worst first.
const (
	GradeNone     Grade = "none"     // nothing survives the process
	GradeWeak     Grade = "weak"     // acknowledged data can be lost in a crash or a power cut
	GradeDisk     Grade = "disk"     // acknowledged data survives a power cut, not the loss of the disk
	GradeReplicas Grade = "replicas" // it also survives the loss of the server
)

// Info describes a store.
type Info struct {
	Kind string // memory, sqlite, …
	// ID identifies this store's data, and is generated when the store is created. Fences are compared within
	// it.
	ID string
	// Durability describes what survives which failure, as read back at start; Grade summarizes it.
	Durability string
	Grade      Grade
	Schema     int // version of the schema; 0 if the store has none
}

// Damaged is a quarantined task: its row is not as it was written.
type Damaged struct {
	ID   string
	What string // what is wrong with it
}
