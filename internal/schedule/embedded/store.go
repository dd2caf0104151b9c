package embedded

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// journalInterval is how often the journal is checked for changes by other directors.
	journalInterval = 2 * time.Second
	// maxEntries is how many journal entries are read at once; if there are more, a change is
	// assumed.
	maxEntries = 2000
)

// Store implements schedule.Store with the engine's store.
type Store struct {
	engine *engine.Engine
	log    *slog.Logger

	mu sync.Mutex
	// pending counts entries written here and not yet seen in the journal.
	pending map[entryKey]int
}

var _ schedule.Store = (*Store)(nil)

// entryKey identifies a journal entry.
type entryKey struct {
	at                int64
	kind              signalbox.EventKind
	name, message, by string
}

func keyOf(e *signalbox.Entry) entryKey {
	return entryKey{at: e.At.UnixMilli(), kind: e.Kind, name: e.Schedule, message: e.Message, by: e.By}
}

func NewStore(e *engine.Engine, log *slog.Logger) *Store {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Store{engine: e, log: log, pending: map[entryKey]int{}}
}

// Schedules lists all schedules by name.
func (st *Store) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	return st.engine.Read().Schedules(ctx)
}

// Schedule returns a schedule by its id, or CodeNotFound.
func (st *Store) Schedule(ctx context.Context, id string) (signalbox.Schedule, error) {
	return st.engine.Read().Schedule(ctx, id)
}

// Runs lists the newest runs of a schedule.
func (st *Store) Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	return st.engine.Read().ScheduleRuns(ctx, id, limit)
}

// Open lists the open runs of all schedules.
func (st *Store) Open(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	return st.engine.Read().OpenRuns(ctx)
}

// Put stores a schedule with runs.
func (st *Store) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error) {
	st.expect(&entry, 1)
	stored, err := st.engine.PutSchedule(ctx, s, runs, entry)
	if err != nil {
		st.expect(&entry, -1)
	}
	if errors.Is(err, store.ErrStale) {
		err = schedule.ErrStale
	}
	return stored, err
}

// Delete deletes a schedule.
func (st *Store) Delete(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error) {
	st.expect(&entry, 1)
	was, err = st.engine.DeleteSchedule(ctx, id, entry)
	if !was {
		st.expect(&entry, -1)
	}
	return was, err
}

// expect counts an entry that will appear in the journal, or with a negative n will not. An entry that was
// stored although its write failed is taken for another director's.
func (st *Store) expect(entry *signalbox.Entry, n int) {
	if entry.Kind == "" {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.count(keyOf(entry), n)
}

func (st *Store) count(m entryKey, n int) {
	if st.pending[m] += n; st.pending[m] <= 0 {
		delete(st.pending, m)
	}
}

// Changes signals that another director may have changed a schedule.
func (st *Store) Changes() (<-chan struct{}, func()) {
	signs := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { st.watch(ctx, signs) })
	return signs, func() {
		cancel()
		watching.Wait()
	}
}

// watch polls the journal. While nothing changes it reads only the journal's end.
func (st *Store) watch(ctx context.Context, signs chan<- struct{}) {
	tick := time.Tick(journalInterval)
	_, after, err := st.engine.Read().JournalRange(ctx)
	for known := err == nil; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		_, newest, err := st.engine.Read().JournalRange(ctx)
		if err != nil {
			if ctx.Err() == nil {
				st.log.Error("the journal cannot be read: schedules that other directors change are seen late", "error", err)
			}
			continue
		}
		if !known {
			after, known = newest, true
			continue
		}
		if st.changedByOthers(ctx, after, newest) {
			select {
			case signs <- struct{}{}:
			default:
			}
		}
		after = newest
	}
}

// changedByOthers reports whether new journal entries are about schedules and were not written
// here.
func (st *Store) changedByOthers(ctx context.Context, after, newest int64) bool {
	if newest-after > maxEntries {
		st.mu.Lock()
		defer st.mu.Unlock()
		clear(st.pending)
		return true
	}
	found := false
	for after < newest {
		entries, err := st.engine.Read().Journal(ctx, after, maxEntries)
		if err != nil || len(entries) == 0 {
			return true
		}
		st.mu.Lock()
		for i := range entries {
			e := &entries[i]
			if after = e.Seq; e.Kind != signalbox.EventScheduleChanged && e.Kind != signalbox.EventScheduleFired {
				continue
			}
			if m := keyOf(e); st.pending[m] > 0 {
				st.count(m, -1)
			} else {
				found = true
			}
		}
		st.mu.Unlock()
	}
	return found
}
