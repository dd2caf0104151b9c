package inside

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

// The times by which a book goes.
const (
	// journalEvery is how often the journal is looked at for what other directors
	// changed.
	journalEvery = 2 * time.Second
	// maxEntries is how many entries are looked through; where there are more,
	// one of them is taken to be about a schedule.
	maxEntries = 2000
)

// Book keeps schedules in the engine's store.
type Book struct {
	engine *engine.Engine
	log    *slog.Logger

	mu sync.Mutex
	// own are entries that were written here and not yet found in the journal.
	own map[mark]int
}

var _ schedule.Book = (*Book)(nil)

// mark is by what an entry is found again.
type mark struct {
	at             int64
	kind           signalbox.EventKind
	name, says, by string
}

func markOf(e *signalbox.Entry) mark {
	return mark{at: e.At.UnixMilli(), kind: e.Kind, name: e.Schedule, says: e.Message, by: e.By}
}

// NewBook returns the book of an engine's store.
func NewBook(e *engine.Engine, log *slog.Logger) *Book {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Book{engine: e, log: log, own: map[mark]int{}}
}

// Schedules lists all schedules by name.
func (b *Book) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	return b.engine.Read().Schedules(ctx)
}

// Schedule returns a schedule by its id, or CodeNotFound.
func (b *Book) Schedule(ctx context.Context, id string) (signalbox.Schedule, error) {
	return b.engine.Read().Schedule(ctx, id)
}

// Runs lists the newest runs of a schedule.
func (b *Book) Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	return b.engine.Read().ScheduleRuns(ctx, id, limit)
}

// Open lists the open runs of all schedules.
func (b *Book) Open(ctx context.Context) ([]signalbox.ScheduleRun, error) {
	return b.engine.Read().OpenRuns(ctx)
}

// Put stores a schedule with runs.
func (b *Book) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, entry signalbox.Entry) (signalbox.Schedule, error) {
	b.expect(&entry, 1)
	stored, err := b.engine.PutSchedule(ctx, s, runs, entry)
	if err != nil {
		b.expect(&entry, -1)
	}
	if errors.Is(err, store.ErrStale) {
		err = schedule.ErrStale
	}
	return stored, err
}

// Delete forgets a schedule.
func (b *Book) Delete(ctx context.Context, id string, entry signalbox.Entry) (was bool, err error) {
	b.expect(&entry, 1)
	was, err = b.engine.DeleteSchedule(ctx, id, entry)
	if !was {
		b.expect(&entry, -1)
	}
	return was, err
}

// expect counts an entry that is about to be in the journal, or is not after
// all. One whose write failed though it was made is taken for another's.
func (b *Book) expect(entry *signalbox.Entry, n int) {
	if entry.Kind == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(markOf(entry), n)
}

func (b *Book) count(m mark, n int) {
	if b.own[m] += n; b.own[m] <= 0 {
		delete(b.own, m)
	}
}

// Changes gives a sign after another director may have changed a schedule.
func (b *Book) Changes() (<-chan struct{}, func()) {
	signs := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { b.watch(ctx, signs) })
	return signs, func() {
		cancel()
		watching.Wait()
	}
}

// watch looks through the journal. At rest it reads nothing but the journal's
// end.
func (b *Book) watch(ctx context.Context, signs chan<- struct{}) {
	tick := time.Tick(journalEvery)
	_, after, err := b.engine.Read().JournalRange(ctx)
	for known := err == nil; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		_, newest, err := b.engine.Read().JournalRange(ctx)
		if err != nil {
			if ctx.Err() == nil {
				b.log.Error("the journal cannot be read: schedules that other directors change are seen late", "error", err)
			}
			continue
		}
		if !known {
			after, known = newest, true
			continue
		}
		if b.others(ctx, after, newest) {
			select {
			case signs <- struct{}{}:
			default:
			}
		}
		after = newest
	}
}

// others reports whether entries of a part of the journal are about schedules
// and were not written here.
func (b *Book) others(ctx context.Context, after, newest int64) bool {
	if newest-after > maxEntries {
		b.mu.Lock()
		defer b.mu.Unlock()
		clear(b.own)
		return true
	}
	found := false
	for after < newest {
		entries, err := b.engine.Read().Journal(ctx, after, maxEntries)
		if err != nil || len(entries) == 0 {
			return true
		}
		b.mu.Lock()
		for i := range entries {
			e := &entries[i]
			if after = e.Seq; e.Kind != signalbox.EventScheduleChanged && e.Kind != signalbox.EventScheduleFired {
				continue
			}
			if m := markOf(e); b.own[m] > 0 {
				b.count(m, -1)
			} else {
				found = true
			}
		}
		b.mu.Unlock()
	}
	return found
}
