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

// logChange writes the seed's log lines (work-queue, Observability). The
// message is empty: the line is its fields.
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
			e.log.Info("", "queue", "task_ended", "queue_id", t.ID, "state", string(t.State), "reason", string(t.Reason), "message", briefly(t.Message))
			return
		}
		e.log.Info("", "queue", "task_"+string(entry.Kind), "queue_id", t.ID, "state", string(t.State))
	}
}

// logSubmit writes the seed's line of a submit. depth is how many wait under the
// limit of the task, which is work unless it goes to an agent or is a tool call.
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

// logFull writes the seed's line of a submit for which there was no room. The
// limit stands behind it where it is not that of the work queue.
func (e *Engine) logFull(sub *store.Submission) {
	line := []any{"queue", "submit_rejected", "reason", "queue_full", "depth", sub.Cap}
	if sub.Task.Limit != signalbox.LimitWork {
		line = append(line, "limit", sub.Task.Limit)
	}
	e.log.Warn("", line...)
}

// attemptOf says which attempt failed, of how many. One that costs none, such as
// at an agent that was busy, is counted where it is told of: the seed's line of
// a busy agent has attempt=1/3.
func attemptOf(t *signalbox.Task, kind signalbox.EventKind) string {
	n := t.Attempts
	if kind != signalbox.EventRefuse && kind != signalbox.EventReject {
		n++
	}
	return fmt.Sprintf("%d/%d", n, t.MaxAttempts)
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

// Audit adds a row to the audit log. The caller fills in who, what and how it
// went; an empty Severity is info.
func (e *Engine) Audit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	a.At = e.Now()
	a.Severity = cmp.Or(a.Severity, "info")
	return e.store.AppendAudit(context.WithoutCancel(ctx), a) // what was done is recorded though the caller has gone
}

// SubmitTrace makes the span of a submit: of what ctx carries, or, where that
// is nothing, of the execution that makes the call (parent, "" for none). It
// returns the traceparent to store with the task, and what is to be told of how
// the submit ended.
type SubmitTrace func(ctx context.Context, parent string) (trace string, ended func(Receipt, error))

// TraceSubmits has f make the spans of submits. Call it before the engine is
// used.
func (e *Engine) TraceSubmits(f SubmitTrace) { e.trace = f }
