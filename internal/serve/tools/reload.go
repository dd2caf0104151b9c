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

// Reload takes what may change while tools run: larger bounds of their queues. The log
// has what was raised and what was not.
func (t *Tools) Reload(fresh config.Config) {
	raiseQueues(t.queues, fresh.Tools.ToolQueues(), t.log)
	before, after := t.config, fresh.Tools
	before.Queues, after.Queues, before.Notes, after.Notes = nil, nil, nil, nil
	if !reflect.DeepEqual(before, after) {
		t.log.Warn("the tools of the configuration have changed: all but greater bounds of tool queues needs a restart")
	}
}

// raiseQueues raises the bounds of existing queues.
func raiseQueues(queues *toolqueue.Queues, want map[string]toolqueue.Config, log *slog.Logger) {
	raise := map[string]toolqueue.Config{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		is, there := queues.Status(name, 0)
		if !there {
			log.Warn("a new tool queue needs a restart", "queue", name)
			continue
		}
		to, c := want[name], toolqueue.Config{Concurrent: is.Concurrent}
		bound(log, name, "concurrent", is.Concurrent, to.Concurrent, &c.Concurrent)
		bound(log, name, "max_waiters", is.MaxWaiters, to.MaxWaiters, &c.MaxWaiters)
		bound(log, name, "max_wait", is.MaxWait, to.MaxWait, &c.MaxWait)
		if to.Lease != is.Lease || to.Shared != is.Shared {
			log.Warn("session and shared of a tool queue need a restart", "queue", name)
		}
		raise[name] = c
	}
	for _, s := range queues.All(0) {
		if _, there := want[s.Name]; !there && len(want) > 0 {
			log.Warn("a tool queue that is no longer in the configuration stays until a restart", "queue", s.Name)
		}
	}
	if err := queues.Configure(raise); err != nil {
		log.Error("the tool queues were not raised", "error", err)
	}
}

// bound takes a larger bound, and logs it; any other change waits for a restart. 0 is
// no bound: it is neither raised nor set while calls may wait.
func bound[N int | time.Duration](log *slog.Logger, queue, key string, is, to N, take *N) {
	switch {
	case to == is:
	case is > 0 && to > is:
		*take = to
		log.Info("tool queue raised", "queue", queue, key, to, "before", is)
	default:
		log.Warn("a bound of a tool queue is only raised while it runs: it stays until a restart", "queue", queue, "key", key, "stays", is, "configured", to)
	}
}
