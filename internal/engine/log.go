package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// logChange writes the log lines of the seed (work-queue, Observability). The message is
// empty: the line consists of its attributes.
func (e *Engine) logChange(t signalbox.Task, entry signalbox.Entry) {
	if !e.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	attempt := attemptOf(&t, entry.Kind)
	switch entry.Kind {
	case signalbox.EventSubmit: // logSubmit
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
			e.log.Info("", "queue", "task_ended", "queue_id", t.ID, "state", string(t.State), "reason", string(t.Reason), "message", truncate(t.Message))
			return
		}
		e.log.Info("", "queue", "task_"+string(entry.Kind), "queue_id", t.ID, "state", string(t.State))
	}
}

// logSubmit writes the seed's line for a submit. depth is how many tasks wait under the
// task's limit, "work" unless it goes to an agent or is a tool call.
func (e *Engine) logSubmit(got *store.Submitted) {
	if !e.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	t := &got.Task
	line := []any{"queue", "task_added", "queue_id", t.ID, "depth", got.Depth, "source", string(t.Source)}
	if t.Queue != signalbox.QueueWork {
		line = append(line, "in", t.Queue)
	}
	e.log.Info("", line...)
}

// logFull writes the seed's line for a submit refused because a limit is reached. The limit
// is appended if it is not "work".
func (e *Engine) logFull(sub *store.Submission) {
	line := []any{"queue", "submit_rejected", "reason", "queue_full", "depth", sub.Cap}
	if sub.Task.Limit != signalbox.LimitWork {
		line = append(line, "limit", sub.Task.Limit)
	}
	e.log.Warn("", line...)
}

// attemptOf formats the failed attempt and the maximum. A failure that costs no attempt,
// such as a busy agent, is counted in the line all the same: the seed's line of a busy
// agent has attempt=1/3.
func attemptOf(t *signalbox.Task, kind signalbox.EventKind) string {
	n := t.Attempts
	if kind != signalbox.EventRefuse && kind != signalbox.EventReject {
		n++
	}
	return fmt.Sprintf("%d/%d", n, t.MaxAttempts)
}

// maxLoggedMessage bounds a message in a log line, in bytes: a failed tool's message is all
// of its standard error.
const maxLoggedMessage = 1 << 10

func truncate(message string) string {
	if len(message) <= maxLoggedMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxLoggedMessage], "") + " …"
}

// Audit adds a row to the audit log and returns it. An empty Severity is info.
func (e *Engine) Audit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	a.At = e.Now()
	a.Severity = cmp.Or(a.Severity, "info")
	return e.store.AppendAudit(context.WithoutCancel(ctx), a) // recorded even if the caller has gone
}

// SubmitTrace starts the span of a submit, as a child of the span in ctx or, without one,
// of the calling execution's (parent, "" for none). It returns the traceparent to store
// with the task, and a function to call with the result.
type SubmitTrace func(ctx context.Context, parent string) (trace string, ended func(Receipt, error))

// TraceSubmits sets the function that starts spans of submits. Call it before the engine is
// used.
func (e *Engine) TraceSubmits(f SubmitTrace) { e.trace = f }
