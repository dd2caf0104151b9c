// Package serve has what the long-running roles of the program share: how they listen,
// log and follow their configuration, and how other programs of the same user find them.
// Each role is a package below it.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// Program is what a role needs to know about the program that it is part of.
type Program struct {
	Version string
	// OpenStore opens the store that a configuration names.
	OpenStore func(ctx context.Context, cfg config.Config, log *slog.Logger) (store.Store, error)
	// ExamineStore runs doctor's checks of the store that a configuration names, when no
	// director has it open.
	ExamineStore func(ctx context.Context, cfg config.Config) []api.Check
	// EmptyStore makes a store that keeps nothing beyond the process.
	EmptyStore func() store.Store
}

// BridgeCommand serves the tools of a director or gateway of the same user to one MCP
// client.
const BridgeCommand = "signalbox gateway --stdio"

// NewLogger makes the logger that a configuration asks for.
func NewLogger(w io.Writer, cfg config.Config) (*slog.Logger, error) {
	level, err := telemetry.ParseLevel(cfg.Log.Level)
	if err != nil {
		return nil, err
	}
	return telemetry.NewLogger(w, cfg.Log.Format, level)
}

// UnlessStopped returns err, or nil if err comes from the end of ctx.
func UnlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// StartOTel starts the export of traces and metrics until g stops.
func StartOTel(ctx context.Context, g *lifecycle.Group, log *slog.Logger, o telemetry.OTelOptions) *telemetry.OTel {
	o.Log = log
	otel := telemetry.StartOTel(ctx, o)
	g.Close("OpenTelemetry", otel.Close)
	return otel
}

// Stop stops what a role has started, and logs what went wrong.
func Stop(g *lifecycle.Group, log *slog.Logger) {
	if err := g.Stop(); err != nil {
		log.Error("not stopped cleanly", "error", err)
	}
}

// Keep returns the retention of ended tasks from a configuration.
func Keep(q *config.Queue) engine.Retention {
	return engine.Retention{For: q.Retention, Bytes: int64(q.RetentionBytes), OwnerBytes: int64(q.CallerRetentionBytes)}
}

// List joins words to a list that fits on one line.
func List(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
