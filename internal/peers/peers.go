package peers

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Lease is how long a director counts as living after its last beat, and
// Every how often it beats (design §3). Safe is how long it itself goes on as
// one that lives after a beat that succeeded: what is left of the lease is for
// stopping what it does, and for clocks that differ.
const (
	Lease = 10 * time.Second
	Every = 2 * time.Second
	Safe  = 8 * time.Second
)

// Options configures Peers.
type Options struct {
	Director store.Director // ID, Run, URL, Version, Key; the rest is set here
	// Agents lists the agents that some director must hold.
	Agents func() []string
	// Gained and Lost are told which agents this director holds from now on,
	// and no longer. Gained does not wait for anything; Lost returns when
	// nothing is done for them any more. Nothing is said of an agent while
	// Lost is at it.
	Gained, Lost func(agents []string)
	// Lapse is told that the lease is over by our own clock: whatever must not
	// go on beside another director is to be stopped at once; and, with false,
	// that it holds again.
	Lapse func(over bool)
	// Dead is told once of each director that died or left: its ID.
	Dead func(ids []string)
	// Heard is what to pass on with the next beat, and News what others heard.
	Heard func() []store.Heard
	News  func([]store.Heard)
	// Superseded is called once if another process goes by this one's name, or
	// may not live beside it: it must end.
	Superseded func(error)
	Now        func() time.Time // the time that all directors go by
	Log        *slog.Logger
	// Doubt is told that the store had forgotten what this director holds, while
	// its lease holds by our own clock: it goes on, and whatever others may have
	// put away meanwhile is to be looked for at once. It does not wait.
	Doubt func()
	// Monotonic is the clock by which this director's own lease is measured; it
	// counts the time in which the machine sleeps, too. nil: time.Now, whose
	// readings carry the monotonic clock, which may not.
	Monotonic func() time.Time
}

// Peers is a director's place among the others.
type Peers struct {
	store store.Store
	o     Options
	log   *slog.Logger

	stop      context.CancelFunc // of the loop
	group     sync.WaitGroup
	soon      chan struct{}  // capacity 1: a beat is wanted now
	releasing sync.WaitGroup // Lost at work

	mu        sync.Mutex
	me        store.Director // Expires is that of the last beat that succeeded
	until     time.Time      // the lease holds until then by our own clock
	lapsed    bool           // Lapse was told so
	watch     *time.Timer    // fires at until
	entered   bool
	quiet     time.Time               // nothing is taken before: another process of this name may still be at it
	held      map[string]bool         // agents
	released  map[string]releaseState // agents that Lost is told of, or that are to be handed over
	peers     map[string]*peer        // others, by ID
	unsure    bool                    // what the store thinks is held here is to be looked at
	looked    time.Time               // when that was done last
	wanting   bool                    // an agent is wanted that another still holds
	ended     bool                    // superseded, or left
	holders   map[string]string       // of HolderOf, by agent
	holdersAt time.Time
}

// releaseState is what becomes of an agent after Lost.
type releaseState int

const (
	forGood     releaseState = iota + 1 // Lost is being told; after that nothing is left to do
	handingOver                         // Lost is being told; after that it is handed over
	handedOver                          // to be handed over with the next beat
)

// New returns Peers that hold nothing until Start.
func New(s store.Store, o Options) *Peers {
	for _, f := range []*func([]string){&o.Gained, &o.Lost, &o.Dead} {
		if *f == nil {
			*f = func([]string) {}
		}
	}
	if o.Agents == nil {
		o.Agents = func() []string { return nil }
	}
	if o.Doubt == nil {
		o.Doubt = func() {}
	}
	if o.Lapse == nil {
		o.Lapse = func(bool) {}
	}
	if o.Superseded == nil {
		o.Superseded = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p := &Peers{
		store: s, o: o, log: o.Log, soon: make(chan struct{}, 1), stop: func() {},
		me: o.Director, held: map[string]bool{}, released: map[string]releaseState{}, peers: map[string]*peer{},
	}
	p.me.StartedAt = o.Now().UTC().Truncate(time.Millisecond)
	return p
}

// longAgo is how long ago a lease must have ended for a director to be dead at
// the first look: no server's clock is set by so much while one starts.
const longAgo = time.Minute

// Start enters and takes what it can; an error means that this director may
// not be one of those that live, or that the store cannot be reached.
func (p *Peers) Start(ctx context.Context) error {
	if err := p.refuseDuplicate(ctx); err != nil {
		return err
	}
	rows, err := p.store.Directors(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	now := p.o.Monotonic()
	for _, d := range rows {
		switch {
		case d.ID != p.me.ID:
			over := p.o.Now().Sub(d.Expires)
			p.peers[d.ID] = &peer{row: d, changed: now, missing: over >= 0, dead: over > longAgo}
		case d.Alive(p.o.Now()) && d.URL != p.me.URL:
			// Whoever has our address is gone, for we have it. Another one may
			// not have heard yet that it is superseded.
			p.quiet = now.Add(Safe)
		}
	}
	p.unsure = true
	p.mu.Unlock()
	if err := p.beat(ctx, nil, nil); err != nil {
		return err
	}
	looping, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.round(looping)
	p.group.Go(func() { p.loop(looping) })
	return nil
}

// Soon asks for a beat now: the agents may be others than before.
func (p *Peers) Soon() {
	p.mu.Lock()
	p.unsure = true
	p.mu.Unlock()
	p.poke()
}

func (p *Peers) poke() {
	select {
	case p.soon <- struct{}{}:
	default:
	}
}

// Yield gives all agents to the others and takes none any more; it returns
// when that is done, or ctx ends.
func (p *Peers) Yield(ctx context.Context) {
	p.mu.Lock()
	p.me.Draining = true
	p.mu.Unlock()
	p.poke()
	tick := time.Tick(20 * time.Millisecond)
	for {
		p.mu.Lock()
		done := p.ended || len(p.held)+len(p.released) == 0
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// Leave gives everything up, so that others need not wait for the lease.
func (p *Peers) Leave(ctx context.Context) {
	p.stop()
	p.group.Wait()
	p.mu.Lock()
	ended := p.ended || !p.entered
	p.ended = true
	p.mu.Unlock()
	p.release(p.all(), forGood)
	p.releasing.Wait()
	p.mu.Lock()
	if p.watch != nil {
		p.watch.Stop()
	}
	p.me.Expires = p.o.Now()
	me := p.me
	p.mu.Unlock()
	if ended {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	if _, err := p.store.Beat(ctx, store.Beat{Director: me, Now: me.Expires}); err != nil {
		p.log.Warn("the other directors were not told that this one leaves: they wait for the end of its lease", "error", err)
	}
}

// Holds reports whether this director dispatches to an agent.
func (p *Peers) Holds(agent string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[agent] && p.o.Monotonic().Before(p.until)
}

// Self is this director. Its Expires is that of the last beat that succeeded.
func (p *Peers) Self() store.Director {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.me
}

// holdersFor is how long HolderOf goes by what it read.
const holdersFor = time.Second

// HolderOf returns the living director that dispatches to an agent, or whose
// own executor has that name; it may be this one.
func (p *Peers) HolderOf(ctx context.Context, agent string) (store.Director, bool) {
	p.mu.Lock()
	held := p.held[agent]
	fresh := p.holders != nil && p.o.Monotonic().Sub(p.holdersAt) < holdersFor
	id := p.holders[agent]
	p.mu.Unlock()
	switch kind, instance, own := strings.Cut(agent, "@"); {
	case own && kind != "":
		id = instance
	case held:
		return p.Self(), true
	case !fresh:
		holders, err := p.store.Holders(ctx)
		if err != nil {
			return store.Director{}, false
		}
		p.mu.Lock()
		p.holders, p.holdersAt = holders, p.o.Monotonic()
		p.mu.Unlock()
		id = holders[agent]
	}
	return p.living(id)
}

// living returns the director of that ID, if it lives.
func (p *Peers) living(id string) (store.Director, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == p.me.ID {
		return p.me, true
	}
	if s := p.peers[id]; s != nil && !s.dead && !s.missing {
		return s.row, true
	}
	return store.Director{}, false
}

// all lists what is held.
func (p *Peers) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.held))
}
