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

const (
	// Lease is how long a director counts as alive after its last beat, Every the interval
	// of beats (design §3). Safe is how long a director considers its own lease valid after
	// a beat: the rest of the lease is for stopping its work, and for clock differences.
	Lease = 10 * time.Second
	Every = 2 * time.Second
	Safe  = 8 * time.Second
)

// Options configures Peers.
type Options struct {
	Director store.Director // ID, Run, URL, Version, Key; the rest is set here
	// Agents lists the agents that some director must hold.
	Agents func() []string
	// Gained and Lost are called with the agents that this director holds from now on, and
	// no longer. Gained must not block; Lost returns when nothing is done for them any
	// more. An agent is not gained again before Lost has returned.
	Gained, Lost func(agents []string)
	// Lapse is called when the lease is over by our own clock: stop at once whatever must not run beside
	// another director. With false it is called when the lease is valid again.
	Lapse func(over bool)
	// Dead is called once with the IDs of directors that died or left.
	Dead func(ids []string)
	// Heard returns the messages to pass on with the next beat; News gets those of others.
	Heard func() []store.Heard
	News  func([]store.Heard)
	// Superseded is called once if another process has this one's name, or it may not run
	// beside another: it must end.
	Superseded func(error)
	Now        func() time.Time // the clock shared by all directors
	Log        *slog.Logger
	// HoldingsLost is called if the store had lost what this director holds, while its lease is valid by our
	// own clock. The director continues, and must check at once what others may have recovered meanwhile. It
	// must not block.
	HoldingsLost func()
	// Monotonic is the clock of this director's own lease, including time in which the
	// machine sleeps. nil: time.Now, whose monotonic reading may not include that.
	Monotonic func() time.Time
}

// Peers is a director's membership.
type Peers struct {
	store store.Store
	o     Options
	log   *slog.Logger

	stop      context.CancelFunc // of the loop
	group     sync.WaitGroup
	beatNow   chan struct{}  // capacity 1: send a beat now
	releasing sync.WaitGroup // calls of Lost

	mu           sync.Mutex
	me           store.Director // Expires is that of the last successful beat
	until        time.Time      // the lease is valid until then by our own clock
	lapsed       bool           // Lapse(true) was called last
	watch        *time.Timer    // fires at until
	entered      bool
	noTakeBefore time.Time               // nothing is taken before: another process of this name may still run
	held         map[string]bool         // agents
	released     map[string]releaseState // agents that are being released or handed over
	peers        map[string]*peer        // others, by ID
	recheckHeld  bool                    // what is held here by the store must be compared
	recheckedAt  time.Time               // when that was last done
	wanting      bool                    // an agent is wanted that another still holds
	ended        bool                    // superseded, or left
	holders      map[string]string       // of HolderOf, by agent
	holdersAt    time.Time
}

// releaseState is the state of an agent that is being given up.
type releaseState int

const (
	releasing   releaseState = iota + 1 // Lost is running; nothing follows
	handingOver                         // Lost is running; then it is handed over
	handedOver                          // handed over with the next beat
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
	if o.HoldingsLost == nil {
		o.HoldingsLost = func() {}
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
		store: s, o: o, log: o.Log, beatNow: make(chan struct{}, 1), stop: func() {},
		me: o.Director, held: map[string]bool{}, released: map[string]releaseState{}, peers: map[string]*peer{},
	}
	p.me.StartedAt = o.Now().UTC().Truncate(time.Millisecond)
	return p
}

// certainlyDead is how long ago a lease must have ended for a director to count as dead at the first read: no
// server's clock is set by that much during a start.
const certainlyDead = time.Minute

// Start joins and takes what it can. It returns an error if this director may not join, or if the store
// cannot be reached.
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
			p.peers[d.ID] = &peer{row: d, changed: now, missing: over >= 0, dead: over > certainlyDead}
		case d.Alive(p.o.Now()) && d.URL != p.me.URL:
			// A process that had our address is gone, since we have it. One at another address may not know
			// yet that it is superseded.
			p.noTakeBefore = now.Add(Safe)
		}
	}
	p.recheckHeld = true
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

// Soon requests a beat now, since the list of agents may have changed.
func (p *Peers) Soon() {
	p.mu.Lock()
	p.recheckHeld = true
	p.mu.Unlock()
	p.requestBeat()
}

func (p *Peers) requestBeat() {
	select {
	case p.beatNow <- struct{}{}:
	default:
	}
}

// Yield hands all agents to the others and takes none any more. It returns when that is done, or ctx ends.
func (p *Peers) Yield(ctx context.Context) {
	p.mu.Lock()
	p.me.Draining = true
	p.mu.Unlock()
	p.requestBeat()
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

// Leave gives everything up and removes this director, so that others need not wait for its
// lease.
func (p *Peers) Leave(ctx context.Context) {
	p.stop()
	p.group.Wait()
	p.mu.Lock()
	ended := p.ended || !p.entered
	p.ended = true
	p.mu.Unlock()
	p.release(p.all(), releasing)
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

// Self is this director. Its Expires is that of the last successful beat.
func (p *Peers) Self() store.Director {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.me
}

// holdersTTL is how long HolderOf caches holders.
const holdersTTL = time.Second

// HolderOf returns the live director that holds an agent, or whose own executor has that
// name; it may be this one.
func (p *Peers) HolderOf(ctx context.Context, agent string) (store.Director, bool) {
	p.mu.Lock()
	held := p.held[agent]
	fresh := p.holders != nil && p.o.Monotonic().Sub(p.holdersAt) < holdersTTL
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
	return p.live(id)
}

// live returns the director of that ID, if it is alive.
func (p *Peers) live(id string) (store.Director, bool) {
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

// all lists the held agents.
func (p *Peers) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.held))
}
