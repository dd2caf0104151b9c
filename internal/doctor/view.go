package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The most that a look reads of data that only grows, and of each queue.
const (
	headsRead   = 200
	endedRead   = 200
	journalRead = 500
	auditRead   = 200
)

const keepACopy = "keep a copy of the store and report it; signalbox release frees the slots of an agent"

// view is what one look reads.
type view struct {
	shot             store.Snapshot // one snapshot
	agents           []signalbox.Agent
	ended            []signalbox.Task
	parked           []signalbox.Task
	journal          []signalbox.Entry
	audit            []signalbox.Audit
	recorded         int // tokens and users whose creation is in the audit log
	sessions         []signalbox.Session
	tasksWithoutSlot []string
	damaged          []store.Damaged
	generation       int64
	now              time.Time // zero: leases are not checked

	tasks map[string]signalbox.Task // in flight
	found []api.Check
}

func (v *view) wrong(format string, args ...any) {
	v.found = append(v.found, failure(areaStore, keepACopy, format, args...))
}

// look reads once and returns all that is wrong.
func look(ctx context.Context, r store.Reader, now func() time.Time) ([]api.Check, error) {
	v := view{tasks: map[string]signalbox.Task{}}
	if err := v.load(ctx, r); err != nil {
		return nil, err
	}
	if now != nil {
		v.now = now()
	}
	v.checkRunning()
	v.checkSlots()
	v.checkCapacity()
	v.checkWaiting()
	v.checkParked()
	v.checkCounts()
	v.checkTurns()
	v.checkEnded()
	v.checkJournal()
	v.checkAudit()
	v.checkSessions()
	return v.found, nil
}

func (v *view) load(ctx context.Context, r store.Reader) error {
	if shared, ok := r.(store.Shared); ok {
		v.generation = shared.Generation()
	}
	var errs [9]error
	v.shot, errs[0] = r.Snapshot(ctx, headsRead)
	v.agents, errs[1] = r.Agents(ctx)
	var ended store.HistoryPage
	ended, errs[2] = r.History(ctx, store.HistoryQuery{Limit: endedRead})
	v.ended = ended.Tasks
	v.journal, errs[3] = newestEntries(ctx, r)
	v.audit, errs[4] = r.AuditLog(ctx, store.AuditQuery{Newest: true, Limit: auditRead})
	tokens, err := r.Tokens(ctx)
	users, err2 := r.Users(ctx)
	v.recorded, errs[6], errs[7] = len(users), err, err2
	for _, t := range tokens {
		if t.CreatedBy != signalbox.TokenByUp {
			v.recorded++
		}
	}
	v.parked, errs[8] = r.Parked(ctx, "", "")
	var current store.SessionPage
	current, errs[5] = r.Sessions(ctx, store.SessionQuery{Current: true, Limit: 1000})
	v.sessions = current.Sessions
	if s, ok := r.(strayed); ok {
		var err error
		v.tasksWithoutSlot, err = s.TasksWithoutSlot(ctx)
		errs[5] = errors.Join(errs[5], err)
	}
	if s, ok := r.(watchful); ok {
		var err error
		v.damaged, err = s.Damaged(ctx)
		errs[5] = errors.Join(errs[5], err)
	}
	return errors.Join(errs[:]...)
}

// watchful is a store that detects rows that are not as they were written.
type watchful interface {
	Damaged(ctx context.Context) ([]store.Damaged, error)
}

// strayed is a store that can tell which of its newest tasks are in no place. (Without it, running tasks are
// found by their slots.)
type strayed interface {
	TasksWithoutSlot(ctx context.Context) ([]string, error)
}

func newestEntries(ctx context.Context, r store.Reader) ([]signalbox.Entry, error) {
	oldest, newest, err := r.JournalRange(ctx)
	if err != nil || newest == 0 {
		return nil, err
	}
	return r.Journal(ctx, max(oldest-1, newest-journalRead), journalRead)
}

// checkRunning: a running task is in one place (7), has an agent and a fence, and its claims are bounded
// (10).
func (v *view) checkRunning() {
	for _, t := range v.shot.InFlight {
		if _, twice := v.tasks[t.ID]; twice {
			v.wrong("task %s stands twice among those that run", t.ID)
		}
		v.tasks[t.ID] = t
		switch {
		case !t.State.InFlight():
			v.wrong("task %s stands among those that run and is %s", t.ID, t.State)
		case t.Agent == "" || t.Fence < 1:
			v.wrong("task %s is %s without an agent or a fence", t.ID, t.State)
		}
		v.checkClaims(&t)
	}
	for _, id := range v.tasksWithoutSlot {
		v.wrong("task %s runs by its row, and no slot has it", id)
	}
	for _, d := range v.damaged {
		v.found = append(v.found, failure(areaStore, "its bytes in the file were changed, by a broken disk or by somebody: submit the task again, or restore a backup; everything else continues",
			"the row of task %s is damaged, and set aside: %s", d.ID, d.What))
	}
}

func (v *view) checkClaims(t *signalbox.Task) {
	if t.NoAnswers > signalbox.MaxNoAnswers || t.NoAnswers > t.Claims {
		v.wrong("task %s was claimed %d times, %d of them without an answer: at most %d may be", t.ID, t.Claims, t.NoAnswers, signalbox.MaxNoAnswers)
	}
}

// checkSlots: slots in use are exactly the rows that hold them (6), and each row that is not withheld after
// the end of its task belongs to a running task.
func (v *view) checkSlots() {
	type place struct {
		agent string
		slot  int
	}
	taken, fences, held := map[place]bool{}, map[int64]bool{}, map[string]int{}
	for _, s := range v.shot.Slots {
		if at := (place{s.Agent, s.Slot}); taken[at] {
			v.wrong("slot %d of agent %s is held twice", s.Slot, s.Agent)
		} else {
			taken[at] = true
		}
		if fences[s.Fence] {
			v.wrong("fence %d holds two slots", s.Fence)
		}
		fences[s.Fence] = true
		if s.Withheld {
			continue
		}
		held[s.TaskID]++
		v.checkHolder(s, held[s.TaskID])
	}
	for _, t := range v.shot.InFlight {
		if held[t.ID] == 0 {
			v.wrong("task %s is %s and holds no slot", t.ID, t.State)
		}
	}
}

// overdue is how long a lease may be expired before it counts as unattended.
const overdue = time.Minute

func (v *view) checkHolder(s signalbox.Slot, holds int) {
	t, ok := v.tasks[s.TaskID]
	switch {
	case !ok:
		v.wrong("slot %d of agent %s is held by task %s, which does not run", s.Slot, s.Agent, s.TaskID)
	case holds > 1:
		v.wrong("task %s holds more than one slot", s.TaskID)
	case t.Agent != s.Agent || t.Fence != s.Fence:
		v.wrong("slot %d of agent %s has fence %d, its task %s has agent %s and fence %d", s.Slot, s.Agent, s.Fence, s.TaskID, t.Agent, t.Fence)
	case !v.now.IsZero() && !s.Expires.IsZero() && v.now.Sub(s.Expires) > overdue:
		v.found = append(v.found, failure(areaStore, "see that the director of this agent runs: signalbox directors; signalbox release "+s.Agent+" frees it",
			"the lease of slot %d of agent %s, with task %s, is over since %s and nobody ends it", s.Slot, s.Agent, s.TaskID, s.Expires.UTC().Format(time.RFC3339)))
	}
}

// runs is 1 for the row of a task that may run, 0 for an async call that has not started: it may wait for its
// tool queue.
func (v *view) runs(s *signalbox.Slot) int {
	kind, _ := signalbox.ExecutorKind(s.Agent)
	if t, known := v.tasks[s.TaskID]; known && kind == signalbox.ExecutorCommands && t.State == signalbox.Dispatching {
		return 0
	}
	return 1
}

// checkCapacity: no agent runs more tasks than it has slots (3). Promoted tool calls take a slot of the
// executor each without regard to its number of slots: their tool queue bounds them.
func (v *view) checkCapacity() {
	running := map[string]int{}
	for _, s := range v.shot.Slots {
		if !s.Withheld && !signalbox.Isolated(s.Slot) {
			running[s.Agent] += v.runs(&s)
		}
	}
	for _, a := range v.agents {
		if kind, _ := signalbox.ExecutorKind(a.Name); kind == signalbox.ExecutorCalls {
			continue
		}
		if n := running[a.Name]; n > a.Slots {
			v.wrong("agent %s runs %d tasks in %d slots", a.Name, n, a.Slots)
		}
	}
}

// checkWaiting: a waiting task is pending or parked, in one queue, once (7), in order (8), and in the claim
// index if nothing holds it back (9).
func (v *view) checkWaiting() {
	seen := map[string]string{}
	for _, queue := range slices.Sorted(maps.Keys(v.shot.Heads)) {
		var last store.Cursor
		for i, t := range v.shot.Heads[queue] {
			at := store.CursorOf(&t)
			if i > 0 && !last.Before(at) {
				v.wrong("task %s stands in queue %s before its turn", t.ID, queue)
			}
			last = at
			if other, twice := seen[t.ID]; twice {
				v.wrong("task %s waits in queue %s and in queue %s", t.ID, other, queue)
			}
			seen[t.ID] = queue
			v.checkWaiter(queue, &t)
		}
	}
}

func (v *view) checkWaiter(queue string, t *signalbox.Task) {
	switch {
	case !t.State.Waiting():
		v.wrong("task %s waits in queue %s and is %s", t.ID, queue, t.State)
	case t.State == signalbox.Parked && (t.Ready || t.Parking == nil):
		v.wrong("task %s is parked, and could be claimed or waits at no gate", t.ID)
	case t.Queue != queue:
		v.wrong("task %s waits in queue %s, its row says %s", t.ID, queue, t.Queue)
	case t.State == signalbox.Pending && !t.Ready && t.SessionID == "" && t.NotBefore.IsZero():
		v.wrong("task %s waits for nothing and nobody would claim it", t.ID)
	}
	if _, runs := v.tasks[t.ID]; runs {
		v.wrong("task %s waits in queue %s and runs", t.ID, queue)
	}
	v.checkClaims(t)
}

// checkParked: a parked task is listed at its gate, which a director opens in time.
func (v *view) checkParked() {
	listed := map[string]bool{}
	for _, t := range v.parked {
		listed[t.ID] = true
		if p := t.Parking; !v.now.IsZero() && p.Kind == signalbox.GateTime && v.now.Sub(p.Until) > overdue {
			v.found = append(v.found, failure(areaStore, "see that a director runs: signalbox directors",
				"task %s is parked until %s, and nobody has it go on", t.ID, p.Until.UTC().Format(time.RFC3339)))
		}
	}
	for queue, heads := range v.shot.Heads {
		for _, t := range heads {
			if t.State == signalbox.Parked && !listed[t.ID] {
				v.wrong("task %s is parked in queue %s, and no gate would let it go on", t.ID, queue)
			}
		}
	}
}

// checkCounts: the counts of the store match its rows.
func (v *view) checkCounts() {
	c := &v.shot.Counts
	sum := func(counts map[string]int) (n int) {
		for _, k := range counts {
			n += k
		}
		return n
	}
	if inQueues, underLimits := sum(c.Queues), sum(c.Limits); c.Pending != inQueues || c.Pending != underLimits {
		v.wrong("%d tasks wait; by queue they are %d, by limit %d", c.Pending, inQueues, underLimits)
	}
	for queue, n := range c.Queues {
		if have := len(v.shot.Heads[queue]); have != min(n, headsRead) {
			v.wrong("%d tasks wait in queue %s, and it lists %d of its first %d", n, queue, have, headsRead)
		}
	}
	states := map[signalbox.State]int{}
	for _, t := range v.shot.InFlight {
		states[t.State]++
	}
	for _, s := range []signalbox.State{signalbox.Dispatching, signalbox.Working, signalbox.Cancelling} {
		if c.InFlight[s] != states[s] {
			v.wrong("%d tasks are %s, and %d are counted", states[s], s, c.InFlight[s])
		}
	}
}

// checkTurns: one turn of a session runs at a time, and none could start beside it.
func (v *view) checkTurns() {
	running := map[string]string{}
	for _, t := range v.shot.InFlight {
		if t.SessionID == "" {
			continue
		}
		if other, two := running[t.SessionID]; two {
			v.wrong("tasks %s and %s of session %s run side by side", other, t.ID, t.SessionID)
		}
		running[t.SessionID] = t.ID
	}
	for _, heads := range v.shot.Heads {
		for _, t := range heads {
			if other, runs := running[t.SessionID]; runs && t.Ready && t.SessionID != "" {
				v.wrong("task %s of session %s could be claimed while task %s of it runs", t.ID, t.SessionID, other)
			}
		}
	}
}

// checkEnded: an ended task has a state and a reason, and does not run any more (5).
func (v *view) checkEnded() {
	for _, t := range v.ended {
		switch {
		case !t.State.Terminal():
			v.wrong("task %s stands in the history and is %s", t.ID, t.State)
		case t.Reason == "" || t.Message == "" || t.EndedAt.IsZero():
			v.wrong("task %s is %s without a reason, a message or a time", t.ID, t.State)
		}
		if _, runs := v.tasks[t.ID]; runs {
			v.wrong("task %s has ended and runs", t.ID)
		}
	}
}

// checkJournal: its entries have no gaps (13), except where a server lost some.
func (v *view) checkJournal() {
	if v.generation > 1 {
		return
	}
	for i := 1; i < len(v.journal); i++ {
		if before, seq := v.journal[i-1].Seq, v.journal[i].Seq; seq != before+1 {
			v.wrong("journal entry %d follows %d", seq, before)
		}
	}
}

// checkAudit: each row of the audit log follows the previous one, and the log is not empty if something that
// it records exists. A truncated end can only be detected with a head that was kept elsewhere.
func (v *view) checkAudit() {
	if len(v.audit) == 0 && v.recorded > 0 {
		v.wrong("the audit log is empty, and %d tokens and users are there that it recorded: its rows were taken out", v.recorded)
	}
	for i := range len(v.audit) - 1 { // newest first
		if err := signalbox.CheckAudit(&v.audit[i+1], &v.audit[i]); err != nil {
			v.wrong("the audit log: %v", err)
		}
	}
}

// checkSessions: chats of an agent continue at most one session.
func (v *view) checkSessions() {
	current := map[string]string{}
	for _, s := range v.sessions {
		if other, two := current[s.Agent]; two {
			v.wrong("sessions %s and %s of agent %s are both current", other, s.ID, s.Agent)
		}
		current[s.Agent] = s.ID
	}
}
