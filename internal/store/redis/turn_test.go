package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

var zero store.Cursor

func TestLockExcludesOthers(t *testing.T) {
	ctx := context.Background()
	url := testserver.Redis(t)
	one, two := open(t, url), open(t, url)
	l, err := one.Lock(ctx, &verbs.Want{Writer: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Commit(ctx, batchOf("two", 1, verbs.Counters{}, submitted(1))); !errors.Is(err, verbs.ErrMoved) {
		t.Fatalf("the other one passed by: %v", err)
	}
	got := make(chan *verbs.Loaded, 1)
	var other sync.WaitGroup
	other.Go(func() {
		l, err := two.Lock(ctx, &verbs.Want{Writer: "two"})
		if err != nil {
			t.Error(err)
		}
		got <- l
	})
	if err := one.Commit(ctx, batchOf("one", 1, l.Counters, submitted(1))); err != nil {
		t.Fatal(err)
	}
	if l := <-got; l == nil || l.Moment != 1 {
		t.Errorf("the next one sees %+v", l)
	}
	other.Wait()
	two.Unlock(ctx)
	if _, err := one.Lock(ctx, &verbs.Want{Writer: "one"}); err != nil {
		t.Error(err)
	}
}

func TestLockOfPausedProcessExpires(t *testing.T) {
	ctx := context.Background()
	url := testserver.Redis(t)
	one, two := open(t, url), open(t, url)
	stopped, err := one.Lock(ctx, &verbs.Want{Writer: "one"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := two.Lock(ctx, &verbs.Want{Writer: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Commit(ctx, batchOf("two", 1, l.Counters, submitted(1))); err != nil {
		t.Fatal(err)
	}
	if err := one.Commit(ctx, batchOf("one", 1, stopped.Counters, submitted(2))); !errors.Is(err, verbs.ErrMoved) {
		t.Errorf("the stopped one wrote anyway: %v", err)
	}
}

// TestLockIsFair has several processes write concurrently: each batch is one step, and none waits for ever.
func TestLockIsFair(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := testserver.Redis(t)
	const each = 25
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		g := open(t, url)
		all.Go(func() {
			for n := range each {
				for {
					l, err := g.Lock(ctx, &verbs.Want{Writer: name})
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					err = g.Commit(ctx, batchOf(name, int64(n+1), l.Counters, submitted(int(l.Seq+1))))
					if err == nil {
						break
					}
					if !errors.Is(err, verbs.ErrMoved) {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	g := open(t, url)
	if c, _ := counters(t, g, "a"); c.Moment != 4*each || c.Seq != 4*each || c.Entry != 4*each {
		t.Errorf("after all: %+v", c)
	}
}

// TestSignalsAreSentToOthersOnly: a process that is alone sends no signals for its batches, which would wake
// only itself; a process that is not alone sends one for each.
func TestSignalsAreSentToOthersOnly(t *testing.T) {
	ctx := context.Background()
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	one := open(t, s.URL())
	number := int64(0)
	told := func() bool {
		t.Helper()
		command(t, s, "CONFIG", "RESETSTAT")
		at, _ := counters(t, one, "one")
		number++
		if err := one.Commit(ctx, batchOf("one", number, at, submitted(int(number)))); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(command(t, s, "INFO", "commandstats"), "cmdstat_spublish:")
	}
	for late := time.Now().Add(time.Minute); told(); { // until it listens itself
		if time.Now().After(late) {
			t.Fatal("a process that is alone sends signals")
		}
	}
	two := open(t, s.URL())
	<-two.Changed() // it listens: signals may have been missed until now
	if !told() {
		t.Error("the other one is not told")
	}
	select {
	case <-two.Changed():
	case <-time.After(time.Minute):
		t.Error("the other one has no sign")
	}
}

func TestTimeIsServerTime(t *testing.T) {
	g := open(t, testserver.Redis(t))
	now, err := g.Time(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(now); d < -time.Second || d > time.Minute {
		t.Errorf("off by %v", d)
	}
}
