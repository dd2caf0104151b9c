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
	// RingEntries is how many of the newest entries are at hand for readers;
	// older ones come from the store.
	RingEntries = 4096
	// FeedBatch bounds what is read at once, by the feed and by a reader.
	FeedBatch = 256
	// feedBackstop is how often the feed looks though nothing was announced:
	// another director may have written.
	feedBackstop = time.Second
)

// framed is a journal entry, ready to be sent, with what decides who gets it.
type framed struct {
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
	ring    []framed // oldest first, without gaps
	stop    context.CancelFunc
	// lines has the last entry that changed who stands where in a queue,
	// since all were forgotten, which the generation counts.
	lines      map[string]int64
	generation int64
}

func NewFeed(e *engine.Engine, log *slog.Logger) *Feed {
	return &Feed{engine: e, log: log, readers: map[chan struct{}]struct{}{}, lines: map[string]int64{}}
}

// Join adds a reader, which gets a sign after the journal grew. Signs
// coalesce.
func (f *Feed) Join() (signs <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers[c] = struct{}{}
	if f.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f.stop, f.ring = cancel, nil
		f.forgetLines()
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
			f.begin(ctx) // what came before is read from the store
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

// begin tells the readers that the feed stands at its beginning.
func (f *Feed) begin(ctx context.Context) {
	f.mu.Lock()
	if ctx.Err() == nil {
		f.forgetLines() // what changed before it is not known
	}
	f.mu.Unlock()
	f.wake(ctx, nil)
}

// tail reads one batch behind at. more says that there may be another.
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

// wake adds entries to the ring and tells the readers.
func (f *Feed) wake(ctx context.Context, add []framed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // another run may have begun a ring of its own
	}
	if len(add) > 0 {
		f.ring = append(f.ring, add...)
		f.ring = f.ring[lastGap(f.ring, len(add)):] // the ring has no gaps
		f.noteLines(add)
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

// lastGap is where the entries begin that follow each other up to the end, of
// which so many are new. A store that lost something goes on far above what it
// had.
func lastGap(list []framed, added int) int {
	for i := len(list) - 1; i > 0 && i >= len(list)-added; i-- {
		if list[i-1].seq+1 != list[i].seq {
			return i
		}
	}
	return 0
}

// after returns the entries that follow seq, at most feedBatch: from the
// ring, or from the store what is older than that.
func (f *Feed) after(ctx context.Context, seq int64) ([]framed, error) {
	if got, ok := f.fromRing(seq); ok {
		return got, nil
	}
	entries, err := f.engine.Read().Journal(ctx, seq, FeedBatch)
	if err != nil {
		return nil, err
	}
	return frames(entries)
}

func (f *Feed) fromRing(seq int64) ([]framed, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) == 0 || seq+1 < f.ring[0].seq {
		return nil, false
	}
	from := min(seq+1-f.ring[0].seq, int64(len(f.ring)))
	to := min(from+FeedBatch, int64(len(f.ring)))
	return append([]framed(nil), f.ring[from:to]...), true
}

func frames(entries []signalbox.Entry) ([]framed, error) {
	out := make([]framed, len(entries))
	for i := range entries {
		e := &entries[i]
		b, err := httpio.Event(e.Seq, string(e.Kind), e)
		if err != nil {
			return nil, err
		}
		out[i] = framed{seq: e.Seq, kind: e.Kind, state: e.State, queueID: e.QueueID, queue: e.Queue, agent: e.Agent, owner: e.Owner, bytes: b}
	}
	return out, nil
}

// Coalesce is how often at most a stream tells of what changes all the time:
// places in line and output.
const Coalesce = 200 * time.Millisecond
