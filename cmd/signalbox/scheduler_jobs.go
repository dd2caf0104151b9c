package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// followJobs hands the jobs of the configuration to a scheduler, and again
// whenever they change in the file, until ctx ends; stopped waits for that. It
// fails where they cannot be taken now, but for a name that a schedule of the
// API has: that is tried again, for it takes a running director to remove it.
func followJobs(ctx context.Context, cfg *config.Config, log *slog.Logger, take takeJobs, read func(config.Config)) (stopped func(), err error) {
	if err := take(ctx, config.Schedules(cfg.Jobs)); err != nil && signalbox.CodeOf(err) != signalbox.CodeConflict {
		return nil, err
	}
	return followFile(ctx, cfg, config.Follow{Log: log, Read: read, Take: func(ctx context.Context, jobs []config.Job) error {
		return take(ctx, config.Schedules(jobs))
	}}), nil
}

type takeJobs func(context.Context, []signalbox.Schedule) error

// followFile follows the configuration until ctx ends; stopped waits for that.
func followFile(ctx context.Context, cfg *config.Config, f config.Follow) (stopped func()) {
	again, quiet := hangups()
	f.Now = again
	var group sync.WaitGroup
	group.Go(func() {
		defer quiet()
		cfg.FollowJobs(ctx, f)
	})
	return group.Wait
}

// hangups are the signals that ask a service to read its configuration again.
// Of a program that a person started in a terminal they say that the terminal
// was closed, which ends it as ever.
func hangups() (signals <-chan os.Signal, stop func()) {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
