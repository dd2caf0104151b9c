package engine

import (
	"context"

	"github.com/signalbox-ai/signalbox"
)

// Audit adds a row to the audit log. The caller fills in who, what and how it
// went; an empty Severity is info.
func (e *Engine) Audit(ctx context.Context, a signalbox.Audit) (signalbox.Audit, error) {
	a.At = e.Now()
	if a.Severity == "" {
		a.Severity = "info"
	}
	return e.store.AppendAudit(context.WithoutCancel(ctx), a) // what was done is recorded though the caller has gone
}
