package signalbox_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
)

func anyEvent(t *rapid.T, task signalbox.Task, now time.Time) signalbox.Event {
	fence := task.Fence + rapid.SampledFrom([]int64{0, 0, 0, 1, -1}).Draw(t, "fence")
	return signalbox.Event{
		Kind: rapid.SampledFrom(signalbox.TaskEvents()).Draw(t, "kind"), Now: now, Fence: fence, Agent: "a",
		Reason:    rapid.SampledFrom(append(signalbox.Reasons(), "")).Draw(t, "reason"),
		Message:   rapid.SampledFrom([]string{"", "because"}).Draw(t, "message"),
		SessionID: rapid.SampledFrom([]string{"", "s"}).Draw(t, "session"),
		Delay:     rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "delay"),
		Withhold:  rapid.Bool().Draw(t, "withhold"), Queue: "pool:k",
		IgnoreGates: rapid.Bool().Draw(t, "anyway"), Parking: rapid.SampledFrom([]*signalbox.Parking{nil, {Gate: closedMax}, {Gate: closedMax, Began: true, Next: "go on"}}).Draw(t, "parking"),
	}
}

func newTask(t *rapid.T) signalbox.Task {
	return signalbox.Task{
		ID: "queue-x", State: signalbox.Pending, Queue: "work", CreatedAt: noon, HasEnv: rapid.Bool().Draw(t, "env"),
		MaxAttempts: rapid.IntRange(1, 4).Draw(t, "max attempts"),
		OnLost:      rapid.SampledFrom([]signalbox.OnLost{signalbox.LostFail, signalbox.LostRequeue}).Draw(t, "on lost"),
	}
}

// For any sequence of events: each change is valid, terminal states are final, and
// a slot is held exactly from its claim to its release.
func TestNextAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task, now, held := newTask(t), noon, false
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, -time.Minute}).Draw(t, "passes"))
			before := task
			c, err := signalbox.Next(task, anyEvent(t, task, now))
			if before.State.Terminal() && signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded {
				t.Fatalf("an event of an ended task: %v", err)
			}
			if err != nil {
				continue
			}
			checkChange(t, before, c, err)
			task = c.Task
			switch c.Slot {
			case signalbox.SlotTake:
				if held || task.Fence <= before.Fence {
					t.Fatalf("a claim while the slot was held %v, fence %d after %d", held, task.Fence, before.Fence)
				}
				held = true
			case signalbox.SlotFree, signalbox.SlotWithhold:
				held = false
			}
			if held != task.State.InFlight() {
				t.Fatalf("a task that is %s holds a slot: %v", task.State, held)
			}
			checkTimes(t, task)
			checkParking(t, before, c)
		}
	})
}

// checkParking asserts that a task keeps its parking until it is parked again, and that Began
// stays true.
func checkParking(t *rapid.T, before signalbox.Task, c signalbox.Change) {
	was, is := before.Parking, c.Task.Parking
	if c.Task.State != signalbox.Parked || before.State == signalbox.Parked {
		if was != is {
			t.Fatalf("%s changed how it was parked from %+v to %+v", c.Entry.Kind, was, is)
		}
		return
	}
	parks := 0
	if was != nil {
		parks = was.Count
	}
	if is.Count != parks+1 || (was != nil && was.Began && !is.Began) || c.Task.Attempts != before.Attempts || c.Task.NoAnswers != before.NoAnswers {
		t.Fatalf("parked from %+v (%+v) to %+v (%+v)", before, was, c.Task, is)
	}
}

func checkTimes(t *rapid.T, task signalbox.Task) {
	last := task.CreatedAt
	for _, at := range []time.Time{task.DispatchedAt, task.StartedAt, task.EndedAt} {
		if at.IsZero() {
			continue
		}
		if at.Before(last) {
			t.Fatalf("the times run back: %+v", task)
		}
		last = at
	}
}

// A poison task ends (design §2). However its claims fail, their number is bounded
// by its attempts, its claims without an answer and its parks. Only the answer of a
// busy agent costs nothing, and it withholds further offers to that agent.
func TestNextClaimsAreBounded(t *testing.T) {
	failures := []signalbox.EventKind{signalbox.EventRefuse, signalbox.EventUnsent, signalbox.EventLost}
	rapid.Check(t, func(t *rapid.T) {
		task, claims, parks := newTask(t), 0, rapid.Bool().Draw(t, "parks")
		for !task.State.Terminal() {
			if claims++; claims > task.MaxAttempts+signalbox.MaxNoAnswers+signalbox.MaxParks+1 {
				t.Fatalf("claimed %d times with %d attempts", claims, task.MaxAttempts)
			}
			happen(t, &task, signalbox.Event{Kind: signalbox.EventClaim, Fence: task.Fence + 1, Agent: "a"})
			if parks {
				happen(t, &task, signalbox.Event{Kind: signalbox.EventPark, Fence: task.Fence, Parking: &signalbox.Parking{Gate: closedMax}})
				if task.State == signalbox.Parked {
					happen(t, &task, signalbox.Event{Kind: signalbox.EventUnpark})
				}
				continue
			}
			if rapid.Bool().Draw(t, "starts") {
				happen(t, &task, signalbox.Event{Kind: signalbox.EventAccept, Fence: task.Fence})
				happen(t, &task, signalbox.Event{Kind: signalbox.EventLost, Fence: task.Fence, Reason: signalbox.ReasonLost})
				continue
			}
			happen(t, &task, signalbox.Event{
				Kind: rapid.SampledFrom(failures).Draw(t, "failure"), Fence: task.Fence, Reason: signalbox.ReasonLost,
			})
		}
		if task.Claims != claims {
			t.Fatalf("%d claims are on the row, %d were made", task.Claims, claims)
		}
	})
}

func happen(t *rapid.T, task *signalbox.Task, ev signalbox.Event) {
	ev.Now = noon
	c, err := signalbox.Next(*task, ev)
	if err != nil {
		t.Fatal(err)
	}
	*task = c.Task
}

// A task can be ended from every state: there are no dead ends.
func TestNextAlwaysHasAWayOut(t *testing.T) {
	for _, situation := range situations[:6] {
		task := taskIn(situation)
		for _, event := range []string{"cancel", "release"} {
			if c, err := signalbox.Next(task, eventOf(event, task)); err == nil {
				task = c.Task
			}
		}
		if !task.State.Terminal() {
			t.Errorf("a %s task that is cancelled and released is %s", situation, task.State)
		}
	}
}
