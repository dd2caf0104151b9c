package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

const slowSync = time.Millisecond

// aCase is one thing to measure. It has a store of its own, which lives
// through all rounds, with depth tasks that wait.
type aCase struct {
	name    string
	workers int
	engine  bool
	slow    bool // with slowSync added to each commit
	depth   func(b *bench) int
	blocked func(n int, s *store.Submission) // 100,000 more that cannot start
	do      func(ctx context.Context, s system, agent string) error
	target  string

	sys     system
	store   *sqlite.Store
	figures []figure
}

func submitOnly(ctx context.Context, s system, _ string) error { return s.submit(ctx) }

func none(*bench) int   { return 0 }
func short(*bench) int  { return 1000 }
func deep(b *bench) int { return b.deep }

const manyBlocked = 100_000

func tomorrow(_ int, s *store.Submission) { s.Task.NotBefore = s.Now.Add(24 * time.Hour) }

// sessions makes a hundred conversations with a thousand turns each. Their
// queue is one that nobody serves here, so that the turn whose turn it is
// keeps the others blocked.
func sessions(n int, s *store.Submission) {
	s.Task.SessionID, s.Task.Queue = fmt.Sprintf("session-%d", n%100), signalbox.PoolQueue("other")
}

func cases() []aCase {
	return []aCase{
		{name: "submit, 64 callers, store", workers: 64, depth: none, do: submitOnly},
		{name: "submit, 64 callers, engine", workers: 64, engine: true, depth: none, do: submitOnly, target: "≥ 6×"},
		{name: "full cycle, 64 callers, store", workers: 64, depth: none, do: cycle},
		{name: "full cycle, 64 callers, engine", workers: 64, engine: true, depth: none, do: cycle, target: "≥ 1×"},
		{name: "submit, 1 caller, store", workers: 1, depth: none, do: submitOnly},
		{name: "submit, 1 caller, engine", workers: 1, engine: true, depth: none, do: submitOnly},
		{name: "full cycle, 1 caller, engine", workers: 1, engine: true, depth: none, do: cycle},
		{name: "full cycle, 1 caller, 1,000 wait", workers: 1, depth: short, do: cycle},
		{name: "full cycle, 1 caller, 1,000,000 wait", workers: 1, depth: deep, do: cycle, target: "≤ 1.5× the one above"},
		{name: "full cycle, 1 caller, 1,000 wait, 100,000 not before tomorrow", workers: 1, depth: short, blocked: tomorrow, do: cycle, target: "≤ 1.5× 1,000 alone"},
		{name: "full cycle, 1 caller, 1,000 wait, 100,000 for their session", workers: 1, depth: short, blocked: sessions, do: cycle, target: "≤ 1.5× 1,000 alone"},
		{name: "full cycle, 64 callers, 1,000 wait", workers: 64, depth: short, do: cycle},
		{name: "full cycle, 64 callers, 1,000,000 wait", workers: 64, depth: deep, do: cycle, target: "≤ 1.5× the one above"},
		{name: "submit, 64 callers, 1,000 wait", workers: 64, depth: short, do: submitOnly},
		{name: "submit, 64 callers, 1,000,000 wait", workers: 64, depth: deep, do: submitOnly, target: "≤ 1.5× the one above"},
		{name: "submit, 64 callers, engine, +1 ms a sync", workers: 64, engine: true, slow: true, depth: none, do: submitOnly},
		{name: "submit, 512 callers, engine, +1 ms a sync", workers: 512, engine: true, slow: true, depth: none, do: submitOnly},
		{name: "full cycle, 64 callers, engine, +1 ms a sync", workers: 64, engine: true, slow: true, depth: none, do: cycle},
		{name: "submit, 1 caller, engine, +1 ms a sync", workers: 1, engine: true, slow: true, depth: none, do: submitOnly},
	}
}

// bench is a run.
type bench struct {
	dir       string
	span      time.Duration
	deep      int
	cases     []*aCase
	append    []float64 // syncs a second, by round
	overwrite []float64
	pairs     []*pair
	crowds    int // made so far
}

func (b *bench) open() error {
	for i, c := range b.cases {
		o := sqlite.Options{Path: filepath.Join(b.dir, fmt.Sprintf("case-%d.db", i))}
		if c.slow {
			o.CommitDelay = slowSync
		}
		s, err := sqlite.Open(context.Background(), o)
		if err != nil {
			return err
		}
		c.store, c.sys = s, bare{s}
		if c.engine {
			sealer, err := seal.New(make([]byte, 32))
			if err != nil {
				return err
			}
			c.sys = whole{engine.New(s, engine.Options{Sealer: sealer, MaxSize: 1 << 30})}
		}
		if err := c.fill(c.depth(b)); err != nil {
			return err
		}
	}
	return nil
}

// fill makes tasks wait: n that could start, and those that are blocked.
func (c *aCase) fill(n int) error {
	if c.blocked != nil {
		if err := c.submitMany(manyBlocked, c.blocked); err != nil {
			return err
		}
	}
	return c.submitMany(n, func(int, *store.Submission) {})
}

func (c *aCase) submitMany(n int, change func(n int, s *store.Submission)) error {
	var next atomic.Int64
	const callers = 256
	var all errgroup
	for range callers {
		all.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				sub, err := submission()
				if err != nil {
					return err
				}
				change(i, &sub)
				if _, err := c.store.Submit(context.Background(), sub); err != nil {
					return err
				}
			}
		})
	}
	return all.Wait()
}

// errgroup keeps the first error of several goroutines.
type errgroup struct {
	all sync.WaitGroup
	mu  sync.Mutex
	err error
}

func (g *errgroup) Go(f func() error) {
	g.all.Go(func() {
		if err := f(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.err == nil {
				g.err = err
			}
		}
	})
}

func (g *errgroup) Wait() error {
	g.all.Wait()
	return g.err
}

func (b *bench) close() {
	for _, c := range b.cases {
		if c.store != nil {
			c.store.Close()
		}
	}
}

// round measures the disk and then every case, in an order of its own.
func (b *bench) round(ctx context.Context) error {
	over, err := syncs(b.dir, false, b.span/2)
	if err != nil {
		return err
	}
	app, err := syncs(b.dir, true, b.span/2)
	if err != nil {
		return err
	}
	b.overwrite, b.append = append(b.overwrite, over), append(b.append, app)
	for _, i := range rand.Perm(len(b.cases)) {
		c := b.cases[i]
		f, err := load(c.workers, b.span, func(ctx context.Context, worker int) error {
			return c.do(ctx, c.sys, fmt.Sprintf("agent-%d", worker))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.figures = append(c.figures, f)
	}
	return nil
}
