// Package scheduler runs the standalone scheduler: it submits the jobs of its
// configuration to the queue of a director.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/standalone"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// keyLife is how long a director is assumed to remember an idempotency key. A director
// keeps tasks for a week, unless queue.retention says otherwise.
const keyLife = 24 * time.Hour

// process is a scheduler without a director, with its parts.
type process struct {
	version   string
	cfg       config.Config
	log       *slog.Logger
	listener  net.Listener
	store     *standalone.Store
	queue     *standalone.Queue
	scheduler *schedule.Scheduler
	metrics   *telemetry.ScheduleMetrics
	tokenFile string // file of the generated token; "": the token was given, or there is none
	running   lifecycle.Group
}

// Run runs a scheduler until ctx ends.
func Run(ctx context.Context, p serve.Program, cfg config.Config, o roles.Scheduler) error {
	proc.KeepPrivate()
	log, err := serve.NewLogger(o.Err, cfg)
	if err != nil {
		return err
	}
	s := &process{version: p.Version, cfg: cfg, log: log}
	defer serve.Stop(&s.running, log)
	if err := s.open(ctx, o); err != nil {
		return serve.UnlessStopped(ctx, err)
	}
	return serve.UnlessStopped(ctx, s.run(ctx, o))
}

func (s *process) open(ctx context.Context, o roles.Scheduler) (err error) {
	c := &s.cfg.Scheduler
	if s.cfg.Open && c.Token == "" && !serve.IsLoopback(c.Addr) {
		return fmt.Errorf("a scheduler on %s, which others can reach, needs a token: everybody who can reach it could fire its jobs; leave out --open, or give --addr 127.0.0.1:9100", c.Addr)
	}
	if c.Token == "" && !s.cfg.Open {
		s.tokenFile = config.SchedulerTokenFile(config.Home(os.LookupEnv))
		if c.Token, err = config.EnsureSecret(s.tokenFile); err != nil {
			return fmt.Errorf("the scheduler's token: %w", err)
		}
	}
	if s.listener, err = serve.ListenUntil(ctx, &s.running, c.Addr); err != nil {
		return err
	}
	if s.store, err = standalone.OpenStore(filepath.Join(s.cfg.Data, "scheduler"), s.log); err != nil {
		return err
	}
	s.running.Close("the scheduler's file", s.store.Close)
	s.queue = standalone.NewQueue(func() (standalone.Director, bool, error) {
		url, token, known, err := o.Director()
		return standalone.Director{URL: url, Token: token}, known, err
	}, "signalbox-scheduler/"+s.version)
	s.metrics = telemetry.NewScheduleMetrics(time.Now)
	s.scheduler, err = schedule.New(s.metrics.Store(s.store), s.queue, schedule.Options{Zone: c.Timezone, KeyLife: keyLife, Log: s.log})
	if err != nil {
		return err
	}
	s.running.Defer(s.scheduler.Close)
	s.metrics.Watch(s.scheduler)
	return nil
}

// run fires jobs and serves until ctx ends. Firings in progress stay open in the store for
// the next start.
func (s *process) run(ctx context.Context, o roles.Scheduler) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := serve.FollowJobs(ctx, &s.running, &s.cfg, s.log, s.scheduler.Sync, nil); err != nil {
		return err
	}
	failed := make(chan error, 1)
	s.running.Go(ctx, func(ctx context.Context) {
		failed <- s.scheduler.Run(ctx)
		stop()
	})
	server := standalone.NewServer(standalone.ServerOptions{
		Scheduler: s.scheduler, Store: s.store, Queue: s.queue, Token: s.cfg.Scheduler.Token, Hosts: s.cfg.Hosts,
		AnyIP: !serve.IsLoopback(s.listener.Addr().String()), Version: s.version, Metrics: s.metrics, Log: s.log,
	})
	url, director := serve.URL(s.listener), s.queue.URL()
	if home := config.Home(os.LookupEnv); home != "" {
		file := config.SchedulerFile(home)
		if err := serve.WriteJSON(file, serve.Self(s.cfg, url, s.tokenFile)); err != nil {
			s.log.Warn("signalbox scheduler trigger will not find this scheduler", "error", err)
		}
		defer func() { _ = os.Remove(file) }()
	}
	s.log.Info("scheduler ready", "url", url, "jobs", len(s.cfg.Jobs), "director", director, "data", s.cfg.Data)
	fmt.Fprintf(o.Out, "Signalbox scheduler at %s (jobs: %d)\n", url, len(s.cfg.Jobs))
	switch {
	case s.tokenFile != "":
		fmt.Fprintf(o.Out, "Callers need the token in %s\n", s.tokenFile)
	case s.cfg.Scheduler.Token == "":
		fmt.Fprintln(o.Out, "The scheduler is open (--open): every user and every program of this host may fire its jobs.")
	}
	switch {
	case len(s.cfg.Jobs) == 0:
		fmt.Fprintln(o.Err, "There are no jobs: write some under jobs in the configuration, and name the file with --config.")
	case director == "":
		fmt.Fprintln(o.Err, "No director is configured, and none runs here: firings are skipped until there is one. Give --director, or director_url in the configuration.")
	}
	err := server.Serve(ctx, s.listener)
	stop()
	return errors.Join(err, <-failed)
}
