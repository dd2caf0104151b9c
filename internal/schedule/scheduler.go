package schedule

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// Scheduler fires schedules. Make one with New.
//
// One goroutine keeps the time: it knows of each schedule when it has to be
// worked on next, and sleeps until then. The work on a schedule is a turn, on a
// goroutine of its own; two turns of one schedule never run side by side.
type Scheduler struct {
	book  Book
	queue Queue
	opts  Options
	log   *slog.Logger
	zone  *time.Location

	mu      sync.Mutex
	entries map[string]*entry // by id
	names   map[string]string // ids by name, as last heard
	holding map[string]*entry // those with held firings
	wakes   wakes             // those that are not being worked on
	turns   int               // that run
	waiting []*entry          // for one of maxTurns
	// changes counts what this scheduler changed in entries: what was read before
	// may be older than what is known.
	changes int64
	files   map[string]bool // Enabled of the jobs of the configuration, as last read
	running bool
	closed  bool

	sign   chan struct{} // the time keeper has to look anew
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	ended  chan struct{}
}

// New returns a scheduler. It fires nothing before Run. It fails where
// Options.Zone is no time zone.
func New(book Book, queue Queue, opts Options) (*Scheduler, error) {
	zone, err := cron.Zone(opts.Zone)
	if err != nil {
		return nil, signalbox.Invalid("scheduler.timezone", "%v", err)
	}
	opts.Zone = cmp.Or(opts.Zone, "UTC")
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	s := &Scheduler{
		book: book, queue: queue, opts: opts, log: opts.Log, zone: zone,
		entries: map[string]*entry{}, names: map[string]string{}, holding: map[string]*entry{},
		sign: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// now is the scheduler's clock, UTC, cut to the millisecond as times are stored.
func (s *Scheduler) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// Run fires schedules until the context ends or Close is called. Firings that
// are under way then stay open, and are taken up by whoever runs next.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closed && !s.running { // it was told to end before it came to begin
		s.mu.Unlock()
		return nil
	}
	if s.running {
		s.mu.Unlock()
		return errors.New("the scheduler runs already")
	}
	s.running = true
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	defer close(s.ended)
	defer s.work.Wait()
	defer s.cancel()
	newKeeper(s).keep()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return nil
}

// Close ends Run and waits for it.
func (s *Scheduler) Close() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	running := s.running
	s.mu.Unlock()
	if running {
		<-s.ended
	}
}

// look lets the time keeper look anew.
func (s *Scheduler) look() {
	select {
	case s.sign <- struct{}{}:
	default:
	}
}

// keeper keeps the time of a scheduler.
type keeper struct {
	s *Scheduler
	// The clock, and what really passed, when they were looked at last.
	clock, real time.Time
	readAt      time.Time // when all is read next, by the real time
	backoff     time.Duration
	endsAt      time.Time // when ends were looked at last, by the real time
	ends        bool      // and some were announced since
}

func newKeeper(s *Scheduler) *keeper {
	now := time.Now()
	return &keeper{s: s, clock: s.now(), real: now, readAt: now, backoff: firstBackoff}
}

// keep runs until the scheduler's context ends.
func (k *keeper) keep() {
	changes, stopChanges := k.s.book.Changes()
	defer stopChanges()
	ends, stopEnds := k.s.queue.Ends()
	defer stopEnds()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.s.ctx.Done():
			return
		case <-timer.C:
		case <-k.s.sign:
		case <-changes:
			k.readAt = time.Time{}
		case <-ends:
			k.ends = true
		}
		k.lookAtClock()
		k.read()
		k.lookAtEnds()
		sleep := k.s.startDue()
		if k.ends {
			sleep = min(sleep, endsEvery)
		}
		timer.Reset(sleep)
	}
}

// lookAtClock finds out whether the clock jumped: times at which something is
// tried again are of the clock before.
func (k *keeper) lookAtClock() {
	clock, real := k.s.now(), time.Now()
	by := clock.Sub(k.clock) - real.Sub(k.real)
	k.clock, k.real = clock, real
	if by.Abs() > 5*time.Second {
		k.s.log.Warn("the clock jumped", "by", by.Round(time.Second).String())
		k.s.rearrange()
	}
}

func (k *keeper) read() {
	if time.Now().Before(k.readAt) {
		return
	}
	whole, err := k.s.load(k.s.ctx)
	if err == nil {
		k.readAt, k.backoff = time.Now().Add(readEvery), firstBackoff
		if !whole {
			k.readAt = time.Now().Add(firstBackoff)
		}
		return
	}
	if k.s.ctx.Err() == nil {
		k.s.log.Error("schedules cannot be read, what is known of them goes on", "error", err, "again_in", k.backoff.String())
	}
	k.readAt = time.Now().Add(k.backoff)
	k.backoff = min(2*k.backoff, mostBackoff)
}

func (k *keeper) lookAtEnds() {
	if !k.ends || time.Since(k.endsAt) < endsEvery {
		return // the timer comes soon enough
	}
	k.ends, k.endsAt = false, time.Now()
	k.s.lookAtHeld()
}

// startDue starts a turn of each schedule that has to be worked on, and says
// how long to sleep.
func (s *Scheduler) startDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for e := s.wakes.due(now); e != nil; e = s.wakes.due(now) {
		s.start(e)
	}
	sleep := lookEvery
	if next := s.wakes.next(); !next.IsZero() {
		sleep = min(sleep, max(next.Sub(now), time.Millisecond))
	}
	return sleep
}

// start begins a turn, or lets it wait for a place.
func (s *Scheduler) start(e *entry) {
	e.busy = true
	if s.turns == maxTurns {
		s.waiting = append(s.waiting, e)
		return
	}
	s.turns++
	s.work.Go(func() {
		for e := e; e != nil; e = s.finish(e) {
			s.turn(e)
		}
	})
}

// finish ends a turn and returns the next schedule that waits for one.
func (s *Scheduler) finish(e *entry) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.busy = false
	if s.entries[e.row.ID] == e {
		s.arrange(e)
	}
	s.look()
	if len(s.waiting) > 0 && s.ctx.Err() == nil {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		return next
	}
	s.turns--
	return nil
}
