package schedule

import (
	"fmt"

	"github.com/signalbox-ai/signalbox"
)

// logRun writes the seed's log lines (work-queue, Scheduler Integration). The
// message is empty: the line is its fields.
func (s *Scheduler) logRun(row *signalbox.Schedule, r *signalbox.ScheduleRun) {
	skipped := func(reason string, more ...any) {
		s.log.Warn("", append([]any{"job", row.Name, "action", "skipped", "reason", reason}, more...)...)
	}
	switch r.Status {
	case signalbox.RunFiring:
		if r.Attempts > 0 {
			s.log.Warn("", "job", row.Name, "action", "retry", "attempt", r.Attempts, "error", r.Error)
		}
	case signalbox.RunHeld:
		s.log.Info("", "job", row.Name, "action", "held", "queue_id", r.Previous)
	case signalbox.RunQueued:
		s.log.Info("", "job", row.Name, "action", "queued", "queue_id", r.QueueID)
		if row.Agent != "" { // the line of the seed execution-queue besides
			s.log.Info(fmt.Sprintf("[Schedule] Agent '%s' execution %s: queued", row.Agent, r.QueueID))
		}
	case signalbox.SkippedQueueFull:
		skipped("queue_full")
	case signalbox.SkippedNoDirector:
		skipped("no_director_url")
	case signalbox.SkippedBusy:
		skipped("busy")
	case signalbox.SkippedMissed:
		skipped("missed", "instants", 1+r.Missed)
	case signalbox.SkippedError:
		skipped("error", "error", r.Error)
	}
}
