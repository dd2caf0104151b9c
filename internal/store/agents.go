package store

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// AgentWriter changes agents, their slots and the pauses of queues.
type AgentWriter interface {
	// PutAgent stores an agent by name. The entry is written if the agent is new or has changed.
	PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) error

	// RemoveAgent deletes an agent. CodeConflict if it holds slots.
	RemoveAgent(ctx context.Context, name string, entry signalbox.Entry) error

	// Renew extends slot leases. Leases that no longer exist with that fence are not counted.
	Renew(ctx context.Context, leases []Lease) (renewed int, err error)

	// FreeSlot removes a withheld slot row, if it still has that fence. It does not touch a slot whose task
	// is in flight.
	FreeSlot(ctx context.Context, agent string, slot int, fence int64) (freed bool, err error)

	// SetPause pauses or changes the pause of a queue; Resume ends it.
	SetPause(ctx context.Context, p signalbox.Pause, entry signalbox.Entry) error
	Resume(ctx context.Context, queue string, entry signalbox.Entry) (was bool, err error)

	// ChangeAccount applies an event to an account (signalbox.NextAccount). If the account opens
	// (signalbox.Account.Opens), tasks that are parked at it become pending in the same step, longest parked
	// first at the head of their queues.
	ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (AccountChange, error)

	// RemoveAccount deletes an account. CodeNotFound if it does not exist; CodeConflict while tasks are
	// parked at it, or if it opened or closed since it was read.
	RemoveAccount(ctx context.Context, seen signalbox.Account, entry signalbox.Entry) error
}

// NoAccount is the error for an unknown account.
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

// AccountChange is the result of ChangeAccount.
type AccountChange struct {
	Account  signalbox.Account
	Changed  bool // in a way that is journalled
	Unparked []signalbox.Task
}

// AgentReader reads agents, slots, pauses, accounts and holds.
type AgentReader interface {
	Agents(ctx context.Context) ([]signalbox.Agent, error)
	Slots(ctx context.Context) ([]signalbox.Slot, error)
	Pauses(ctx context.Context) ([]signalbox.Pause, error)

	// Accounts lists the accounts by name.
	Accounts(ctx context.Context) ([]signalbox.Account, error)

	// Holds lists what executions hold, by resource and fence.
	Holds(ctx context.Context) ([]signalbox.Hold, error)

	// Durations returns the run times of the newest completed tasks of an agent, newest first, at most limit
	// and at most as many as the store keeps: 100 or more, or fewer after a restart if the tasks are old.
	Durations(ctx context.Context, agent string, limit int) ([]time.Duration, error)
}
