package serve

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
)

// Follow follows the configuration file until g stops.
func Follow(ctx context.Context, g *lifecycle.Group, cfg *config.Config, f config.Follow) {
	again, quiet := hangups()
	f.Now = again
	g.Defer(quiet)
	g.Go(ctx, func(ctx context.Context) { cfg.FollowJobs(ctx, f) })
}

// FollowJobs passes the jobs of the configuration to a scheduler, and again whenever
// they change in the file, until g stops. It fails if they cannot be stored now. If a
// schedule of the API has the name of a job, it retries later instead: only a running
// director can remove that schedule.
func FollowJobs(ctx context.Context, g *lifecycle.Group, cfg *config.Config, log *slog.Logger,
	sync func(context.Context, []signalbox.Schedule) error, read func(config.Config)) error {
	take := func(ctx context.Context, jobs []config.Job) error { return sync(ctx, config.Schedules(jobs)) }
	if err := take(ctx, cfg.Jobs); err != nil && signalbox.CodeOf(err) != signalbox.CodeConflict {
		return err
	}
	Follow(ctx, g, cfg, config.Follow{Log: log, Read: read, Take: take})
	return nil
}

// hangups receives the signals that ask a service to reload its configuration. At a
// terminal SIGHUP means that the terminal is gone, and ends the program.
func hangups() (signals <-chan os.Signal, stop func()) {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
