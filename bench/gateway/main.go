// Command gateway measures what the gateway adds to a tool call: an MCP client
// calls a tool of an MCP server over streamable HTTP, once directly and once
// through /mcp of a real director, and the rounds of both take turns.
//
//	go run ./bench/gateway [--rounds 9] [--calls 300] [--dir DIR] [--json FILE]
//
// Client and server are the official SDK's and run in this process; the
// director is the real binary, with a store on the disk of --dir.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/signalbox-ai/signalbox/bench/internal/figures"
)

func main() {
	rounds := flag.Int("rounds", 9, "how often each figure is measured; medians are shown")
	calls := flag.Int("calls", 300, "calls in a round")
	dir := flag.String("dir", "", "folder for the data (default: the system's temporary folder)")
	out := flag.String("json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all, err := measure(ctx, *dir, *rounds, *calls)
	if err == nil {
		err = figures.Show(all, 3, "", *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
