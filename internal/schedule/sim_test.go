package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// TestEveryInstantIsAccountedFor lets two schedulers live through random hours:
// restarts, a queue that is full or whose answers are lost, tasks that end,
// clocks that go forward. Then each instant has its record, or is counted in
// one; what is recorded as a task is one, and what is recorded as skipped is
// none.
func TestEveryInstantIsAccountedFor(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			within(t, func(t *testing.T, w *world) { live(t, w, rand.New(rand.NewPCG(seed, 5))) })
		})
	}
}

func live(t *testing.T, w *world, r *rand.Rand) {
	pair := []*running{w.start(), w.start()}
	var rows []signalbox.Schedule
	for n, o := range signalbox.Overlaps() {
		rows = append(rows, w.add(pair[n%2], "* * * * *", named(fmt.Sprint("job-", n)), overlap(o),
			missed(signalbox.MissedPolicies()[r.IntN(3)], 5*time.Minute), onFull(signalbox.OnFulls()[r.IntN(2)])))
	}
	begun := w.now()
	for w.now().Sub(begun) < 45*time.Minute {
		n := r.IntN(2)
		switch r.IntN(6) {
		case 0:
			w.jump(time.Duration(r.IntN(300)) * time.Second)
		case 1:
			pair[n].stop()
			pass(time.Duration(r.IntN(200)) * time.Second)
			pair[n] = w.start()
		case 2:
			pair[0].stop()
			pair[1].stop()
			pass(time.Duration(r.IntN(300)) * time.Second)
			pair[0], pair[1] = w.start(), w.start()
		case 3:
			w.queue.set(func(q *queue) { q.fail, q.lost = []error{nil, full(50)}[n], r.IntN(3) == 0 })
		default:
			w.queue.set(func(q *queue) {
				for _, task := range q.order {
					task.ended = task.ended || r.IntN(2) == 0
				}
			})
		}
		pass(time.Duration(r.IntN(100_000)) * time.Millisecond)
	}
	w.queue.set(func(q *queue) {
		q.fail, q.lost = nil, false
		for _, task := range q.order {
			task.ended = true
		}
	})
	pass(3 * time.Minute)
	pair[0].stop()
	pair[1].stop()
	for _, row := range rows {
		account(t, w, w.get(row.ID))
	}
}

// account compares the records of a schedule with its instants and its tasks.
func account(t *testing.T, w *world, row signalbox.Schedule) {
	t.Helper()
	instants := 0
	for _, run := range w.runs(row.ID) {
		instants += 1 + run.Missed
		var made *task
		w.queue.set(func(q *queue) { made = q.byKey[schedule.Key(row.ID, run.ID)] })
		switch {
		case run.Status == signalbox.RunQueued && (made == nil || made.id != run.QueueID):
			t.Errorf("%s: %s is recorded as the task %s, and is %+v", row.Name, run.ID, run.QueueID, made)
		case run.Status == signalbox.SkippedBusy && made != nil, run.Status == signalbox.SkippedQueueFull && made != nil && !made.lost:
			t.Errorf("%s: %s is recorded as %s, and is the task %s", row.Name, run.ID, run.Status, made.id)
		}
	}
	due := int(row.Cursor.Sub(row.CreatedAt.Truncate(time.Minute)) / time.Minute)
	if instants != due {
		t.Errorf("%s (%s, %s): %d instants have passed, %d are accounted for: %s", row.Name, row.Overlap, row.Missed, due, instants, w.story(row.ID))
	}
}
