package store_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// aSecond is a rate of one start per second.
func aSecond(full, now time.Duration) (time.Duration, bool) {
	if full > now {
		return full, false
	}
	return now + time.Second, true
}

func keyed(key string, ids ...string) store.TicketStep {
	s := enter(ids...)
	for i := range s.Enter {
		s.Enter[i].Key = key
	}
	return s
}

func closes(key string, until time.Time) store.TicketStep {
	return store.TicketStep{Gates: []store.ToolGate{{Key: key, Until: until, Why: "429"}}}
}

func TestTicketStepsWithLimits(t *testing.T) {
	for name, scene := range map[string]struct {
		line  line
		moves []move
	}{
		"a start takes a token": {line{concurrent: 9, take: aSecond}, []move{
			{0, enter("a", "b", "c"), "a | b c"},
			{999 * time.Millisecond, leave("a"), "| b c"},
			{time.Millisecond, store.TicketStep{}, "b | c"},
			{0, enter("d"), "b | c d"},
			{5 * time.Second, store.TicketStep{}, "b c | d"},
		}},
		"each key has its own slots and tokens": {line{concurrent: 1, maxWaiters: 1, take: aSecond}, []move{
			{0, keyed("k", "a", "b", "c"), "a | b"},
			{0, keyed("l", "d", "e", "f"), "a d | b e"},
			{0, leave("a", "d"), "| b e"},
			{time.Second, store.TicketStep{}, "b e"},
		}},
		"no more than so many keys": {line{concurrent: 1, take: aSecond}, []move{
			{0, keyed("k", "a"), "a"},
			{0, keyed("l", "b"), "a b"},
			{0, keyed("m", "c"), "a b c"},
			{0, keyed("n", "d"), "a b c"},
			{0, leave("c"), "a b"},
			{0, keyed("n", "d"), "a b"}, // the bucket of m is not full
			{time.Second, keyed("n", "d"), "a b d"},
		}},
		"a closed key starts nothing until then": {line{concurrent: 9}, []move{
			{0, closes("", stepBegan.Add(2*time.Second)), ""},
			{0, enter("a"), "| a"},
			{0, closes("", stepBegan.Add(time.Second)), "| a"}, // the later time counts
			{0, keyed("k", "b"), "b | a"},
			{1999 * time.Millisecond, store.TicketStep{}, "b | a"},
			{time.Millisecond, store.TicketStep{}, "b a"},
			{0, closes("k", stepBegan.Add(100*time.Hour)), "b a"},
			{0, keyed("k", "c"), "b a | c"},
			{0, closes("k", time.Time{}), "b a c"},
		}},
		"an idle lease waits with its next call": {line{concurrent: 2, idle: time.Second, take: aSecond}, []move{
			{0, inSession("s/1"), "s/1"},
			{500 * time.Millisecond, idle("s/1"), "[s/1]"},
			{0, inSession("s/2"), "[s/1] | s/2"},
			{0, enter("a"), "[s/1] | s/2 a"},
			{500 * time.Millisecond, store.TicketStep{}, "s/2 | a"},
			{time.Second, store.TicketStep{}, "s/2 a"},
		}},
		"but not beyond what it may be held": {line{concurrent: 2, idle: time.Second, hold: 2 * time.Second}, []move{
			{0, inSession("s/1"), "s/1"},
			{0, closes("", stepBegan.Add(time.Minute)), "s/1"},
			{0, idle("s/1"), "[s/1]"},
			{0, inSession("s/2"), "[s/1] | s/2"},
			{1500 * time.Millisecond, store.TicketStep{}, "[s/1] | s/2"},
			{500 * time.Millisecond, store.TicketStep{}, "| s/2"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := scene.line
			l.now = stepBegan
			for i, m := range scene.moves {
				l.now = l.now.Add(m.after)
				if got := l.step(m.step); got != m.want {
					t.Fatalf("after step %d: %q, want %q", i+1, got, m.want)
				}
			}
		})
	}
}

// A key that is closed again keeps the time since which it is closed.
func TestClosedKeySince(t *testing.T) {
	l := line{concurrent: 1, now: stepBegan}
	at := func(s int) time.Time { return stepBegan.Add(time.Duration(s) * time.Second) }
	l.step(closes("", at(2)))
	l.now = at(1)
	l.step(closes("", at(3)))
	if got := l.limits[0]; !got.Since.Equal(at(0)) || !got.Closed.Equal(at(3)) {
		t.Errorf("%+v", got)
	}
	l.now = at(3)
	l.step(closes("", at(9)))
	if got := l.limits[0]; !got.Since.Equal(at(3)) {
		t.Errorf("%+v", got)
	}
}
