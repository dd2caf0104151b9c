package engine

import (
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
)

// gone says what becomes of a waiting task of a conversation whose agent is not
// connected, and when; "" for every other task. Strand and EndOverdue do it.
func (e *Engine) gone(t *signalbox.Task) string {
	name, one := signalbox.QueueAgent(t.Queue)
	if t.State != signalbox.Pending || t.SessionID == "" || !one {
		return ""
	}
	a, _ := e.live.LiveAgent(name)
	if a.Up {
		return ""
	}
	who := fmt.Sprintf("agent %s, which holds conversation %s,", name, t.SessionID)
	if t.SessionMode == "" {
		who = fmt.Sprintf("agent %s, for which the task is,", name)
	}
	absent := "is not connected"
	if !a.DownSince.IsZero() {
		absent = "has been gone since " + instant(a.DownSince)
	}
	return fmt.Sprintf("%s %s; %s", who, absent, e.afterGone(t, a.StrandAt))
}

// afterGone says what becomes of a task whose agent is gone. strandAt is when
// Strand is called; zero: another director does that.
func (e *Engine) afterGone(t *signalbox.Task, strandAt time.Time) string {
	if !t.WaitUntil.IsZero() && (t.SessionMode == "" || strandAt.IsZero() || t.WaitUntil.Before(strandAt)) {
		return fmt.Sprintf("the task waits for it until %s, then ends with wait_timeout", instant(t.WaitUntil))
	}
	at := "at " + instant(strandAt)
	switch {
	case strandAt.IsZero():
		at = "once it has been gone for session_grace"
	case !strandAt.After(e.Now()):
		at = "now"
	}
	switch t.SessionMode {
	case signalbox.SessionRequire:
		return fmt.Sprintf("unless it is back, the task fails %s (dispatch_failed)", at)
	case signalbox.SessionPrefer:
		return fmt.Sprintf("unless it is back, the task goes %s to the queue %s, where any agent takes it", at, signalbox.QueueWork)
	}
	return "the task waits until it is back"
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339) }
