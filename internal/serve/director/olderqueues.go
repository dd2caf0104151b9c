package director

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/port"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// noteOlderQueues logs how to import tasks that another queue left in the data folder or
// the store. A director understands the variables of that queue, and may have been started
// in its place.
func noteOlderQueues(ctx context.Context, cfg config.Config, have store.Reader, log *slog.Logger) {
	left := 0
	for _, folder := range []string{"pending", "dispatched"} {
		files, _ := filepath.Glob(filepath.Join(cfg.Data, folder, "*.json"))
		left += len(files)
	}
	if left > 0 {
		log.Warn("the data folder has tasks of another work queue, which are not imported automatically: run signalbox import",
			"tasks", left, "command", "signalbox import "+cfg.Data)
	}
	if strings.HasPrefix(cfg.Store, "redis:") || strings.HasPrefix(cfg.Store, "rediss:") {
		noteOlderExecutions(ctx, cfg, have, log)
	}
}

// olderQueuesTime limits the search for executions in Redis.
const olderQueuesTime = 2 * time.Second

// noteOlderExecutions searches the store's Redis for executions of another queue that were
// not imported. A search that times out does not stop the director.
func noteOlderExecutions(ctx context.Context, cfg config.Config, have store.Reader, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, olderQueuesTime)
	defer cancel()
	command := "signalbox import redis://… (the URL of the store)"
	if u, err := url.Parse(cfg.Store); cfg.Origin("store") == "REDIS_URL" {
		command = `signalbox import "$REDIS_URL"`
	} else if err == nil {
		command = "signalbox import " + u.Redacted()
	}
	key, err := port.LeftInRedis(ctx, cfg.Store, func(t *api.ExportedTask) (bool, error) {
		_, err := have.ByKey(ctx, t.Key)
		if signalbox.CodeOf(err) == signalbox.CodeNotFound {
			return false, nil
		}
		return true, err
	})
	switch {
	case key != "":
		log.Warn("the Redis of the store has tasks of another execution queue, which are not imported automatically: run signalbox import",
			"key", key, "command", command)
	case err != nil:
		log.Info("could not check the Redis of the store for tasks of another execution queue; signalbox import imports them",
			"error", err, "command", command)
	}
}
