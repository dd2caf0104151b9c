package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// aCase is one thing to do with every system.
type aCase struct {
	name       string
	callers    int
	cancelable bool
	while      func()
	each       int // how often a caller does it in a round
	target     string

	figures map[string][]figure // by system
	runs    map[string]run
}

// figure is what came out in one slice.
type figure struct {
	PerOp  float64 `json:"ns"`
	Allocs float64 `json:"allocs"`
}

func cases() []*aCase {
	const target = "no slower than the semaphore"
	const faster = "faster than the semaphore and a channel"
	return []*aCase{
		{name: "nobody waits, context can be cancelled", callers: 1, cancelable: true, each: 300_000, target: target},
		{name: "nobody waits, context.Background", callers: 1, each: 300_000, target: target},
		{name: "64 callers, nothing done in between", callers: 64, cancelable: true, each: 10_000, target: faster},
		{name: "64 callers, nothing done in between, context.Background", callers: 64, each: 10_000, target: faster},
		{name: "64 callers, each yields while it holds", callers: 64, cancelable: true, while: runtime.Gosched, each: 500, target: faster},
		{name: "64 callers, each yields while it holds, context.Background", callers: 64, while: runtime.Gosched, each: 500, target: faster},
	}
}

// measure runs a case once with one system.
func (c *aCase) measure(do run) figure {
	ctxs := make([]context.Context, c.callers)
	for i := range ctxs {
		ctxs[i] = context.Background()
		if c.cancelable { // as every tool call can be
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctxs[i] = ctx
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if c.callers == 1 {
		do(ctxs[0], c.each, c.while)
	} else {
		var all sync.WaitGroup
		for _, ctx := range ctxs {
			all.Go(func() { do(ctx, c.each, c.while) })
		}
		all.Wait()
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	ops := float64(c.callers * c.each)
	return figure{float64(took.Nanoseconds()) / ops, float64(after.Mallocs-before.Mallocs) / ops}
}

// turns is how often each system has its turn in a round. They are short, so
// that what else the machine does hits neighbours alike.
const turns = 10

// round measures a case with every system, in turns.
func (c *aCase) round() {
	runtime.GC()
	for n := range turns {
		for i := range systems {
			s := systems[(i+n)%len(systems)]
			c.figures[s.name] = append(c.figures[s.name], c.measure(c.runs[s.name]))
		}
	}
}

func (c *aCase) prepare() {
	c.figures, c.runs = map[string][]figure{}, map[string]run{}
	for _, s := range systems {
		c.runs[s.name] = s.open()
	}
}
