package store

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// AgentWriter changes agents, their slots and the pauses of queues.
type AgentWriter interface {
	// PutAgent stores an agent by name. The entry is written when it is new
	// or differs from what was stored.
	PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) error

	// RemoveAgent forgets an agent. CodeConflict if it holds slots.
	RemoveAgent(ctx context.Context, name string, entry signalbox.Entry) error

	// Renew moves the end of slot leases. Leases that no longer exist with
	// that fence are left out of the count.
	Renew(ctx context.Context, leases []Lease) (renewed int, err error)

	// FreeSlot removes a withheld slot row, if it is still there with that
	// fence. It does not touch a slot whose task is in flight.
	FreeSlot(ctx context.Context, agent string, slot int, fence int64) (freed bool, err error)

	// SetPause pauses or changes the pause of a queue; Resume ends it.
	SetPause(ctx context.Context, p signalbox.Pause, entry signalbox.Entry) error
	Resume(ctx context.Context, queue string, entry signalbox.Entry) (was bool, err error)

	// ChangeAccount applies an event to an account (signalbox.NextAccount). In the same step
	// tasks that are parked at it become pending if it opens (signalbox.Account.Opens), the
	// longest parked ones at the head of their queues.
	ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (AccountChange, error)

	// RemoveAccount forgets an account. CodeNotFound if there is none; CodeConflict while tasks
	// are parked at it, or if it opened or closed since it was seen.
	RemoveAccount(ctx context.Context, seen signalbox.Account, entry signalbox.Entry) error
}

// NoAccount is the error for an account that is not known.
func NoAccount(name string) error {
	return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "account", Message: fmt.Sprintf("there is no account %q: signalbox accounts lists them", name)}
}

// AccountInUse is RemoveAccount's error for an account at which tasks are parked.
func AccountInUse(name string, parked int) error {
	return signalbox.Errorf(signalbox.CodeConflict, "account %q still has %d parked tasks: let them go on, or cancel them first", name, parked)
}

// AccountChanged is RemoveAccount's error for an account that opened or closed meanwhile.
func AccountChanged(now *signalbox.Account) error {
	return signalbox.Errorf(signalbox.CodeConflict, "%s since a moment ago: look at it, and try again", now)
}

// AccountChange is what became of an account.
type AccountChange struct {
	Account  signalbox.Account
	Changed  bool // in a way that is in the journal
	Unparked []signalbox.Task
}

// AgentReader reads them.
type AgentReader interface {
	Agents(ctx context.Context) ([]signalbox.Agent, error)
	Slots(ctx context.Context) ([]signalbox.Slot, error)
	Pauses(ctx context.Context) ([]signalbox.Pause, error)

	// Accounts lists the accounts by name.
	Accounts(ctx context.Context) ([]signalbox.Account, error)

	// Holds lists what executions hold, by resource and fence.
	Holds(ctx context.Context) ([]signalbox.Hold, error)

	// Durations returns the run times of the newest completed tasks of an
	// agent, newest first, at most limit, and at most as many as the store
	// keeps: 100 or more, fewer after a restart if they are long ago.
	Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error)
}
