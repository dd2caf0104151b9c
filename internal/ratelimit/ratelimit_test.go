package ratelimit_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/ratelimit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBurstThenRate(t *testing.T) {
	l := ratelimit.New[string](ratelimit.Rate{N: 10, Per: time.Minute, Burst: 3}, 10)
	take := func(key string, n float64, at, want time.Duration) {
		t.Helper()
		if wait := l.Wait(key, n, start.Add(at)); wait != want {
			t.Errorf("after %s %s waits %s for %v, want %s", at, key, wait, n, want)
		}
		if wait := l.Take(key, n, start.Add(at)); wait != want {
			t.Errorf("after %s %s takes %v with a wait of %s, want %s", at, key, n, wait, want)
		}
	}
	for range 3 {
		take("a", 1, 0, 0)
	}
	take("a", 1, 0, 6*time.Second)
	take("b", 1, 0, 0)
	take("a", 1, 5*time.Second, time.Second) // a refusal takes nothing
	take("a", 1, 6*time.Second, 0)
	take("a", 3, time.Minute, 0)
	take("a", 5, time.Minute, 18*time.Second) // more than the burst needs a full bucket
	take("a", 5, 78*time.Second, 0)
	take("a", 1, 78*time.Second, 18*time.Second) // and is owed in full
	l.Add("a", -5, start.Add(78*time.Second))
	take("a", 3, 78*time.Second, 0)
	take("a", 1, 0, 84*time.Second) // a clock that is set back gives nothing
}

func TestZeroRateIsNoLimit(t *testing.T) {
	l := ratelimit.New[int](ratelimit.Rate{}, 1)
	for range 1000 {
		if wait := l.Take(1, 1e9, start); wait != 0 {
			t.Fatalf("it waits %s", wait)
		}
	}
}

// Full buckets are removed before others.
func TestKeysAreBounded(t *testing.T) {
	l := ratelimit.New[string](ratelimit.Rate{N: 1, Per: time.Hour, Burst: 1}, 100)
	for i := range 99 {
		l.Take(strconv.Itoa(i), 1, start)
	}
	now := start.Add(time.Hour)
	l.Take("owes", 1, start.Add(30*time.Minute))
	l.Take("makes room", 1, now)
	if l.Wait("owes", 1, now) != 30*time.Minute {
		t.Error("what a key owes was forgotten, where others owe nothing")
	}
	for i := range 10_000 {
		l.Take("many "+strconv.Itoa(i), 1, now)
	}
	owing := 0
	for i := range 10_000 {
		if l.Wait("many "+strconv.Itoa(i), 1, now) > 0 {
			owing++
		}
	}
	if owing < 50 || owing > 100 {
		t.Errorf("%d of 10,000 keys owe, want 50 to 100", owing)
	}
}

func TestConcurrentTakesAreCounted(t *testing.T) {
	l := ratelimit.New[string](ratelimit.Rate{N: 1, Per: time.Hour, Burst: 50}, 10)
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 20 {
				if l.Take("a", 1, start) == 0 {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 50 {
		t.Errorf("%d were taken, want 50", n)
	}
}

// In no time span is more taken than the burst plus the rate, and what must wait may be taken after the wait.
func TestNoStretchTakesMoreThanTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := ratelimit.Rate{
			N: float64(rapid.IntRange(1, 100).Draw(t, "n")), Per: time.Duration(rapid.IntRange(1, 100).Draw(t, "per")) * time.Second,
			Burst: float64(rapid.IntRange(1, 20).Draw(t, "burst")),
		}
		l := ratelimit.New[int](rate, 10)
		type taken struct {
			at time.Time
			n  float64
		}
		var all []taken
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			n := float64(rapid.IntRange(1, int(rate.Burst)).Draw(t, "units"))
			if wait := l.Take(1, n, now); wait > 0 {
				if again := l.Wait(1, n, now.Add(wait)); again > time.Microsecond {
					t.Fatalf("after a wait of %s another of %s", wait, again)
				}
				continue
			}
			all = append(all, taken{now, n})
			sum := 0.0
			for i := len(all) - 1; i >= 0; i-- {
				sum += all[i].n
				if most := rate.Burst + now.Sub(all[i].at).Seconds()/rate.Per.Seconds()*rate.N; sum > most+1e-3 {
					t.Fatalf("%v units within %s, where %v are the most", sum, now.Sub(all[i].at), most)
				}
			}
		}
	})
}
