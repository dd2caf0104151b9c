package signalbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// Each rule is one event on a task with one special property (design §2 and §3).
// The outcome is written as in the table.
func TestNextRules(t *testing.T) {
	requeue := func(t *signalbox.Task) { t.OnLost = signalbox.LostRequeue }
	lastAttempt := func(t *signalbox.Task) { t.Attempts = t.MaxAttempts - 1 }
	lastAnswer := func(t *signalbox.Task) { t.NoAnswers = signalbox.MaxNoAnswers - 1 }
	usedUp := func(t *signalbox.Task) { t.Attempts, t.NoAnswers = t.MaxAttempts-1, signalbox.MaxNoAnswers-1 }
	only := func(t *signalbox.Task) { t.MaxAttempts = 1 }
	type special = func(*signalbox.Task)
	for _, c := range []struct {
		rule, situation, event, want string
		special                      []special
	}{
		{"a lost task that had started is requeued where it said so", "working", "lost lost", "pending free back attempt", []special{requeue}},
		{"an interrupted one too", "working", "lost interrupted", "pending free back attempt", []special{requeue}},
		{"with its slot withheld", "working", "lost+withhold lost", "pending withhold back attempt", []special{requeue}},
		{"an agent that says that it had started and was restarted", "dispatching", "lost interrupted", "pending free back attempt", []special{requeue}},
		{"a task that had not started goes on in its place", "dispatching", "lost lost", "pending free answer", []special{requeue}},
		{"a cancel wins over requeue", "cancelling", "lost lost", "cancelled/cancelled free", []special{requeue}},
		{"a cancel wins over requeue while dispatching", "dispatching+cancel", "lost interrupted", "cancelled/cancelled free", []special{requeue}},
		{"a finish is no loss", "working", "finish interrupted", "failed/interrupted free", []special{requeue}},
		{"a release is no loss", "working", "release", "failed/released free", []special{requeue}},

		{"the last attempt is refused", "dispatching", "refuse", "failed/dispatch_failed free attempt", []special{lastAttempt}},
		{"the only attempt is refused", "dispatching", "refuse", "failed/dispatch_failed free attempt", []special{only}},
		{"the last attempt is refused and a cancel stands", "dispatching+cancel", "refuse", "cancelled/cancelled free attempt", []special{lastAttempt}},
		{"the last attempt is lost", "working", "lost lost", "failed/lost free attempt", []special{requeue, lastAttempt}},
		{"the last attempt is interrupted", "working", "lost interrupted", "failed/interrupted free attempt", []special{requeue, lastAttempt}},
		{"the last attempt is lost and withheld", "working", "lost+withhold lost", "failed/lost withhold attempt", []special{requeue, lastAttempt}},
		{"the last claim without an answer", "dispatching", "unsent", "failed/dispatch_failed free answer", []special{lastAnswer}},
		{"the last claim without an answer is lost", "dispatching", "lost lost", "failed/dispatch_failed free answer", []special{lastAnswer}},
		{"the last one is lost and withheld", "dispatching", "lost+withhold lost", "failed/dispatch_failed withhold answer", []special{lastAnswer}},
		{"a busy agent costs nothing, even at the limit", "dispatching", "busy", "pending free back", []special{usedUp}},
		{"an accepted task runs, even at the limit", "dispatching", "accept", "working", []special{usedUp}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			task := taskIn(c.situation)
			for _, s := range c.special {
				s(&task)
			}
			change, err := signalbox.Next(task, eventOf(c.event, task))
			if got := outcomeOf(task, change, err); got != c.want {
				t.Fatalf("got %q, want %q (error %v)", got, c.want, err)
			}
			checkChange(t, task, change, err)
		})
	}
}

// step calls Next and fails the test if it refuses.
func step(t *testing.T, task signalbox.Task, ev signalbox.Event) signalbox.Change {
	t.Helper()
	c, err := signalbox.Next(task, ev)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNextClaimForgetsTheLastExecution(t *testing.T) {
	task := taskIn("pending")
	task.TaskID, task.StartedAt, task.LastError = "old", noon, "agent busy"
	got := step(t, task, eventOf("claim", task)).Task
	if got.Agent != "b" || got.AgentURL != "http://b" || got.Slot != 2 || got.Fence != 8 || got.Claims != 2 {
		t.Errorf("the claim is not on the row: %+v", got)
	}
	if got.TaskID != "" || !got.StartedAt.IsZero() || !got.DispatchedAt.Equal(noon.Add(time.Minute)) {
		t.Errorf("the execution before it is still on the row: %+v", got)
	}
}

func TestNextRequeueKeepsWhereItWasTried(t *testing.T) {
	task := taskIn("dispatching")
	ev := eventOf("refuse", task)
	ev.Delay, ev.Message = 2*time.Second, "connection refused"
	got := step(t, task, ev).Task
	if got.Agent != "a" || got.Fence != 7 || got.LastError != "connection refused" || !got.HasEnv {
		t.Errorf("got %+v", got)
	}
	if want := ev.Now.Add(2 * time.Second); !got.NotBefore.Equal(want) {
		t.Errorf("not before %v, want %v", got.NotBefore, want)
	}
	busy := step(t, got, eventOf("claim", got)).Task
	if busy = step(t, busy, eventOf("busy", busy)).Task; !busy.NotBefore.IsZero() {
		t.Errorf("a busy agent's task waits until %v: it goes to the back instead", busy.NotBefore)
	}
}

func TestNextCancelIsSticky(t *testing.T) {
	task := taskIn("dispatching")
	ev := eventOf("cancel", task)
	ev.By = "ann"
	task = step(t, task, ev).Task
	ev.By = "bob"
	task = step(t, task, ev).Task
	if !task.CancelRequested || task.CancelledBy != "ann" {
		t.Fatalf("the cancel is not on the row: %+v", task)
	}
	got := step(t, task, eventOf("busy", task)).Task
	if got.Message != "cancelled by ann" {
		t.Errorf("message %q", got.Message)
	}
}

func TestNextCancelOfWhatWaits(t *testing.T) {
	for _, situation := range []string{"pending", "dispatching", "working", "cancelling"} {
		task := taskIn(situation)
		ev := eventOf("cancel", task)
		ev.Waiting = true
		got, err := signalbox.Next(task, ev)
		if situation == "pending" {
			if err != nil || got.Task.State != signalbox.Cancelled {
				t.Errorf("%s: %s, %v", situation, got.Task.State, err)
			}
		} else if signalbox.CodeOf(err) != signalbox.CodeConflict {
			t.Errorf("%s: %v", situation, err)
		}
	}
}

func TestNextRepeatedAcceptChangesNothing(t *testing.T) {
	for _, situation := range []string{"working", "cancelling"} {
		task := taskIn(situation)
		ev := eventOf("accept", task)
		ev.TaskID, ev.SessionID = "another", "s"
		if got := step(t, task, ev); got.Task != task || got.Session {
			t.Errorf("%s: got %+v", situation, got.Task)
		}
	}
}

func TestNextSessions(t *testing.T) {
	for _, c := range []struct {
		has, says, want string
		bound           bool
	}{
		{"", "", "", false}, {"s", "", "s", false}, {"", "s", "s", true}, {"s", "s", "s", true},
		{"s", "r", "s", false}, // it ran in another session than requested: nothing is bound
	} {
		for _, event := range []string{"accept", "finish completed"} {
			task := taskIn("dispatching")
			task.SessionID = c.has
			ev := eventOf(event, task)
			ev.SessionID = c.says
			if got := step(t, task, ev); got.Task.SessionID != c.want || got.Session != c.bound {
				t.Errorf("%s of session %q by an agent that says %q: session %q, bound %v", event, c.has, c.says, got.Task.SessionID, got.Session)
			}
		}
	}
}

func TestNextResults(t *testing.T) {
	result := &signalbox.Result{Output: "x"}
	for event, kept := range map[string]bool{"finish completed": true, "lost lost": true, "lost interrupted": true} {
		task := taskIn("working")
		ev := eventOf(event, task)
		ev.Result = result
		if got := step(t, task, ev).Result != nil; got != kept {
			t.Errorf("%s keeps the result: %v", event, got)
		}
	}
	task := taskIn("working")
	task.OnLost = signalbox.LostRequeue
	ev := eventOf("lost lost", task)
	ev.Result = result
	if step(t, task, ev).Result == nil {
		t.Error("the log of a lost run is gone when the task runs again")
	}
}

func TestNextMessages(t *testing.T) {
	for _, c := range []struct{ situation, event, message, by, want string }{
		{"working", "finish completed", "", "", "completed"},
		{"working", "finish agent_error", "it broke", "", "it broke"},
		{"working", "release", "", "ann", "the slot was released by ann"},
		{"working", "release", "stuck", "ann", "stuck"},
		{"pending", "cancel", "", "ann", "cancelled by ann"},
		{"pending", "cancel", "not needed", "ann", "cancelled by ann: not needed"},
		{"pending", "wait_timeout", "", "", "waited 1m0s without being started"},
		{"pending", "undeliverable", "agent a is gone", "", "agent a is gone"},
		{"dispatching", "reject", "bad model", "", "bad model"},
	} {
		task := taskIn(c.situation)
		ev := eventOf(c.event, task)
		ev.Message, ev.By = c.message, c.by
		if got := step(t, task, ev).Task.Message; got != c.want {
			t.Errorf("%s of a %s task: message %q, want %q", c.event, c.situation, got, c.want)
		}
	}
	task := taskIn("dispatching")
	task.Attempts = 2
	ev := eventOf("refuse", task)
	ev.Message = "connection refused"
	if got := step(t, task, ev).Task.Message; !strings.Contains(got, "3 of 3") || !strings.Contains(got, "connection refused") {
		t.Errorf("the end after all attempts says %q", got)
	}
}

func TestNextMoveNeedsAQueue(t *testing.T) {
	task := taskIn("pending")
	for _, queue := range []string{"", "nowhere", "agent:", "pool:../x", "agent:a b"} {
		ev := eventOf("move", task)
		ev.Queue = queue
		if _, err := signalbox.Next(task, ev); signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("a move to %q: %v", queue, err)
		}
	}
}

// A skewed clock must not store a negative duration (seed execution-queue).
func TestNextTimesNeverRunBack(t *testing.T) {
	task := taskIn("pending")
	at := func(event string, d time.Duration) {
		t.Helper()
		ev := eventOf(event, task)
		ev.Now = noon.Add(d)
		task = step(t, task, ev).Task
	}
	at("claim", -time.Hour)
	at("accept", -2*time.Hour)
	at("finish completed", -3*time.Hour)
	for _, times := range [][2]time.Time{
		{task.CreatedAt, task.DispatchedAt}, {task.DispatchedAt, task.StartedAt}, {task.StartedAt, task.EndedAt},
	} {
		if times[1].Before(times[0]) {
			t.Errorf("%v comes after %v", times[1], times[0])
		}
	}
	late := taskIn("pending")
	ev := eventOf("wait_timeout", late)
	ev.Now = noon.Add(-time.Hour)
	if got := step(t, late, ev).Task; strings.Contains(got.Message, "-") || got.EndedAt.Before(late.CreatedAt) {
		t.Errorf("ended %v: %s", got.EndedAt, got.Message)
	}
}

// The time that a task waited and the time of its dispatch do not count as run time.
// The run keeps the slot until it ends.
func TestNextRunBeginsWhenItIsAccepted(t *testing.T) {
	task := taskIn("pending")
	for n, tt := range []struct {
		event string
		slot  signalbox.SlotAction
	}{{"claim", signalbox.SlotTake}, {"accept", signalbox.SlotKeep}, {"finish completed", signalbox.SlotFree}} {
		ev := eventOf(tt.event, task)
		ev.Now = noon.Add(time.Duration(n+1) * time.Hour)
		c := step(t, task, ev)
		if task = c.Task; c.Slot != tt.slot {
			t.Errorf("%s does %v to the slot, want %v", tt.event, c.Slot, tt.slot)
		}
	}
	if !task.DispatchedAt.Equal(noon.Add(time.Hour)) || !task.StartedAt.Equal(noon.Add(2*time.Hour)) || !task.EndedAt.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("dispatched %v, started %v, ended %v", task.DispatchedAt, task.StartedAt, task.EndedAt)
	}
}

// A limit that fires tells the agent to stop, and is the reason of the end whatever
// the agent reports: a stall is never recorded as a timeout or a cancel.
func TestNextStopByALimit(t *testing.T) {
	for _, tt := range []struct {
		limit, said, want signalbox.Reason
	}{
		{signalbox.ReasonStalled, signalbox.ReasonCancelled, signalbox.ReasonStalled},
		{signalbox.ReasonStalled, signalbox.ReasonAgentError, signalbox.ReasonStalled},
		{signalbox.ReasonStalled, signalbox.ReasonRunTimeout, signalbox.ReasonStalled},
		{signalbox.ReasonRunTimeout, signalbox.ReasonCancelled, signalbox.ReasonRunTimeout},
		{signalbox.ReasonStalled, signalbox.ReasonCompleted, signalbox.ReasonCompleted}, // it completed first
	} {
		task := taskIn("working")
		step := func(ev signalbox.Event) {
			t.Helper()
			ev.Fence, ev.Now = task.Fence, noon
			c, err := signalbox.Next(task, ev)
			if err != nil {
				t.Fatal(err)
			}
			task = c.Task
		}
		step(signalbox.Event{Kind: signalbox.EventStop, Reason: tt.limit, Message: "no output for 5m0s"})
		if task.State != signalbox.Cancelling || !task.CancelRequested {
			t.Fatalf("after the limit it is %s", task.State)
		}
		step(signalbox.Event{Kind: signalbox.EventCancel, By: "someone"})
		step(signalbox.Event{Kind: signalbox.EventFinish, Reason: tt.said})
		if task.Reason != tt.want || (tt.want == tt.limit && task.Message != "no output for 5m0s") {
			t.Errorf("%s, then the agent says %s: %s %q, want %s", tt.limit, tt.said, task.Reason, task.Message, tt.want)
		}
	}
}

// A claim that is given back on purpose costs nothing, however often.
func TestAClaimThatIsGivenBackOnPurposeCostsNothing(t *testing.T) {
	task := signalbox.Task{State: signalbox.Dispatching, Fence: 3, NoAnswers: signalbox.MaxNoAnswers - 1}
	c, err := signalbox.Next(task, signalbox.Event{Kind: signalbox.EventUnsent, Fence: 3, NotTried: true})
	if err != nil || c.Task.State != signalbox.Pending || c.Task.NoAnswers != task.NoAnswers || c.Order != signalbox.OrderKeep {
		t.Errorf("%+v, %v", c.Task, err)
	}
}
