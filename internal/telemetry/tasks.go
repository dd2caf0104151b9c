package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// LogTasks writes the log lines of the seed (work-queue, Observability) for an engine's changes. The message
// is empty: the line consists of its attributes. Call it before the engine is used.
func LogTasks(e *engine.Engine, log *slog.Logger) {
	e.Observe(func(a *engine.Applied) {
		if ofTask := a.Kind != "" && a.Task.State != ""; ofTask && !a.Foreign && log.Enabled(context.Background(), slog.LevelInfo) {
			logTask(log, a)
		}
	})
}

func logTask(log *slog.Logger, a *engine.Applied) {
	t := &a.Task
	attempt := attemptOf(t, a.Kind)
	switch a.Kind {
	case signalbox.EventSubmit:
		line := []any{"queue", "task_added", "queue_id", t.ID, "depth", a.Depth, "source", string(t.Source)}
		if t.Queue != signalbox.QueueWork {
			line = append(line, "in", t.Queue)
		}
		log.Info("", line...)
	case signalbox.EventClaim:
		log.Info("", "queue", "dispatch", "queue_id", t.ID, "agent", t.AgentURL, "name", t.Agent, "fence", t.Fence)
	case signalbox.EventAccept:
		log.Info("", "queue", "dispatch_success", "queue_id", t.ID, "task_id", t.TaskID)
	case signalbox.EventBusy, signalbox.EventRefuse, signalbox.EventUnsent:
		line := []any{"queue", "dispatch_failed", "queue_id", t.ID, "error", t.LastError, "attempt", attempt}
		if t.State.Terminal() {
			line = append(line, "final", true)
		}
		log.Warn("", line...)
	case signalbox.EventReject:
		log.Warn("", "queue", "dispatch_failed", "queue_id", t.ID, "error", t.Message, "attempt", attempt, "final", true)
	default:
		if t.State.Terminal() {
			log.Info("", "queue", "task_ended", "queue_id", t.ID, "state", string(t.State), "reason", string(t.Reason), "message", truncate(t.Message))
			return
		}
		log.Info("", "queue", "task_"+string(a.Kind), "queue_id", t.ID, "state", string(t.State))
	}
}

// attemptOf formats the failed attempt and the maximum. A failure that costs no attempt, such as a busy
// agent, is counted in the line, too: the seed's line of a busy agent has attempt=1/3.
func attemptOf(t *signalbox.Task, kind signalbox.EventKind) string {
	n := t.Attempts
	if kind != signalbox.EventRefuse && kind != signalbox.EventReject {
		n++
	}
	return fmt.Sprintf("%d/%d", n, t.MaxAttempts)
}

// maxLoggedMessage bounds a message in a log line, in bytes: the message of a failed tool is all of its
// standard error.
const maxLoggedMessage = 1 << 10

func truncate(message string) string {
	if len(message) <= maxLoggedMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxLoggedMessage], "") + " …"
}
