package landing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/landing"
	"github.com/signalbox-ai/signalbox/internal/store"
)

var errKilled = errors.New("killed")

// dying is the store of a director that dies at one of its landing writes.
type dying struct {
	store.Store
	left   int
	before func() // called once, before the next write
}

func (d *dying) Apply(ctx context.Context, c signalbox.Change, now time.Time) (signalbox.Task, error) {
	if before := d.before; before != nil {
		d.before = nil
		before()
	}
	if d.left--; d.left == 0 {
		return signalbox.Task{}, errKilled
	}
	return d.Store.Apply(ctx, c, now)
}

// If a director dies between a submit and its note, that director and the next one together submit one task.
func TestDirectorDeathDuplicatesNothing(t *testing.T) {
	for at := 1; at <= 4; at++ {
		d := &dying{left: at}
		f := newFixture(t, func(s store.Store) store.Store { d.Store = s; return d })
		id := f.work(&signalbox.LandWish{Onto: "main"}).ID
		next := landing.New(f.store, f.Engine, 2, slog.New(slog.DiscardHandler))
		step := func() {
			t.Helper()
			if err := f.driver.Step(t.Context()); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			f.driver = next
		}
		all := func() (n int) {
			counts, err := f.Read().Counts(t.Context())
			f.must(err)
			for _, c := range counts.Queues {
				n += c
			}
			return n
		}
		run := func(o engine.Outcome) {
			t.Helper()
			for range 3 {
				old := f.driver
				step()
				if d.left > 0 {
					f.driver = old
				}
			}
			if n := all(); n != 1 {
				t.Fatalf("killed at write %d: %d tasks wait", at, n)
			}
			c, found, err := f.ClaimBypass(t.Context(), coder, 4, 0)
			f.must(err)
			if !found {
				c, _, err = f.Claim(t.Context(), coder, 0)
				f.must(err)
			}
			f.ends(c.Task, o)
		}
		run(engine.Outcome{Reason: signalbox.ReasonAgentError, Message: "conflict", Result: &signalbox.Result{ErrorType: "conflict"}})
		run(engine.Outcome{Reason: signalbox.ReasonCompleted, SessionID: "s", Result: &signalbox.Result{}})
		run(engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Landed: &signalbox.Landed{Onto: "main", Commit: hash}}})
		step()
		f.step()
		if l := f.is(id, signalbox.LandingLanded); l.Submits != 2 || l.Rounds != 1 {
			t.Errorf("killed at write %d: %+v", at, l)
		}
	}
}

func TestSeveralDirectorsLandOnce(t *testing.T) {
	f := newFixture(t, nil)
	other := landing.New(f.store, f.Engine, 2, slog.New(slog.DiscardHandler))
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	var both sync.WaitGroup
	for _, d := range []*landing.Driver{f.driver, other} {
		both.Go(func() {
			for range 20 {
				if err := d.Step(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	f.lands("")
	if l := f.is(id, signalbox.LandingLanded); l.Submits != 1 {
		t.Errorf("%+v", l)
	}
	if c, found, err := f.ClaimBypass(t.Context(), coder, 4, 0); found || err != nil {
		t.Errorf("a second landing task: %+v, %v", c.Task, err)
	}
}

// A director that dies while it drops a returned landing leaves no turn behind.
func TestDroppedLandingLeavesNoTurn(t *testing.T) {
	for _, dies := range []bool{false, true} {
		d := &dying{}
		f := newFixture(t, func(s store.Store) store.Store { d.Store = s; return d })
		id := f.work(&signalbox.LandWish{Onto: "main"}).ID
		f.lands("conflict")
		f.step()
		turn := f.is(id, signalbox.LandingReturned).Turn
		if dies {
			d.left = 1
			if _, err := f.driver.Drop(t.Context(), id, "me"); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			f.driver = landing.New(f.store, f.Engine, 2, slog.New(slog.DiscardHandler))
			f.step()
			f.is(id, signalbox.LandingStands)
		}
		if got := f.task(turn).State; dies && got != signalbox.Cancelled {
			t.Errorf("the turn is %s", got)
		}
		_, err := f.driver.Drop(t.Context(), id, "me")
		f.must(err)
		f.is(id, signalbox.LandingDropped)
		if got := f.task(turn).State; got != signalbox.Cancelled {
			t.Errorf("the turn is %s", got)
		}
	}
}

// A submitted landing task that was not noted ends when the landing is dropped, whether its director has died
// or was overtaken.
func TestUnnotedLandingTaskIsDropped(t *testing.T) {
	for _, state := range []signalbox.LandingState{signalbox.LandingQueued, signalbox.LandingReturned} {
		for _, dies := range []bool{false, true} {
			d := &dying{}
			f := newFixture(t, func(s store.Store) store.Store { d.Store = s; return d })
			id := f.work(&signalbox.LandWish{Onto: "main"}).ID
			if state == signalbox.LandingReturned {
				f.lands("conflict")
			}
			drop := func() {
				_, err := landing.New(f.store, f.Engine, 2, slog.New(slog.DiscardHandler)).Drop(t.Context(), id, "me")
				f.must(err)
			}
			if d.left = 1; !dies {
				d.left, d.before = 0, drop
			}
			if err := f.driver.Step(t.Context()); dies != errors.Is(err, errKilled) || !dies && err != nil {
				t.Fatal(err)
			}
			if dies {
				if l := f.is(id, state); state == signalbox.LandingReturned && l.Turn != "" {
					t.Fatalf("%+v", l)
				}
				drop()
			}
			f.is(id, signalbox.LandingDropped)
			counts, err := f.Read().Counts(t.Context())
			f.must(err)
			for queue, n := range counts.Queues {
				if n > 0 {
					t.Errorf("%s, dies %v: %d tasks wait in %s", state, dies, n, queue)
				}
			}
		}
	}
}
