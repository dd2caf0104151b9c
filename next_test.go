package signalbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// situations are the states of a task when an event arrives, and whether a cancel
// was requested. A working task with a cancel is cancelling.
var situations = []string{
	"pending", "dispatching", "dispatching+cancel", "working", "cancelling", "parked",
	"completed", "failed", "cancelled", "timeout",
}

// legal is the transition table of the design (§2 and §3), written out by
// hand. Each event has one outcome for each of the first six situations; in
// the terminal ones all events are refused with already_ended.
//
// An outcome is the state after it, with "/reason" if it is terminal; then the slot
// action (take, free, withhold; nothing: kept); "back" or "top" if it goes to that
// end of its queue; then the cost (attempt, or answer for a claim without one).
// "!code" is a refusal.
var legal = []struct {
	event string
	after [6]string // pending, dispatching, dispatching+cancel, working, cancelling, parked
}{
	{"claim", [6]string{"dispatching take", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"accept", [6]string{"!conflict", "working", "cancelling", "working", "cancelling", "!conflict"}},
	{"busy", [6]string{"!conflict", "pending free back", "cancelled/cancelled free", "!conflict", "!conflict", "!conflict"}},
	{"refuse", [6]string{"!conflict", "pending free attempt", "cancelled/cancelled free attempt", "!conflict", "!conflict", "!conflict"}},
	{"unsent", [6]string{"!conflict", "pending free answer", "cancelled/cancelled free answer", "!conflict", "!conflict", "!conflict"}},
	{"reject", [6]string{"!conflict", "failed/rejected free attempt", "cancelled/cancelled free", "!conflict", "!conflict", "!conflict"}},

	// The agent's report of the end counts in every state.
	{"finish completed", all("completed/completed free")},
	{"finish agent_error", all("failed/agent_error free")},
	{"finish exit_nonzero", all("failed/exit_nonzero free")},
	{"finish run_timeout", all("timeout/run_timeout free")},
	{"finish cancelled", all("cancelled/cancelled free")},
	{"finish interrupted", all("failed/interrupted free")},
	{"stop run_timeout", [6]string{"!conflict", "!conflict", "!conflict", "cancelling", "cancelling", "!conflict"}},
	{"stop stalled", [6]string{"!conflict", "!conflict", "!conflict", "cancelling", "cancelling", "!conflict"}},
	{"stop cancelled", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "cancelling", "!conflict"}},
	// Reasons that an agent cannot report.
	{"finish wait_timeout", all("!conflict")},
	{"finish dispatch_failed", all("!conflict")},
	{"finish rejected", all("!conflict")},
	{"finish lost", all("!conflict")},
	{"finish released", all("!conflict")},
	{"finish", all("!conflict")},

	{"lost lost", [6]string{"!conflict", "pending free answer", "cancelled/cancelled free answer", "failed/lost free", "cancelled/cancelled free", "!conflict"}},
	{"lost interrupted", [6]string{"!conflict", "failed/interrupted free", "cancelled/cancelled free", "failed/interrupted free", "cancelled/cancelled free", "!conflict"}},
	{"lost completed", all("!conflict")},

	{"lost+withhold lost", [6]string{"!conflict", "pending withhold answer", "cancelled/cancelled withhold answer", "failed/lost withhold", "cancelled/cancelled withhold", "!conflict"}},
	{"lost+withhold interrupted", [6]string{"!conflict", "failed/interrupted withhold", "cancelled/cancelled withhold", "failed/interrupted withhold", "cancelled/cancelled withhold", "!conflict"}},

	{"release", [6]string{"!conflict", "failed/released free", "cancelled/cancelled free", "failed/released free", "cancelled/cancelled free", "!conflict"}},
	{"cancel", [6]string{"cancelled/cancelled", "dispatching", "dispatching", "cancelling", "cancelling", "cancelled/cancelled"}},
	{"wait_timeout", [6]string{"timeout/wait_timeout", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"move", [6]string{"pending", "!conflict", "!conflict", "!conflict", "!conflict", "parked"}},
	{"edit top", [6]string{"pending top", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"edit", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"undeliverable", [6]string{"failed/dispatch_failed", "!conflict", "!conflict", "!conflict", "!conflict", "failed/dispatch_failed"}},

	{"park", [6]string{"!conflict", "parked free top", "cancelled/cancelled free", "parked free top", "cancelled/cancelled free", "parked"}},
	{"park nowhere", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "parked"}},
	{"unpark", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "pending top"}},
	{"unpark anyway", [6]string{"pending top", "!conflict", "!conflict", "!conflict", "!conflict", "pending top"}},

	{"submit", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"agent_up", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
	{"nonsense", [6]string{"!conflict", "!conflict", "!conflict", "!conflict", "!conflict", "!conflict"}},
}

// all returns the same outcome for every situation with an execution.
func all(outcome string) [6]string {
	return [6]string{"!conflict", outcome, outcome, outcome, outcome, "!conflict"}
}

// taskIn returns a task in a situation, claimed once unless it waits.
func taskIn(situation string) signalbox.Task {
	state, cancel, _ := strings.Cut(situation, "+")
	t := signalbox.Task{
		ID: "queue-x", State: signalbox.State(state), Queue: "work", MaxAttempts: 3, OnLost: signalbox.LostFail,
		CreatedAt: noon, Agent: "a", AgentURL: "http://a", Slot: 1, Fence: 7, Claims: 1, HasEnv: true, DispatchedAt: noon,
		CancelRequested: cancel != "" || state == "cancelling",
	}
	if state == "working" || state == "cancelling" {
		t.StartedAt, t.TaskID = noon, "theirs"
	}
	if t.State == signalbox.Parked {
		t.Parking = &signalbox.Parking{Gate: closedMax, At: noon, Count: 1}
	}
	if t.State.Terminal() {
		t.Reason, t.Message, t.EndedAt = signalbox.ReasonCompleted, "over", noon
	}
	return t
}

var closedMax = signalbox.Gate{
	Kind: signalbox.GateAccount, Name: "max", Text: "account max is closed until 14:00", Until: noon.Add(2 * time.Hour),
}

// eventOf parses an event of the table. Its fence is the task's, or the next one
// for a claim.
func eventOf(text string, t signalbox.Task) signalbox.Event {
	kind, reason, _ := strings.Cut(text, " ")
	kind, withhold, _ := strings.Cut(kind, "+")
	ev := signalbox.Event{
		Kind: signalbox.EventKind(kind), Now: noon.Add(time.Minute), Fence: t.Fence, Agent: "b", AgentURL: "http://b",
		Slot: 2, Queue: "pool:k", Reason: signalbox.Reason(reason), Withhold: withhold != "",
		Edit: &signalbox.Edit{Order: signalbox.Order(reason)}, IgnoreGates: reason == "anyway",
	}
	if ev.Kind == signalbox.EventClaim {
		ev.Fence++
	}
	if text == "park" {
		ev.Parking = &signalbox.Parking{Gate: closedMax}
	}
	return ev
}

// outcomeOf formats a change as in the table.
func outcomeOf(before signalbox.Task, c signalbox.Change, err error) string {
	if err != nil {
		return "!" + string(signalbox.CodeOf(err))
	}
	words := []string{string(c.Task.State)}
	if c.Task.Reason != "" {
		words[0] += "/" + string(c.Task.Reason)
	}
	switch c.Slot {
	case signalbox.SlotTake:
		words = append(words, "take")
	case signalbox.SlotFree:
		words = append(words, "free")
	case signalbox.SlotWithhold:
		words = append(words, "withhold")
	}
	if c.Order != signalbox.OrderKeep {
		words = append(words, string(c.Order))
	}
	if c.Task.Attempts > before.Attempts {
		words = append(words, "attempt")
	}
	if c.Task.NoAnswers > before.NoAnswers {
		words = append(words, "answer")
	}
	return strings.Join(words, " ")
}

func TestNextTable(t *testing.T) {
	for _, row := range legal {
		for n, situation := range situations {
			want := "!already_ended"
			if n < len(row.after) {
				want = row.after[n]
			}
			t.Run(row.event+"/"+situation, func(t *testing.T) {
				task := taskIn(situation)
				c, err := signalbox.Next(task, eventOf(row.event, task))
				if got := outcomeOf(task, c, err); got != want {
					t.Fatalf("got %q, want %q (error %v)", got, want, err)
				}
				checkChange(t, task, c, err)
			})
		}
	}
}

// TestNextTableIsComplete asserts that every event and every state is in the table.
func TestNextTableIsComplete(t *testing.T) {
	in := map[string]bool{}
	for _, row := range legal {
		kind, _, _ := strings.Cut(row.event, " ")
		in[kind] = true
	}
	for _, kind := range signalbox.TaskEvents() {
		if !in[string(kind)] {
			t.Errorf("the table has no row for %s", kind)
		}
	}
	states := map[string]bool{}
	for _, s := range situations {
		state, _, _ := strings.Cut(s, "+")
		states[state] = true
	}
	for _, s := range signalbox.States() {
		if !states[string(s)] {
			t.Errorf("no situation has a task that is %s", s)
		}
	}
}

// checkChange asserts the invariants of every change.
func checkChange(t testingT, before signalbox.Task, c signalbox.Change, err error) {
	t.Helper()
	if err != nil {
		return
	}
	after := c.Task
	if after.State.Terminal() {
		if after.Message == "" || after.EndedAt.IsZero() || after.HasEnv || !after.Reason.Valid() || after.Reason.End() != after.State {
			t.Fatalf("the end is not told: %+v", after)
		}
	} else if after.Reason != "" || !after.EndedAt.IsZero() {
		t.Fatalf("a task that is %s has a reason or an end: %+v", after.State, after)
	}
	if after.Fence < before.Fence || after.Attempts < before.Attempts || after.Claims < before.Claims || after.NoAnswers < before.NoAnswers {
		t.Fatalf("a number went back: from %+v to %+v", before, after)
	}
	if (c.Slot == signalbox.SlotTake) != (c.Entry.Kind == signalbox.EventClaim) {
		t.Fatalf("%s has slot action %d", c.Entry.Kind, c.Slot)
	}
	leaves := before.State.InFlight() && !after.State.InFlight()
	if gives := c.Slot == signalbox.SlotFree || c.Slot == signalbox.SlotWithhold; gives != leaves {
		t.Fatalf("from %s to %s with slot action %d", before.State, after.State, c.Slot)
	}
	if p := after.Parking; after.State == signalbox.Parked &&
		(p == nil || p.Kind == "" || p.At.IsZero() || p.Count < 1 || p.Count > signalbox.MaxParks || !after.WaitUntil.IsZero() || !after.NotBefore.IsZero()) {
		t.Fatalf("it is parked so: %+v, with times to wait for: %+v", p, after)
	}
	e := c.Entry
	if e.QueueID != after.ID || e.State != after.State || e.Reason != after.Reason || e.Queue != after.Queue || e.Fence != after.Fence {
		t.Fatalf("the entry %+v is not of the task %+v", e, after)
	}
	if after.State.Terminal() && e.Message != after.Message {
		t.Fatalf("the entry says %q, the task %q", e.Message, after.Message)
	}
	if after.Rev != before.Rev || after.Seq != before.Seq || after.ID != before.ID || after.Place != before.Place {
		t.Fatalf("Next changed what is the store's: %+v", after)
	}
}

// testingT is what *testing.T and *rapid.T share.
type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// The events that an execution sends carry its fence; the others have none.
var fenced = map[string]bool{
	"accept": true, "busy": true, "refuse": true, "unsent": true, "reject": true, "finish completed": true,
	"lost lost": true, "release": true, "park": true, "unpark": false,
	"cancel": false, "wait_timeout": false, "move": false, "undeliverable": false,
}

func TestNextFences(t *testing.T) {
	for event, fenced := range fenced {
		for _, situation := range situations[:6] {
			for _, off := range []int64{-7, -1, 1, 1000} {
				task := taskIn(situation)
				ev := eventOf(event, task)
				right, rightErr := signalbox.Next(task, ev)
				ev.Fence += off
				c, err := signalbox.Next(task, ev)
				got, want := outcomeOf(task, c, err), outcomeOf(task, right, rightErr)
				if fenced {
					want = "!stale_fence"
				}
				if got != want {
					t.Errorf("%s on a %s task with the fence off by %d: got %q, want %q", event, situation, off, got, want)
				}
			}
		}
	}
}

func TestNextClaimNeedsHigherFence(t *testing.T) {
	task := taskIn("pending")
	for fence, want := range map[int64]string{0: "!stale_fence", 6: "!stale_fence", 7: "!stale_fence", 8: "dispatching take", 99: "dispatching take"} {
		ev := eventOf("claim", task)
		ev.Fence = fence
		c, err := signalbox.Next(task, ev)
		if got := outcomeOf(task, c, err); got != want {
			t.Errorf("a claim with fence %d of a task at 7: got %q, want %q", fence, got, want)
		}
	}
}

// TestNextChangesNothingWhereItRefuses asserts that a refusal comes with an empty
// change, which cannot be stored by mistake.
func TestNextChangesNothingWhereItRefuses(t *testing.T) {
	for _, row := range legal {
		for _, situation := range situations {
			task := taskIn(situation)
			if c, err := signalbox.Next(task, eventOf(row.event, task)); err != nil && (c.Task.ID != "" || c.Slot != signalbox.SlotKeep) {
				t.Errorf("%s/%s: a refusal with the change %+v", row.event, situation, c)
			}
		}
	}
}

func ExampleNext() {
	waiting := signalbox.Task{ID: "queue-1", State: signalbox.Pending, Queue: "work", MaxAttempts: 3}
	c, _ := signalbox.Next(waiting, signalbox.Event{Kind: signalbox.EventClaim, Fence: 1, Agent: "a"})
	fmt.Println(c.Task.State)
	c, _ = signalbox.Next(c.Task, signalbox.Event{Kind: signalbox.EventRefuse, Fence: 1, Message: "connection refused"})
	fmt.Println(c.Task.State, c.Task.Attempts, c.Task.LastError)
	_, err := signalbox.Next(c.Task, signalbox.Event{Kind: signalbox.EventAccept, Fence: 9})
	fmt.Println(signalbox.CodeOf(err))
	// Output:
	// dispatching
	// pending 1 connection refused
	// stale_fence
}
