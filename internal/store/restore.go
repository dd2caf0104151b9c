package store

import (
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

// CheckRestored refuses a task that cannot be stored as it is.
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
