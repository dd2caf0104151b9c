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
// One goroutine, the timeLoop, sleeps until the next schedule is due. The work on a schedule is
// a turn, in its own goroutine; turns of one schedule never overlap.
type Scheduler struct {
	store Store
	queue Queue
	opts  Options
	log   *slog.Logger
	zone  *time.Location

	mu      sync.Mutex
	entries map[string]*entry // by id
	names   map[string]string // name to ID, as last read
	holding map[string]*entry // entries with held firings
	wakes   wakes             // entries without a turn
	turns   int               // running turns
	waiting []*entry          // entries waiting for one of maxTurns
	// changes counts local changes of entries, to detect that what was read is outdated.
	changes int64
	files   map[string]bool // Enabled of the configured jobs, as last synced
	running bool
	closed  bool

	wakeup chan struct{} // wakes the timeLoop
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	ended  chan struct{}
}

// New returns a scheduler, which fires nothing before Run. It fails if Options.Zone is invalid.
func New(store Store, queue Queue, opts Options) (*Scheduler, error) {
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
		store: store, queue: queue, opts: opts, log: opts.Log, zone: zone,
		entries: map[string]*entry{}, names: map[string]string{}, holding: map[string]*entry{},
		wakeup: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// now is the scheduler's clock in UTC, truncated to milliseconds as times are stored.
func (s *Scheduler) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// Run fires schedules until the context ends or Close is called. Open firings are left to the
// next scheduler.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.closed && !s.running { // closed before it started
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
	newTimeLoop(s).run()
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

// wakeLoop wakes the timeLoop.
func (s *Scheduler) wakeLoop() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// timeLoop starts turns when they are due, reloads schedules and checks the clock.
type timeLoop struct {
	s *Scheduler
	// The wall clock and the monotonic clock at the last check.
	clock, real time.Time
	reloadAt    time.Time // monotonic
	backoff     time.Duration
	endsAt      time.Time // when ends were last handled, monotonic
	ends        bool      // Queue.Ends signalled since
}

func newTimeLoop(s *Scheduler) *timeLoop {
	now := time.Now()
	return &timeLoop{s: s, clock: s.now(), real: now, reloadAt: now, backoff: firstBackoff}
}

// run runs until the scheduler's context ends.
func (l *timeLoop) run() {
	changes, stopChanges := l.s.store.Changes()
	defer stopChanges()
	ends, stopEnds := l.s.queue.Ends()
	defer stopEnds()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.s.ctx.Done():
			return
		case <-timer.C:
		case <-l.s.wakeup:
		case <-changes:
			l.reloadAt = time.Time{}
		case <-ends:
			l.ends = true
		}
		l.checkClock()
		l.reload()
		l.checkEnds()
		sleep := l.s.startDue()
		if l.ends {
			sleep = min(sleep, minEndsInterval)
		}
		timer.Reset(sleep)
	}
}

// checkClock detects a clock jump: retry times are of the clock before.
func (l *timeLoop) checkClock() {
	clock, real := l.s.now(), time.Now()
	by := clock.Sub(l.clock) - real.Sub(l.real)
	l.clock, l.real = clock, real
	if by.Abs() > 5*time.Second {
		l.s.log.Warn("the clock jumped", "by", by.Round(time.Second).String())
		l.s.rearmAll()
	}
}

func (l *timeLoop) reload() {
	if time.Now().Before(l.reloadAt) {
		return
	}
	complete, err := l.s.load(l.s.ctx)
	if err == nil {
		l.reloadAt, l.backoff = time.Now().Add(reloadInterval), firstBackoff
		if !complete {
			l.reloadAt = time.Now().Add(firstBackoff)
		}
		return
	}
	if l.s.ctx.Err() == nil {
		l.s.log.Error("schedules cannot be read; the known ones keep firing", "error", err, "again_in", l.backoff.String())
	}
	l.reloadAt = time.Now().Add(l.backoff)
	l.backoff = min(2*l.backoff, maxBackoff)
}

func (l *timeLoop) checkEnds() {
	if !l.ends || time.Since(l.endsAt) < minEndsInterval {
		return // the timer fires soon enough
	}
	l.ends, l.endsAt = false, time.Now()
	l.s.checkHeld()
}

// startDue starts a turn of each schedule that is due, and returns how long to sleep.
func (s *Scheduler) startDue() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for e := s.wakes.due(now); e != nil; e = s.wakes.due(now) {
		s.start(e)
	}
	sleep := clockInterval
	if next := s.wakes.next(); !next.IsZero() {
		sleep = min(sleep, max(next.Sub(now), time.Millisecond))
	}
	return sleep
}

// start starts a turn, or queues it if maxTurns run.
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

// finish ends a turn and returns the next entry that waits for one.
func (s *Scheduler) finish(e *entry) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.busy = false
	if s.entries[e.row.ID] == e {
		s.rearm(e)
	}
	s.wakeLoop()
	if len(s.waiting) > 0 && s.ctx.Err() == nil {
		next := s.waiting[0]
		s.waiting = s.waiting[1:]
		return next
	}
	s.turns--
	return nil
}
