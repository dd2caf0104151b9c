package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// What it costs that each agent does one thing at a time: 10,000 agents with
// one slot each against one agent with 10,000 slots, over the same store, with
// as many tasks that wait. All slots are in use all the time: a worker ends an
// execution, claims the next one for the agent that is free now, and accepts
// it.
const (
	laneSlots   = 10_000
	laneWaiting = 100_000
	laneWorkers = 64
	laneTarget  = 0.90

	// A round is so many slices of each side, in turns: short ones, so that
	// what else the machine does hits both alike.
	sliceCount = 10
	sliceEach  = 32 // executions of each worker
)

// crowd is a number of agents with slots enough for 10,000 executions.
type crowd struct {
	agents []signalbox.Agent
	own    bool // tasks wait in the agents' own queues, else all in one line
	store  store.Store
	engine *engine.Engine
	byName map[string]signalbox.Agent
	rings  [][]signalbox.Task // what each worker has in flight
	next   []int              // which of them each worker ends next
	filled int                // tasks submitted, which says whose turn it is
	rate   []float64          // executions a second, by round
}

// newCrowd makes the agents, and tasks for all slots and to wait.
func newCrowd(s store.Store, agents int, own bool) (*crowd, error) {
	sealer, err := seal.New(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	c := &crowd{
		own: own, store: s, engine: engine.New(s, engine.Options{Sealer: sealer, MaxSize: 1 << 30}),
		byName: map[string]signalbox.Agent{}, rings: make([][]signalbox.Task, laneWorkers), next: make([]int, laneWorkers),
	}
	for n := range agents {
		c.agents = append(c.agents, signalbox.Agent{
			Name: fmt.Sprintf("agent-%d", n), Kind: "claude", URL: "http://127.0.0.1:9000", Slots: laneSlots / agents,
		})
		c.byName[c.agents[n].Name] = c.agents[n]
	}
	if err := c.fill(laneSlots + laneWaiting); err != nil {
		return nil, err
	}
	return c, c.occupy()
}

// fill submits tasks, to one agent after the other.
func (c *crowd) fill(n int) error {
	var all errgroup
	var mu sync.Mutex
	left := n
	next := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if left == 0 {
			return 0, false
		}
		left--
		c.filled++
		return c.filled, true
	}
	for range laneWorkers {
		all.Go(func() error {
			for at, more := next(); more; at, more = next() {
				sub, err := submission()
				if err != nil {
					return err
				}
				if c.own {
					sub.Task.Queue = signalbox.AgentQueue(c.agents[at%len(c.agents)].Name)
				}
				if _, err := c.store.Submit(context.Background(), sub); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// occupy gives every slot a task, and every worker its share of them.
func (c *crowd) occupy() error {
	var all errgroup
	for w := range c.rings {
		all.Go(func() error {
			for n := w; n < laneSlots; n += laneWorkers {
				t, err := c.start(c.agents[n%len(c.agents)])
				if err != nil {
					return err
				}
				c.rings[w] = append(c.rings[w], t)
			}
			return nil
		})
	}
	return all.Wait()
}

func (c *crowd) start(a signalbox.Agent) (signalbox.Task, error) {
	ctx := context.Background()
	got, found, err := c.engine.Claim(ctx, a, 0)
	if err != nil {
		return got.Task, err
	}
	if !found {
		return got.Task, errNothing
	}
	return c.engine.Accept(ctx, got.Task, "task-1", "")
}

// slice lets each worker end some executions, and one that waited take the
// place of each. It returns how long that took.
func (c *crowd) slice() (time.Duration, error) {
	var all errgroup
	began := time.Now()
	for w := range c.rings {
		all.Go(func() error {
			for range sliceEach {
				held := &c.rings[w][c.next[w]]
				c.next[w] = (c.next[w] + 1) % len(c.rings[w])
				if _, err := c.engine.Finish(context.Background(), *held, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: result}); err != nil {
					return err
				}
				t, err := c.start(c.byName[held.Agent])
				if err != nil {
					return err
				}
				*held = t
			}
			return nil
		})
	}
	err := all.Wait()
	return time.Since(began), err
}

// pair is a comparison.
type pair struct {
	name string
	open func(b *bench, n int) (store.Store, error)
	own  bool

	many, one *crowd
	ratio     []float64
}

func pairs() []*pair {
	return []*pair{
		{name: "exclusivity, sqlite, own queues", open: openFile, own: true},
		{name: "exclusivity, sqlite, one queue for all", open: openFile},
		{name: "exclusivity, memory, own queues", open: openMemory, own: true},
	}
}

func openFile(b *bench, n int) (store.Store, error) {
	return sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(b.dir, fmt.Sprintf("crowd-%d.db", n))})
}

func openMemory(*bench, int) (store.Store, error) { return memory.New(memory.Options{}), nil }

// compare measures one pair, in turns.
func (b *bench) compare(p *pair, rounds int) (err error) {
	crowds := make([]*crowd, 2)
	for i, agents := range []int{laneSlots, 1} {
		b.crowds++
		s, err := p.open(b, b.crowds)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		if crowds[i], err = newCrowd(s, agents, p.own); err != nil {
			return fmt.Errorf("%s, %d agents: %w", p.name, agents, err)
		}
	}
	p.many, p.one = crowds[0], crowds[1]
	for range rounds {
		if err := p.round(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (p *pair) round() error {
	const done = sliceCount * sliceEach * laneWorkers
	sides := []*crowd{p.many, p.one}
	var took [2]time.Duration
	for range sliceCount {
		for _, i := range rand.Perm(2) {
			d, err := sides[i].slice()
			if err != nil {
				return err
			}
			took[i] += d
		}
	}
	for i, c := range sides {
		c.rate = append(c.rate, done/took[i].Seconds())
		if err := c.fill(done); err != nil {
			return err
		}
	}
	p.ratio = append(p.ratio, took[1].Seconds()/took[0].Seconds())
	return nil
}
