// Command signalbox is one durable queue in front of every AI agent.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/demo"
	"github.com/signalbox-ai/signalbox/internal/proc"
	"github.com/signalbox-ai/signalbox/internal/roles"
	"github.com/signalbox-ai/signalbox/internal/serve"
	"github.com/signalbox-ai/signalbox/internal/serve/agent"
	"github.com/signalbox-ai/signalbox/internal/serve/child"
	"github.com/signalbox-ai/signalbox/internal/serve/director"
	"github.com/signalbox-ai/signalbox/internal/serve/gateway"
	"github.com/signalbox-ai/signalbox/internal/serve/scheduler"
	"github.com/signalbox-ai/signalbox/internal/serve/up"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// version is set by the linker.
var version = "dev"

func main() {
	proc.OwnFiles()
	if err := child.InheritEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, "signalbox:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal has its default effect
	os.Exit(cli.Main(ctx, os.Args[1:], cli.System(), all()))
}

func all() roles.Roles {
	p := serve.Program{
		Version: version, OpenStore: openStore, ExamineStore: examineStore,
		EmptyStore: func() store.Store { return memory.New(memory.Options{}) },
	}
	return roles.Roles{
		Version:   version,
		Up:        with(p, up.Run),
		Director:  with(p, director.Run),
		Agent:     with(p, agent.Run),
		Gateway:   with(p, gateway.Run),
		Scheduler: with(p, scheduler.Run),
		Demo:      func(ctx context.Context, o roles.Demo) error { return demo.Run(ctx, p, o) },
		Examine:   func(ctx context.Context, cfg config.Config) []api.Check { return director.Examine(ctx, p, cfg) },
		CLIs:      up.Examine,
	}
}

func with[O any](p serve.Program, run func(context.Context, serve.Program, config.Config, O) error) func(context.Context, config.Config, O) error {
	return func(ctx context.Context, cfg config.Config, o O) error { return run(ctx, p, cfg, o) }
}
