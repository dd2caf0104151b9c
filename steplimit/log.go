package steplimit

import (
	"context"
	"fmt"
	"log/slog"
)

// logger writes the lines of the seed. Each also has its parts as attributes.
type logger struct {
	to     *slog.Logger
	prefix string
}

func (l logger) line(level slog.Level, t *ticket, text string, more ...any) {
	if l.to == nil {
		return
	}
	attrs := append([]any{"step", t.s.number, "tool", t.call.Name, "call_id", t.call.ID}, more...)
	l.to.Log(context.Background(), level, l.prefix+" "+text, attrs...)
}

func (l logger) position(t *ticket) {
	l.line(slog.LevelInfo, t, fmt.Sprintf("Step %d, Tool %d/%d: %s", t.s.number, t.pos, t.s.limit, called(t)), "position", t.pos, "limit", t.s.limit)
}

func (l logger) executing(t *ticket) {
	l.line(slog.LevelInfo, t, "Executing tool: "+called(t))
}

func (l logger) completed(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool execution completed: "+called(t))
}

func (l logger) refused(t *ticket) {
	l.line(slog.LevelWarn, t, fmt.Sprintf("Tool call %s exceeds parallel limit (%d). Returning rate limit error.", called(t), t.s.limit), "limit", t.s.limit)
}

func (l logger) queued(t *ticket) {
	l.line(slog.LevelInfo, t, fmt.Sprintf("Tool call %s exceeds parallel limit (%d). Waiting for its turn.", called(t), t.s.limit), "limit", t.s.limit)
}

func (l logger) asked(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool call "+called(t)+" needs approval. Waiting for a person.")
}

func (l logger) unapproved(t *ticket) {
	l.line(slog.LevelWarn, t, "Tool call "+called(t)+" was not approved. It is not executed.")
}

func (l logger) failed(t *ticket, err error) {
	l.line(slog.LevelWarn, t, "Tool execution failed: "+called(t), "error", err)
}

func (l logger) aborted(t *ticket) {
	l.line(slog.LevelInfo, t, "Tool execution aborted: "+called(t))
}

// called is the seed's form for a call.
func called(t *ticket) string { return t.call.Name + " (ID: " + t.call.ID + ")" }
