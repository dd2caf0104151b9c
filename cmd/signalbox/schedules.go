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

// schedules is the scheduler within a director; nil where there is none.
type schedules struct {
	cfg       *config.Config
	log       *slog.Logger
	scheduler *schedule.Scheduler
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
		return nil, nil
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
	if s != nil {
		c.Schedules = s.scheduler
	}
}

// start takes the jobs of the configuration and fires from then on, until stop.
func (s *schedules) start(ctx context.Context) error {
	if s == nil {
		return nil
	}
	ctx, s.stop = context.WithCancel(ctx)
	stopped, err := followJobs(ctx, s.cfg, s.log, s.scheduler.Sync)
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
	s.scheduler.Close()
}
