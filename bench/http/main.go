// Command http measures the promises about latency and throughput over HTTP
// against the real binary: it builds it, starts a director over SQLite on the
// disk of --dir, and an agent daemon, and prints one table.
//
//	go run ./bench/http [--rounds 5] [--dir DIR] [--json FILE]
//
// Figures that compare are measured in turns within one run. The one with
// 1 ms added to each sync needs strace and is left out without it.
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
	rounds := flag.Int("rounds", 5, "how often each figure is measured; medians are shown")
	dir := flag.String("dir", "", "folder for the data, on the disk to measure (default: the system's temporary folder)")
	out := flag.String("json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all, err := measure(ctx, *dir, *rounds)
	if err == nil {
		err = figures.Show(all, 2, "", *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, dir string, rounds int) ([]figures.Figure, error) {
	work, err := os.MkdirTemp(dir, "signalbox-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	b := &bench{dir: work, rounds: rounds}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	for _, section := range []func(context.Context) error{b.latencies, b.throughput, b.syncs, b.slowThroughput} {
		if err := section(ctx); err != nil {
			return nil, err
		}
	}
	return b.figures, nil
}
