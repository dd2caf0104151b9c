// Command signalbox is one durable queue in front of every AI agent.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/config"
	"github.com/signalbox-ai/signalbox/internal/demo"
	"github.com/signalbox-ai/signalbox/internal/proc"
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
	os.Exit(cli.Main(ctx, os.Args[1:], cli.System(), roles()))
}

func roles() cli.Roles {
	p := serve.Program{Version: version, OpenStore: openStore, EmptyStore: func() store.Store { return memory.New(memory.Options{}) }}
	return cli.Roles{
		Version: version,
		Up:      func(ctx context.Context, cfg config.Config, o cli.UpOptions) error { return up.Run(ctx, p, cfg, o) },
		Director: func(ctx context.Context, cfg config.Config, o cli.DirectorOptions) error {
			return director.Run(ctx, p, cfg, serve.Streams(o))
		},
		Agent: func(ctx context.Context, cfg config.Config, o cli.AgentOptions) error {
			return agent.Run(ctx, p, cfg, o)
		},
		Gateway: func(ctx context.Context, cfg config.Config, o cli.GatewayOptions) error {
			return gateway.Run(ctx, p, cfg, o)
		},
		Scheduler: func(ctx context.Context, cfg config.Config, o cli.SchedulerOptions) error {
			return scheduler.Run(ctx, p, cfg, o)
		},
		Demo:    func(ctx context.Context, o cli.DemoOptions) error { return demo.Run(ctx, p, o) },
		Examine: examine,
		CLIs:    up.Examine,
	}
}
