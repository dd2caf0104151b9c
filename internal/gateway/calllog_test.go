package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// TestCallLog: the log keeps the latest calls of an execution, and the executions that
// called most recently.
func TestCallLog(t *testing.T) {
	var l CallLog
	l.Ended(Ended{Tool: "browse", Execution: "", Outcome: OutcomeOK})
	l.Ended(Ended{Tool: "", Execution: "queue-1", Outcome: "not_found"})
	if got := l.Of("queue-1"); got != nil {
		t.Errorf("kept %v", got)
	}
	for i := range signalbox.MaxToolCalls + 5 {
		l.Ended(Ended{Tool: fmt.Sprint(i), Queue: "browser", Execution: "queue-1", Outcome: OutcomeOK, Took: time.Second})
	}
	got := l.Of("queue-1")
	if len(got) != signalbox.MaxToolCalls || got[0].Tool != "5" || got[0].Queue != "browser" || got[0].Took != time.Second {
		t.Errorf("%d calls, the first %+v", len(got), got[0])
	}
	for i := range loggedExecutions {
		l.Ended(Ended{Tool: "browse", Execution: fmt.Sprint("queue-", i+2), Outcome: OutcomeOK})
	}
	if got := l.Of("queue-1"); got != nil {
		t.Errorf("%d calls of the execution that called first are kept", len(got))
	}
	if got := l.Of("queue-2"); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
