// Package toolqueue compares the tool queues with the usual alternatives:
// golang.org/x/sync/semaphore, a buffered channel with and without a context; with a
// rate, golang.org/x/time/rate in front of a semaphore. The queue's hooks are set, as
// by telemetry. It also measures the cost of a wait with 100 and with 10,000 calls in
// line.
package toolqueue

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// Group is the tool queues.
var Group = measure.Group{Name: "toolqueue", Duels: duels}

const (
	semaphoreName = "x/sync/semaphore"
	selectName    = "channel with context"
	limiterName   = "x/time/rate and semaphore"
	noRateName    = "Signalbox, no rate"
	channelName   = "bare channel"
	perOp         = "ns"
	allocs        = "allocs"
	// turns is the number of turns of a side in a round. They are short, so that other
	// load of the machine disturbs only one of them; the round's figure is their
	// median.
	turns = 7
)

// work says how slots are taken.
type work struct {
	name, title string
	callers     int
	cancelable  bool
	while       func()
	each        int // operations of a caller per turn
	target      float64
}

var works = []work{
	{name: "permit", title: "a free slot taken and released", callers: 1, cancelable: true, each: 200_000, target: 1},
	{name: "permit-background", title: "the same, context.Background", callers: 1, each: 200_000, target: 1},
	{name: "permit-64", title: "64 callers, nothing done in between", callers: 64, cancelable: true, each: 5_000, target: 1},
	{name: "permit-64-background", title: "64 callers, nothing done in between, context.Background", callers: 64, each: 5_000, target: 1},
	{name: "permit-64-yield", title: "64 callers, each yields while it holds a slot", callers: 64, cancelable: true, while: runtime.Gosched, each: 500, target: 1},
	{name: "permit-64-yield-background", title: "64 callers, each yields while it holds a slot, context.Background", callers: 64, while: runtime.Gosched, each: 500, target: 1},
}

func duels(*measure.Bench) (out []*measure.Duel) {
	for _, w := range works {
		semaphore := w.side(semaphoreName, weighted)
		out = append(out, &measure.Duel{
			Name:  "toolqueue/" + w.name,
			Ours:  w.side("Signalbox", func() run { return ours(newQueues(capacity)) }),
			Peers: []*measure.Side{semaphore, w.side(selectName, selecting), w.side(channelName, channel)},
			Rows: []measure.Row{
				{Key: perOp, Title: w.title, Unit: "ns", Lower: true, Target: measure.Target{Of: semaphoreName, AtLeast: w.target}},
				{ID: "allocations", Key: allocs, Title: "allocations: " + w.title, Lower: true, Detail: true, Target: measure.Target{AtMost: 0.01}},
			},
		})
	}
	out = append(out, rateDuel("rate", "a free slot with a rate", 1_000_000), rateDuel("rate-burst-4", "the same, burst 4", 4))
	short := line("100 in line", 100)
	return append(out, &measure.Duel{
		Name: "toolqueue/line", Ours: line("10,000 in line", 10_000), Peers: []*measure.Side{short}, Rows: []measure.Row{
			{ID: "enqueue", Key: "enqueue", Title: "a call gets in line", Unit: "ns", Lower: true, Detail: true},
			{ID: "cancel", Key: "cancel", Title: "a call in line gives up", Unit: "ns", Lower: true, Detail: true},
			{ID: "hand-off", Key: "hand-off", Title: "a slot passes to the next in line", Unit: "ns", Lower: true, Detail: true},
		},
	})
}

// rateDuel measures a rate that always has a token.
func rateDuel(name, title string, burst int) *measure.Duel {
	w := work{name: name, callers: 1, cancelable: true, each: 200_000}
	return &measure.Duel{
		Name: "toolqueue/" + name, Ours: w.side("Signalbox", rated(burst)),
		Peers: []*measure.Side{w.side(limiterName, limited(burst)), w.side(noRateName, func() run { return ours(newQueues(capacity)) })},
		Rows: []measure.Row{
			{Key: perOp, Title: title, Unit: "ns", Lower: true, Target: measure.Target{Of: limiterName, AtLeast: 1}},
			{ID: "allocations", Key: allocs, Title: "allocations: " + title, Lower: true, Detail: true, Target: measure.Target{AtMost: 0.01}},
		},
	}
}

func (w work) side(name string, open func() run) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		do := open()
		return func(context.Context) (measure.Values, error) {
			runtime.GC()
			var took, made []float64
			for range turns {
				t, a := w.turn(do, b.Scale(w.each))
				took, made = append(took, t), append(made, a)
			}
			return measure.Values{perOp: measure.Median(took), allocs: measure.Median(made)}, nil
		}, nil
	}}
}

// turn does the work once and returns nanoseconds and allocations per operation.
func (w work) turn(do run, each int) (ns, made float64) {
	ctxs := make([]context.Context, w.callers)
	for i := range ctxs {
		ctxs[i] = context.Background()
		if w.cancelable { // as with every tool call
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctxs[i] = ctx
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if w.callers == 1 {
		do(ctxs[0], each, w.while)
	} else {
		var all sync.WaitGroup
		for _, ctx := range ctxs {
			all.Go(func() { do(ctx, each, w.while) })
		}
		all.Wait()
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	ops := float64(w.callers * each)
	return float64(took.Nanoseconds()) / ops, float64(after.Mallocs-before.Mallocs) / ops
}
