package failpoint

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Task implements store.Reader.
func (w *Store) Task(ctx context.Context, id string) (got signalbox.Task, err error) {
	err = w.read(ctx, "Task", func(ctx context.Context) error {
		got, err = w.Store.Task(ctx, id)
		return err
	})
	return got, err
}

// Tasks implements store.Reader.
func (w *Store) Tasks(ctx context.Context, ids []string) (got []signalbox.Task, err error) {
	err = w.read(ctx, "Tasks", func(ctx context.Context) error {
		got, err = w.Store.Tasks(ctx, ids)
		return err
	})
	return got, err
}

// Request implements store.Reader.
func (w *Store) Request(ctx context.Context, id string) (got signalbox.Request, err error) {
	err = w.read(ctx, "Request", func(ctx context.Context) error {
		got, err = w.Store.Request(ctx, id)
		return err
	})
	return got, err
}

// Result implements store.Reader.
func (w *Store) Result(ctx context.Context, id string) (got signalbox.Result, err error) {
	err = w.read(ctx, "Result", func(ctx context.Context) error {
		got, err = w.Store.Result(ctx, id)
		return err
	})
	return got, err
}

// Find implements store.Reader.
func (w *Store) Find(ctx context.Context, part string, limit int) (got []string, err error) {
	err = w.read(ctx, "Find", func(ctx context.Context) error {
		got, err = w.Store.Find(ctx, part, limit)
		return err
	})
	return got, err
}

// Position implements store.Reader.
func (w *Store) Position(ctx context.Context, id string) (got store.Position, err error) {
	err = w.read(ctx, "Position", func(ctx context.Context) error {
		got, err = w.Store.Position(ctx, id)
		return err
	})
	return got, err
}

// Counts implements store.Reader.
func (w *Store) Counts(ctx context.Context) (got store.Counts, err error) {
	err = w.read(ctx, "Counts", func(ctx context.Context) error {
		got, err = w.Store.Counts(ctx)
		return err
	})
	return got, err
}

// Lengths implements store.Reader.
func (w *Store) Lengths(ctx context.Context, queues ...string) (got []int, err error) {
	err = w.read(ctx, "Lengths", func(ctx context.Context) error {
		got, err = w.Store.Lengths(ctx, queues...)
		return err
	})
	return got, err
}

// Waiting implements store.Reader.
func (w *Store) Waiting(ctx context.Context, queue string, after store.Cursor, limit int) (got []signalbox.Task, err error) {
	err = w.read(ctx, "Waiting", func(ctx context.Context) error {
		got, err = w.Store.Waiting(ctx, queue, after, limit)
		return err
	})
	return got, err
}

// InFlight implements store.Reader.
func (w *Store) InFlight(ctx context.Context) (got []signalbox.Task, err error) {
	err = w.read(ctx, "InFlight", func(ctx context.Context) error {
		got, err = w.Store.InFlight(ctx)
		return err
	})
	return got, err
}

// Parked implements store.Reader.
func (w *Store) Parked(ctx context.Context, kind signalbox.GateKind, name string) (got []signalbox.Task, err error) {
	err = w.read(ctx, "Parked", func(ctx context.Context) error {
		got, err = w.Store.Parked(ctx, kind, name)
		return err
	})
	return got, err
}

// Overdue implements store.Reader.
func (w *Store) Overdue(ctx context.Context, now time.Time, limit int) (got []signalbox.Task, err error) {
	err = w.read(ctx, "Overdue", func(ctx context.Context) error {
		got, err = w.Store.Overdue(ctx, now, limit)
		return err
	})
	return got, err
}

// SessionTasks implements store.Reader.
func (w *Store) SessionTasks(ctx context.Context, sessionID string, limit int) (got []signalbox.Task, err error) {
	err = w.read(ctx, "SessionTasks", func(ctx context.Context) error {
		got, err = w.Store.SessionTasks(ctx, sessionID, limit)
		return err
	})
	return got, err
}

// History implements store.Reader.
func (w *Store) History(ctx context.Context, q store.HistoryQuery) (got store.HistoryPage, err error) {
	err = w.read(ctx, "History", func(ctx context.Context) error {
		got, err = w.Store.History(ctx, q)
		return err
	})
	return got, err
}

// ByKey implements store.Reader.
func (w *Store) ByKey(ctx context.Context, key string) (got signalbox.Task, err error) {
	err = w.read(ctx, "ByKey", func(ctx context.Context) error {
		got, err = w.Store.ByKey(ctx, key)
		return err
	})
	return got, err
}

// Kept implements store.Reader.
func (w *Store) Kept(ctx context.Context) (got map[string]int64, err error) {
	err = w.read(ctx, "Kept", func(ctx context.Context) error {
		got, err = w.Store.Kept(ctx)
		return err
	})
	return got, err
}

// Durations implements store.Reader.
func (w *Store) Durations(ctx context.Context, agent string, limit int) (got []time.Duration, err error) {
	err = w.read(ctx, "Durations", func(ctx context.Context) error {
		got, err = w.Store.Durations(ctx, agent, limit)
		return err
	})
	return got, err
}

// Children implements store.Reader.
func (w *Store) Children(ctx context.Context, id string, limit int) (got []signalbox.Task, err error) {
	err = w.read(ctx, "Children", func(ctx context.Context) error {
		got, err = w.Store.Children(ctx, id, limit)
		return err
	})
	return got, err
}

// Whole implements store.Reader.
func (w *Store) Whole(ctx context.Context, id string) (got store.Whole, err error) {
	err = w.read(ctx, "Whole", func(ctx context.Context) error {
		got, err = w.Store.Whole(ctx, id)
		return err
	})
	return got, err
}

// Stales implements store.Reader.
func (w *Store) Stales(ctx context.Context, id string) (got []signalbox.Stale, err error) {
	err = w.read(ctx, "Stales", func(ctx context.Context) error {
		got, err = w.Store.Stales(ctx, id)
		return err
	})
	return got, err
}

// Tokens implements store.Reader.
func (w *Store) Tokens(ctx context.Context) (got []signalbox.Token, err error) {
	err = w.read(ctx, "Tokens", func(ctx context.Context) error {
		got, err = w.Store.Tokens(ctx)
		return err
	})
	return got, err
}

// Usage implements store.Reader.
func (w *Store) Usage(ctx context.Context, q store.UsageQuery) (got []signalbox.Usage, err error) {
	err = w.read(ctx, "Usage", func(ctx context.Context) error {
		got, err = w.Store.Usage(ctx, q)
		return err
	})
	return got, err
}

// Users implements store.Reader.
func (w *Store) Users(ctx context.Context) (got []signalbox.User, err error) {
	err = w.read(ctx, "Users", func(ctx context.Context) error {
		got, err = w.Store.Users(ctx)
		return err
	})
	return got, err
}

// AuditLog implements store.Reader.
func (w *Store) AuditLog(ctx context.Context, q store.AuditQuery) (got []signalbox.Audit, err error) {
	err = w.read(ctx, "AuditLog", func(ctx context.Context) error {
		got, err = w.Store.AuditLog(ctx, q)
		return err
	})
	return got, err
}

// AuditHead implements store.Reader.
func (w *Store) AuditHead(ctx context.Context) (got signalbox.Audit, err error) {
	err = w.read(ctx, "AuditHead", func(ctx context.Context) error {
		got, err = w.Store.AuditHead(ctx)
		return err
	})
	return got, err
}

// Agents implements store.Reader.
func (w *Store) Agents(ctx context.Context) (got []signalbox.Agent, err error) {
	err = w.read(ctx, "Agents", func(ctx context.Context) error {
		got, err = w.Store.Agents(ctx)
		return err
	})
	return got, err
}

// Slots implements store.Reader.
func (w *Store) Slots(ctx context.Context) (got []signalbox.Slot, err error) {
	err = w.read(ctx, "Slots", func(ctx context.Context) error {
		got, err = w.Store.Slots(ctx)
		return err
	})
	return got, err
}

// Pauses implements store.Reader.
func (w *Store) Pauses(ctx context.Context) (got []signalbox.Pause, err error) {
	err = w.read(ctx, "Pauses", func(ctx context.Context) error {
		got, err = w.Store.Pauses(ctx)
		return err
	})
	return got, err
}

// Accounts implements store.Reader.
func (w *Store) Accounts(ctx context.Context) (got []signalbox.Account, err error) {
	err = w.read(ctx, "Accounts", func(ctx context.Context) error {
		got, err = w.Store.Accounts(ctx)
		return err
	})
	return got, err
}

// Session implements store.Reader.
func (w *Store) Session(ctx context.Context, id string) (got signalbox.Session, err error) {
	err = w.read(ctx, "Session", func(ctx context.Context) error {
		got, err = w.Store.Session(ctx, id)
		return err
	})
	return got, err
}

// Sessions implements store.Reader.
func (w *Store) Sessions(ctx context.Context, q store.SessionQuery) (got store.SessionPage, err error) {
	err = w.read(ctx, "Sessions", func(ctx context.Context) error {
		got, err = w.Store.Sessions(ctx, q)
		return err
	})
	return got, err
}

// Schedules implements store.Reader.
func (w *Store) Schedules(ctx context.Context) (got []signalbox.Schedule, err error) {
	err = w.read(ctx, "Schedules", func(ctx context.Context) error {
		got, err = w.Store.Schedules(ctx)
		return err
	})
	return got, err
}

// Schedule implements store.Reader.
func (w *Store) Schedule(ctx context.Context, id string) (got signalbox.Schedule, err error) {
	err = w.read(ctx, "Schedule", func(ctx context.Context) error {
		got, err = w.Store.Schedule(ctx, id)
		return err
	})
	return got, err
}

// ScheduleRuns implements store.Reader.
func (w *Store) ScheduleRuns(ctx context.Context, id string, limit int) (got []signalbox.ScheduleRun, err error) {
	err = w.read(ctx, "ScheduleRuns", func(ctx context.Context) error {
		got, err = w.Store.ScheduleRuns(ctx, id, limit)
		return err
	})
	return got, err
}

// OpenRuns implements store.Reader.
func (w *Store) OpenRuns(ctx context.Context) (got []signalbox.ScheduleRun, err error) {
	err = w.read(ctx, "OpenRuns", func(ctx context.Context) error {
		got, err = w.Store.OpenRuns(ctx)
		return err
	})
	return got, err
}

// Directors implements store.Reader.
func (w *Store) Directors(ctx context.Context) (got []store.Director, err error) {
	err = w.read(ctx, "Directors", func(ctx context.Context) error {
		got, err = w.Store.Directors(ctx)
		return err
	})
	return got, err
}

// Holders implements store.Reader.
func (w *Store) Holders(ctx context.Context) (got map[string]string, err error) {
	err = w.read(ctx, "Holders", func(ctx context.Context) error {
		got, err = w.Store.Holders(ctx)
		return err
	})
	return got, err
}

// Snapshot implements store.Reader.
func (w *Store) Snapshot(ctx context.Context, heads int) (got store.Snapshot, err error) {
	err = w.read(ctx, "Snapshot", func(ctx context.Context) error {
		got, err = w.Store.Snapshot(ctx, heads)
		return err
	})
	return got, err
}

// Journal implements store.Reader.
func (w *Store) Journal(ctx context.Context, after int64, limit int) (got []signalbox.Entry, err error) {
	err = w.read(ctx, "Journal", func(ctx context.Context) error {
		got, err = w.Store.Journal(ctx, after, limit)
		return err
	})
	return got, err
}

// JournalRange implements store.Reader.
func (w *Store) JournalRange(ctx context.Context) (got int64, more int64, err error) {
	err = w.read(ctx, "JournalRange", func(ctx context.Context) error {
		got, more, err = w.Store.JournalRange(ctx)
		return err
	})
	return got, more, err
}
