package director

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
	// while someone reads: agents, tool queues and other directors announce
	// nothing here.
	lookAtLeast = time.Second
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

	maxSteps     = 512     // changes that are kept for readers that come back
	maxStepBytes = 8 << 20 // of them together
)

// sight looks at everything for all readers of GET /api/live, and keeps what
// changed from one look to the next.
type sight struct {
	d     *Director
	epoch string

	looking sync.Mutex // held during a look: there is one at a time
	eyes    eyes       // what looks remember, guarded by looking

	mu       sync.Mutex
	readers  map[chan struct{}]struct{}
	left     time.Time          // when the last of them went
	stop     context.CancelFunc // of the loop; nil while nobody reads
	alone    *time.Timer        // the next look while nobody reads; nil before the first
	scene    *scene             // nil before the first look
	seen     time.Time          // by the real clock, when the scene was taken
	failed   error              // of the newest look; nil if it succeeded
	revision int64
	steps    []*step // oldest first, without gaps up to revision
	bytes    int     // of their frames
	full     []byte  // everything as a snapshot for readers without limits, of fullAt
	fullAt   int64
}

// step is what changed from one revision to the next.
type step struct {
	epoch    string
	revision int64
	at       time.Time
	parts    []*part // that are new or changed
	gone     []*part
	totals   *api.Totals
	health   *outlook
	pauses   *[]signalbox.Pause
	pressure []api.Pressure
	frame    []byte // the change, for readers without limits
}

func (s *sight) init(d *Director) {
	s.d, s.epoch, s.readers = d, strings.ToLower(rand.Text()[:10]), map[chan struct{}]struct{}{}
	s.eyes.init(d)
}

// join adds a reader, which gets a sign after something changed. Signs
// coalesce. The loop runs while there are readers.
func (s *sight) join() (signs <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers[c] = struct{}{}
	if s.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		go s.run(ctx)
	}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.readers, c)
		if len(s.readers) == 0 && s.stop != nil {
			s.stop()
			s.stop, s.left = nil, time.Now()
		}
	}
}

// run looks again and again until ctx ends.
func (s *sight) run(ctx context.Context) {
	signs, stop := s.d.engine.WatchJournal()
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	wanted := true
	var next, latest time.Time
	for {
		select {
		case <-signs:
			wanted = true
			continue // the tick decides when
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		begin := time.Now()
		if begin.Before(next) || !wanted && begin.Before(latest) && !s.toolsMoved() {
			continue
		}
		wanted = false
		_ = s.look(ctx) // readers are told by the verdict
		took := time.Since(begin)
		next, latest = begin.Add(lookShare*took), begin.Add(lookAtLeast)
	}
}

// fresh returns what was seen lately, or looks.
func (s *sight) fresh(ctx context.Context) (*scene, error) {
	s.mu.Lock()
	scene, recent := s.scene, time.Since(s.seen) < lookEvery && s.failed == nil
	s.mu.Unlock()
	if scene != nil && recent {
		return scene, nil
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scene, nil
}

// look takes a look and keeps what changed since the one before.
func (s *sight) look(ctx context.Context) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	begin := time.Now()
	s.mu.Lock()
	before, watched := s.scene, len(s.readers) > 0 || time.Since(s.left) < comesBack
	s.mu.Unlock()
	scene, err := s.eyes.look(ctx)
	if err != nil {
		s.blind(ctx, err)
		return err
	}
	moved, known, err := s.eyes.moved(ctx, before, scene, watched)
	if err != nil {
		s.blind(ctx, err)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	recovered := s.failed != nil
	s.scene, s.seen, s.failed = scene, begin, nil
	s.lookLater()
	if before == nil || !known {
		s.begin()
		return nil
	}
	if change := before.until(scene, moved, recovered); change != nil {
		s.add(change)
	}
	return nil
}

// lookLater sees to it that a look is taken while nobody reads; the caller
// holds mu.
func (s *sight) lookLater() {
	if s.alone != nil || s.d.life.Err() != nil {
		return
	}
	s.alone = time.AfterFunc(lookAlone, func() {
		if s.d.life.Err() != nil {
			return
		}
		s.mu.Lock()
		idle := len(s.readers) == 0
		s.mu.Unlock()
		if idle {
			_ = s.look(s.d.life) // tried again the next time
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.alone.Reset(lookAlone)
	})
	context.AfterFunc(s.d.life, func() { s.alone.Stop() })
}

// begin says that what came before is not known: readers get everything anew.
// The caller holds mu.
func (s *sight) begin() {
	s.revision++
	s.steps, s.bytes = nil, 0
	s.sign()
}

// add keeps a step and tells the readers; the caller holds mu.
func (s *sight) add(change *step) {
	s.revision++
	change.epoch, change.revision = s.epoch, s.revision
	frame, err := s.frame(liveChange, change.live(caller{}))
	if err != nil { // the types of the api package always marshal
		s.d.log.Error("live change not written", "error", err)
		s.begin()
		return
	}
	change.frame = frame
	s.steps, s.bytes = append(s.steps, change), s.bytes+len(frame)
	drop := 0
	for drop < len(s.steps)-1 && (len(s.steps)-drop > maxSteps || s.bytes > maxStepBytes) {
		s.bytes -= len(s.steps[drop].frame)
		drop++
	}
	if drop > 0 {
		s.steps = append(s.steps[:0:0], s.steps[drop:]...)
	}
	s.sign()
}

// sign tells the readers; the caller holds mu.
func (s *sight) sign() {
	for c := range s.readers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// blind notes that a look failed. The readers are told once, by the verdict:
// all else stays as it was last seen.
func (s *sight) blind(ctx context.Context, err error) {
	if ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
		return // who asked for the look went away
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.d.log.Error("the state could not be read for those who watch", "error", err)
		if s.scene != nil {
			verdict := storeOutlook(s.scene.at, s.d.engine.Now())
			s.failed = err
			s.add(&step{at: s.scene.at, health: &verdict})
		}
	}
	s.failed = err
}

// lastLook says when the newest look was taken, and whether that is still as
// things are.
func (s *sight) lastLook() (at time.Time, current bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scene.at, s.failed == nil && time.Since(s.seen) < staleLook
}

// since returns the steps behind a place; ok is false where they are not
// known.
func (s *sight) since(p place) (steps []*step, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.epoch != s.epoch || p.revision > s.revision || p.revision < s.revision-int64(len(s.steps)) {
		return nil, false
	}
	return append([]*step(nil), s.steps[int64(len(s.steps))-(s.revision-p.revision):]...), true
}

// whole is everything as an event of that name.
func (s *sight) whole(name string, who caller) (frame []byte, revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plain := name == liveSnapshot && !who.limited()
	if plain && s.full != nil && s.fullAt == s.revision {
		return s.full, s.revision, nil
	}
	all := s.scene.whole()
	all.epoch, all.revision, all.at = s.epoch, s.revision, s.scene.at
	if s.failed != nil {
		verdict := storeOutlook(s.scene.at, s.d.engine.Now())
		all.health = &verdict
	}
	frame, err = s.frame(name, all.live(who))
	if plain && err == nil {
		s.full, s.fullAt = frame, s.revision
	}
	return frame, s.revision, err
}
