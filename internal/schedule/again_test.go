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

// TestATriggerThatWasAnsweredIsOver: who is told what a firing came to may
// trigger again at once.
func TestATriggerThatWasAnsweredIsOver(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		row := w.add(s, "0 1 * * *", func(s *signalbox.Schedule) { s.Overlap = signalbox.OverlapAllow })
		for n := range 500 {
			if _, err := s.Trigger(t.Context(), row.ID, "kim"); err != nil {
				t.Fatalf("trigger %d: %v", n, err)
			}
		}
	})
}

// gate holds back writes once it is shut.
type gate struct {
	schedule.Book
	shut chan struct{} // nil: it is open
	held chan struct{}
}

func (g *gate) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := g.Book.Put(ctx, s, runs, e)
	if g.shut != nil && len(runs) > 0 {
		g.held <- struct{}{}
		<-g.shut
	}
	return stored, err
}

// TestATriggerOfWhatIsRemovedMeanwhileIsAnswered: nobody waits for the firing
// of a schedule that is no longer there.
func TestATriggerOfWhatIsRemovedMeanwhileIsAnswered(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		g := &gate{Book: w.book, held: make(chan struct{}, 10)}
		s := w.startWith(g, w.queue)
		row := w.add(s, "0 1 * * *")
		g.shut = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		told := make(chan error, 1)
		go func() {
			_, err := s.Trigger(ctx, row.ID, "kim")
			told <- err
		}()
		<-g.held // the firing is written, and nobody knows yet
		if err := s.Remove(t.Context(), row.ID, "kim"); err != nil {
			t.Fatal(err)
		}
		close(g.shut)
		if err := <-told; signalbox.CodeOf(err) != signalbox.CodeNotFound {
			t.Errorf("triggered while it was removed: %v", err)
		}
	})
}

// TestAnEditDoesNotHideTheFiringOfAnother: what another scheduler began between
// the last look and an edit here is known when the schedule is due next.
func TestAnEditDoesNotHideTheFiringOfAnother(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		here := w.start()
		row := w.add(here, "* * * * *")
		now := w.get(row.ID)
		began := signalbox.ScheduleRun{ID: "run-elsewhere", Nominal: w.now(), FiredAt: w.now(), Trigger: signalbox.TriggerManual, Status: signalbox.RunFiring}
		if _, err := w.book.Put(t.Context(), now, []signalbox.ScheduleRun{began}, signalbox.Entry{}); err != nil {
			t.Fatal(err)
		}
		edited := w.get(row.ID)
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

// busy is a book in which something is changed while it is read.
type busy struct {
	schedule.Book
	meanwhile func()
}

func (b *busy) Schedules(ctx context.Context) ([]signalbox.Schedule, error) {
	rows, err := b.Book.Schedules(ctx)
	if b.meanwhile != nil {
		call := b.meanwhile
		b.meanwhile = nil
		call()
	}
	return rows, err
}

// TestWhatIsAddedDuringTheFirstReadingHidesNothing: schedules that were there
// before are known a second later, not with the next reading of all.
func TestWhatIsAddedDuringTheFirstReadingHidesNothing(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		before := w.start()
		row := w.add(before, "* * * * *")
		before.stop()
		pass(30 * time.Second)
		b := &busy{Book: w.book}
		var s *schedule.Scheduler
		b.meanwhile = func() {
			if _, err := s.Add(t.Context(), signalbox.Schedule{Name: "another", Cron: "@yearly", Prompt: "go"}, "kim"); err != nil {
				t.Error(err)
			}
		}
		s, err := schedule.New(b, w.queue, schedule.Options{Now: w.now})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Run(context.Background()) }()
		pass(31 * time.Second)
		w.wantStory(row.ID, "01T00:01 queued")
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// counted counts the writes of a book.
type counted struct {
	schedule.Book
	puts atomic.Int64
}

func (c *counted) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	c.puts.Add(1)
	return c.Book.Put(ctx, s, runs, e)
}

// TestALongLineOfHeldFiringsMovesByItsFirst: the end of a task costs as much
// with hundreds of firings in line as with one.
func TestALongLineOfHeldFiringsMovesByItsFirst(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		s := w.start()
		w.add(s, "* * * * *", func(s *signalbox.Schedule) { s.Missed, s.MissedWindow = signalbox.MissedAll, 24*time.Hour })
		s.stop()
		pass(500 * time.Minute)
		b := &counted{Book: w.book}
		w.startWith(b, w.queue)
		pass(time.Second)
		for n := range 20 {
			b.puts.Store(0)
			w.queue.end(fmt.Sprintf("queue-%d", n+1))
			pass(time.Second)
			if made, puts := w.queue.made(), b.puts.Load(); made != n+2 || puts > 4 {
				t.Fatalf("after %d ends: %d tasks, and %d writes for the last", n+1, made, puts)
			}
		}
	})
}
