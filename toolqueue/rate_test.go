package toolqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	. "github.com/signalbox-ai/signalbox/internal/toolqueuetest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

func keyed(key, tool string) toolqueue.Who { return toolqueue.Who{Key: key, Tool: tool} }

// rated is a queue with many slots and a rate.
func rated(r toolqueue.Rate) toolqueue.Config { return toolqueue.Config{Concurrent: 100, Rate: r} }

func TestRateStartsOneCallPerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", rated(toolqueue.Rate{N: 60, Per: time.Minute, Burst: 3})))
		began := time.Now()
		var at []time.Duration
		for range 6 {
			Take(t, q, "a", Tool("t")).Release()
			at = append(at, time.Since(began))
		}
		if want := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 3 * time.Second}; !slices.Equal(at, want) {
			t.Fatalf("started at %v, want %v", at, want)
		}
		time.Sleep(2 * time.Second)
		if l := status(t, q, "a").Limits; len(l) != 1 || l[0].Tokens != 2 || !l[0].Next.IsZero() {
			t.Fatalf("%+v", l)
		}
		time.Sleep(time.Hour) // no more than the burst is saved
		for range 3 {
			Take(t, q, "a", Tool("t")).Release()
		}
		if p, ok := q.TryAcquire("a", Tool("t")); ok {
			p.Release()
			t.Fatal("a fourth token")
		}
	})
}

// Tokens taken without the lock after an idle period count.
func TestBurstAfterRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 64
		q := newQueues(t, toolqueue.Hooks{}, one("a", rated(toolqueue.Rate{N: 1, Per: time.Second, Burst: burst})))
		for range 3 {
			n := 0
			for range 2 * burst {
				if p, ok := q.TryAcquire("a", Tool("t")); ok {
					p.Release()
					n++
				}
			}
			if n > burst || n < burst-burst/8 {
				t.Errorf("%d calls started after a rest", n)
			}
			time.Sleep(time.Hour)
			Take(t, q, "a", Tool("t")).Release() // which lends some
			time.Sleep(time.Hour)
		}
	})
}

func TestWhoWaitsForTokenIsToldUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", rated(toolqueue.Rate{N: 6, Per: time.Minute})))
		held := Take(t, q, "a", Tool("holder"))
		began := time.Now()
		first, second := Start(t, q, "a", Tool("first"), 0), Start(t, q, "a", Tool("second"), 0)
		for i, c := range []*Call{first, second} {
			w := <-c.Waiting
			if h, want := w.Held(), began.Add(time.Duration(i+1)*10*time.Second); w.Position() != i+1 || !h.Until.Equal(want) || h.Closed {
				t.Errorf("position %d, %+v; want %d, %s", w.Position(), h, i+1, want)
			}
			if h := status(t, q, "a").Waiters[i].Held; !h.Until.Equal(began.Add(time.Duration(i+1) * 10 * time.Second)) {
				t.Errorf("status says %+v", h)
			}
		}
		_, err := q.AcquireWithin(context.Background(), "a", Tool("third"), time.Second)
		var e *toolqueue.Error
		if !errors.As(err, &e) || e.Reason != toolqueue.ReasonTimeout || !strings.Contains(err.Error(), "whose rate lets it start at") {
			t.Fatal(err)
		}
		first.Has().Release()
		second.Has().Release()
		if d := time.Since(began); d != 20*time.Second {
			t.Fatalf("the second one started after %s", d)
		}
		held.Release()
	})
}

// Waiting.Held of a call that waits for a slot does not name the rate.
func TestSlotWaitIsNotReportedAsRateWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, Rate: toolqueue.Rate{N: 1, Per: time.Minute, Burst: 2}}))
		held := Take(t, q, "a", Tool("holder"))
		w := Start(t, q, "a", Tool("w"), 0)
		if h := (<-w.Waiting).Held(); h != (toolqueue.Held{}) {
			t.Errorf("%+v", h)
		}
		held.Release()
		w.Has().Release()
	})
}

func TestClosedQueueStartsNothingUntilThen(t *testing.T) {
	for name, c := range map[string]toolqueue.Config{
		"plain": {Concurrent: 2}, "rate": rated(toolqueue.Rate{N: 100, Per: time.Second, Burst: 50}),
		"lease": {Concurrent: 2, Lease: toolqueue.Lease{Idle: 2 * time.Second}},
		"keys":  {Concurrent: 2, PerKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues(t, toolqueue.Hooks{}, one("a", c))
				running := Take(t, q, "a", In("s", "running"))
				Take(t, q, "a", In("r", "before")).Release()
				began, until := time.Now(), time.Now().Add(10*time.Second)
				if err := q.CloseUntil("a", "", until, "the server answered 429"); err != nil {
					t.Fatal(err)
				}
				if err := q.CloseUntil("a", "", until.Add(-time.Second), "earlier"); err != nil {
					t.Fatal(err)
				}
				running.Release()
				if p, ok := q.TryAcquire("a", In("s", "try")); ok {
					p.Release()
					t.Error("a call started")
				}
				var calls []*Call
				for i := range 3 { // the last two have a lease of their sessions, if there is one
					calls = append(calls, Start(t, q, "a", In([]string{"new", "s", "r"}[i], fmt.Sprint(i)), 0))
					want := toolqueue.Held{Until: until, Closed: true, Why: "the server answered 429"}
					if h := (<-calls[i].Waiting).Held(); !h.Until.Equal(until) || h.Why != want.Why || !h.Closed {
						t.Errorf("%+v, want %+v", h, want)
					}
				}
				if l := status(t, q, "a").Limits; len(l) != 1 || !l[0].Closed.Until.Equal(until) || !l[0].Closed.Since.Equal(began) {
					t.Errorf("%+v", l)
				}
				_, err := q.AcquireWithin(context.Background(), "a", Tool("late"), time.Second)
				if err == nil || !strings.Contains(err.Error(), "closed until "+until.UTC().Format(time.TimeOnly)+" UTC: the server answered 429") {
					t.Error(err)
				}
				for _, i := range []int{1, 2, 0} { // those with a lease keep it for as long as they wait
					calls[i].Has().Release()
					q.EndSession([]string{"new", "s", "r"}[i])
				}
				if d := time.Since(began); d != 10*time.Second {
					t.Errorf("started after %s", d)
				}
				counts(t, q, "a", 0, 0)
			})
		})
	}
}

func TestClosedQueueIsOpenedEarlyOrClosedForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1}))
		began := time.Now()
		if err := q.CloseUntil("a", "", began.Add(100*time.Hour), strings.Repeat("é", 200)); err != nil {
			t.Fatal(err)
		}
		c := Start(t, q, "a", Tool("c"), 0)
		if h := (<-c.Waiting).Held(); !h.Until.Equal(began.Add(toolqueue.MaxClosed)) || len(h.Why) != 200 {
			t.Errorf("%+v", h)
		}
		if err := q.Open("a", ""); err != nil {
			t.Fatal(err)
		}
		c.Has().Release()
		if time.Since(began) != 0 {
			t.Error("it was not opened")
		}
		for _, err := range []error{q.Open("b", ""), q.CloseUntil("b", "", began, "")} {
			if !errors.Is(err, toolqueue.ErrUnknown) {
				t.Error(err)
			}
		}
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var depth int
		q := newQueues(t, toolqueue.Hooks{Depth: func(_ string, n int) { depth = n }},
			one("a", toolqueue.Config{Concurrent: 1, MaxWaiters: 1, PerKey: true, Rate: toolqueue.Rate{N: 1, Per: time.Second, Burst: 2}}))
		a := Take(t, q, "a", keyed("a", "1"))
		wa := Start(t, q, "a", keyed("a", "2"), 0)
		b := Take(t, q, "a", keyed("b", "1"))
		none := Take(t, q, "a", Tool("1"))
		wb := Start(t, q, "a", keyed("b", "2"), 0)
		if _, err := q.Acquire(context.Background(), "a", keyed("a", "3")); !errors.Is(err, toolqueue.ErrFull) {
			t.Error(err)
		}
		if depth != 2 || (<-wb.Waiting).Position() != 1 {
			t.Errorf("depth %d", depth)
		}
		s := status(t, q, "a")
		if s.InUse != 3 || s.Depth != 2 || s.Keys != 3 || len(s.Limits) != 3 || s.Limits[1].Key != "a" || s.Limits[1].Tokens != 1 || s.Waiters[1].Key != "b" || s.Waiters[1].Position != 1 {
			t.Errorf("%+v", s)
		}
		if err := q.CloseUntil("a", "a", time.Now().Add(30*time.Second), ""); err != nil {
			t.Fatal(err)
		}
		for _, p := range []toolqueue.Permit{a, b, none} {
			p.Release()
		}
		began := time.Now()
		wb.Has().Release()
		wa.Has().Release()
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("key a was open again after %s", d)
		}
		if _, _, err := q.Update("a", func(c *toolqueue.Config) { c.Concurrent, c.Rate = 2, toolqueue.Rate{} }); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "c"} { // an existing one and a new one
			for range 2 {
				defer Take(t, q, "a", keyed(key, "4")).Release()
			}
		}
		if _, _, err := q.Update("a", func(c *toolqueue.Config) { c.PerKey = false }); err == nil {
			t.Error("the keys were taken away")
		}
		if err := q.Configure(one("a", toolqueue.Config{Concurrent: 1})); err == nil {
			t.Error("the keys were taken away")
		}
	})
}

// Keys are forgotten only when they are in their initial state. Otherwise they would get extra
// starts.
func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 1, PerKey: true, Rate: toolqueue.Rate{N: 1, Per: time.Minute}}))
		held := Take(t, q, "a", keyed("held", "t"))
		for i := range toolqueue.MaxKeys - 1 {
			Take(t, q, "a", keyed(fmt.Sprint(i), "t")).Release()
		}
		_, err := q.Acquire(context.Background(), "a", keyed("one too many", "t"))
		if !errors.Is(err, toolqueue.ErrFull) || !strings.Contains(err.Error(), "10000 keys") {
			t.Fatal(err)
		}
		if _, ok := q.TryAcquire("a", keyed("7", "t")); ok {
			t.Fatal("a key has a new bucket")
		}
		time.Sleep(time.Minute)
		Take(t, q, "a", keyed("one too many", "t")).Release()
		if n := status(t, q, "a").Keys; n != 2 {
			t.Errorf("%d keys are kept", n)
		}
		held.Release()
	})
}

func TestRateIsChangedWhileItIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 9}))
		setRate := func(r toolqueue.Rate) {
			t.Helper()
			if _, _, err := q.Update("a", func(c *toolqueue.Config) { c.Rate = r }); err != nil {
				t.Fatal(err)
			}
		}
		setRate(toolqueue.Rate{N: 1, Per: time.Hour, Burst: 2})
		for range 2 {
			Take(t, q, "a", Tool("t")).Release()
		}
		c := Start(t, q, "a", Tool("c"), 0)
		setRate(toolqueue.Rate{N: 1, Per: time.Minute, Burst: 3}) // two are lacking still
		c.Has().Release()
		began := time.Now()
		c = Start(t, q, "a", Tool("c"), 0)
		setRate(toolqueue.Rate{N: 1, Per: time.Second, Burst: 1})
		c.Has().Release()
		if d := time.Since(began); d != time.Second {
			t.Errorf("it waited %s", d)
		}
		c = Start(t, q, "a", Tool("c"), 0)
		setRate(toolqueue.Rate{})
		for range 9 {
			defer Take(t, q, "a", Tool("t")).Release()
			c.Has().Release()
		}
		if err := q.Configure(one("a", toolqueue.Config{Concurrent: 1, Rate: toolqueue.Rate{N: 2, Per: time.Second}})); err != nil {
			t.Fatal(err)
		}
		if err := q.Configure(one("a", toolqueue.Config{Concurrent: 1, Rate: toolqueue.Rate{N: 60, Per: time.Minute, Burst: 5}})); err != nil {
			t.Fatal(err)
		}
		if r := status(t, q, "a").Rate; r != (toolqueue.Rate{N: 2, Per: time.Second, Burst: 5}) {
			t.Errorf("%+v", r)
		}
	})
}

func TestRateIsChecked(t *testing.T) {
	for _, r := range []toolqueue.Rate{
		{N: -1, Per: time.Second}, {N: toolqueue.MaxRate + 1, Per: time.Second}, {Per: time.Second}, {Burst: 1}, {N: 1}, {N: 1, Per: time.Microsecond},
		{N: 1, Per: toolqueue.MaxPer + 1}, {N: 1, Per: time.Second, Burst: -1}, {N: 1, Per: time.Second, Burst: toolqueue.MaxRate + 1}, {N: 1, Per: toolqueue.MaxPer, Burst: 12},
	} {
		if err := toolqueue.New(toolqueue.Hooks{}).Configure(one("a", rated(r))); err == nil {
			t.Errorf("%+v was accepted", r)
		}
	}
}

// start is when a call of a key started.
type start struct {
	key string
	at  time.Time
}

// checkStarts asserts at most N + Burst starts in each window of each key.
func checkStarts(r toolqueue.Rate, starts []start) error {
	of := map[string][]time.Time{}
	for _, s := range starts {
		of[s.key] = append(of[s.key], s.at)
	}
	for key, at := range of {
		slices.SortFunc(at, time.Time.Compare)
		for i, first := 0, 0; i < len(at); i++ {
			for at[i].Sub(at[first]) > r.Per {
				first++
			}
			if n := i - first + 1; n > r.N+max(1, r.Burst) {
				return fmt.Errorf("%d starts of key %q within %s; the rate is %+v", n, key, r.Per, r)
			}
		}
	}
	return nil
}

// TestRateInEveryWindow: starts never exceed the rate, whatever the callers do, including leases,
// closings and changes of the capacity. A call that only waits for a token starts when the token
// is available.
func TestRateInEveryWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := toolqueue.Rate{
			N: rapid.IntRange(1, 20).Draw(rt, "n"), Per: time.Duration(rapid.IntRange(100, 5000).Draw(rt, "per")) * time.Millisecond,
			Burst: rapid.SampledFrom([]int{0, 1, 2, 7, 8, 20, 64}).Draw(rt, "burst"),
		}
		c := toolqueue.Config{Concurrent: rapid.SampledFrom([]int{1, 3, 9, 40}).Draw(rt, "concurrent"), Rate: r, PerKey: rapid.Bool().Draw(rt, "keys")}
		if rapid.Bool().Draw(rt, "lease") {
			c.Lease = toolqueue.Lease{Idle: time.Second, MaxHold: rapid.SampledFrom([]time.Duration{0, 3 * time.Second}).Draw(rt, "hold")}
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		var err error
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var starts []start
			q := newQueues(t, toolqueue.Hooks{}, one("a", c))
			var all sync.WaitGroup
			for i := range 12 {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				all.Go(func() {
					for range 20 {
						time.Sleep(time.Duration(rnd.IntN(3)) * time.Duration(rnd.IntN(int(r.Per)/r.N+1)))
						ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(20))*r.Per)
						who := toolqueue.Who{Session: []string{"", "s", "r"}[rnd.IntN(3)]}
						if c.PerKey {
							who.Key = []string{"", "k", "l"}[rnd.IntN(3)]
						}
						p, err := q.Acquire(ctx, "a", who)
						cancel()
						if err != nil {
							continue
						}
						mu.Lock()
						starts = append(starts, start{who.Key, time.Now()})
						mu.Unlock()
						time.Sleep(time.Duration(rnd.IntN(2)) * time.Duration(rnd.IntN(int(r.Per))))
						p.Release()
						switch rnd.IntN(20) {
						case 0:
							_ = q.CloseUntil("a", who.Key, time.Now().Add(time.Duration(rnd.IntN(int(r.Per)))), "")
						case 1:
							q.EndSession("s")
						case 2:
							_, _, _ = q.Update("a", func(c *toolqueue.Config) { c.Concurrent = 1 + rnd.IntN(12) })
						case 3:
							_ = q.Open("a", who.Key)
						}
					}
				})
			}
			all.Wait()
			time.Sleep(time.Hour)
			for _, s := range []string{"s", "r"} {
				q.EndSession(s)
			}
			counts(t, q, "a", 0, 0)
			if len(starts) == 0 {
				err = errors.New("nothing started")
			} else {
				err = checkStarts(r, starts)
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestEveryTokenIsUsed: while calls wait, one starts with each token without a delay.
func TestEveryTokenIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := toolqueue.Rate{N: 7, Per: time.Second, Burst: 20}
		q := newQueues(t, toolqueue.Hooks{}, one("a", toolqueue.Config{Concurrent: 5, Rate: r}))
		began := time.Now()
		var all sync.WaitGroup
		for range 20 + 7*10 {
			all.Go(func() {
				p := Take(t, q, "a", Tool("t"))
				time.Sleep(time.Millisecond)
				p.Release()
			})
		}
		all.Wait()
		if d, most := time.Since(began), 70*r.Every()+5*time.Millisecond; d > most {
			t.Fatalf("it took %s; at most %s", d, most)
		}
	})
}
