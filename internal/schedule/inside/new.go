package inside

import (
	"log/slog"

	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// New returns the scheduler of a director, which takes its time from the engine.
// zone is that of schedules that name none. Call it before the engine is used,
// then Run.
func New(e *engine.Engine, zone string, log *slog.Logger) (*schedule.Scheduler, error) {
	q := NewQueue(e)
	return schedule.New(NewBook(e, log), q, schedule.Options{Zone: zone, Now: e.Now, Log: log, Check: q.Check})
}
