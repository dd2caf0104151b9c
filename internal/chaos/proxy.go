package chaos

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// TB is what a test gives.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// Options say how a proxy breaks what goes through it by itself.
type Options struct {
	// Pace is the time from one fault to the next, by and large; 0 for none.
	Pace time.Duration
	// Seed gives the order of the faults and their times.
	Seed uint64
	// Faults are those it may use; nil for all.
	Faults []Fault
	// Length bounds delays and partitions; 0 is 500 ms.
	Length time.Duration
}

// Proxy stands between clients and a server.
type Proxy struct {
	// Addr is where clients reach it, host:port.
	Addr string

	options Options
	all     sync.WaitGroup
	ctx     context.Context // until the test ends

	mu     sync.Mutex
	to     string
	rng    *rand.Rand
	deck   *deck   // nil: no faults of its own
	told   *strike // by Strike
	seen   map[Fault]int
	conns  map[net.Conn]bool
	held   []func()
	closed bool
	walls  [2]chan struct{} // by way: closed when the partition heals; nil: none
	old    []byte           // replaced in what the server says
	fresh  []byte
}

// New begins a proxy before the server at an address, which ends with the
// test.
func New(tb TB, to string, o Options) *Proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("chaos: %v", err)
	}
	o.Length = cmp.Or(o.Length, 500*time.Millisecond)
	if o.Faults == nil {
		o.Faults = Faults
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Proxy{
		Addr: l.Addr().String(), options: o, ctx: ctx, to: to,
		rng: rand.New(rand.NewPCG(o.Seed, 1)), seen: map[Fault]int{}, conns: map[net.Conn]bool{},
	}
	if o.Pace > 0 {
		p.deck = &deck{rng: rand.New(rand.NewPCG(o.Seed, 2)), all: o.Faults, pace: o.Pace}
	}
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.serve(c) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		end()
		p.Release()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.Cut()
		p.all.Wait()
	})
	return p
}

// Strike sets what happens to the next thing that match is true of. It has
// happened when the channel is closed.
func (p *Proxy) Strike(f Fault, match func(said []byte) bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = &strike{fault: f, match: match, done: make(chan struct{})}
	return p.told.done
}

// Heal ends all faults of the proxy's own, and partitions that last.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deck = nil
	for way := range p.walls {
		p.openWall(Way(way))
	}
}

// Partition holds back what is said in some directions, until Heal.
func (p *Proxy) Partition(ways ...Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, way := range ways {
		p.closeWall(way)
	}
}

func (p *Proxy) closeWall(way Way) {
	if p.walls[way] == nil {
		p.walls[way] = make(chan struct{})
	}
}

func (p *Proxy) openWall(way Way) {
	if p.walls[way] != nil {
		close(p.walls[way])
		p.walls[way] = nil
	}
}

// Seen is how often each fault has struck.
func (p *Proxy) Seen() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen)
}

// Faults are those that the proxy uses by itself.
func (p *Proxy) Faults() []Fault { return p.options.Faults }

// Lead has those who connect from now on reach another server.
func (p *Proxy) Lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

// Rewrite has the server say something else, of the same length or padded at
// the end of a line.
func (p *Proxy) Rewrite(old, fresh string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.old, p.fresh = []byte(old), []byte(fresh)
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

// Release lets the server have what was kept back.
func (p *Proxy) Release() {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, f := range held {
		f()
	}
}

func (p *Proxy) hold(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, f)
}

// keep notes a connection, unless the proxy has ended.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// draw says what strikes the next thing that was said, if anything does.
func (p *Proxy) draw(way Way, said []byte) *strike {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.told; s != nil && s.fault.strikes(way, said) && (s.match == nil || s.match(said)) {
		p.told = nil
		p.seen[s.fault]++
		return s
	}
	if p.deck == nil {
		return nil
	}
	if s := p.deck.next(time.Now()); s != nil && s.fault.strikes(way, said) {
		p.deck.ready = nil
		p.seen[s.fault]++
		return s
	}
	return nil
}

// some is a part of the length that faults may have, by the seed.
func (p *Proxy) some() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options.Length/10 + time.Duration(p.rng.Int64N(int64(p.options.Length)))*9/10
}

// sleep waits, unless the test ends.
func (p *Proxy) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

// pass waits until nothing keeps what is said in a direction back.
func (p *Proxy) pass(way Way) {
	p.mu.Lock()
	wall := p.walls[way]
	p.mu.Unlock()
	if wall != nil {
		select {
		case <-wall:
		case <-p.ctx.Done():
		}
	}
}

// wall partitions for a while.
func (p *Proxy) wall(ways ...Way) {
	p.Partition(ways...)
	length := p.some()
	p.all.Go(func() {
		p.sleep(length)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, way := range ways {
			p.openWall(way)
		}
	})
}
