package director

import (
	"context"
	"log/slog"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/lifecycle"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/embedded"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// jobs is the scheduler of a director, and follows the configuration file.
type jobs struct {
	cfg       *config.Config
	log       *slog.Logger
	scheduler *schedule.Scheduler // nil: jobs are left to a standalone scheduler
	reload    func(config.Config) // called when the file was read again
	running   lifecycle.Group
}

// newJobs makes the scheduler, unless the configuration leaves the jobs to a standalone
// one.
func newJobs(cfg *config.Config, e *engine.Engine, metrics *telemetry.Metrics, reload func(config.Config), log *slog.Logger) (*jobs, error) {
	j := &jobs{cfg: cfg, log: log, reload: reload}
	if !cfg.Scheduler.Enabled {
		if n := len(cfg.Jobs); n > 0 {
			log.Info("the jobs of the configuration are left to signalbox scheduler", "jobs", n)
		}
		return j, nil
	}
	counted, queue := metrics.Schedules(e.Now), embedded.NewQueue(e)
	var err error
	j.scheduler, err = schedule.New(counted.Store(embedded.NewStore(e, log)), queue,
		schedule.Options{Zone: cfg.Scheduler.Timezone, Now: e.Now, KeyLife: cfg.Queue.Retention, Log: log, Check: queue.Check})
	if err != nil {
		return nil, err
	}
	counted.Watch(j.scheduler)
	return j, nil
}

func (j *jobs) into(c *httpapi.Config) {
	if j.scheduler != nil {
		c.Schedules = j.scheduler
	}
}

// Start stores the jobs of the configuration and fires them until Stop.
func (j *jobs) Start(ctx context.Context) error {
	if j.scheduler == nil {
		serve.Follow(ctx, &j.running, j.cfg, config.Follow{Log: j.log, Read: j.reload})
		return nil
	}
	if err := serve.FollowJobs(ctx, &j.running, j.cfg, j.log, j.scheduler.Sync, j.reload); err != nil {
		return err
	}
	j.running.Go(ctx, func(ctx context.Context) {
		if err := j.scheduler.Run(ctx); err != nil {
			j.log.Error("the scheduler has stopped", "error", err)
		}
	})
	return nil
}

// Stop stops the scheduler. Firings in progress stay open for the next start.
func (j *jobs) Stop() {
	serve.Stop(&j.running, j.log)
	if j.scheduler != nil {
		j.scheduler.Close()
	}
}
