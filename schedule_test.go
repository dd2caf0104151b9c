package signalbox_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// An instant has the same id in every time zone, and ids sort like their instants.
func TestRunIDDependsOnlyOnTheInstant(t *testing.T) {
	at := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
	east := at.In(time.FixedZone("east", 2*3600))
	if got := signalbox.RunID(east); got != "at-20261025T003000Z" || got != signalbox.RunID(at) {
		t.Errorf("got %s", got)
	}
	if next := signalbox.RunID(at.Add(time.Hour)); next <= signalbox.RunID(at) {
		t.Errorf("%s does not follow", next)
	}
}

// Only undecided firings are open, and firings that a policy skipped have not failed. The policies have the seeds' names.
func TestWordsOfSchedules(t *testing.T) {
	for status, open := range map[signalbox.RunStatus]bool{
		signalbox.RunFiring: true, signalbox.RunHeld: true, signalbox.RunQueued: false, "": false, signalbox.SkippedQueueFull: false,
		signalbox.SkippedBusy: false, signalbox.SkippedMissed: false, signalbox.SkippedNoDirector: false, signalbox.SkippedError: false,
	} {
		if status.Open() != open {
			t.Errorf("%q is open: %v", status, status.Open())
		}
		failed := status == signalbox.SkippedQueueFull || status == signalbox.SkippedNoDirector || status == signalbox.SkippedError
		if status.Failed() != failed {
			t.Errorf("%q has failed: %v", status, status.Failed())
		}
	}
	if !slices.Equal(signalbox.Overlaps(), []signalbox.Overlap{"queue", "skip", "cancel_previous", "allow"}) {
		t.Errorf("%v", signalbox.Overlaps())
	}
	if !slices.Equal(signalbox.MissedPolicies(), []signalbox.Missed{"skip", "once", "all"}) {
		t.Errorf("%v", signalbox.MissedPolicies())
	}
	if !slices.Equal(signalbox.OnFulls(), []signalbox.OnFull{"skip", "retry"}) {
		t.Errorf("%v", signalbox.OnFulls())
	}
}
