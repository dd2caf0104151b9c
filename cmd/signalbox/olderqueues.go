package main

import (
	"log/slog"
	"path/filepath"

	"github.com/signalbox-ai/signalbox/internal/config"
)

// noteOlderQueues says how tasks are taken over that another queue may have left
// where this director has its data: its names of the variables are taken, its
// tasks are not.
func noteOlderQueues(cfg config.Config, log *slog.Logger) {
	left := 0
	for _, folder := range []string{"pending", "dispatched"} {
		files, _ := filepath.Glob(filepath.Join(cfg.Data, folder, "*.json"))
		left += len(files)
	}
	if left > 0 {
		log.Warn("the data folder has tasks of another work queue, which are not taken by themselves: signalbox import takes them",
			"tasks", left, "command", "signalbox import "+cfg.Data)
	}
	if cfg.Origin("store") == "REDIS_URL" {
		log.Info("REDIS_URL is the store; an execution queue that has used it (agent:queue:* keys) is taken over by: signalbox import \"$REDIS_URL\"")
	}
}
