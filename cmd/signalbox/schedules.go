package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/director"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/inside"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// schedules is the scheduler within a director, and what follows the file of
// the configuration.
type schedules struct {
	cfg       *config.Config
	log       *slog.Logger
	scheduler *schedule.Scheduler // nil: the jobs are left to one that stands alone
	reread    func(config.Config) // told when the file has been read again
	running   sync.WaitGroup
	stop      context.CancelFunc
}

// newSchedules makes the scheduler, unless the configuration leaves that to
// one that stands alone.
func newSchedules(cfg *config.Config, e *engine.Engine, metrics *telemetry.Metrics, log *slog.Logger) (*schedules, error) {
	if !cfg.Scheduler.Enabled {
		if n := len(cfg.Jobs); n > 0 {
			log.Info("the jobs of the configuration are left to signalbox scheduler", "jobs", n)
		}
		return &schedules{cfg: cfg, log: log}, nil
	}
	counted, queue := metrics.Schedules(e.Now), inside.NewQueue(e)
	scheduler, err := schedule.New(counted.Book(inside.NewBook(e, log)), queue,
		schedule.Options{Zone: cfg.Scheduler.Timezone, Now: e.Now, KeyLife: cfg.Queue.Retention, Log: log, Check: queue.Check})
	if err != nil {
		return nil, err
	}
	counted.Watch(scheduler)
	return &schedules{cfg: cfg, log: log, scheduler: scheduler}, nil
}

// into gives a director its scheduler.
func (s *schedules) into(c *director.Config) {
	if s.scheduler != nil {
		c.Schedules = s.scheduler
	}
}

// start takes the jobs of the configuration and fires from then on, until stop.
func (s *schedules) start(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	if s.scheduler == nil {
		s.running.Go(followFile(ctx, s.cfg, config.Follow{Log: s.log, Read: s.reread}))
		return nil
	}
	stopped, err := followJobs(ctx, s.cfg, s.log, s.scheduler.Sync, s.reread)
	if err != nil {
		return err
	}
	s.running.Go(stopped)
	s.running.Go(func() {
		if err := s.scheduler.Run(ctx); err != nil {
			s.log.Error("the scheduler has stopped", "error", err)
		}
	})
	return nil
}

// close ends it. Firings that are under way stay open, for the next start.
func (s *schedules) close() {
	if s == nil {
		return
	}
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
	if s.scheduler != nil {
		s.scheduler.Close()
	}
}
