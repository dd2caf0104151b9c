package main

import (
	"context"
	"log/slog"
	"reflect"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/config"
)

// followSteps has the limit of the steps of an agent of kind llm follow the file
// of the configuration until ctx ends; stopped waits for that. Agents of other
// kinds have nothing that may change while they run.
func followSteps(ctx context.Context, cfg *config.Config, steps *runner.Steps, log *slog.Logger) (stopped func()) {
	if steps == nil || cfg.File == "" {
		return func() {}
	}
	kind, was := cfg.Agent.Kind, cfg.Agent.LLM
	return followFile(ctx, cfg, config.Follow{Log: log, Read: func(fresh config.Config) {
		fresh = fresh.For(kind)
		is := fresh.Agent.LLM
		steps.Set(is.MaxParallelToolCalls, is.MinParallelToolCalls)
		log.Info("limit of the steps that begin from now on", "max_parallel_tool_calls", is.MaxParallelToolCalls, "min_parallel_tool_calls", is.MinParallelToolCalls)
		is.MaxParallelToolCalls, is.MinParallelToolCalls = was.MaxParallelToolCalls, was.MinParallelToolCalls
		if !reflect.DeepEqual(is, was) {
			log.Warn("agent.llm has changed in the configuration: all but the limit of the steps needs a restart")
		}
	}})
}
