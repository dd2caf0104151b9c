package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/signalbox-ai/signalbox"
)

// logChange writes the seed's log lines (work-queue, Observability). The
// message is empty: the line is its fields.
func (e *Engine) logChange(t signalbox.Task, entry signalbox.Entry) {
	if !e.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	attempt := fmt.Sprintf("%d/%d", t.Attempts, t.MaxAttempts)
	switch entry.Kind {
	case signalbox.EventSubmit:
		e.log.Info("", "queue", "task_added", "queue_id", t.ID, "depth", e.depth(&t), "source", string(t.Source), "in", t.Queue)
	case signalbox.EventClaim:
		e.log.Info("", "queue", "dispatch", "queue_id", t.ID, "agent", t.AgentURL, "name", t.Agent, "fence", t.Fence)
	case signalbox.EventAccept:
		e.log.Info("", "queue", "dispatch_success", "queue_id", t.ID, "task_id", t.TaskID)
	case signalbox.EventBusy, signalbox.EventRefuse, signalbox.EventUnsent:
		if t.State.Terminal() {
			e.log.Warn("", "queue", "dispatch_failed", "queue_id", t.ID, "error", t.LastError, "attempt", attempt, "final", true)
			return
		}
		e.log.Warn("", "queue", "dispatch_failed", "queue_id", t.ID, "error", t.LastError, "attempt", attempt)
	case signalbox.EventReject:
		e.log.Warn("", "queue", "dispatch_failed", "queue_id", t.ID, "error", t.Message, "attempt", attempt, "final", true)
	default:
		if t.State.Terminal() {
			e.log.Info("", "queue", "task_ended", "queue_id", t.ID, "state", string(t.State), "reason", string(t.Reason), "message", briefly(t.Message))
			return
		}
		e.log.Info("", "queue", "task_"+string(entry.Kind), "queue_id", t.ID, "state", string(t.State))
	}
}

// maxLogged bounds what a line of the log has of a message: that of a tool that
// failed is all that it wrote to its standard error.
const maxLogged = 1 << 10

func briefly(message string) string {
	if len(message) <= maxLogged {
		return message
	}
	return strings.ToValidUTF8(message[:maxLogged], "") + " …"
}

// depth is the number of tasks that wait under the limit "work", of a tool call
// under its own; 0 if the store does not say.
func (e *Engine) depth(t *signalbox.Task) int {
	limit := signalbox.LimitWork
	if t.Mode == signalbox.ModeTool {
		limit = t.Limit
	}
	counts, err := e.store.Counts(context.Background())
	if err != nil {
		return 0
	}
	return counts.Limits[limit]
}
