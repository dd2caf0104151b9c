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

// crashingStore crashes its scheduler at the n-th call, of those made for one schedule: before
// the call or between the call and its answer. All later calls fail.
type crashingStore struct {
	schedule.Store
	queue   schedule.Queue
	mu      sync.Mutex
	left    int
	after   bool
	crashed bool
}

var errCrashed = fmt.Errorf("this scheduler is dead")

func (m *crashingStore) crashAfter(calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = calls
}

func (m *crashingStore) hasCrashed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.crashed
}

func (m *crashingStore) call(f func() error) error {
	m.mu.Lock()
	if m.crashed {
		m.mu.Unlock()
		return errCrashed
	}
	m.left--
	dies := m.left == 0
	m.crashed = dies
	m.mu.Unlock()
	if dies && !m.after {
		return errCrashed
	}
	if err := f(); err != nil || !dies {
		return err
	}
	return errCrashed
}

func (m *crashingStore) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (stored signalbox.Schedule, err error) {
	err = m.call(func() error { stored, err = m.Store.Put(ctx, s, runs, e); return err })
	return stored, err
}

func (m *crashingStore) Schedule(ctx context.Context, id string) (s signalbox.Schedule, err error) {
	err = m.call(func() error { s, err = m.Store.Schedule(ctx, id); return err })
	return s, err
}

func (m *crashingStore) Runs(ctx context.Context, id string, limit int) (runs []signalbox.ScheduleRun, err error) {
	err = m.call(func() error { runs, err = m.Store.Runs(ctx, id, limit); return err })
	return runs, err
}

// crashingQueue is the queue of a crashingStore.
type crashingQueue struct{ m *crashingStore }

func (l crashingQueue) Submit(ctx context.Context, s signalbox.Schedule, key string) (got schedule.Submitted, err error) {
	err = l.m.call(func() error { got, err = l.m.queue.Submit(ctx, s, key); return err })
	return got, err
}

func (l crashingQueue) Ended(ctx context.Context, id string) (ended bool, err error) {
	err = l.m.call(func() error { ended, err = l.m.queue.Ended(ctx, id); return err })
	return ended, err
}

func (l crashingQueue) Cancel(ctx context.Context, id, by string) error {
	return l.m.call(func() error { return l.m.queue.Cancel(ctx, id, by) })
}

func (l crashingQueue) Ends() (<-chan struct{}, func()) { return l.m.queue.Ends() }

// TestCrashAtAnyCallFiresEachInstantOnce crashes a scheduler at each of its calls in turn,
// before and after it, and starts another.
func TestCrashAtAnyCallFiresEachInstantOnce(t *testing.T) {
	for _, policy := range []signalbox.Overlap{signalbox.OverlapAllow, signalbox.OverlapQueue, signalbox.OverlapCancel} {
		for _, after := range []bool{false, true} {
			died := true
			for n := 1; died; n++ {
				if n > 100 {
					t.Fatal("it dies for ever")
				}
				t.Run(fmt.Sprintf("%s at call %d, after it: %v", policy, n, after), func(t *testing.T) {
					withFixture(t, func(t *testing.T, fx *fixture) { died = crashAtCall(t, fx, policy, n, after) })
				})
			}
		}
	}
}

// crashAtCall has two instants fire while the scheduler crashes; the task of the first outlives
// the second instant.
func crashAtCall(t *testing.T, fx *fixture, policy signalbox.Overlap, n int, after bool) (died bool) {
	first := fx.start()
	row := fx.add(first, "1,2 0 1 1 *", overlap(policy))
	first.stop()
	m := &crashingStore{Store: fx.store, queue: fx.queue, left: n, after: after}
	doomed := fx.startWith(m, crashingQueue{m})
	end := func() {
		advance(30 * time.Second)
		if fx.queue.made() > 0 && policy != signalbox.OverlapAllow {
			fx.queue.end("queue-1")
		}
	}
	step := func(d time.Duration) {
		if advance(d); m.hasCrashed() && !died {
			died = true
			doomed.stop()
			fx.start()
			advance(31 * time.Second)
		}
	}
	step(70 * time.Second)
	step(time.Minute)
	end()
	step(20 * time.Second)
	advance(time.Minute)
	if want := "01T00:01 queued, 01T00:02 queued"; fx.history(row.ID) != want {
		t.Errorf("firings: %s", fx.history(row.ID))
	}
	if fx.queue.made() != 2 {
		t.Errorf("tasks: %s", fx.queue.tasks())
	}
	for i, r := range fx.runs(row.ID) {
		if r.QueueID != fx.queue.at(i).id {
			t.Errorf("%s has the task %s", r.ID, r.QueueID)
		}
	}
	if policy == signalbox.OverlapCancel && fx.queue.at(0).cancelled == "" {
		t.Error("the task before was not cancelled")
	}
	return died
}

// TestTwoSchedulersFireEachInstantOnce has two schedulers share a store with many schedules
// that are due at once.
func TestTwoSchedulersFireEachInstantOnce(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		const many, minutes = 20, 15
		one, two := fx.start(), fx.start()
		var ids []string
		for n := range many {
			policy := signalbox.Overlaps()[n%4]
			ids = append(ids, fx.add([]*running{one, two}[n%2], "* * * * *", named(fmt.Sprint("job-", n)), overlap(policy)).ID)
		}
		advance(3 * time.Second) // until both have loaded all schedules
		for range minutes {
			advance(time.Minute)
			fx.queue.set(func(q *queue) {
				for _, task := range q.order {
					task.ended = true
				}
			})
		}
		advance(20 * time.Second)
		if n := fx.queue.made(); n != many*minutes {
			t.Errorf("%d tasks, want %d", n, many*minutes)
		}
		for _, id := range ids {
			if got := strings.Count(fx.history(id), " queued"); got != minutes {
				t.Errorf("%d firings: %s", got, fx.history(id))
			}
		}
	})
}

// TestOpenFiringIsTakenOverByAnotherScheduler crashes one scheduler during a submission while
// another runs.
func TestOpenFiringIsTakenOverByAnotherScheduler(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		m := &crashingStore{Store: fx.store, queue: fx.queue, left: 1 << 30, after: true}
		one := fx.startWith(m, crashingQueue{m})
		row := fx.add(one, "0 1 * * *")
		advance(time.Hour - time.Second)
		m.crashAfter(3) // a read, the decision, and the submission, whose answer does not arrive
		advance(2 * time.Second)
		fx.wantTasks("01T01:00:00")
		fx.wantHistory(row.ID, "01T01:00 firing")
		two := fx.start()
		advance(20 * time.Second)
		fx.wantHistory(row.ID, "01T01:00 firing") // the first scheduler might still submit it
		advance(10 * time.Second)
		fx.wantHistory(row.ID, "01T01:00 queued")
		fx.wantTasks("01T01:00:00")
		one.stop()
		two.stop()
	})
}

// TestRecoveredFiringIsNotSubmittedTooLate: a firing open at a crash is resumed no later than a
// missed instant would be.
func TestRecoveredFiringIsNotSubmittedTooLate(t *testing.T) {
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
		// The task was made, has ended, and was pruned with its key: a retry would make a second one.
		{missed(signalbox.MissedOnce, 24*time.Hour), 2 * time.Hour, "01T01:00 skipped_missed", time.Hour},
	} {
		withFixture(t, func(t *testing.T, fx *fixture) {
			fx.keyLife = c.life
			m := &crashingStore{Store: fx.store, queue: fx.queue, left: 1 << 30}
			one := fx.startWith(m, crashingQueue{m})
			row := fx.add(one, "0 1 * * *", c.with)
			advance(time.Hour - time.Second)
			m.crashAfter(3)
			advance(2 * time.Second)
			one.stop()
			advance(c.away)
			fx.start()
			advance(31 * time.Second)
			fx.wantHistory(row.ID, c.want)
		})
	}
}

// TestIncidentLostResponseRunsJobTwice: in the system of the seed work-queue, the scheduler
// called the agent directly after a lost response.
func TestIncidentLostResponseRunsJobTwice(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		row := fx.add(fx.start(), "0 1 * * *")
		fx.queue.set(func(q *queue) { q.lost = true })
		advance(time.Hour + 10*time.Second)
		fx.wantHistory(row.ID, "01T01:00 firing")
		fx.queue.set(func(q *queue) { q.lost = false })
		advance(time.Minute)
		fx.wantHistory(row.ID, "01T01:00 queued")
		fx.wantTasks("01T01:00:00")
		if run := fx.runs(row.ID)[0]; run.QueueID != "queue-1" || run.Attempts == 0 || run.Error != "" {
			t.Errorf("run: %+v", run)
		}
	})
}

func TestUnavailableDirectorEndsFiringAtNextInstant(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		row := fx.add(fx.start(), "0 * * * *")
		fx.queue.set(func(q *queue) {
			q.fail = signalbox.Errorf(signalbox.CodeUnavailable, "the director does not answer: start it")
		})
		advance(time.Hour + 59*time.Minute)
		fx.wantHistory(row.ID, "01T01:00 firing")
		advance(2 * time.Minute)
		fx.wantHistory(row.ID, "01T01:00 skipped_error, 01T02:00 firing")
		fx.wantLog(`action=skipped reason=error error="the director does not answer: start it"`)
		if n := fx.queue.tries(); n > 80 {
			t.Errorf("it was asked %d times in an hour", n)
		}
		fx.queue.set(func(q *queue) { q.fail = signalbox.Errorf(signalbox.CodeNotFound, "there is no director_url") })
		advance(time.Minute)
		fx.wantHistory(row.ID, "01T01:00 skipped_error, 01T02:00 skipped_no_director")
		fx.wantLog("job=nightly action=skipped reason=no_director_url")
	})
}

// TestNothingIsSubmittedBeforeItIsStored: a decision that cannot be stored is neither carried
// out nor lost.
func TestNothingIsSubmittedBeforeItIsStored(t *testing.T) {
	withFixture(t, func(t *testing.T, fx *fixture) {
		row := fx.add(fx.start(), "0 * * * *")
		fx.store.set(errStore)
		advance(time.Hour + 30*time.Second)
		fx.wantTasks("")
		fx.wantLog("the disk is full")
		fx.store.set(nil)
		advance(time.Minute)
		fx.wantHistory(row.ID, "01T01:00 queued")
		fx.queue.end("queue-1")
		fx.queue.set(func(q *queue) { q.slow = make(chan struct{}) })
		advance(time.Hour)
		fx.wantHistory(row.ID, "01T01:00 queued, 01T02:00 queued")
	})
}
