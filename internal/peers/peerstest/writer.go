package peerstest

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// The verbs of store.Writer, each recorded as one of this process.

// Submit implements store.Writer.
func (v *View) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	return verb(ctx, v, func(to store.Store) (store.Submitted, error) { return to.Submit(ctx, s) })
}

// Restore implements store.Writer.
func (v *View) Restore(ctx context.Context, r store.Restored) (signalbox.Task, error) {
	return verb(ctx, v, func(to store.Store) (signalbox.Task, error) { return to.Restore(ctx, r) })
}

// Claim implements store.Writer.
func (v *View) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	return verb(ctx, v, func(to store.Store) (store.Claimed, error) { return to.Claim(ctx, c) })
}

// Apply implements store.Writer.
func (v *View) Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error) {
	return verb(ctx, v, func(to store.Store) (signalbox.Task, error) { return to.Apply(ctx, change, now) })
}

// Renew implements store.Writer.
func (v *View) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	return verb(ctx, v, func(to store.Store) (int, error) { return to.Renew(ctx, leases) })
}

// FreeSlot implements store.Writer.
func (v *View) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (bool, error) {
	return verb(ctx, v, func(to store.Store) (bool, error) { return to.FreeSlot(ctx, agent, slot, fence) })
}

// Wake implements store.Writer.
func (v *View) Wake(ctx context.Context, now time.Time, limit int) (woken []string, next time.Time, err error) {
	_, err = verb(ctx, v, func(to store.Store) (struct{}, error) {
		woken, next, err = to.Wake(ctx, now, limit)
		return struct{}{}, err
	})
	return woken, next, err
}

// PutAgent implements store.Writer.
func (v *View) PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.PutAgent(ctx, a, entry) })
	return err
}

// RemoveAgent implements store.Writer.
func (v *View) RemoveAgent(ctx context.Context, name string, entry signalbox.Entry) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.RemoveAgent(ctx, name, entry) })
	return err
}

// PutSession implements store.Writer.
func (v *View) PutSession(ctx context.Context, before, after signalbox.Session, entry signalbox.Entry) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.PutSession(ctx, before, after, entry) })
	return err
}

// KeepStale implements store.Writer.
func (v *View) KeepStale(ctx context.Context, id string, s signalbox.Stale) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.KeepStale(ctx, id, s) })
	return err
}

// RestoreUsage implements store.Writer.
func (v *View) RestoreUsage(ctx context.Context, u signalbox.Usage) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.RestoreUsage(ctx, u) })
	return err
}

// PutToken implements store.Writer.
func (v *View) PutToken(ctx context.Context, t signalbox.Token) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.PutToken(ctx, t) })
	return err
}

// DeleteToken implements store.Writer.
func (v *View) DeleteToken(ctx context.Context, id string) (bool, error) {
	return verb(ctx, v, func(to store.Store) (bool, error) { return to.DeleteToken(ctx, id) })
}

// PutUser implements store.Writer.
func (v *View) PutUser(ctx context.Context, u signalbox.User) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.PutUser(ctx, u) })
	return err
}

// DeleteUser implements store.Writer.
func (v *View) DeleteUser(ctx context.Context, id string) (bool, error) {
	return verb(ctx, v, func(to store.Store) (bool, error) { return to.DeleteUser(ctx, id) })
}

// AppendAudit implements store.Writer.
func (v *View) AppendAudit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	return verb(ctx, v, func(to store.Store) (signalbox.Audit, error) { return to.AppendAudit(ctx, a) })
}

// SetPause implements store.Writer.
func (v *View) SetPause(ctx context.Context, p signalbox.Pause, entry signalbox.Entry) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.SetPause(ctx, p, entry) })
	return err
}

// Resume implements store.Writer.
func (v *View) Resume(ctx context.Context, queue string, entry signalbox.Entry) (bool, error) {
	return verb(ctx, v, func(to store.Store) (bool, error) { return to.Resume(ctx, queue, entry) })
}

// PutSchedule implements store.Writer.
func (v *View) PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error) {
	return verb(ctx, v, func(to store.Store) (signalbox.Schedule, error) { return to.PutSchedule(ctx, s, runs, entry) })
}

// DeleteSchedule implements store.Writer.
func (v *View) DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (bool, error) {
	return verb(ctx, v, func(to store.Store) (bool, error) { return to.DeleteSchedule(ctx, id, entry) })
}

// Note implements store.Writer.
func (v *View) Note(ctx context.Context, entry signalbox.Entry) error {
	_, err := verb(ctx, v, func(to store.Store) (struct{}, error) { return struct{}{}, to.Note(ctx, entry) })
	return err
}

// Beat implements store.Writer.
func (v *View) Beat(ctx context.Context, b store.Beat) (store.Peers, error) {
	return verb(ctx, v, func(to store.Store) (store.Peers, error) { return to.Beat(ctx, b) })
}

// Tickets implements store.Writer.
func (v *View) Tickets(ctx context.Context, s store.TicketStep) (store.ToolLine, error) {
	return verb(ctx, v, func(to store.Store) (store.ToolLine, error) { return to.Tickets(ctx, s) })
}

// Prune implements store.Writer.
func (v *View) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	return verb(ctx, v, func(to store.Store) (store.Pruned, error) { return to.Prune(ctx, p) })
}
