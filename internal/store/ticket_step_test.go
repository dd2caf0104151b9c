package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/store"
)

var stepBegan = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// line is a shared tool queue that a test steps.
type line struct {
	rows         []store.Ticket
	limits       []store.ToolLimit
	place, fence int64
	now          time.Time
	concurrent   int
	maxWaiters   int
	idle, hold   time.Duration
	take         func(full, now time.Duration) (time.Duration, bool)
}

// step takes a step and shows the queue after it: holders, a bar, then waiting calls. Idle tickets are in
// brackets.
func (l *line) step(s store.TicketStep) string {
	s.Queue, s.Concurrent, s.MaxWaiters, s.LeaseIdle, s.LeaseHold = "q", l.concurrent, l.maxWaiters, l.idle, l.hold
	s.Take, s.MaxKeys = l.take, 3
	s.Now, s.Expires = l.now, l.now.Add(15*time.Second)
	after, _, place, fence := store.StepTickets(store.ToolLine{Tickets: l.rows, Limits: l.limits}, s, l.place, l.fence)
	l.rows, l.limits, l.place, l.fence = after.Tickets, after.Limits, place, fence
	return picture(l.rows)
}

func picture(rows []store.Ticket) string {
	var out []string
	bar := false
	for _, t := range rows {
		if t.Fence == 0 && !bar {
			out, bar = append(out, "|"), true
		}
		if t.Idle.IsZero() {
			out = append(out, t.ID)
		} else {
			out = append(out, "["+t.ID+"]")
		}
	}
	return strings.Join(out, " ")
}

func enter(ids ...string) (s store.TicketStep) {
	for _, id := range ids {
		s.Enter = append(s.Enter, store.Ticket{Queue: "q", ID: id, Owner: "d1"})
	}
	return s
}

// inSession is enter for calls of a session with a lease: s/1 belongs to session s.
func inSession(ids ...string) store.TicketStep {
	s := enter(ids...)
	for i := range s.Enter {
		s.Enter[i].Session, _, _ = strings.Cut(ids[i], "/")
		s.Enter[i].Leased = true
	}
	return s
}

func leave(ids ...string) store.TicketStep { return store.TicketStep{Leave: ids} }
func idle(ids ...string) store.TicketStep  { return store.TicketStep{Idle: ids} }

// move is a step of a test and the queue after it; after is the time that passes before.
type move struct {
	after time.Duration
	step  store.TicketStep
	want  string
}

func TestTicketSteps(t *testing.T) {
	both := func(a, b store.TicketStep) store.TicketStep {
		a.Leave, a.Idle, a.Keep = append(a.Leave, b.Leave...), append(a.Idle, b.Idle...), append(a.Keep, b.Keep...)
		return a
	}
	for name, scene := range map[string]struct {
		line  line
		moves []move
	}{
		"first come, first served": {line{concurrent: 2}, []move{
			{0, enter("a", "b", "c", "d"), "a b | c d"},
			{0, enter("e"), "a b | c d e"},
			{0, leave("a"), "b c | d e"},
			{0, leave("d"), "b c | e"},
			{0, leave("b", "c"), "e"},
		}},
		"who gives back and who comes, in one step": {line{concurrent: 1}, []move{
			{0, enter("a", "b"), "a | b"},
			{0, both(enter("c"), leave("a")), "b | c"},
		}},
		"a slot that nobody keeps is free when it runs out": {line{concurrent: 1}, []move{
			{0, enter("a", "b"), "a | b"},
			{14 * time.Second, store.TicketStep{Keep: []string{"b"}}, "a | b"},
			{time.Second, store.TicketStep{}, "b"},
			{0, store.TicketStep{Keep: []string{"a"}}, "b"},
			{14 * time.Second, store.TicketStep{}, ""},
		}},
		"a place in line that nobody keeps is lost": {line{concurrent: 1}, []move{
			{0, enter("a", "b", "c"), "a | b c"},
			{10 * time.Second, store.TicketStep{Keep: []string{"a", "c"}}, "a | b c"},
			{5 * time.Second, store.TicketStep{}, "a | c"},
		}},
		"as many wait as may": {line{concurrent: 1, maxWaiters: 1}, []move{
			{0, enter("a", "b", "c"), "a | b"},
			{0, enter("c"), "a | b"},
			{0, both(enter("c"), leave("a")), "b | c"},
		}},
		"a step is taken twice": {line{concurrent: 1}, []move{
			{0, enter("a", "b"), "a | b"},
			{0, enter("a", "b"), "a | b"},
			{0, leave("a"), "b"},
			{0, leave("a"), "b"},
		}},
		"fewer slots than are held": {line{concurrent: 0}, []move{
			{0, enter("a"), "| a"},
		}},
		"a session keeps its slot from call to call": {line{concurrent: 1, idle: 5 * time.Second}, []move{
			{0, inSession("s/1", "t/1"), "s/1 | t/1"},
			{0, idle("s/1"), "[s/1] | t/1"},
			{0, inSession("s/2"), "s/2 | t/1"},
			{0, idle("s/1"), "s/2 | t/1"}, // too late: the slot belongs to another call
			{0, idle("s/2"), "[s/2] | t/1"},
			{4 * time.Second, store.TicketStep{}, "[s/2] | t/1"},
			{time.Second, store.TicketStep{}, "t/1"},
		}},
		"calls of a session run one after the other, beside a free slot": {line{concurrent: 2, idle: 5 * time.Second}, []move{
			{0, inSession("s/1", "s/2", "s/3", "t/1"), "s/1 t/1 | s/2 s/3"},
			{0, idle("s/1"), "t/1 s/2 | s/3"},
			{0, leave("s/2"), "t/1 s/3"}, // the lease ended: the next call takes another slot
		}},
		"whose lease ends while they wait for it queue anew": {line{concurrent: 1, idle: 5 * time.Second, hold: time.Second}, []move{
			{0, inSession("s/1", "s/2"), "s/1 | s/2"},
			{0, enter("x"), "s/1 | s/2 x"},
			{time.Second, idle("s/1"), "x | s/2"},
		}},
		"the longest hold counts from the first call": {line{concurrent: 1, idle: 5 * time.Second, hold: 7 * time.Second}, []move{
			{0, inSession("s/1", "x/1"), "s/1 | x/1"},
			{4 * time.Second, idle("s/1"), "[s/1] | x/1"},
			{2 * time.Second, inSession("s/2"), "s/2 | x/1"},
			{0, idle("s/2"), "[s/2] | x/1"},
			{time.Second, store.TicketStep{}, "x/1"},
		}},
		"a process that died gives its sessions' slots back": {line{concurrent: 1, idle: time.Hour}, []move{
			{0, inSession("s/1", "x/1"), "s/1 | x/1"},
			{0, idle("s/1"), "[s/1] | x/1"},
			{10 * time.Second, store.TicketStep{Keep: []string{"x/1"}}, "[s/1] | x/1"},
			{5 * time.Second, store.TicketStep{}, "x/1"},
		}},
		"a session that ends hands its slot on": {line{concurrent: 1, idle: time.Hour}, []move{
			{0, inSession("s/1", "t/1"), "s/1 | t/1"},
			{0, store.TicketStep{EndSessions: []string{"s"}}, "s/1 | t/1"},
			{0, idle("s/1"), "t/1"},
			{0, idle("t/1"), "[t/1]"},
			{0, store.TicketStep{EndSessions: []string{"t"}}, ""},
		}},
		"a call that never began leaves no lease": {line{concurrent: 1, idle: time.Hour}, []move{
			{0, inSession("s/1"), "s/1"},
			{0, store.TicketStep{Unused: []string{"s/1"}}, ""},
			{0, inSession("s/2", "s/3"), "s/2 | s/3"},
			{0, store.TicketStep{Unused: []string{"s/2"}}, "s/3"},
			{0, idle("s/3"), "[s/3]"},
			{0, inSession("s/4"), "s/4"},
			{0, store.TicketStep{Unused: []string{"s/4"}}, "[s/4]"},
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

// After any steps, the result must satisfy the invariants.
func TestTicketStepInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := line{
			now: stepBegan, concurrent: rapid.IntRange(1, 3).Draw(t, "concurrent"), maxWaiters: rapid.IntRange(0, 4).Draw(t, "max waiters"),
			idle: time.Duration(rapid.IntRange(0, 8).Draw(t, "idle")) * time.Second, hold: time.Duration(rapid.IntRange(0, 20).Draw(t, "hold")) * time.Second,
		}
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			l.now = l.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			handed, before := l.rows, slices.Clone(l.rows)
			s := l.anyStep(t, i)
			fence, place := l.fence, l.place
			after := l.step(s)
			if !slices.Equal(before, handed) {
				t.Fatal("the rows it was handed have changed")
			}
			l.check(t, before, fence)
			s.EndSessions = nil // repeated, it would end the lease that the session got since
			rows, f, p := slices.Clone(l.rows), l.fence, l.place
			if again := l.step(s); again != after || !slices.Equal(rows, l.rows) || l.fence != f || l.place != p {
				t.Fatalf("taken again: %q, was %q", again, after)
			}
			if l.place < place || l.fence < fence {
				t.Fatal("a number went back")
			}
		}
	})
}

func (l *line) anyStep(t *rapid.T, i int) (s store.TicketStep) {
	var ids []string
	for _, r := range l.rows {
		ids = append(ids, r.ID)
	}
	some := func(what string) (out []string) {
		for _, id := range ids {
			if rapid.IntRange(0, 3).Draw(t, what) == 0 {
				out = append(out, id)
			}
		}
		return out
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "enter") {
		x := store.Ticket{Queue: "q", ID: fmt.Sprintf("%d.%d", i, n), Session: rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "session")}
		x.Leased = l.idle > 0 && x.Session != ""
		s.Enter = append(s.Enter, x)
	}
	s.Leave, s.Keep, s.Idle, s.Unused = some("leave"), some("keep"), some("idle"), some("unused")
	if rapid.IntRange(0, 4).Draw(t, "end session") == 0 {
		s.EndSessions = []string{"s"}
	}
	return s
}

func (l *line) check(t *rapid.T, before []store.Ticket, fence int64) {
	was := map[string]store.Ticket{}
	for _, r := range before {
		was[r.ID] = r
	}
	held, waiting := 0, 0
	lease := map[string]bool{}
	for _, r := range l.rows {
		old, known := was[r.ID]
		if known && old.Fence > 0 && r.Fence != old.Fence {
			t.Fatalf("%s holds with another fence", r.ID)
		}
		if r.Fence == 0 {
			waiting++
			continue
		}
		held++
		if (!known || old.Fence == 0) && r.Fence <= fence {
			t.Fatalf("%s got fence %d after %d", r.ID, r.Fence, fence)
		}
		if !l.now.Before(r.Expires) {
			t.Fatalf("%s holds though it ran out", r.ID)
		}
		if r.Leased && lease[r.Session] {
			t.Fatalf("session %s holds two slots", r.Session)
		}
		lease[r.Session] = lease[r.Session] || r.Leased
	}
	if held > l.concurrent || l.maxWaiters > 0 && waiting > l.maxWaiters {
		t.Fatalf("%d hold, %d wait", held, waiting)
	}
	place, free := int64(0), l.concurrent-held
	for _, r := range l.rows[held:] {
		if free > 0 && !(r.Leased && lease[r.Session]) {
			t.Fatalf("%s waits beside a free slot", r.ID)
		}
		if r.Place <= place {
			t.Fatal("the line is not in order")
		}
		place = r.Place
		for _, h := range l.rows[:held] {
			if _, old := was[h.ID]; !old && !h.Leased && !r.Leased && was[r.ID].ID != "" {
				t.Fatalf("%s was let in before %s, which waited", h.ID, r.ID)
			}
		}
	}
}
