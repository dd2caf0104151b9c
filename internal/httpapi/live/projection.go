// Package live is the live view of a director: its agents, queues, tasks and
// totals, and what needs a person, as GET /api/live streams them.
//
// A Projection holds the view as entities, each with its JSON. The engine reports what
// may have changed. A refresh reads the store, rebuilds the entities that differ and
// appends one delta, numbered by revision. Readers get a snapshot and then the deltas.
// A reader that reconnects gets the deltas that it missed, or a new snapshot if these
// are no longer kept.
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
	// refreshEvery is the minimum time between two refreshes for readers: an entity
	// changes at most five times a second.
	refreshEvery = 200 * time.Millisecond
	// refreshAtLeast is the maximum time between two refreshes while there are readers:
	// only a refresh shows whether the store still answers.
	refreshAtLeast = 900 * time.Millisecond
	// refreshPauseFactor limits the load of refreshes: the time from the start of one to
	// the next is at least this multiple of its duration, so that refreshes of a large
	// store take at most a fifth of a core.
	refreshPauseFactor = 5
	refreshTimeout     = 5 * time.Second
	defaultIdleRefresh = 10 * time.Second
	// keepDeltasFor is how long refreshes still make deltas after the last reader has
	// gone, so that it can reconnect.
	keepDeltasFor = time.Minute
	// staleAfter is the age at which the last refresh no longer counts as current.
	staleAfter = 2500 * time.Millisecond

	maxDeltas     = 512     // deltas kept for readers that reconnect
	maxDeltaBytes = 8 << 20 // total size of their frames
)

// Config has the dependencies of the live view. Fields are required unless they say
// otherwise.
type Config struct {
	Engine    *engine.Engine
	Tools     Tools     // nil: no tools
	Schedules Schedules // nil: no schedules
	// HeartbeatInterval returns the interval of the agents' heartbeats. An agent that
	// runs a task and sends nothing for three intervals is a finding.
	HeartbeatInterval func() time.Duration
	// Terminals returns the open terminals of an agent.
	Terminals func(agent string) []api.AgentTerminal
	Streams   *httpio.Streams // counts the readers among all streams of the server
	Log       *slog.Logger
	Life      context.Context // ends when the director stops; streams end with it
	// IdleRefresh is the interval of refreshes without readers, which also sample the
	// load. 0: 10 s.
	IdleRefresh time.Duration
}

// Tools are the servers and queues of the director's tools.
type Tools interface {
	Servers() []gateway.Server
	Queues() []toolqueue.Status
	// OnCall registers f, which is called when a call of this director starts to wait,
	// gets its slot or releases it. f must be fast.
	OnCall(f func())
}

// Schedules reads the schedules.
type Schedules interface {
	All(ctx context.Context) ([]signalbox.Schedule, error)
	// Get finds a schedule by id or name.
	Get(ctx context.Context, ref string) (signalbox.Schedule, error)
	// Due returns when a schedule fires next; zero: never.
	Due(s signalbox.Schedule) time.Time
}

// Projection is the live view and its recent changes. Its methods may be called
// concurrently.
type Projection struct {
	cfg   *Config
	epoch string // random: distinguishes revisions of different processes
	inbox inbox

	refreshMu sync.Mutex // held during a refresh; locked before mu
	builder   builder    // guarded by refreshMu

	mu          sync.Mutex // guards the fields below
	readers     map[chan struct{}]struct{}
	lastLeftAt  time.Time          // when the last reader disconnected
	stop        context.CancelFunc // stops the refresh loop; nil while there are no readers
	idleTimer   *time.Timer        // for refreshes without readers; nil before the first refresh
	state       *state             // nil before the first refresh
	refreshedAt time.Time          // start of the last successful refresh, by the wall clock
	notifiedAt  time.Time          // refreshedAt at the last notification of the readers
	lastErr     error              // of the newest refresh; nil if it succeeded
	revision    int64
	deltas      []*delta // oldest first; the last one leads to revision, without gaps
	deltaBytes  int      // the sum of their frames
	full        []byte   // the snapshot event for readers without limits; nil: not made yet
	fullAt      int64    // the revision of full

	// entities are the current ones by key. They are changed with refreshMu and mu
	// held, so either is enough to read them.
	entities map[string]*entity
}

// New returns a projection. It does nothing until its first use.
func New(cfg Config) *Projection {
	p := &Projection{}
	cfg.IdleRefresh = cmp.Or(cfg.IdleRefresh, defaultIdleRefresh)
	p.cfg, p.epoch, p.readers = &cfg, strings.ToLower(rand.Text()[:10]), map[chan struct{}]struct{}{}
	p.entities = map[string]*entity{}
	p.inbox.init(cfg.Engine)
	if cfg.Tools != nil {
		cfg.Tools.OnCall(func() { notify(p.inbox.wake) })
	}
	p.builder.init(p.cfg, &p.inbox, p.entities)
	return p
}

// Readers is the number of readers of the stream.
func (p *Projection) Readers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.readers)
}

// subscribe adds a reader, and starts the refresh loop for the first one. wake gets a
// value after a change, and after a while without changes. One value may stand for
// several changes.
func (p *Projection) subscribe() (wake <-chan struct{}, unsubscribe func()) {
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

// run refreshes until ctx ends: when the journal has grown, when the inbox wakes it, and
// after maxPause at the latest.
func (p *Projection) run(ctx context.Context) {
	journal, stop := p.cfg.Engine.WatchJournal()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		begin := time.Now()
		_ = p.Refresh(ctx) // readers see a failure in the verdict
		pause := max(refreshEvery, refreshPauseFactor*time.Since(begin))
		timer.Reset(p.maxPause() - time.Since(begin))
		select {
		case <-journal:
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
			drain(journal) // the next refresh covers these, too
			drain(p.inbox.wake)
		}
	}
}

// maxPause is the maximum time from the start of a refresh to the next one. It is short
// while a shared tool queue is in use, because nothing announces what other directors do
// in it.
func (p *Projection) maxPause() time.Duration {
	p.refreshMu.Lock()
	defer p.refreshMu.Unlock()
	if p.builder.sharedInUse() {
		return refreshEvery
	}
	return refreshAtLeast
}

// EnsureFresh refreshes the view, unless a refresh succeeded within refreshEvery.
func (p *Projection) EnsureFresh(ctx context.Context) error {
	p.mu.Lock()
	fresh := p.state != nil && time.Since(p.refreshedAt) < refreshEvery && p.lastErr == nil
	p.mu.Unlock()
	if fresh {
		return nil
	}
	return p.Refresh(ctx)
}

// Refresh reads what has changed, updates the view and notifies the readers. If it
// fails, the view stays as it is, and its verdict says that the store is down.
func (p *Projection) Refresh(ctx context.Context) error {
	p.refreshMu.Lock()
	defer p.refreshMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	begin := time.Now()
	p.mu.Lock()
	before, watched := p.state, len(p.readers) > 0 || time.Since(p.lastLeftAt) < keepDeltasFor
	p.mu.Unlock()
	r, err := p.builder.refresh(ctx, watched)
	if err != nil {
		p.fail(ctx, err)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	recovered := p.lastErr != nil
	p.state, p.refreshedAt, p.lastErr = &r.state, begin, nil
	for _, e := range r.changed {
		p.entities[e.key] = e
	}
	for _, e := range r.gone {
		delete(p.entities, e.key)
	}
	p.startIdleTimer()
	if before == nil || !r.complete {
		p.reset()
		return nil
	}
	r.delta.compare(before, p.state, recovered)
	switch {
	case !r.delta.empty():
		p.add(&r.delta)
	case begin.Sub(p.notifiedAt) >= refreshAtLeast: // a beat is due: readers send it now and need not wake up again
		p.notifyReaders()
	}
	return nil
}

// startIdleTimer starts the refreshes without readers, once. The caller holds mu.
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
			_ = p.Refresh(p.cfg.Life) // logged by fail, and retried after IdleRefresh
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idleTimer.Reset(p.cfg.IdleRefresh)
	})
	context.AfterFunc(p.cfg.Life, func() { p.idleTimer.Stop() })
}

// reset starts a revision without a delta, so that all readers get the whole view.
// The caller holds mu.
func (p *Projection) reset() {
	p.revision++
	p.deltas, p.deltaBytes = nil, 0
	p.notifyReaders()
}

// add appends a delta as the next revision, and drops the oldest ones beyond the limits.
// The caller holds mu.
func (p *Projection) add(d *delta) {
	p.revision++
	d.epoch, d.revision = p.epoch, p.revision
	frame, err := d.event(eventChange, signalbox.Principal{})
	if err != nil { // the types of the api package always marshal
		p.cfg.Log.Error("live change not written", "error", err)
		p.reset()
		return
	}
	d.frame = frame
	p.deltas, p.deltaBytes = append(p.deltas, d), p.deltaBytes+len(frame)
	drop := 0
	for drop < len(p.deltas)-1 && (len(p.deltas)-drop > maxDeltas || p.deltaBytes > maxDeltaBytes) {
		p.deltaBytes -= len(p.deltas[drop].frame)
		drop++
	}
	if drop > 0 {
		p.deltas = append(p.deltas[:0:0], p.deltas[drop:]...)
	}
	p.notifyReaders()
}

// notifyReaders wakes all readers. The caller holds mu.
func (p *Projection) notifyReaders() {
	p.notifiedAt = p.refreshedAt
	for c := range p.readers {
		notify(c)
	}
}

// notify sends to a channel of capacity 1, unless it is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// drain empties a channel of capacity 1.
func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// fail records a failed refresh. It logs the first one after a success, and readers get its
// verdict.
func (p *Projection) fail(ctx context.Context, err error) {
	if ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
		return // the caller cancelled the refresh
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.lastErr == nil
	p.lastErr = err
	if !first {
		return
	}
	p.cfg.Log.Error("the state for the live view could not be read", "error", err)
	if p.state != nil {
		down := storeDown(p.state.at)
		p.add(&delta{at: p.state.at, health: &down})
	}
}

// lastRefresh returns the time of the view, by the engine's clock, and whether the view is
// current: the last refresh succeeded, and is younger than staleAfter.
func (p *Projection) lastRefresh() (at time.Time, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.at, p.lastErr == nil && time.Since(p.refreshedAt) < staleAfter
}

// deltasAfter returns the deltas after a revision. ok is false if they are no longer
// kept, or if there is no such revision.
func (p *Projection) deltasAfter(revision int64) (deltas []*delta, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.revision - int64(len(p.deltas))
	if revision > p.revision || revision < first {
		return nil, false
	}
	return append([]*delta(nil), p.deltas[revision-first:]...), true
}

// snapshot returns the whole view, as far as a caller may see it, as an event with that
// name, and the revision of the view.
func (p *Projection) snapshot(event string, who signalbox.Principal) (frame []byte, revision int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cacheable := event == eventSnapshot && !who.Limited()
	if cacheable && p.full != nil && p.fullAt == p.revision {
		return p.full, p.revision, nil
	}
	full := p.state.full(p.entities)
	full.epoch, full.revision = p.epoch, p.revision
	if p.lastErr != nil {
		down := storeDown(p.state.at)
		full.health = &down
	}
	frame, err = full.event(event, who)
	if cacheable && err == nil {
		p.full, p.fullAt = frame, p.revision
	}
	return frame, p.revision, err
}

// verdict is the verdict of the last successful refresh, for a caller.
func (p *Projection) verdict(who signalbox.Principal) api.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.health.verdict(who)
}

// Task is the form of a task in the view; nil if it is neither in flight nor among the
// first of its queue.
func (p *Projection) Task(t *signalbox.Task) *api.LiveTask {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builder.shownTask(t)
}
