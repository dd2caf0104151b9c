// Command signalbox is one durable queue in front of every AI agent.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/signalbox-ai/signalbox/internal/cli"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// version is set by the linker.
var version = "dev"

func main() {
	proc.OwnFiles()
	if err := takeOver(); err != nil {
		fmt.Fprintln(os.Stderr, "signalbox:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal is not swallowed
	code := cli.Main(ctx, os.Args[1:], cli.System(), cli.Roles{
		Version: version, Up: runUp, Director: runDirector, Agent: runAgent, Gateway: runGateway, Demo: runDemo,
		Scheduler: runScheduler, Examine: examine, CLIs: examineCLIs,
	})
	os.Exit(code)
}
