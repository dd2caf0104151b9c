package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

const (
	// RingEntries is how many of the newest entries are kept in memory for
	// readers; older ones come from the store.
	RingEntries = 4096
	// FeedBatch is the maximum number of entries per read, by the feed and by a reader.
	FeedBatch = 256
	// feedBackstop is the polling interval without notifications: another director
	// may have written.
	feedBackstop = time.Second
)

// frame is an encoded journal entry, with the fields that decide who gets it.
type frame struct {
	seq                          int64
	kind                         signalbox.EventKind
	state                        signalbox.State
	queueID, queue, agent, owner string
	bytes                        []byte
}

// Feed tails the journal once for all readers. It runs while there are
// readers.
type Feed struct {
	engine *engine.Engine
	log    *slog.Logger

	mu      sync.Mutex
	readers map[chan struct{}]struct{}
	ring    []frame // oldest first, without gaps
	stop    context.CancelFunc
	// lines has the last entry that changed positions in a queue since the last
	// invalidation. generation counts invalidations.
	lines      map[string]int64
	generation int64
}

func NewFeed(e *engine.Engine, log *slog.Logger) *Feed {
	return &Feed{engine: e, log: log, readers: map[chan struct{}]struct{}{}, lines: map[string]int64{}}
}

// Join adds a reader, which is notified after the journal grew. Notifications
// coalesce.
func (f *Feed) Join() (signs <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers[c] = struct{}{}
	if f.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f.stop, f.ring = cancel, nil
		f.invalidateLines()
		go f.run(ctx)
	}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.readers, c)
		if len(f.readers) == 0 && f.stop != nil {
			f.stop()
			f.stop = nil
		}
	}
}

// run tails the journal until ctx ends.
func (f *Feed) run(ctx context.Context) {
	signs, stop := f.engine.WatchJournal()
	defer stop()
	backstop := time.NewTicker(feedBackstop)
	defer backstop.Stop()
	at := int64(-1)
	for {
		var err error
		if at < 0 {
			_, at, err = f.engine.Read().JournalRange(ctx)
			f.begin(ctx) // older entries are read from the store
		}
		for more := err == nil; more; {
			at, more, err = f.tail(ctx, at)
			more = more && err == nil
		}
		if err != nil && ctx.Err() == nil {
			f.log.Error("journal not read", "error", err)
		}
		select {
		case <-signs:
		case <-backstop.C:
		case <-ctx.Done():
			return
		}
	}
}

// begin notifies the readers that the feed has started.
func (f *Feed) begin(ctx context.Context) {
	f.mu.Lock()
	if ctx.Err() == nil {
		f.invalidateLines() // changes before this are unknown
	}
	f.mu.Unlock()
	f.wake(ctx, nil)
}

// tail reads one batch after at. more: there may be another.
func (f *Feed) tail(ctx context.Context, at int64) (next int64, more bool, err error) {
	entries, err := f.engine.Read().Journal(ctx, at, FeedBatch)
	if err != nil || len(entries) == 0 {
		return at, false, err
	}
	frames, err := frames(entries)
	if err != nil {
		return at, false, err
	}
	f.wake(ctx, frames)
	return entries[len(entries)-1].Seq, len(entries) == FeedBatch, nil
}

// wake adds entries to the ring and notifies the readers.
func (f *Feed) wake(ctx context.Context, add []frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // a later run may have started its own ring
	}
	if len(add) > 0 {
		f.ring = append(f.ring, add...)
		f.ring = f.ring[lastGap(f.ring, len(add)):] // the ring has no gaps
		f.recordLineChanges(add)
		if over := len(f.ring) - RingEntries; over > 0 {
			f.ring = append(f.ring[:0:0], f.ring[over:]...)
		}
	}
	for c := range f.readers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// lastGap returns the index of the first entry after the last gap in a list whose last
// added entries are new. A store that lost entries continues far above the last one.
func lastGap(list []frame, added int) int {
	for i := len(list) - 1; i > 0 && i >= len(list)-added; i-- {
		if list[i-1].seq+1 != list[i].seq {
			return i
		}
	}
	return 0
}

// after returns at most FeedBatch entries after seq, from the ring or, if they are older,
// from the store.
func (f *Feed) after(ctx context.Context, seq int64) ([]frame, error) {
	if got, ok := f.fromRing(seq); ok {
		return got, nil
	}
	entries, err := f.engine.Read().Journal(ctx, seq, FeedBatch)
	if err != nil {
		return nil, err
	}
	return frames(entries)
}

func (f *Feed) fromRing(seq int64) ([]frame, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) == 0 || seq+1 < f.ring[0].seq {
		return nil, false
	}
	from := min(seq+1-f.ring[0].seq, int64(len(f.ring)))
	to := min(from+FeedBatch, int64(len(f.ring)))
	return append([]frame(nil), f.ring[from:to]...), true
}

func frames(entries []signalbox.Entry) ([]frame, error) {
	out := make([]frame, len(entries))
	for i := range entries {
		e := &entries[i]
		b, err := httpio.Event(e.Seq, string(e.Kind), e)
		if err != nil {
			return nil, err
		}
		out[i] = frame{seq: e.Seq, kind: e.Kind, state: e.State, queueID: e.QueueID, queue: e.Queue, agent: e.Agent, owner: e.Owner, bytes: b}
	}
	return out, nil
}

// CoalesceInterval is the minimum time between two events about things that change
// constantly: positions in line and output.
const CoalesceInterval = 200 * time.Millisecond
