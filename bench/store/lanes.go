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
)

// crowd is a number of agents with slots enough for 10,000 executions.
type crowd struct {
	agents []signalbox.Agent
	own    bool // tasks wait in the agents' own queues, else all in one line
	store  store.Store
	engine *engine.Engine
	rings  [][]signalbox.Task // what each worker has in flight
	filled int                // tasks submitted, which says whose turn it is
	rate   []float64          // executions a second, by round
}

// newCrowd makes the agents, and tasks for all slots and to wait.
func newCrowd(s store.Store, agents int, own bool) (*crowd, error) {
	sealer, err := seal.New(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	c := &crowd{own: own, store: s, engine: engine.New(s, engine.Options{Sealer: sealer, MaxSize: 1 << 30}), rings: make([][]signalbox.Task, laneWorkers)}
	for n := range agents {
		c.agents = append(c.agents, signalbox.Agent{
			Name: fmt.Sprintf("agent-%d", n), Kind: "claude", URL: "http://127.0.0.1:9000", Slots: laneSlots / agents,
		})
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

// turn lets every execution end twice, and one that waited take its place.
func (c *crowd) turn() error {
	byName := map[string]signalbox.Agent{}
	for _, a := range c.agents {
		byName[a.Name] = a
	}
	var all errgroup
	began := time.Now()
	for _, ring := range c.rings {
		all.Go(func() error {
			for n := range 2 * len(ring) {
				at := n % len(ring)
				if _, err := c.engine.Finish(context.Background(), ring[at], engine.Outcome{Reason: signalbox.ReasonCompleted, Result: result}); err != nil {
					return err
				}
				t, err := c.start(byName[ring[at].Agent])
				if err != nil {
					return err
				}
				ring[at] = t
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	c.rate = append(c.rate, 2*laneSlots/time.Since(began).Seconds())
	return c.fill(2 * laneSlots)
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
		for _, i := range rand.Perm(2) {
			if err := crowds[i].turn(); err != nil {
				return fmt.Errorf("%s, %d agents: %w", p.name, len(crowds[i].agents), err)
			}
		}
		last := len(p.one.rate) - 1
		p.ratio = append(p.ratio, p.many.rate[last]/p.one.rate[last])
	}
	return nil
}
