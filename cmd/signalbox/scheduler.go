package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/alone"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// keyLife is how long a director elsewhere is taken to know a key: it keeps
// tasks for a week, unless queue.retention says otherwise.
const keyLife = 24 * time.Hour

// standaloneScheduler is a scheduler that stands alone, with its parts.
type standaloneScheduler struct {
	cfg       config.Config
	log       *slog.Logger
	listener  net.Listener
	book      *alone.Book
	queue     *alone.Queue
	scheduler *schedule.Scheduler
	metrics   *telemetry.ScheduleMetrics
	tokenFile string // of the token that it made; "": one was given, or none
}

// runScheduler is the scheduler role.
func runScheduler(ctx context.Context, cfg config.Config, o cli.SchedulerOptions) error {
	proc.KeepPrivate()
	s, err := openScheduler(ctx, cfg, o)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer s.close()
	return unlessStopped(ctx, s.run(ctx, o))
}

func openScheduler(ctx context.Context, cfg config.Config, o cli.SchedulerOptions) (s *standaloneScheduler, err error) {
	log, err := newLogger(o.Err, cfg)
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(cfg.Scheduler.Addr); err == nil && cfg.Open && cfg.Scheduler.Token == "" && !isLoopback(host) {
		return nil, fmt.Errorf("a scheduler on %s, which others can reach, needs a token: whoever reaches it can fire its jobs; leave out --open, or give --addr 127.0.0.1:9100", cfg.Scheduler.Addr)
	}
	tokenFile := ""
	if cfg.Scheduler.Token == "" && !cfg.Open {
		tokenFile = config.SchedulerTokenFile(config.Home(os.LookupEnv))
		if cfg.Scheduler.Token, err = config.EnsureSecret(tokenFile); err != nil {
			return nil, fmt.Errorf("the scheduler's token: %w", err)
		}
	}
	s = &standaloneScheduler{cfg: cfg, log: log, tokenFile: tokenFile}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if s.listener, err = listen(ctx, cfg.Scheduler.Addr); err != nil {
		return s, err
	}
	if s.book, err = alone.OpenBook(filepath.Join(cfg.Data, "scheduler"), log); err != nil {
		return s, err
	}
	s.queue = alone.NewQueue(func() (alone.Director, bool, error) {
		url, token, known, err := o.Director()
		return alone.Director{URL: url, Token: token}, known, err
	}, "signalbox-scheduler/"+version)
	s.metrics = telemetry.NewScheduleMetrics(time.Now)
	s.scheduler, err = schedule.New(s.metrics.Book(s.book), s.queue, schedule.Options{Zone: cfg.Scheduler.Timezone, KeyLife: keyLife, Log: log})
	if err != nil {
		return s, err
	}
	s.metrics.Watch(s.scheduler)
	return s, nil
}

// run fires jobs and answers until ctx ends. Firings that are under way then
// stay open in the book, for the next start.
func (s *standaloneScheduler) run(ctx context.Context, o cli.SchedulerOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	followed, err := followJobs(ctx, &s.cfg, s.log, s.scheduler.Sync, nil)
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(followed)
	failed := make(chan error, 1)
	beside.Go(func() {
		failed <- s.scheduler.Run(ctx)
		stop()
	})
	server := alone.NewServer(alone.ServerOptions{
		Scheduler: s.scheduler, Book: s.book, Queue: s.queue, Token: s.cfg.Scheduler.Token, Hosts: s.cfg.Hosts,
		AnyIP: !isLoopback(hostOf(s.listener.Addr())), Version: version, Metrics: s.metrics, Log: s.log,
	})
	url, director := "http://"+reachable(s.listener.Addr()), s.queue.URL()
	if home := config.Home(os.LookupEnv); home != "" {
		file := config.SchedulerFile(home)
		if err := writeJSON(file, api.DirectorFile{URL: url, PID: os.Getpid(), Data: s.cfg.Data, TokenFile: s.tokenFile, StartedAt: time.Now().UTC().Truncate(time.Second)}); err != nil {
			s.log.Warn("signalbox scheduler trigger will not find this scheduler", "error", err)
		}
		defer func() { _ = os.Remove(file) }()
	}
	s.log.Info("scheduler ready", "url", url, "jobs", len(s.cfg.Jobs), "director", director, "data", s.cfg.Data)
	fmt.Fprintf(o.Out, "Signalbox scheduler at %s (jobs: %d)\n", url, len(s.cfg.Jobs))
	switch {
	case s.tokenFile != "":
		fmt.Fprintf(o.Out, "Callers of it show the token in %s\n", s.tokenFile)
	case s.cfg.Scheduler.Token == "":
		fmt.Fprintln(o.Out, "It is open (--open): every user and every program of this host may fire its jobs.")
	}
	switch {
	case len(s.cfg.Jobs) == 0:
		fmt.Fprintln(o.Err, "There are no jobs: write some under jobs in the configuration, and name the file with --config.")
	case director == "":
		fmt.Fprintln(o.Err, "No director is named, and none runs here: what fires until one is there is skipped. Give --director, or director_url in the configuration.")
	}
	err = server.Serve(ctx, s.listener)
	stop()
	return errors.Join(err, <-failed)
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

func (s *standaloneScheduler) close() {
	if s.scheduler != nil {
		s.scheduler.Close()
	}
	if s.book != nil {
		if err := s.book.Close(); err != nil {
			s.log.Error("the scheduler's book was not closed", "error", err)
		}
	}
	if s.listener != nil {
		_ = s.listener.Close() // serving has closed it already, unless it was not reached
	}
}

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
