package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// TestEveryInstantIsAccountedFor runs two schedulers for random hours: restarts, a full queue,
// lost responses, tasks that end, clock jumps. Then each instant has a record or is counted in
// one, each queued record has a task and each skipped one has none.
func TestEveryInstantIsAccountedFor(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withFixture(t, func(t *testing.T, fx *fixture) { simulate(t, fx, rand.New(rand.NewPCG(seed, 5))) })
		})
	}
}

func simulate(t *testing.T, fx *fixture, r *rand.Rand) {
	pair := []*running{fx.start(), fx.start()}
	var rows []signalbox.Schedule
	for n, o := range signalbox.Overlaps() {
		rows = append(rows, fx.add(pair[n%2], "* * * * *", named(fmt.Sprint("job-", n)), overlap(o),
			missed(signalbox.MissedPolicies()[r.IntN(3)], 5*time.Minute), onFull(signalbox.OnFulls()[r.IntN(2)])))
	}
	begun := fx.now()
	for fx.now().Sub(begun) < 45*time.Minute {
		n := r.IntN(2)
		switch r.IntN(6) {
		case 0:
			fx.jumpClock(time.Duration(r.IntN(300)) * time.Second)
		case 1:
			pair[n].stop()
			advance(time.Duration(r.IntN(200)) * time.Second)
			pair[n] = fx.start()
		case 2:
			pair[0].stop()
			pair[1].stop()
			advance(time.Duration(r.IntN(300)) * time.Second)
			pair[0], pair[1] = fx.start(), fx.start()
		case 3:
			fx.queue.set(func(q *queue) { q.fail, q.lost = []error{nil, queueFull(50)}[n], r.IntN(3) == 0 })
		default:
			fx.queue.set(func(q *queue) {
				for _, task := range q.order {
					task.ended = task.ended || r.IntN(2) == 0
				}
			})
		}
		advance(time.Duration(r.IntN(100_000)) * time.Millisecond)
	}
	fx.queue.set(func(q *queue) {
		q.fail, q.lost = nil, false
		for _, task := range q.order {
			task.ended = true
		}
	})
	advance(3 * time.Minute)
	pair[0].stop()
	pair[1].stop()
	for _, row := range rows {
		checkAccounted(t, fx, fx.get(row.ID))
	}
}

// checkAccounted compares the records of a schedule with its instants and its tasks.
func checkAccounted(t *testing.T, fx *fixture, row signalbox.Schedule) {
	t.Helper()
	instants := 0
	for _, run := range fx.runs(row.ID) {
		instants += 1 + run.Missed
		var made *task
		fx.queue.set(func(q *queue) { made = q.byKey[schedule.Key(row.ID, run.ID)] })
		switch {
		case run.Status == signalbox.RunQueued && (made == nil || made.id != run.QueueID):
			t.Errorf("%s: %s is recorded as the task %s, and is %+v", row.Name, run.ID, run.QueueID, made)
		case run.Status == signalbox.SkippedBusy && made != nil, run.Status == signalbox.SkippedQueueFull && made != nil && !made.lost:
			t.Errorf("%s: %s is recorded as %s, and is the task %s", row.Name, run.ID, run.Status, made.id)
		}
	}
	due := int(row.Cursor.Sub(row.CreatedAt.Truncate(time.Minute)) / time.Minute)
	if instants != due {
		t.Errorf("%s (%s, %s): %d instants have passed, %d are accounted for: %s", row.Name, row.Overlap, row.Missed, due, instants, fx.history(row.ID))
	}
}
