package tools

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Reload applies the settings that may change while tools run: the limits of their queues. It
// applies only values that differ from the previous content of the file, so that settings made
// by hand stay. It logs what it set, and what needs a restart.
func (t *Tools) Reload(fresh config.Config) {
	setQueues(t.queues, t.read, fresh.Tools.ToolQueues(), t.log)
	t.read = fresh.Tools.ToolQueues()
	t.Gateway.QueuesChanged()
	before, after := t.config, fresh.Tools
	before.Queues, after.Queues, before.Notes, after.Notes = nil, nil, nil, nil
	if !reflect.DeepEqual(before, after) {
		t.log.Warn("the tools of the configuration have changed: all changes except the limits of tool queues need a restart")
	}
}

// setQueues sets the limits of existing queues that differ from those read before.
func setQueues(queues *toolqueue.Queues, read, want map[string]toolqueue.Config, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		to, was := want[name], read[name]
		if _, there := queues.Status(name, 0); !there {
			log.Warn("a new tool queue needs a restart", "queue", name)
			continue
		}
		if to.Lease != was.Lease || to.Shared != was.Shared {
			log.Warn("session and shared of a tool queue need a restart", "queue", name)
		}
		if to.PerKey != was.PerKey {
			log.Warn("per of a tool queue needs a restart", "queue", name)
		}
		// Whether a queue has a max_wait decides which timeout the calls of its tools have.
		if (to.MaxWait > 0) != (was.MaxWait > 0) {
			log.Warn("whether a tool queue has a max_wait needs a restart", "queue", name)
			to.MaxWait = was.MaxWait
		}
		before, after, err := queues.Update(name, func(c *toolqueue.Config) {
			if to.Concurrent != was.Concurrent {
				c.Concurrent = to.Concurrent
			}
			if to.MaxWaiters != was.MaxWaiters {
				c.MaxWaiters = to.MaxWaiters
			}
			if to.MaxWait != was.MaxWait {
				c.MaxWait = to.MaxWait
			}
			if to.Rate != was.Rate {
				c.Rate = to.Rate
			}
		})
		if err != nil {
			log.Error("a tool queue was not changed", "queue", name, "error", err)
			continue
		}
		changed(log, name, "concurrent", before.Concurrent, after.Concurrent)
		changed(log, name, "max_waiters", before.MaxWaiters, after.MaxWaiters)
		changed(log, name, "max_wait", before.MaxWait, after.MaxWait)
		changed(log, name, "rate", before.Rate, after.Rate)
	}
	for _, s := range queues.All(0) {
		if _, there := want[s.Name]; !there && len(want) > 0 {
			log.Warn("a tool queue that is no longer in the configuration stays until a restart", "queue", s.Name)
		}
	}
}

func changed[N int | time.Duration | toolqueue.Rate](log *slog.Logger, queue, key string, before, after N) {
	if before != after {
		log.Info("tool queue changed", "queue", queue, key, after, "before", before)
	}
}
