package signalbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// park returns the event that parks a task with p.
func park(task signalbox.Task, p signalbox.Parking) signalbox.Event {
	return signalbox.Event{Kind: signalbox.EventPark, Now: noon.Add(time.Minute), Fence: task.Fence, Parking: &p}
}

func TestNextParkGivesTheSlotBackAndCostsNothing(t *testing.T) {
	task := taskIn("working")
	task.Attempts, task.NoAnswers, task.NotBefore, task.WaitUntil = 2, 1, noon, noon.Add(time.Hour)
	ev := park(task, signalbox.Parking{Gate: closedMax, Next: "go on", Began: true})
	ev.SessionID, ev.Result = "s", &signalbox.Result{Output: "so far", CostUSD: 0.5, InputTokens: 7}
	ev.Account = &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max"}
	c := step(t, task, ev)
	got := c.Task
	if got.State != signalbox.Parked || got.Attempts != 2 || got.NoAnswers != 1 || got.Claims != 1 || got.Fence != 7 {
		t.Errorf("it costs something: %+v", got)
	}
	if c.Slot != signalbox.SlotFree || c.Order != signalbox.OrderTop || got.TaskID != "" || !got.StartedAt.IsZero() {
		t.Errorf("its execution is still there: %+v", c)
	}
	if got.Queue != "agent:a" || got.SessionID != "s" || !c.Session {
		t.Errorf("it is in queue %s with session %q, bound %v: the agent that has its conversation is to go on with it", got.Queue, got.SessionID, c.Session)
	}
	if !got.NotBefore.IsZero() || !got.WaitUntil.IsZero() {
		t.Errorf("it waits for a time: %+v", got)
	}
	want := signalbox.Parking{Gate: closedMax, Next: "go on", Began: true, At: noon.Add(time.Minute), Count: 1}
	if *got.Parking != want {
		t.Errorf("it is parked as %+v, want %+v", *got.Parking, want)
	}
	if c.Result != ev.Result || got.Spent != ev.Result.Spent() || got.ResultSize != ev.Result.Size() || c.Account != ev.Account {
		t.Errorf("what the run left is lost: %+v", c)
	}
	if u := c.Used(); u.Runs != 1 || u.Failed != 0 || u.InputTokens != 7 {
		t.Errorf("its usage is %+v: it cost something, and has not failed", u)
	}
	if got.LastError != closedMax.Text || c.Entry.Message != closedMax.Text || c.Entry.State != signalbox.Parked {
		t.Errorf("it says %q, the journal %+v", got.LastError, c.Entry)
	}
	if n := len(*got.Requeues); n != 1 || (*got.Requeues)[0].Kind != signalbox.EventPark || (*got.Requeues)[0].Agent != "a" || (*got.Requeues)[0].Message != closedMax.Text {
		t.Errorf("its returns to the queue are %+v", *got.Requeues)
	}
	again := step(t, step(t, got, eventOf("unpark", got)).Task, signalbox.Event{Kind: signalbox.EventClaim, Fence: 8, Agent: "a"}).Task
	if again.State != signalbox.Dispatching || again.Parking == nil || again.Parking.Next != "go on" || again.SessionID != "s" {
		t.Errorf("what it goes on with is not on the row: %+v", again)
	}
}

// A task without a conversation is not bound to an agent when it continues.
func TestNextParkWithoutASessionStaysInItsQueue(t *testing.T) {
	task := taskIn("dispatching")
	if got := step(t, task, park(task, signalbox.Parking{Gate: closedMax})).Task; got.Queue != "work" || got.State != signalbox.Parked {
		t.Errorf("%s in queue %s", got.State, got.Queue)
	}
}

// A stop wins over parking, whether a person or a limit caused it.
func TestNextStopWinsOverPark(t *testing.T) {
	task := taskIn("working")
	task = step(t, task, signalbox.Event{Kind: signalbox.EventStop, Fence: 7, Now: noon, Reason: signalbox.ReasonStalled, Message: "no output for 5m0s"}).Task
	if got := step(t, task, park(task, signalbox.Parking{Gate: closedMax})).Task; got.Reason != signalbox.ReasonStalled || got.Message != "no output for 5m0s" {
		t.Errorf("it ended %s: %s", got.Reason, got.Message)
	}
	task = taskIn("working")
	task = step(t, task, signalbox.Event{Kind: signalbox.EventCancel, By: "ann", Now: noon}).Task
	ev := park(task, signalbox.Parking{Gate: closedMax})
	ev.Result = &signalbox.Result{Output: "so far"}
	c := step(t, task, ev)
	if c.Task.Reason != signalbox.ReasonCancelled || c.Task.CancelledBy != "ann" || c.Slot != signalbox.SlotFree || c.Result == nil || c.Task.Parking != nil {
		t.Errorf("it ended %+v", c)
	}
}

func TestNextParksAreBounded(t *testing.T) {
	task := taskIn("working")
	for n := 1; n <= signalbox.MaxParks; n++ {
		began := n == 3
		task = step(t, task, park(task, signalbox.Parking{Gate: closedMax, Began: began})).Task
		if task.State != signalbox.Parked || task.Parking.Count != n || task.Parking.Began != (n >= 3) {
			t.Fatalf("the park number %d: %s, %+v", n, task.State, task.Parking)
		}
		task = step(t, task, eventOf("unpark", task)).Task
		task = step(t, task, signalbox.Event{Kind: signalbox.EventClaim, Fence: task.Fence + 1, Agent: "a", Now: noon}).Task
	}
	c := step(t, task, park(task, signalbox.Parking{Gate: closedMax}))
	if c.Task.Reason != signalbox.ReasonAgentError || c.Slot != signalbox.SlotFree || c.Order != signalbox.OrderKeep ||
		!strings.Contains(c.Task.Message, "100 times") || !strings.Contains(c.Task.Message, closedMax.Text) {
		t.Errorf("one park more: %+v", c)
	}
}

// A clock that goes back and a text of any length still make a valid row.
func TestNextParkIsWithinBounds(t *testing.T) {
	task := taskIn("working")
	ev := park(task, signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateTime, Text: strings.Repeat("ä", 400)}, At: noon.Add(-time.Hour), Count: 77})
	ev.Now = noon.Add(-time.Hour)
	got := step(t, task, ev).Task.Parking
	if !got.At.Equal(noon) || len(got.Text) > signalbox.MaxGateText || got.Count != 1 {
		t.Errorf("%+v", got)
	}
	if ev.Parking.Count != 77 {
		t.Error("the event was changed")
	}
}

func TestNextUnparkSaysWhy(t *testing.T) {
	task := taskIn("parked")
	task.LastError, task.Bias = closedMax.Text, time.Hour
	ev := eventOf("unpark", task)
	if c := step(t, task, ev); c.Entry.Message != "its gate has opened" || c.Task.IgnoreGates || c.Order != signalbox.OrderTop {
		t.Errorf("%+v", c)
	}
	ev.Message = "account max is open"
	if c := step(t, task, ev); c.Entry.Message != ev.Message {
		t.Errorf("%+v", c.Entry)
	}
	ev.IgnoreGates, ev.By = true, "ann"
	c := step(t, task, ev)
	if !c.Task.IgnoreGates || c.Entry.Message != "it runs although its account or a budget would hold it, as requested by ann" || c.Entry.By != "ann" {
		t.Errorf("%+v", c)
	}
	run := step(t, c.Task, eventOf("claim", c.Task)).Task
	if !run.IgnoreGates {
		t.Errorf("its run does not know that it runs anyway: %+v", run)
	}
	if again := step(t, run, eventOf("busy", run)).Task; again.IgnoreGates {
		t.Errorf("it runs anyway after its run, too: %+v", again)
	}
}

// A repeated report that a run was parked changes neither the task nor the account.
func TestNextRepeatedPark(t *testing.T) {
	task := taskIn("parked")
	ev := park(task, signalbox.Parking{Gate: signalbox.Gate{Kind: signalbox.GateTime}, Began: true})
	ev.Account = &signalbox.AccountEvent{Kind: signalbox.AccountLimit, Account: "max"}
	if c := step(t, task, ev); c.Task != task || c.Account != nil || c.Slot != signalbox.SlotKeep || c.Order != signalbox.OrderKeep || c.Result != nil {
		t.Errorf("%+v", c)
	}
	task = step(t, task, eventOf("unpark", task)).Task
	if _, err := signalbox.Next(task, park(task, signalbox.Parking{Gate: closedMax})); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("when its gate has opened: %v", err)
	}
}
