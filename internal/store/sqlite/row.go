package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/pack"
)

// The states as rows hold them.
var stateNumbers = map[signalbox.State]int64{
	signalbox.Pending: rowPending, signalbox.Dispatching: rowDispatching, signalbox.Working: rowWorking,
	signalbox.Cancelling: rowCancelling, signalbox.Completed: rowCompleted, signalbox.Failed: rowFailed,
	signalbox.Cancelled: rowCancelled, signalbox.Timeout: rowTimeout,
}

var stateNames = [...]signalbox.State{
	rowPending: signalbox.Pending, rowDispatching: signalbox.Dispatching, rowWorking: signalbox.Working,
	rowCancelling: signalbox.Cancelling, rowCompleted: signalbox.Completed, rowFailed: signalbox.Failed,
	rowCancelled: signalbox.Cancelled, rowTimeout: signalbox.Timeout,
}

// stateOf returns the state that a number stands for; "" if it stands for none.
func stateOf(number int64) signalbox.State {
	if number < rowPending || number > rowTimeout {
		return ""
	}
	return stateNames[number]
}

// bindMutable binds the columns that a change can change, in the order of
// taskColumns.
func bindMutable(q *query, t *signalbox.Task) {
	q.int(t.Seq).exact(t.ID).int(stateNumbers[t.State]).int(t.Rev).exact(t.Queue)
	bindReady(q, t).int(t.OrderKey()).int(t.Place)
	q.text(t.SessionID).time(t.NotBefore).time(t.WaitUntil).time(t.EndedAt)
	q.text(t.Agent).text(string(t.Reason)).text(t.Message).text(t.AgentURL).some(int64(t.Slot)).some(t.Fence).text(t.TaskID)
	q.time(t.DispatchedAt).time(t.StartedAt).some(int64(t.Attempts)).some(int64(t.Claims)).some(int64(t.NoAnswers))
	q.text(t.LastError).bool(t.HasEnv).bool(t.CancelRequested).text(t.CancelledBy)
	q.text(t.Limit).some(int64(t.Priority)).some(int64(t.Bias)).int(t.EnqueuedAt.UnixMilli())
}

// bindReady binds what keeps a task in the line of its queue: NULL where it is
// not pending.
func bindReady(q *query, t *signalbox.Task) *query {
	if t.State != signalbox.Pending {
		return q.null()
	}
	return q.bool(t.Ready)
}

// bindTook binds how long a completed task ran.
func bindTook(q *query, t *signalbox.Task) *query {
	if t.State != signalbox.Completed {
		return q.null()
	}
	return q.int(max(0, t.EndedAt.Sub(t.StartedAt)).Milliseconds())
}

// bindFixed binds the columns that are fixed at submit.
func bindFixed(q *query, t *signalbox.Task) *query {
	q.text(string(t.SessionMode)).text(string(t.OnLost)).some(int64(t.MaxAttempts)).text(t.RetryOf)
	q.text(string(t.Source)).text(t.SourceJob).text(t.Preview).text(t.IdempotencyKey).text(t.IdempotencyHash)
	return q.time(t.CreatedAt)
}

// bindRare binds the columns that are fixed at submit and NULL in most rows.
func bindRare(q *query, t *signalbox.Task) {
	q.text(t.ParentID).bytes(pack.Extra(t))
}

// bindStop binds what a limit that fired leaves in a row.
func bindStop(q *query, t *signalbox.Task) {
	q.text(string(t.StopReason)).text(t.StopMessage)
}

// bindTask binds all columns of taskColumns.
func bindTask(q *query, t *signalbox.Task) {
	bindMutable(q, t)
	bindFixed(q, t)
	bindTook(q, t)
	bindRare(q, t)
	bindStop(q, t)
	q.some(t.RequestSize).some(t.ResultSize)
}

// bindNew binds the columns of a task that has nothing behind it.
func bindNew(q *query, t *signalbox.Task) {
	q.int(t.Seq).exact(t.ID).exact(t.Queue).bool(t.Ready).int(t.OrderKey()).int(t.Place)
	q.text(t.SessionID).time(t.NotBefore).time(t.WaitUntil).bool(t.HasEnv)
	q.text(t.Limit).some(int64(t.Priority)).some(int64(t.Bias)).int(t.EnqueuedAt.UnixMilli())
	bindFixed(q, t)
	bindRare(q, t)
	q.some(t.RequestSize)
}

// isNew reports whether bindNew binds all of t: whether what a run leaves in
// a row is not there.
func isNew(t *signalbox.Task) bool {
	n := *t
	n.Reason, n.Message, n.DispatchedAt, n.StartedAt, n.EndedAt = "", "", time.Time{}, time.Time{}, time.Time{}
	n.Agent, n.AgentURL, n.Slot, n.Fence, n.TaskID = "", "", 0, 0, ""
	n.Attempts, n.Claims, n.NoAnswers, n.LastError = 0, 0, 0, ""
	n.CancelRequested, n.CancelledBy, n.StopReason, n.StopMessage, n.ResultSize = false, "", "", "", 0
	return n == *t && t.State == signalbox.Pending && t.Rev == 1
}

// updateOf chooses the statement that writes all that differs between two
// rows of a task and touches the fewest indexes.
func updateOf(before, after *signalbox.Task) stmtID {
	b := *before
	b.Rev, b.State, b.TaskID, b.Message, b.StartedAt = after.Rev, after.State, after.TaskID, after.Message, after.StartedAt
	b.CancelRequested, b.CancelledBy = after.CancelRequested, after.CancelledBy
	if before.State.InFlight() && after.State.InFlight() && b == *after {
		return stTaskRun
	}
	ended := b
	ended.EndedAt, ended.Reason, ended.LastError, ended.HasEnv, ended.ResultSize = after.EndedAt, after.Reason, after.LastError, after.HasEnv, after.ResultSize
	if before.State.InFlight() && after.State.Terminal() && ended == *after {
		return stTaskEnd
	}
	b.Ready, b.Agent, b.AgentURL, b.Slot, b.Fence = after.Ready, after.Agent, after.AgentURL, after.Slot, after.Fence
	b.DispatchedAt, b.Claims = after.DispatchedAt, after.Claims
	if after.State == signalbox.Dispatching && b == *after {
		return stTaskClaim
	}
	return stTaskUpdate
}

// bindUpdate binds what the statement of updateOf writes.
func bindUpdate(q *query, id stmtID, t *signalbox.Task) {
	if id == stTaskUpdate {
		bindMutable(q, t)
		bindTook(q, t)
		bindStop(q, t)
		q.some(t.ResultSize)
		return
	}
	q.int(t.Seq).int(t.Rev).int(stateNumbers[t.State]).text(t.TaskID).text(t.Message).time(t.StartedAt)
	q.bool(t.CancelRequested).text(t.CancelledBy)
	switch id {
	case stTaskClaim:
		bindReady(q, t).text(t.Agent).text(t.AgentURL).some(int64(t.Slot)).some(t.Fence).time(t.DispatchedAt).some(int64(t.Claims))
	case stTaskEnd:
		q.time(t.EndedAt)
		bindTook(q, t).text(string(t.Reason)).text(t.LastError).bool(t.HasEnv).some(t.ResultSize)
	}
}

// scanTask reads a row of taskColumns.
func scanTask(q *query) (*signalbox.Task, error) {
	number := q.intAt(2)
	state := stateOf(number)
	if state == "" {
		return nil, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the row of task %q holds the unknown state %d: the file is damaged, or was changed by another program", q.textAt(1), number)
	}
	t := &signalbox.Task{
		Seq: q.intAt(0), ID: q.textAt(1), State: state, Rev: q.intAt(3), Queue: q.textAt(4), Ready: q.boolAt(5),
		Place: q.intAt(7), SessionID: q.textAt(8), NotBefore: q.timeAt(9), WaitUntil: q.timeAt(10), EndedAt: q.timeAt(11),
		Agent: q.textAt(12), Reason: signalbox.Reason(q.textAt(13)), Message: q.textAt(14), AgentURL: q.textAt(15),
		Slot: int(q.intAt(16)), Fence: q.intAt(17), TaskID: q.textAt(18), DispatchedAt: q.timeAt(19), StartedAt: q.timeAt(20),
		Attempts: int(q.intAt(21)), Claims: int(q.intAt(22)), NoAnswers: int(q.intAt(23)), LastError: q.textAt(24),
		HasEnv: q.boolAt(25), CancelRequested: q.boolAt(26), CancelledBy: q.textAt(27), Limit: q.textAt(28),
		Priority: int(q.intAt(29)), Bias: time.Duration(q.intAt(30)), EnqueuedAt: q.timeAt(31),
		SessionMode: signalbox.SessionMode(q.textAt(32)), OnLost: signalbox.OnLost(q.textAt(33)), MaxAttempts: int(q.intAt(34)),
		RetryOf: q.textAt(35), Source: signalbox.Source(q.textAt(36)), SourceJob: q.textAt(37), Preview: q.textAt(38),
		IdempotencyKey: q.textAt(39), IdempotencyHash: q.textAt(40), CreatedAt: q.timeAt(41),
		ParentID: q.textAt(43), StopReason: signalbox.Reason(q.textAt(45)), StopMessage: q.textAt(46),
		RequestSize: q.intAt(47), ResultSize: q.intAt(48),
	}
	return t, pack.ReadExtra(t, q.bytesAt(44))
}

// one runs a statement that returns at most one task; nil if it returns none.
func one(q *query) (t *signalbox.Task, err error) {
	if q.next() {
		t, err = scanTask(q)
	}
	if end := q.end(); end != nil {
		return nil, end
	}
	return t, err
}

// all runs a statement that returns tasks.
func all(q *query) (list []signalbox.Task, err error) {
	for q.next() {
		t, bad := scanTask(q)
		if bad != nil {
			err = bad
			break
		}
		list = append(list, *t)
	}
	if end := q.end(); end != nil {
		return nil, end
	}
	return list, err
}
