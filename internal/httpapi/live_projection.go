package httpapi

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

const (
	// lookEvery is the least time from one look to the next: an entity changes
	// at most five times a second.
	lookEvery = 200 * time.Millisecond
	// lookAtLeast is after how long a look is taken though nothing was announced,
	// while someone reads: whether the store answers is seen by asking it.
	lookAtLeast = 900 * time.Millisecond
	// lookAlone is how often a look is taken while nobody reads, for what is
	// shown of the past.
	lookAlone = 10 * time.Second
	// lookTimeout is how long the store may take for a look.
	lookTimeout = 5 * time.Second
	// lookShare is how much longer than a look the time to the next one is: a
	// large store costs a sixth of a core at most.
	lookShare = 5
	// comesBack is how long after the last reader has gone what changes is kept
	// for it.
	comesBack = time.Minute
	// staleLook is the age from which a look is not of this moment.
	staleLook = 2500 * time.Millisecond

	maxChanges     = 512     // changes that are kept for readers that come back
	maxChangeBytes = 8 << 20 // of them together
)

// projection is all that readers of GET /api/live are shown, and what changed
// in it. It is told what may have changed, and makes only that anew.
type projection struct {
	d     *Server
	epoch string
	inbox inbox

	looking sync.Mutex // held during a look: there is one at a time
	builder builder    // guarded by looking

	mu       sync.Mutex
	readers  map[chan struct{}]struct{}
	left     time.Time          // when the last of them went
	stop     context.CancelFunc // of the loop; nil while nobody reads
	alone    *time.Timer        // the next look while nobody reads; nil before the first
	whole    *whole             // nil before the first look
	seen     time.Time          // by the real clock, when the newest look began
	told     time.Time          // seen, when the readers got their last sign
	failed   error              // of the newest look; nil if it succeeded
	revision int64
	changes  []*delta // oldest first, without gaps up to revision
	bytes    int      // of their frames
	full     []byte   // everything as a snapshot for readers without limits, of fullAt
	fullAt   int64
	// shown are the entities by key. They are written with looking and mu held.
	shown map[string]*entity
}

func (p *projection) init(d *Server) {
	p.d, p.epoch, p.readers = d, strings.ToLower(rand.Text()[:10]), map[chan struct{}]struct{}{}
	p.shown = map[string]*entity{}
	p.inbox.init(d.engine)
	if d.cfg.Tools != nil {
		d.cfg.Tools.OnCall(func() { poke(p.inbox.signs) })
	}
	p.builder.init(d, &p.inbox, p.shown)
}

// join adds a reader, which gets a sign after something changed, and where for
// long nothing did. Signs coalesce. The loop runs while there are readers.
func (p *projection) join() (signs <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers[c] = struct{}{}
	if p.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.inbox.refresh()
		go p.run(ctx)
	}
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.readers, c)
		if len(p.readers) == 0 && p.stop != nil {
			p.stop()
			p.stop, p.left = nil, time.Now()
		}
	}
}

// run looks until ctx ends: when something was announced, when the time has
// come at which something is shown otherwise, and after lookAtLeast.
func (p *projection) run(ctx context.Context) {
	signs, stop := p.d.engine.WatchJournal()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		begin := time.Now()
		_ = p.look(ctx) // readers are told by the verdict
		pause := max(lookEvery, lookShare*time.Since(begin))
		timer.Reset(p.rest() - time.Since(begin))
		select {
		case <-signs:
		case <-p.inbox.signs:
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
			unpoke(signs) // the look that comes now is for these, too
			unpoke(p.inbox.signs)
		}
	}
}

// rest is how long after a look the next one is taken at the latest. What other
// directors do in a shared tool queue is not announced here: while one is used, that
// is looked at more often.
func (p *projection) rest() time.Duration {
	p.looking.Lock()
	defer p.looking.Unlock()
	if p.builder.sharedBusy() {
		return lookEvery
	}
	return lookAtLeast
}

// fresh looks, unless that was done a moment ago.
func (p *projection) fresh(ctx context.Context) error {
	p.mu.Lock()
	recent := p.whole != nil && time.Since(p.seen) < lookEvery && p.failed == nil
	p.mu.Unlock()
	if recent {
		return nil
	}
	return p.look(ctx)
}

// look takes in what has changed, and keeps what is shown otherwise now.
func (p *projection) look(ctx context.Context) error {
	p.looking.Lock()
	defer p.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	begin := time.Now()
	p.mu.Lock()
	before, watched := p.whole, len(p.readers) > 0 || time.Since(p.left) < comesBack
	p.mu.Unlock()
	l, err := p.builder.look(ctx, watched)
	if err != nil {
		p.blind(ctx, err)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	recovered := p.failed != nil
	p.whole, p.seen, p.failed = &l.whole, begin, nil
	for _, e := range l.shown {
		p.shown[e.key] = e
	}
	for _, e := range l.gone {
		delete(p.shown, e.key)
	}
	p.lookLater()
	if before == nil || !l.known {
		p.begin()
		return nil
	}
	l.change.compare(before, p.whole, recovered)
	switch {
	case !l.change.empty():
		p.add(&l.change)
	case begin.Sub(p.told) >= lookAtLeast: // to beat now: readers need not wake once more for it
		p.sign()
	}
	return nil
}

// lookLater sees to it that a look is taken while nobody reads; the caller
// holds mu.
func (p *projection) lookLater() {
	if p.alone != nil || p.d.life.Err() != nil {
		return
	}
	p.alone = time.AfterFunc(lookAlone, func() {
		if p.d.life.Err() != nil {
			return
		}
		p.mu.Lock()
		idle := len(p.readers) == 0
		p.mu.Unlock()
		if idle {
			_ = p.look(p.d.life) // tried again the next time
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.alone.Reset(lookAlone)
	})
	context.AfterFunc(p.d.life, func() { p.alone.Stop() })
}

// begin says that what came before is not known: readers get everything anew.
// The caller holds mu.
func (p *projection) begin() {
	p.revision++
	p.changes, p.bytes = nil, 0
	p.sign()
}

// add keeps a change and tells the readers; the caller holds mu.
func (p *projection) add(c *delta) {
	p.revision++
	c.epoch, c.revision = p.epoch, p.revision
	frame, err := c.event(liveChange, caller{})
	if err != nil { // the types of the api package always marshal
		p.d.log.Error("live change not written", "error", err)
		p.begin()
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
	p.sign()
}

// sign tells the readers; the caller holds mu.
func (p *projection) sign() {
	p.told = p.seen
	for c := range p.readers {
		poke(c)
	}
}

// poke leaves a sign in a channel of capacity 1, unless one is there.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// unpoke takes a sign out, where one is there.
func unpoke(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// blind notes that a look failed. The readers are told once, by the verdict:
// all else stays as it was last seen.
func (p *projection) blind(ctx context.Context, err error) {
	if ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
		return // who asked for the look went away
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.d.log.Error("the state could not be read for those who watch", "error", err)
		if p.whole != nil {
			verdict := storeOutlook(p.whole.at)
			p.failed = err
			p.add(&delta{at: p.whole.at, health: &verdict})
		}
	}
	p.failed = err
}

// lastLook says when the newest look was taken, and whether that is still as
// things are.
func (p *projection) lastLook() (at time.Time, current bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole.at, p.failed == nil && time.Since(p.seen) < staleLook
}

// since returns the changes behind a place; ok is false where they are not
// known.
func (p *projection) since(at place) (changes []*delta, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.epoch != p.epoch || at.revision > p.revision || at.revision < p.revision-int64(len(p.changes)) {
		return nil, false
	}
	return append([]*delta(nil), p.changes[int64(len(p.changes))-(p.revision-at.revision):]...), true
}

// everything is all that a caller may see, as an event of that name.
func (p *projection) everything(name string, who caller) (frame []byte, revision int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plain := name == liveSnapshot && !who.limited()
	if plain && p.full != nil && p.fullAt == p.revision {
		return p.full, p.revision, nil
	}
	all := p.whole.all(p.shown)
	all.epoch, all.revision = p.epoch, p.revision
	if p.failed != nil {
		verdict := storeOutlook(p.whole.at)
		all.health = &verdict
	}
	frame, err = all.event(name, who)
	if plain && err == nil {
		p.full, p.fullAt = frame, p.revision
	}
	return frame, p.revision, err
}

// verdict says whether a person is needed.
func (p *projection) verdict(who signalbox.Principal) api.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole.health.verdict(who)
}

// row is what is shown of a task: one in flight, or among the first of its line.
func (p *projection) row(t *signalbox.Task) *api.LiveTask {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.builder.rowOf(t)
}
