package tickets_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// starts are the starts of a queue as seen in its store: a step only shows calls that hold slots, so each
// process records those of its own steps.
type starts struct {
	mu  sync.Mutex
	all map[string]store.Ticket // by the ticket's ID
}

// recorder is a store that records starts.
type recorder struct {
	store.Store
	starts *starts
}

func (r recorder) Tickets(ctx context.Context, s store.TicketStep) (store.ToolLine, error) {
	line, err := r.Store.Tickets(ctx, s)
	r.starts.mu.Lock()
	defer r.starts.mu.Unlock()
	for _, t := range line.Tickets {
		if t.Fence > 0 {
			r.starts.all[t.ID] = t
		}
	}
	return line, err
}

// check wants at most N + Burst starts in each window of each key, by the store's clock.
func (s *starts) check(r toolqueue.Rate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string][]time.Time{}
	for _, t := range s.all {
		of[t.Key] = append(of[t.Key], t.Granted)
	}
	if len(of) == 0 {
		return fmt.Errorf("nothing started")
	}
	for key, at := range of {
		slices.SortFunc(at, time.Time.Compare)
		first := 0
		for i := range at {
			for at[i].Sub(at[first]) > r.Per {
				first++
			}
			if n := i - first + 1; n > r.N+r.Burst {
				return fmt.Errorf("%d starts of key %q within %s; the rate is %+v", n, key, r.Per, r)
			}
		}
	}
	return nil
}

// crowd makes callers of several processes call until all have had their turns. One of the processes loses
// its store in between, as if it were killed, and another one replaces it.
type crowd struct {
	rate    toolqueue.Rate
	starts  *starts
	join    func(name string) *process
	seed    uint64
	callers int
	turns   int
	lasts   time.Duration // of a ticket
}

func (c *crowd) run(t *testing.T) {
	var all sync.WaitGroup
	for n := range 3 {
		p := c.join(fmt.Sprint("p", n))
		for i := range c.callers {
			rnd := rand.New(rand.NewPCG(c.seed, uint64(n*100+i)))
			all.Go(func() { c.call(t, p, rnd) })
		}
		if n == 0 {
			all.Go(func() {
				time.Sleep(time.Duration(c.seed%5+1) * c.rate.Per / 4)
				p.wire.sever()
				next := c.join("in its place")
				for i := range c.callers {
					rnd := rand.New(rand.NewPCG(c.seed, uint64(900+i)))
					all.Go(func() { c.call(t, next, rnd) })
				}
			})
		}
	}
	all.Wait()
}

func (c *crowd) call(t *testing.T, p *process, rnd *rand.Rand) {
	for range c.turns {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(6))*c.rate.Per)
		permit, err := p.Acquire(ctx, "q", toolqueue.Who{Tool: "t", Key: []string{"", "k", "l"}[rnd.IntN(3)]})
		cancel()
		if err != nil {
			continue
		}
		time.Sleep(time.Duration(rnd.IntN(int(c.rate.Per) / 4)))
		permit.Release()
	}
}

// free checks that no slot is lost: all are free once the tickets of the dead have expired, as soon as the
// rate allows that many starts.
func (c *crowd) free(t *testing.T, slots int) {
	p := c.join("last")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(slots)*c.rate.Per)
	defer cancel()
	for range slots {
		permit, err := p.Acquire(ctx, "q", toolqueue.Who{Tool: "t", Key: "k"})
		if err != nil {
			t.Errorf("a slot is lost: %v", err)
			return
		}
		defer permit.Release()
	}
}

// In every window of every key at most N + Burst calls start, over three processes, with kills.
func TestRateInEveryWindowOfAllProcesses(t *testing.T) {
	soak.Histories(t, 15, 300)
	rapid.Check(t, func(rt *rapid.T) {
		r := toolqueue.Rate{
			N: rapid.IntRange(1, 12).Draw(rt, "n"), Per: time.Duration(rapid.IntRange(200, 4000).Draw(rt, "per")) * time.Millisecond,
			Burst: rapid.SampledFrom([]int{1, 2, 9, 20}).Draw(rt, "burst"),
		}
		c := toolqueue.Config{Concurrent: rapid.SampledFrom([]int{1, 3, 20}).Draw(rt, "concurrent"), Rate: r, PerKey: rapid.Bool().Draw(rt, "keys")}
		seed := rapid.Uint64().Draw(rt, "seed")
		var err error
		synctest.Test(t, func(t *testing.T) {
			s := recorder{memory.New(memory.Options{ID: "m"}), &starts{all: map[string]store.Ticket{}}}
			run := crowd{rate: r, starts: s.starts, seed: seed, callers: 4, turns: 6, join: func(name string) *process { return join(t, s, name, queue(c)) }}
			run.run(t)
			run.free(t, c.Concurrent)
			err = s.starts.check(r)
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// rateOver is the same over a store, with a real clock.
func rateOver(t *testing.T, open func() store.Store) {
	r := toolqueue.Rate{N: 20, Per: 400 * time.Millisecond, Burst: 4}
	c := toolqueue.Config{Concurrent: 4, Rate: r, PerKey: true}
	all := &starts{all: map[string]store.Ticket{}}
	run := crowd{rate: r, starts: all, seed: rand.Uint64(), callers: 4, turns: 5, join: func(name string) *process {
		s := open()
		p := joinWithin(t, recorder{s, all}, name, 2*time.Second, toolqueue.Hooks{}, map[string]toolqueue.Config{"q": c})
		p.listen(t, s)
		return p
	}}
	run.run(t)
	run.free(t, c.Concurrent)
	if err := all.check(r); err != nil {
		t.Fatalf("seed %d: %v", run.seed, err)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	t.Logf("%d starts", len(all.all))
}

// closingOver: what one process closes is closed for all, and opens by itself, or when one process opens it.
func closingOver(t *testing.T, open func() store.Store) {
	c := toolqueue.Config{Concurrent: 2, PerKey: true}
	a, b := joinOver(t, open, "a", lease, c), joinOver(t, open, "b", lease, c)
	take := func(p *process, key string) {
		t.Helper()
		Take(t, p.Queues, "q", toolqueue.Who{Key: key}).Release()
	}
	shut := func(until time.Time) {
		t.Helper()
		if err := a.CloseUntil("q", "k", until, "the server answered 429"); err != nil {
			t.Fatal(err)
		}
		take(a, "") // its step has told the store
	}
	until := time.Now().Add(300 * time.Millisecond)
	shut(until)
	take(b, "l")
	waits := b.start(t, toolqueue.Who{Key: "k"}, 0)
	if h := (<-waits.Waiting).Held(); !h.Closed || h.Why != "the server answered 429" || h.Until.Sub(until).Abs() > 100*time.Millisecond {
		t.Errorf("%+v, closed until %s", h, until)
	}
	waits.Has().Release()
	if early := time.Until(until); early > 50*time.Millisecond {
		t.Errorf("it started %s early", early)
	}
	shut(time.Now().Add(30 * time.Minute))
	waits = b.start(t, toolqueue.Who{Key: "k"}, 0)
	s, _ := b.Status("q", 10)
	if i := slices.IndexFunc(s.Limits, func(l toolqueue.Limit) bool { return l.Key == "k" }); i < 0 || s.Limits[i].Closed.Why == "" || s.Limits[i].Closed.Since.IsZero() || s.Limits[i].Depth != 1 {
		t.Errorf("%+v", s.Limits)
	}
	if err := a.Open("q", "k"); err != nil {
		t.Fatal(err)
	}
	waits.Has().Release()
}

// A call that waits for its token in a lease keeps the lease, and no other call overtakes it.
func TestRateCountsTheCallsOfLease(t *testing.T) {
	c := toolqueue.Config{Concurrent: 2, Lease: toolqueue.Lease{Idle: time.Second}, Rate: toolqueue.Rate{N: 1, Per: 10 * time.Second}}
	together(t, c, func(t *testing.T, a, b *process) {
		began := time.Now()
		a.take(t, In("s", "one")).Release()
		first := b.start(t, In("s", "two"), 0)
		second := a.start(t, Tool("three"), 0)
		if h := (<-first.Waiting).Held(); h.Closed || h.Until.Sub(began.Add(10*time.Second)).Abs() > time.Second {
			t.Errorf("%+v", h)
		}
		first.Has().Release()
		if d := time.Since(began); d < 10*time.Second || d > 11*time.Second || !second.Waits() {
			t.Errorf("the call in the lease started after %s", d)
		}
		second.Has().Release()
		if d := time.Since(began); d < 20*time.Second || d > 21*time.Second {
			t.Errorf("the other call started after %s", d)
		}
	})
}

func TestClosingIsBoundedInEveryStore(t *testing.T) {
	if toolqueue.MaxClosed != store.MaxToolClosed {
		t.Error("toolqueue and the stores have different bounds")
	}
}
