package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// The cost of one execution at a time per agent: 10,000 agents with one slot each
// against one agent with 10,000 slots, over the same store, with the same number of
// waiting tasks. All slots are always in use: a worker ends an execution, claims the
// next one for the agent that is now free, and accepts it.
const (
	laneSlots   = 10_000
	laneWaiting = 100_000
	laneWorkers = 64
	laneTarget  = 0.90

	sliceCount = 6  // per round
	sliceEach  = 32 // executions of each worker in a slice
)

// crowd is a number of agents with slots for 10,000 executions in total.
type crowd struct {
	agents []signalbox.Agent
	own    bool // tasks wait in the agents' own queues, else in one line
	store  store.Store
	engine *engine.Engine
	byName map[string]signalbox.Agent
	rings  [][]signalbox.Task // what each worker has in flight
	next   []int              // which of them the worker ends next
	filled int                // number of submitted tasks, which determines the next agent
}

// newCrowd creates the agents, and tasks for all slots and for the line.
func newCrowd(s store.Store, agents int, own bool) (*crowd, error) {
	e, err := ours.NewEngine(s)
	if err != nil {
		return nil, err
	}
	c := &crowd{
		own: own, store: s, engine: e,
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

// fill submits tasks to the agents in turn.
func (c *crowd) fill(n int) error {
	first := c.filled
	c.filled += n
	return load.Many(n, func(at int) error {
		return ours.Submit(context.Background(), c.store, func(sub *store.Submission) {
			if c.own {
				sub.Task.Queue = signalbox.AgentQueue(c.agents[(first+at)%len(c.agents)].Name)
			}
		})
	})
}

// occupy gives every slot a task, and distributes them over the workers.
func (c *crowd) occupy() error {
	return together(len(c.rings), func(w int) error {
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

func (c *crowd) start(a signalbox.Agent) (signalbox.Task, error) {
	ctx := context.Background()
	got, found, err := c.engine.Claim(ctx, a, 0)
	if err != nil {
		return got.Task, err
	}
	if !found {
		return got.Task, ours.ErrNothing
	}
	return c.engine.Accept(ctx, got.Task, "task-1", "")
}

// slice lets each worker end some executions and start a waiting task in place of each.
// It returns how long that took.
func (c *crowd) slice() (time.Duration, error) {
	began := time.Now()
	err := together(len(c.rings), func(w int) error {
		for range sliceEach {
			held := &c.rings[w][c.next[w]]
			c.next[w] = (c.next[w] + 1) % len(c.rings[w])
			if _, err := c.engine.Finish(context.Background(), *held, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: ours.Result}); err != nil {
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
	return time.Since(began), err
}

// together calls do concurrently n times.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// crowdSide returns a side with a crowd over a store that is used in all rounds.
func crowdSide(name string, agents int, own bool, open func(*measure.Bench) (store.Store, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		s, err := open(b)
		if err != nil {
			return nil, err
		}
		b.Cleanup(func() { _ = s.Close() })
		c, err := newCrowd(s, agents, own)
		if err != nil {
			return nil, err
		}
		return func(context.Context) (measure.Values, error) { return c.round() }, nil
	}}
}

func (c *crowd) round() (measure.Values, error) {
	const done = sliceCount * sliceEach * laneWorkers
	var took time.Duration
	used := load.Processor()
	for range sliceCount {
		d, err := c.slice()
		if err != nil {
			return nil, err
		}
		took += d
	}
	used = load.Processor() - used
	return measure.Values{load.Rate: done / took.Seconds(), load.CPU: float64(used.Microseconds()) / done}, c.fill(done)
}

func openFile(b *measure.Bench) (store.Store, error) { return open(b, 0) }

func openMemory(*measure.Bench) (store.Store, error) { return memory.New(memory.Options{}), nil }

// lanes compares 10,000 agents with one execution at a time with one agent with 10,000.
func lanes() []*measure.Duel {
	pair := func(name, title string, own bool, open func(*measure.Bench) (store.Store, error)) *measure.Duel {
		const one = "one agent with 10,000 slots"
		return &measure.Duel{
			Name: "sqlite/lanes-" + name, Ours: crowdSide("10,000 agents, 1 slot each", laneSlots, own, open),
			Peers: []*measure.Side{crowdSide(one, 1, own, open)},
			Rows: []measure.Row{
				{Key: load.Rate, Title: "executions, 10,000 in flight, 100,000 wait: " + title, Unit: "/s", Target: measure.Target{Of: one, AtLeast: laneTarget}},
				{ID: "cpu", Key: load.CPU, Title: "processor time of one of these: " + title, Unit: "µs", Lower: true, Detail: true},
			},
		}
	}
	return []*measure.Duel{
		pair("own", "each agent with its own line", true, openFile),
		pair("one", "one line for all", false, openFile),
		pair("memory", "in memory, each with its own line", true, openMemory),
	}
}
