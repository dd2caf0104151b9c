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
	var b bench
	flag.IntVar(&b.rounds, "rounds", 9, "how often each figure is measured; medians are shown")
	flag.IntVar(&b.runs, "runs", 300, "runs in a round")
	flag.StringVar(&b.profile, "profile", "", "file for a CPU profile of the whole path in this process")
	dir := flag.String("dir", "", "folder for the data (default: the system's temporary folder)")
	out := flag.String("json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := b.measure(ctx, *dir)
	if err == nil {
		err = figures.Show(b.figures, 2, "limits by "+b.method, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
