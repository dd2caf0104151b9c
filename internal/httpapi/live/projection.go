package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

const (
	// refreshEvery is the least time from one look to the next: an entity changes
	// at most five times a second.
	refreshEvery = 200 * time.Millisecond
	// refreshAtLeast is after how long a look is taken though nothing was announced,
	// while someone reads: whether the store answers is seen by asking it.
	refreshAtLeast = 900 * time.Millisecond
	idleRefresh    = 10 * time.Second // the default of Config.IdleRefresh
	// refreshTimeout is how long the store may take for a look.
	refreshTimeout = 5 * time.Second
	// refreshShare is how much longer than a look the time to the next one is: a
	// large store costs a sixth of a core at most.
	refreshShare = 5
	// keepChangesFor is how long after the last reader has gone what changes is kept
	// for it.
	keepChangesFor = time.Minute
	// staleAfter is the age from which a look is not of this moment.
	staleAfter = 2500 * time.Millisecond

	maxChanges     = 512     // changes that are kept for readers that come back
	maxChangeBytes = 8 << 20 // of them together
)

// Config is what the live view is made of.
type Config struct {
	Engine    *engine.Engine
	Tools     Tools     // nil: there are none
	Schedules Schedules // nil: there are none
	// HeartbeatInterval is how often agents are heard from: one that is silent
	// for three times as long needs a person.
	HeartbeatInterval func() time.Duration
	// Terminals are the open terminals of an agent.
	Terminals func(agent string) []api.AgentTerminal
	Streams   *httpio.Streams
	Log       *slog.Logger
	Life      context.Context // streams end with it
	// IdleRefresh is how often the view is refreshed while nobody watches, for
	// what is shown of the past. 0 means every 10 s.
	IdleRefresh time.Duration
}

// Tools are the servers and queues of the director's tools.
type Tools interface {
	Servers() []gateway.Server
	Queues() []toolqueue.Status
	// OnCall has f called when a call of this director begins to wait, gets its
	// slot or gives it back.
	OnCall(f func())
}

// Schedules are the schedules there are.
type Schedules interface {
	All(ctx context.Context) ([]signalbox.Schedule, error)
	Get(ctx context.Context, ref string) (signalbox.Schedule, error)
	// Due is when a schedule fires next; zero: never.
	Due(s signalbox.Schedule) time.Time
}

// Projection is all that readers of GET /api/live are shown, and what changed
// in it. It is told what may have changed, and makes only that anew.
type Projection struct {
	cfg   *Config
	epoch string
	inbox inbox

	refreshing sync.Mutex // held during a look: there is one at a time
	builder    builder    // guarded by looking

	mu          sync.Mutex
	readers     map[chan struct{}]struct{}
	lastLeftAt  time.Time          // when the last of them went
	stop        context.CancelFunc // of the loop; nil while nobody reads
	idleTimer   *time.Timer        // the next look while nobody reads; nil before the first
	state       *state             // nil before the first look
	refreshedAt time.Time          // by the real clock, when the newest look began
	notifiedAt  time.Time          // seen, when the readers got their last sign
	lastErr     error              // of the newest look; nil if it succeeded
	revision    int64
	changes     []*delta // oldest first, without gaps up to revision
	bytes       int      // of their frames
	full        []byte   // everything as a snapshot for readers without limits, of fullAt
	fullAt      int64
	// shown are the entities by key. They are written with looking and mu held.
	shown map[string]*entity
}

func New(cfg Config) *Projection {
	p := &Projection{}
	cfg.IdleRefresh = cmp.Or(cfg.IdleRefresh, idleRefresh)
	p.cfg, p.epoch, p.readers = &cfg, strings.ToLower(rand.Text()[:10]), map[chan struct{}]struct{}{}
	p.shown = map[string]*entity{}
	p.inbox.init(cfg.Engine)
	if cfg.Tools != nil {
		cfg.Tools.OnCall(func() { notify(p.inbox.wake) })
	}
	p.builder.init(p.cfg, &p.inbox, p.shown)
	return p
}

// Readers is how many watch.
func (p *Projection) Readers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.readers)
}

// subscribe adds a reader, which gets a sign after something changed, and where for
// long nothing did. Signs coalesce. The loop runs while there are readers.
func (p *Projection) subscribe() (signs <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers[c] = struct{}{}
	if p.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.inbox.requestRebuild()
		go p.run(ctx)
	}
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.readers, c)
		if len(p.readers) == 0 && p.stop != nil {
			p.stop()
			p.stop, p.lastLeftAt = nil, time.Now()
		}
	}
}

// run looks until ctx ends: when something was announced, when the time has
// come at which something is shown otherwise, and after lookAtLeast.
func (p *Projection) run(ctx context.Context) {
	signs, stop := p.cfg.Engine.WatchJournal()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		begin := time.Now()
		_ = p.Refresh(ctx) // readers are told by the verdict
		pause := max(refreshEvery, refreshShare*time.Since(begin))
		timer.Reset(p.untilNextRefresh() - time.Since(begin))
		select {
		case <-signs:
		case <-p.inbox.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if early := pause - time.Since(begin); early > 0 {
			timer.Reset(early)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			drain(signs) // the look that comes now is for these, too
			drain(p.inbox.wake)
		}
	}
}

// untilNextRefresh is how long after a look the next one is taken at the latest. What other
// directors do in a shared tool queue is not announced here: while one is used, that
// is looked at more often.
func (p *Projection) untilNextRefresh() time.Duration {
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
	if p.builder.sharedBusy() {
		return refreshEvery
	}
	return refreshAtLeast
}

// EnsureFresh looks, unless that was done a moment ago.
func (p *Projection) EnsureFresh(ctx context.Context) error {
	p.mu.Lock()
	recent := p.state != nil && time.Since(p.refreshedAt) < refreshEvery && p.lastErr == nil
	p.mu.Unlock()
	if recent {
		return nil
	}
	return p.Refresh(ctx)
}

// Refresh takes in what has changed, and keeps what is shown otherwise now.
func (p *Projection) Refresh(ctx context.Context) error {
	p.refreshing.Lock()
	defer p.refreshing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	begin := time.Now()
	p.mu.Lock()
	before, watched := p.state, len(p.readers) > 0 || time.Since(p.lastLeftAt) < keepChangesFor
	p.mu.Unlock()
	l, err := p.builder.refresh(ctx, watched)
	if err != nil {
		p.fail(ctx, err)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	recovered := p.lastErr != nil
	p.state, p.refreshedAt, p.lastErr = &l.state, begin, nil
	for _, e := range l.changed {
		p.shown[e.key] = e
	}
	for _, e := range l.gone {
		delete(p.shown, e.key)
	}
	p.startIdleTimer()
	if before == nil || !l.complete {
		p.reset()
		return nil
	}
	l.change.compare(before, p.state, recovered)
	switch {
	case !l.change.empty():
		p.add(&l.change)
	case begin.Sub(p.notifiedAt) >= refreshAtLeast: // to beat now: readers need not wake once more for it
		p.notify()
	}
	return nil
}

// startIdleTimer sees to it that a look is taken while nobody reads; the caller
// holds mu.
func (p *Projection) startIdleTimer() {
	if p.idleTimer != nil || p.cfg.Life.Err() != nil {
		return
	}
	p.idleTimer = time.AfterFunc(p.cfg.IdleRefresh, func() {
		if p.cfg.Life.Err() != nil {
			return
		}
		p.mu.Lock()
		idle := len(p.readers) == 0
		p.mu.Unlock()
		if idle {
			_ = p.Refresh(p.cfg.Life) // tried again the next time
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idleTimer.Reset(p.cfg.IdleRefresh)
	})
	context.AfterFunc(p.cfg.Life, func() { p.idleTimer.Stop() })
}

// reset says that what came before is not known: readers get everything anew.
// The caller holds mu.
func (p *Projection) reset() {
	p.revision++
	p.changes, p.bytes = nil, 0
	p.notify()
}

// add keeps a change and tells the readers; the caller holds mu.
func (p *Projection) add(c *delta) {
	p.revision++
	c.epoch, c.revision = p.epoch, p.revision
	frame, err := c.event(eventChange, signalbox.Principal{})
	if err != nil { // the types of the api package always marshal
		p.cfg.Log.Error("live change not written", "error", err)
		p.reset()
		return
	}
	c.frame = frame
	p.changes, p.bytes = append(p.changes, c), p.bytes+len(frame)
	drop := 0
	for drop < len(p.changes)-1 && (len(p.changes)-drop > maxChanges || p.bytes > maxChangeBytes) {
		p.bytes -= len(p.changes[drop].frame)
		drop++
	}
	if drop > 0 {
		p.changes = append(p.changes[:0:0], p.changes[drop:]...)
	}
	p.notify()
}

// notify tells the readers; the caller holds mu.
func (p *Projection) notify() {
	p.notifiedAt = p.refreshedAt
	for c := range p.readers {
		notify(c)
	}
}

// notify leaves a sign in a channel of capacity 1, unless one is there.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain takes a sign out, where one is there.
func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// fail notes that a look failed. The readers are told once, by the verdict:
// all else stays as it was last seen.
func (p *Projection) fail(ctx context.Context, err error) {
	if ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
		return // who asked for the look went away
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr == nil {
		p.cfg.Log.Error("the state could not be read for those who watch", "error", err)
		if p.state != nil {
			verdict := storeDown(p.state.at)
			p.lastErr = err
			p.add(&delta{at: p.state.at, health: &verdict})
		}
	}
	p.lastErr = err
}

// lastRefresh says when the newest look was taken, and whether that is still as
// things are.
func (p *Projection) lastRefresh() (at time.Time, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.at, p.lastErr == nil && time.Since(p.refreshedAt) < staleAfter
}

// changesSince returns the changes behind a place; ok is false where they are not
// known.
func (p *Projection) changesSince(at place) (changes []*delta, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.epoch != p.epoch || at.revision > p.revision || at.revision < p.revision-int64(len(p.changes)) {
		return nil, false
	}
	return append([]*delta(nil), p.changes[int64(len(p.changes))-(p.revision-at.revision):]...), true
}

// snapshot is all that a caller may see, as an event of that name.
func (p *Projection) snapshot(name string, who signalbox.Principal) (frame []byte, revision int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plain := name == eventSnapshot && !who.Limited()
	if plain && p.full != nil && p.fullAt == p.revision {
		return p.full, p.revision, nil
	}
	all := p.state.all(p.shown)
	all.epoch, all.revision = p.epoch, p.revision
	if p.lastErr != nil {
		verdict := storeDown(p.state.at)
		all.health = &verdict
	}
	frame, err = all.event(name, who)
	if plain && err == nil {
		p.full, p.fullAt = frame, p.revision
	}
	return frame, p.revision, err
}

// verdict says whether a person is needed.
func (p *Projection) verdict(who signalbox.Principal) api.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.health.verdict(who)
}

// Task is what is shown of a task: one in flight, or among the first of its line.
func (p *Projection) Task(t *signalbox.Task) *api.LiveTask {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builder.rowOf(t)
}
