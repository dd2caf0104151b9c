package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Restored is a task from another store.
type Restored struct {
	Task    signalbox.Task // pending or ended
	Request signalbox.Request
	Result  *signalbox.Result // of an ended task; nil: it has none
	Now     time.Time
}

// CheckRestored refuses a task that cannot be stored unchanged.
func CheckRestored(r *Restored) error {
	t := &r.Task
	switch {
	case t.State == signalbox.Pending && (r.Result != nil || !t.EndedAt.IsZero()):
		return signalbox.Errorf(signalbox.CodeValidation, "task %s is pending and has an end: it cannot be restored", t.ID)
	case t.State.Terminal() && t.EndedAt.IsZero():
		return signalbox.Errorf(signalbox.CodeValidation, "task %s has ended and does not say when: it cannot be restored", t.ID)
	case t.State != signalbox.Pending && !t.State.Terminal():
		return signalbox.Errorf(signalbox.CodeConflict, "task %s is %s: only what waits or has ended can be restored", t.ID, t.State)
	}
	return nil
}

// AdoptForeign changes a task from another store so that it can be restored here: a parked one waits and
// continues where it stopped; one that was in flight is requeued, or ends as interrupted. It refuses a task
// that no store can have held.
func AdoptForeign(t *signalbox.Task, r *signalbox.Request, requeue bool, now time.Time) error {
	if err := cmp.Or(checkForeign(t, r), t.AdoptLanding(now)); err != nil {
		return err
	}
	for _, at := range []*time.Time{&t.CreatedAt, &t.EnqueuedAt, &t.EndedAt} {
		if at.After(now) { // from a wrong clock; EnqueuedAt never decreases, so all later tasks would get that time
			*at = now
		}
	}
	switch {
	case t.State == signalbox.Parked:
		t.State = signalbox.Pending // its claim will show whether the account is open here
	case t.State.InFlight() && requeue && t.State != signalbox.Cancelling:
		t.State, t.StartedAt, t.DispatchedAt, t.Attempts = signalbox.Pending, time.Time{}, time.Time{}, t.Attempts+1
	case t.State.InFlight():
		t.State, t.Reason, t.EndedAt = signalbox.Failed, signalbox.ReasonInterrupted, now
		where := "under way"
		if t.Agent != "" {
			where = "run by agent " + t.Agent
		}
		t.Message = "it was " + where + " when it was exported, and its end is not known here; signalbox retry runs it again"
		t.SettleLanding(now)
	}
	return nil
}

func checkForeign(t *signalbox.Task, r *signalbox.Request) error {
	switch {
	case !signalbox.ValidID(t.ID):
		return signalbox.Invalid("queue_id", "%q is not a task id", t.ID)
	case !signalbox.ValidQueue(t.Queue):
		return signalbox.Invalid("queue", "%q is no queue", t.Queue)
	case !t.State.Valid():
		return signalbox.Invalid("state", "%q is not a task state", t.State)
	case t.State.Terminal() && t.Reason.End() != t.State:
		return signalbox.Invalid("reason", "%q is no reason for which a task is %s", t.Reason, t.State)
	case t.State.Terminal() && strings.TrimSpace(t.Message) == "":
		return signalbox.Invalid("message", "message is missing: it says why the task is %s", t.State)
	case t.CreatedAt.IsZero() || t.EnqueuedAt.IsZero():
		return signalbox.Invalid("created_at", "created_at and enqueued_at are missing")
	case t.Priority < signalbox.MinPriority || t.Priority > signalbox.MaxPriority:
		return signalbox.Invalid("priority", "priority is %d to %d", signalbox.MinPriority, signalbox.MaxPriority)
	case t.Mode == signalbox.ModeTool && t.Tool == "":
		return signalbox.Invalid("tool", "a tool call needs its tool")
	case t.State == signalbox.Pending && t.Queue == signalbox.QueueCalls:
		return signalbox.Errorf(signalbox.CodeConflict, "its caller waited for it at the other director: it cannot go on here")
	case t.Mode == signalbox.ModeLand && !t.State.Terminal():
		return signalbox.Errorf(signalbox.CodeConflict, "it lands the work of another task, which this director does not follow: request that again with signalbox land %s", t.RetryOf)
	case t.Mode != signalbox.ModeLand && r.Land != nil:
		return signalbox.Invalid("land", "a task of mode %q lands nothing", t.Mode)
	case t.SessionID != "" && !signalbox.ValidSessionID(t.SessionID):
		return signalbox.Invalid("session_id", "session_id is not valid")
	case len(t.IdempotencyKey) > 1024 || strings.ContainsRune(t.IdempotencyKey, 0):
		return signalbox.Invalid("idempotency_key", "idempotency_key is too long or not printable")
	}
	if t.Needs != nil && slices.ContainsFunc(*t.Needs, func(n signalbox.Need) bool {
		return !signalbox.ValidName(n.Resource) || n.N < 1 || n.N > signalbox.MaxResourceCapacity
	}) || t.Needs != nil && len(*t.Needs) > signalbox.MaxNeeds {
		return signalbox.Invalid("needs", "needs names at most %d resources, with 1 to %d units each", signalbox.MaxNeeds, signalbox.MaxResourceCapacity)
	}
	if t.Workplace != signalbox.WorkplaceDefault && t.Workplace != signalbox.WorkplaceFolder && t.Workplace != signalbox.WorkplaceOther {
		return signalbox.Invalid("workplace", "workplace is %q: folder, other or nothing", signalbox.Preview(string(t.Workplace)))
	}
	if err := cmp.Or(checkParking(t), r.Workspace.Check(r.Project)); err != nil || t.Mode == signalbox.ModeTool {
		return err
	}
	return signalbox.CheckPrompt(r.Prompt)
}

func checkParking(t *signalbox.Task) error {
	p := t.Parking
	switch {
	case p == nil && t.State == signalbox.Parked:
		return signalbox.Invalid("parking", "parking is missing: it says how the parked task goes on")
	case p == nil:
	case p.Kind != signalbox.GateAccount && p.Kind != signalbox.GateTime, p.Kind == signalbox.GateAccount && !signalbox.ValidName(p.Name):
		return signalbox.Invalid("parking", "parking: it needs a kind, account with a valid name, or time")
	case p.Count < 1 || p.Count > signalbox.MaxParks || p.At.IsZero():
		return signalbox.Invalid("parking", "parking has a count of 1 to %d, and at", signalbox.MaxParks)
	case len(p.Text) > signalbox.MaxGateText || p.Next != "" && signalbox.CheckPrompt(p.Next) != nil:
		return signalbox.Invalid("parking", "text of parking has at most %d bytes, and next is a prompt", signalbox.MaxGateText)
	}
	return nil
}

// RestoreEntry is the journal entry of a restored task.
func RestoreEntry(t *signalbox.Task, now time.Time) signalbox.Entry {
	e := signalbox.SubmitEntry(t, now)
	if t.State.Terminal() {
		e.Kind, e.Reason, e.Agent = signalbox.EventRestored, t.Reason, t.Agent
	}
	return e
}

// AlreadyStored is the error for a task whose id or idempotency key exists already.
func AlreadyStored(t *signalbox.Task) error {
	return signalbox.Errorf(signalbox.CodeConflict, "there is a task %s already, or one with its idempotency key", t.ID)
}

// UnknownKey is the error for an idempotency key without a task.
func UnknownKey(key string) error {
	return signalbox.Errorf(signalbox.CodeNotFound, "no task has the idempotency key %q", key)
}

// maxOldID bounds a task's id in another queue system, in bytes.
const maxOldID = 200

// Imported returns the task that was imported from another queue system under id old. If
// several systems had that id, the first of signalbox.Imports counts.
//
// Errors: CodeNotFound, with the store's message for an id.
func Imported(ctx context.Context, r Reader, old string) (signalbox.Task, error) {
	if old != "" && len(old) <= maxOldID {
		for _, kind := range signalbox.Imports() {
			t, err := r.ByKey(ctx, signalbox.ImportKey(kind, old))
			if signalbox.CodeOf(err) != signalbox.CodeNotFound {
				return t, err
			}
		}
	}
	return signalbox.Task{}, signalbox.Errorf(signalbox.CodeNotFound, "there is no task %.64q: it never existed or has been pruned", old)
}
