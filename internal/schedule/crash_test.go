package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// mortal is the book and the queue of a scheduler that dies at its n-th call of
// those that are made for one schedule: before the call is carried out, or after
// it and before its answer. The dead do nothing more.
type mortal struct {
	schedule.Book
	queue schedule.Queue
	mu    sync.Mutex
	left  int
	after bool
	dead  bool
}

var errDead = fmt.Errorf("this scheduler is dead")

func (m *mortal) dieIn(calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = calls
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) call(f func() error) error {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.left--
	dies := m.left == 0
	m.dead = dies
	m.mu.Unlock()
	if dies && !m.after {
		return errDead
	}
	if err := f(); err != nil || !dies {
		return err
	}
	return errDead
}

func (m *mortal) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (stored signalbox.Schedule, err error) {
	err = m.call(func() error { stored, err = m.Book.Put(ctx, s, runs, e); return err })
	return stored, err
}

func (m *mortal) Schedule(ctx context.Context, id string) (s signalbox.Schedule, err error) {
	err = m.call(func() error { s, err = m.Book.Schedule(ctx, id); return err })
	return s, err
}

func (m *mortal) Runs(ctx context.Context, id string, limit int) (runs []signalbox.ScheduleRun, err error) {
	err = m.call(func() error { runs, err = m.Book.Runs(ctx, id, limit); return err })
	return runs, err
}

// line is the queue of a mortal.
type line struct{ m *mortal }

func (l line) Submit(ctx context.Context, s signalbox.Schedule, key string) (got schedule.Submitted, err error) {
	err = l.m.call(func() error { got, err = l.m.queue.Submit(ctx, s, key); return err })
	return got, err
}

func (l line) Ended(ctx context.Context, id string) (ended bool, err error) {
	err = l.m.call(func() error { ended, err = l.m.queue.Ended(ctx, id); return err })
	return ended, err
}

func (l line) Cancel(ctx context.Context, id, by string) error {
	return l.m.call(func() error { return l.m.queue.Cancel(ctx, id, by) })
}

func (l line) Ends() (<-chan struct{}, func()) { return l.m.queue.Ends() }

// TestACrashAnywhereFiresNoInstantTwiceAndLosesNone lets a scheduler die at each
// of its calls in turn, before and after it, and another come up.
func TestACrashAnywhereFiresNoInstantTwiceAndLosesNone(t *testing.T) {
	for _, policy := range []signalbox.Overlap{signalbox.OverlapAllow, signalbox.OverlapQueue, signalbox.OverlapCancel} {
		for _, after := range []bool{false, true} {
			died := true
			for n := 1; died; n++ {
				if n > 100 {
					t.Fatal("it dies for ever")
				}
				t.Run(fmt.Sprintf("%s at call %d, after it: %v", policy, n, after), func(t *testing.T) {
					within(t, func(t *testing.T, w *world) { died = crash(t, w, policy, n, after) })
				})
			}
		}
	}
}

// crash lets two instants come, with a task of the first that goes on for
// longer, while a scheduler dies.
func crash(t *testing.T, w *world, policy signalbox.Overlap, n int, after bool) (died bool) {
	first := w.start()
	row := w.add(first, "1,2 0 1 1 *", overlap(policy))
	first.stop()
	m := &mortal{Book: w.book, queue: w.queue, left: n, after: after}
	doomed := w.startWith(m, line{m})
	end := func() {
		pass(30 * time.Second)
		if w.queue.made() > 0 && policy != signalbox.OverlapAllow {
			w.queue.end("queue-1")
		}
	}
	step := func(d time.Duration) {
		if pass(d); m.isDead() && !died {
			died = true
			doomed.stop()
			w.start()
			pass(31 * time.Second)
		}
	}
	step(70 * time.Second)
	step(time.Minute)
	end()
	step(20 * time.Second)
	pass(time.Minute)
	if want := "01T00:01 queued, 01T00:02 queued"; w.story(row.ID) != want {
		t.Errorf("firings: %s", w.story(row.ID))
	}
	if w.queue.made() != 2 {
		t.Errorf("tasks: %s", w.queue.tasks())
	}
	for i, r := range w.runs(row.ID) {
		if r.QueueID != w.queue.at(i).id {
			t.Errorf("%s has the task %s", r.ID, r.QueueID)
		}
	}
	if policy == signalbox.OverlapCancel && w.queue.at(0).cancelled == "" {
		t.Error("the task before was not cancelled")
	}
	return died
}

// TestTwoSchedulersFireEachInstantOnce lets two schedulers share a store, with
// many schedules that are all due at once, over and over.
func TestTwoSchedulersFireEachInstantOnce(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		const many, minutes = 20, 15
		one, two := w.start(), w.start()
		var ids []string
		for n := range many {
			policy := signalbox.Overlaps()[n%4]
			ids = append(ids, w.add([]*running{one, two}[n%2], "* * * * *", named(fmt.Sprint("job-", n)), overlap(policy)).ID)
		}
		pass(3 * time.Second) // until each has heard of those of the other
		for range minutes {
			pass(time.Minute)
			w.queue.set(func(q *queue) {
				for _, task := range q.order {
					task.ended = true
				}
			})
		}
		pass(20 * time.Second)
		if n := w.queue.made(); n != many*minutes {
			t.Errorf("%d tasks, want %d", n, many*minutes)
		}
		for _, id := range ids {
			if got := strings.Count(w.story(id), " queued"); got != minutes {
				t.Errorf("%d firings: %s", got, w.story(id))
			}
		}
	})
}

// TestAnotherSchedulerTakesOverWhatOneBegan has one die in the middle of a
// submission while the other lives.
func TestAnotherSchedulerTakesOverWhatOneBegan(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		m := &mortal{Book: w.book, queue: w.queue, left: 1 << 30, after: true}
		one := w.startWith(m, line{m})
		row := w.add(one, "0 1 * * *")
		pass(time.Hour - time.Second)
		m.dieIn(3) // a read, the decision, and the submission, whose answer does not arrive
		pass(2 * time.Second)
		w.wantTasks("01T01:00:00")
		w.wantStory(row.ID, "01T01:00 firing")
		two := w.start()
		pass(20 * time.Second)
		w.wantStory(row.ID, "01T01:00 firing") // the first one might still be at it
		pass(10 * time.Second)
		w.wantStory(row.ID, "01T01:00 queued")
		w.wantTasks("01T01:00:00")
		one.stop()
		two.stop()
	})
}

// TestAFiringThatWasBegunIsNotFinishedTooLate: what was being submitted when the
// scheduler ended is gone on with no later than a missed instant would be.
func TestAFiringThatWasBegunIsNotFinishedTooLate(t *testing.T) {
	for _, c := range []struct {
		with func(*signalbox.Schedule)
		away time.Duration
		want string
		life time.Duration // of the queue's keys
	}{
		{missed(signalbox.MissedSkip, 24*time.Hour), 40 * time.Second, "01T01:00 queued", 0},
		{missed(signalbox.MissedSkip, 24*time.Hour), time.Hour, "01T01:00 skipped_missed", 0},
		{missed(signalbox.MissedOnce, 24*time.Hour), time.Hour, "01T01:00 queued", 24 * time.Hour},
		{missed(signalbox.MissedOnce, time.Hour), 2 * time.Hour, "01T01:00 skipped_missed", 0},
		// The task was made, has ended, and was pruned with its key: a second one
		// would be made.
		{missed(signalbox.MissedOnce, 24*time.Hour), 2 * time.Hour, "01T01:00 skipped_missed", time.Hour},
	} {
		within(t, func(t *testing.T, w *world) {
			w.keyLife = c.life
			m := &mortal{Book: w.book, queue: w.queue, left: 1 << 30}
			one := w.startWith(m, line{m})
			row := w.add(one, "0 1 * * *", c.with)
			pass(time.Hour - time.Second)
			m.dieIn(3)
			pass(2 * time.Second)
			one.stop()
			pass(c.away)
			w.start()
			pass(31 * time.Second)
			w.wantStory(row.ID, c.want)
		})
	}
}

// TestIncidentALostResponseRunsTheJobTwice: in the system behind the seed
// work-queue a lost answer made the scheduler turn to the agent itself.
func TestIncidentALostResponseRunsTheJobTwice(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		row := w.add(w.start(), "0 1 * * *")
		w.queue.set(func(q *queue) { q.lost = true })
		pass(time.Hour + 10*time.Second)
		w.wantStory(row.ID, "01T01:00 firing")
		w.queue.set(func(q *queue) { q.lost = false })
		pass(time.Minute)
		w.wantStory(row.ID, "01T01:00 queued")
		w.wantTasks("01T01:00:00")
		if run := w.runs(row.ID)[0]; run.QueueID != "queue-1" || run.Attempts == 0 || run.Error != "" {
			t.Errorf("run: %+v", run)
		}
	})
}

func TestADirectorThatIsAwayForTheWholeSlot(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		row := w.add(w.start(), "0 * * * *")
		w.queue.set(func(q *queue) {
			q.fail = signalbox.Errorf(signalbox.CodeUnavailable, "the director does not answer: start it")
		})
		pass(time.Hour + 59*time.Minute)
		w.wantStory(row.ID, "01T01:00 firing")
		pass(2 * time.Minute)
		w.wantStory(row.ID, "01T01:00 skipped_error, 01T02:00 firing")
		w.wantLine(`action=skipped reason=error error="the director does not answer: start it"`)
		if n := w.queue.tries(); n > 80 {
			t.Errorf("it was asked %d times in an hour", n)
		}
		w.queue.set(func(q *queue) { q.fail = signalbox.Errorf(signalbox.CodeNotFound, "there is no director_url") })
		pass(time.Minute)
		w.wantStory(row.ID, "01T01:00 skipped_error, 01T02:00 skipped_no_director")
		w.wantLine("job=nightly action=skipped reason=no_director_url")
	})
}

// TestAStoreThatFailsFiresNothingUnwritten: a decision that cannot be kept is
// not acted upon, and none is lost.
func TestAStoreThatFailsFiresNothingUnwritten(t *testing.T) {
	within(t, func(t *testing.T, w *world) {
		row := w.add(w.start(), "0 * * * *")
		w.book.set(errStore)
		pass(time.Hour + 30*time.Second)
		w.wantTasks("")
		w.wantLine("the disk is full")
		w.book.set(nil)
		pass(time.Minute)
		w.wantStory(row.ID, "01T01:00 queued")
		w.queue.end("queue-1")
		w.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		pass(time.Hour)
		w.wantStory(row.ID, "01T01:00 queued, 01T02:00 queued")
	})
}
