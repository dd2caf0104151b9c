package signalbox_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

var landNoon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// Each event in each state: the state after it, "" for a refusal, = for no change.
func TestEveryStepOfALanding(t *testing.T) {
	states := []signalbox.LandingState{"", signalbox.LandingQueued, signalbox.LandingActive, signalbox.LandingReturned, signalbox.LandingLanded, signalbox.LandingStands, signalbox.LandingDropped}
	for kind, want := range map[signalbox.LandingEventKind][]string{
		//                          none       queued     landing     returned  landed stands    dropped
		signalbox.LandingAsked:     {"queued", "=", "=", "=", "", "queued", "queued"},
		signalbox.LandingSubmitted: {"", "landing", "", "", "", "", ""},
		signalbox.LandingDone:      {"", "", "landed", "", "", "", ""},
		signalbox.LandingBack:      {"", "", "returned", "", "", "", ""},
		signalbox.LandingFixed:     {"", "", "", "queued", "", "", ""},
		signalbox.LandingFailed:    {"", "", "queued", "", "", "", ""},
		signalbox.LandingStopped:   {"", "stands", "stands", "stands", "", "", ""},
		signalbox.LandingDrop:      {"=", "dropped", "dropped", "dropped", "", "dropped", "="},
	} {
		for i, state := range states {
			l := &signalbox.Landing{LandWish: signalbox.LandWish{Onto: "main"}, State: state, LandTask: "t", Turn: "t"}
			ev := signalbox.LandingEvent{Kind: kind, Now: landNoon, Wish: l.LandWish, Task: "t", Rounds: 1, Text: "why"}
			got, err := signalbox.NextLanding(l, ev)
			switch want[i] {
			case "":
				if err == nil || got != l {
					t.Errorf("%s of %q: %v, %v", kind, state, got, err)
				}
			case "=":
				if err != nil || got != l {
					t.Errorf("%s of %q: %v, %v", kind, state, got, err)
				}
			default:
				if err != nil || string(got.State) != want[i] || !got.Since.Equal(landNoon) || l.State != state {
					t.Errorf("%s of %q: %v, %v", kind, state, got, err)
				}
			}
		}
	}
}

func TestALandingIsOfTheTaskThatItIsOf(t *testing.T) {
	going := &signalbox.Landing{State: signalbox.LandingActive, LandTask: "b"}
	for _, kind := range []signalbox.LandingEventKind{signalbox.LandingDone, signalbox.LandingBack, signalbox.LandingFailed, signalbox.LandingStopped} {
		if got, err := signalbox.NextLanding(going, signalbox.LandingEvent{Kind: kind, Task: "a", Rounds: 1}); err == nil || got != going {
			t.Errorf("%s of an earlier landing task: %v", kind, got)
		}
	}
}

// After the maximum number of rounds or failures, the landing stands.
func TestLandingStandsAfterTheLastTry(t *testing.T) {
	step := func(l *signalbox.Landing, kind signalbox.LandingEventKind) *signalbox.Landing {
		t.Helper()
		got, err := signalbox.NextLanding(l, signalbox.LandingEvent{Kind: kind, Now: landNoon, Wish: signalbox.LandWish{Onto: "main"}, Task: "t", Rounds: 2, Text: "conflict in a.go"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	l := step(nil, signalbox.LandingAsked)
	for range 2 {
		l = step(step(step(step(l, signalbox.LandingSubmitted), signalbox.LandingBack), signalbox.LandingFixSubmitted), signalbox.LandingFixed)
	}
	if l = step(step(l, signalbox.LandingSubmitted), signalbox.LandingBack); l.State != signalbox.LandingStands || l.Submits != 3 || l.Text != "conflict in a.go" {
		t.Errorf("%+v", l)
	}
	l = step(l, signalbox.LandingAsked)
	for n := range signalbox.MaxLandingFailures {
		if l.State != signalbox.LandingQueued {
			t.Fatalf("after %d failures: %+v", n, l)
		}
		l = step(step(l, signalbox.LandingSubmitted), signalbox.LandingFailed)
	}
	if l.State != signalbox.LandingStands || l.Submits != 3+signalbox.MaxLandingFailures {
		t.Errorf("%+v", l)
	}
}

func TestOnlyWhatCompletedLands(t *testing.T) {
	for reason, want := range map[signalbox.Reason]signalbox.LandingState{
		signalbox.ReasonCompleted: signalbox.LandingQueued, signalbox.ReasonAgentError: signalbox.LandingDropped, signalbox.ReasonCancelled: signalbox.LandingDropped,
	} {
		for _, cancelled := range []bool{false, true} {
			task := signalbox.Task{ID: "t", State: signalbox.Working, Fence: 1, StartedAt: landNoon, CancelRequested: cancelled, Landing: &signalbox.Landing{State: signalbox.LandingWanted}}
			c, err := signalbox.Next(task, signalbox.Event{Kind: signalbox.EventFinish, Fence: 1, Now: landNoon, Reason: reason})
			if cancelled {
				want = signalbox.LandingDropped
			}
			if err != nil || c.Task.Landing.State != want || task.Landing.State != signalbox.LandingWanted {
				t.Errorf("%s, cancel asked for: %t: %+v, %v", reason, cancelled, c.Task.Landing, err)
			}
		}
	}
}

func TestWhereWorkMayNotLand(t *testing.T) {
	for _, onto := range []string{"", "-main", "a b", "a..b", "refs/heads/main", "a\nb", "a:b", "a~1", "a^", "a*"} {
		if err := (&signalbox.LandWish{Onto: onto}).Validate("onto"); signalbox.FieldOf(err) != "onto" {
			t.Errorf("onto %q: %v", onto, err)
		}
	}
	if err := (&signalbox.LandWish{Onto: "main", Method: "merge"}).Validate("onto"); signalbox.FieldOf(err) != "method" {
		t.Error(err)
	}
	if err := (&signalbox.LandWish{Onto: "feature/x", Method: "squash"}).Validate("onto"); err != nil {
		t.Error(err)
	}
}
