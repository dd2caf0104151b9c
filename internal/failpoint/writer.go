package failpoint

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Submit implements store.Writer.
func (w *Store) Submit(ctx context.Context, s store.Submission) (got store.Submitted, err error) {
	err = w.write(ctx, "Submit", func(ctx context.Context) error {
		got, err = w.Store.Submit(ctx, s)
		return err
	})
	return got, err
}

// Restore implements store.Writer.
func (w *Store) Restore(ctx context.Context, r store.Restored) (got signalbox.Task, err error) {
	err = w.write(ctx, "Restore", func(ctx context.Context) error {
		got, err = w.Store.Restore(ctx, r)
		return err
	})
	return got, err
}

// Claim implements store.Writer.
func (w *Store) Claim(ctx context.Context, c store.ClaimRequest) (got store.Claimed, err error) {
	err = w.write(ctx, "Claim", func(ctx context.Context) error {
		got, err = w.Store.Claim(ctx, c)
		return err
	})
	return got, err
}

// Apply implements store.Writer.
func (w *Store) Apply(ctx context.Context, change signalbox.Change, now time.Time) (got signalbox.Task, err error) {
	err = w.write(ctx, "Apply", func(ctx context.Context) error {
		got, err = w.Store.Apply(ctx, change, now)
		return err
	})
	return got, err
}

// Renew implements store.Writer.
func (w *Store) Renew(ctx context.Context, leases []store.Lease) (got int, err error) {
	err = w.write(ctx, "Renew", func(ctx context.Context) error {
		got, err = w.Store.Renew(ctx, leases)
		return err
	})
	return got, err
}

// FreeSlot implements store.Writer.
func (w *Store) FreeSlot(ctx context.Context, agent string, slot int, fence int64) (got bool, err error) {
	err = w.write(ctx, "FreeSlot", func(ctx context.Context) error {
		got, err = w.Store.FreeSlot(ctx, agent, slot, fence)
		return err
	})
	return got, err
}

// Wake implements store.Writer.
func (w *Store) Wake(ctx context.Context, now time.Time, limit int) (got []string, more time.Time, err error) {
	err = w.write(ctx, "Wake", func(ctx context.Context) error {
		got, more, err = w.Store.Wake(ctx, now, limit)
		return err
	})
	return got, more, err
}

// PutAgent implements store.Writer.
func (w *Store) PutAgent(ctx context.Context, a signalbox.Agent, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "PutAgent", func(ctx context.Context) error {
		err = w.Store.PutAgent(ctx, a, entry)
		return err
	})
	return err
}

// RemoveAgent implements store.Writer.
func (w *Store) RemoveAgent(ctx context.Context, name string, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "RemoveAgent", func(ctx context.Context) error {
		err = w.Store.RemoveAgent(ctx, name, entry)
		return err
	})
	return err
}

// PutSession implements store.Writer.
func (w *Store) PutSession(ctx context.Context, before signalbox.Session, after signalbox.Session, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "PutSession", func(ctx context.Context) error {
		err = w.Store.PutSession(ctx, before, after, entry)
		return err
	})
	return err
}

// KeepStale implements store.Writer.
func (w *Store) KeepStale(ctx context.Context, id string, s signalbox.Stale) (err error) {
	err = w.write(ctx, "KeepStale", func(ctx context.Context) error {
		err = w.Store.KeepStale(ctx, id, s)
		return err
	})
	return err
}

// RestoreUsage implements store.Writer.
func (w *Store) RestoreUsage(ctx context.Context, u signalbox.Usage) (err error) {
	err = w.write(ctx, "RestoreUsage", func(ctx context.Context) error {
		err = w.Store.RestoreUsage(ctx, u)
		return err
	})
	return err
}

// PutToken implements store.Writer.
func (w *Store) PutToken(ctx context.Context, t signalbox.Token) (err error) {
	err = w.write(ctx, "PutToken", func(ctx context.Context) error {
		err = w.Store.PutToken(ctx, t)
		return err
	})
	return err
}

// DeleteToken implements store.Writer.
func (w *Store) DeleteToken(ctx context.Context, id string) (got bool, err error) {
	err = w.write(ctx, "DeleteToken", func(ctx context.Context) error {
		got, err = w.Store.DeleteToken(ctx, id)
		return err
	})
	return got, err
}

// PutUser implements store.Writer.
func (w *Store) PutUser(ctx context.Context, u signalbox.User) (err error) {
	err = w.write(ctx, "PutUser", func(ctx context.Context) error {
		err = w.Store.PutUser(ctx, u)
		return err
	})
	return err
}

// DeleteUser implements store.Writer.
func (w *Store) DeleteUser(ctx context.Context, id string) (got bool, err error) {
	err = w.write(ctx, "DeleteUser", func(ctx context.Context) error {
		got, err = w.Store.DeleteUser(ctx, id)
		return err
	})
	return got, err
}

// AppendAudit implements store.Writer.
func (w *Store) AppendAudit(ctx context.Context, a signalbox.Audit) (got signalbox.Audit, err error) {
	err = w.write(ctx, "AppendAudit", func(ctx context.Context) error {
		got, err = w.Store.AppendAudit(ctx, a)
		return err
	})
	return got, err
}

// SetPause implements store.Writer.
func (w *Store) SetPause(ctx context.Context, p signalbox.Pause, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "SetPause", func(ctx context.Context) error {
		err = w.Store.SetPause(ctx, p, entry)
		return err
	})
	return err
}

// Resume implements store.Writer.
func (w *Store) Resume(ctx context.Context, queue string, entry signalbox.Entry) (got bool, err error) {
	err = w.write(ctx, "Resume", func(ctx context.Context) error {
		got, err = w.Store.Resume(ctx, queue, entry)
		return err
	})
	return got, err
}

// RemoveAccount implements store.Writer.
func (w *Store) RemoveAccount(ctx context.Context, seen signalbox.Account, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "RemoveAccount", func(ctx context.Context) error {
		err = w.Store.RemoveAccount(ctx, seen, entry)
		return err
	})
	return err
}

// ChangeAccount implements store.Writer.
func (w *Store) ChangeAccount(ctx context.Context, ev signalbox.AccountEvent) (got store.AccountChange, err error) {
	err = w.write(ctx, "ChangeAccount", func(ctx context.Context) error {
		got, err = w.Store.ChangeAccount(ctx, ev)
		return err
	})
	return got, err
}

// PutSchedule implements store.Writer.
func (w *Store) PutSchedule(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (got signalbox.Schedule, err error) {
	err = w.write(ctx, "PutSchedule", func(ctx context.Context) error {
		got, err = w.Store.PutSchedule(ctx, s, runs, entry)
		return err
	})
	return got, err
}

// DeleteSchedule implements store.Writer.
func (w *Store) DeleteSchedule(ctx context.Context, id string, entry signalbox.Entry) (got bool, err error) {
	err = w.write(ctx, "DeleteSchedule", func(ctx context.Context) error {
		got, err = w.Store.DeleteSchedule(ctx, id, entry)
		return err
	})
	return got, err
}

// Note implements store.Writer.
func (w *Store) Note(ctx context.Context, entry signalbox.Entry) (err error) {
	err = w.write(ctx, "Note", func(ctx context.Context) error {
		err = w.Store.Note(ctx, entry)
		return err
	})
	return err
}

// Beat implements store.Writer.
func (w *Store) Beat(ctx context.Context, b store.Beat) (got store.Peers, err error) {
	err = w.write(ctx, "Beat", func(ctx context.Context) error {
		got, err = w.Store.Beat(ctx, b)
		return err
	})
	return got, err
}

// Tickets implements store.Writer.
func (w *Store) Tickets(ctx context.Context, s store.TicketStep) (got store.ToolLine, err error) {
	err = w.write(ctx, "Tickets", func(ctx context.Context) error {
		got, err = w.Store.Tickets(ctx, s)
		return err
	})
	return got, err
}

// Prune implements store.Writer.
func (w *Store) Prune(ctx context.Context, p store.Pruning) (got store.Pruned, err error) {
	err = w.write(ctx, "Prune", func(ctx context.Context) error {
		got, err = w.Store.Prune(ctx, p)
		return err
	})
	return got, err
}
