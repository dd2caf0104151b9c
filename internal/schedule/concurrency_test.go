package schedule_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// TestAnsweredTriggerAllowsTheNext: a schedule can be triggered again as soon as the first
// trigger is answered.
func TestAnsweredTriggerAllowsTheNext(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		row := fx.add(s, "0 1 * * *", func(s *signalbox.Schedule) { s.Overlap = signalbox.OverlapAllow })
		for n := range 500 {
			if _, err := s.Trigger(t.Context(), row.ID, "kim"); err != nil {
				t.Fatalf("trigger %d: %v", n, err)
			}
		}
	})
}

// blockingStore blocks after a write while blocked is set.
type blockingStore struct {
	schedule.Store
	blocked chan struct{} // nil: does not block
	held    chan struct{}
}

func (g *blockingStore) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := g.Store.Put(ctx, s, runs, e)
	if g.blocked != nil && len(runs) > 0 {
		g.held <- struct{}{}
		<-g.blocked
	}
	return stored, err
}

func TestTriggerOfRemovedScheduleReturnsNotFound(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		g := &blockingStore{Store: fx.store, held: make(chan struct{}, 10)}
		s := fx.startWith(g, fx.queue)
		row := fx.add(s, "0 1 * * *")
		g.blocked = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := s.Trigger(ctx, row.ID, "kim")
			done <- err
		}()
		<-g.held // the firing is written, and Put has not returned
		if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
			t.Fatal(err)
		}
		close(g.blocked)
		if err := <-done; signalbox.CodeOf(err) != signalbox.CodeNotFound {
			t.Errorf("triggered while it was removed: %v", err)
		}
	})
}

// TestEditKeepsFiringOfAnotherScheduler: a firing that another scheduler began since the last
// load is known after an edit here.
func TestEditKeepsFiringOfAnotherScheduler(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		here := fx.start()
		row := fx.add(here, "* * * * *")
		now := fx.get(row.ID)
		began := signalbox.ScheduleRun{ID: "run-elsewhere", Nominal: fx.now(), FiredAt: fx.now(), Trigger: signalbox.TriggerManual, Status: signalbox.RunFiring}
		if _, err := fx.store.Put(t.Context(), now, []signalbox.ScheduleRun{began}, signalbox.Entry{}); err != nil {
			t.Fatal(err)
		}
		edited := fx.get(row.ID)
		edited.Description = "another"
		if _, err := here.Edit(t.Context(), edited, "kim"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := here.Trigger(t.Context(), row.ID, "kim"); signalbox.CodeOf(err) != signalbox.CodeConflict {
			t.Errorf("triggered beside the firing of another: %v", err)
		}
	})
}

// racingStore calls meanwhile during a read.
type racingStore struct {
	schedule.Store
	meanwhile func()
}

func (b *racingStore) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	rows, err := b.Store.Schedules(ctx)
	if b.meanwhile != nil {
		call := b.meanwhile
		b.meanwhile = nil
		call()
	}
	return rows, err
}

// TestAddDuringFirstLoadHidesNoSchedule: existing schedules are loaded a second later, not with
// the next full reload.
func TestAddDuringFirstLoadHidesNoSchedule(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		before := fx.start()
		row := fx.add(before, "* * * * *")
		before.stop()
		advance(30 * time.Second)
		b := &racingStore{Store: fx.store}
		var s *schedule.Scheduler
		b.meanwhile = func() {
			if _, err := s.Add(t.Context(), signalbox.Schedule{Name: "another", Cron: "@yearly", Prompt: "go"}, "kim"); err != nil {
				t.Error(err)
			}
		}
		s, err := schedule.New(b, fx.queue, schedule.Options{Now: fx.now})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Run(context.Background()) }()
		advance(31 * time.Second)
		fx.wantHistory(row.ID, "01T00:01 queued")
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// countingStore counts writes.
type countingStore struct {
	schedule.Store
	puts atomic.Int64
}

func (c *countingStore) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	c.puts.Add(1)
	return c.Store.Put(ctx, s, runs, e)
}

// TestHeldFiringsAdvanceInFewWrites: the end of a task costs as much with hundreds of held
// firings as with one.
func TestHeldFiringsAdvanceInFewWrites(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		s := fx.start()
		fx.add(s, "* * * * *", func(s *signalbox.Schedule) { s.Missed, s.MissedWindow = signalbox.MissedAll, 24*time.Hour })
		s.stop()
		advance(500 * time.Minute)
		b := &countingStore{Store: fx.store}
		fx.startWith(b, fx.queue)
		advance(time.Second)
		for n := range 20 {
			b.puts.Store(0)
			fx.queue.end(fmt.Sprintf("queue-%d", n+1))
			advance(time.Second)
			if made, puts := fx.queue.made(), b.puts.Load(); made != n+2 || puts > 4 {
				t.Fatalf("after %d ends: %d tasks, and %d writes for the last", n+1, made, puts)
			}
		}
	})
}
