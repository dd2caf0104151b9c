// Command dashboard measures what the pages cost a browser, headless Chromium,
// and makes the pictures of the documentation.
//
//	go run ./bench/dashboard [--rows 1000] [--rate 200] [--span 10s] [--rounds 3] [--loads 10] [--json FILE]
//	go run ./bench/dashboard --screens docs/pages
//
// Under load: the pages as they are, and a director of this program's own that
// says what a real one would say: so many tasks that run, so many of them with
// news in each second, put together five times a second. Its control is a plain
// table that writes each piece of news at once. Share and frames are taken in
// turns within one run.
//
// The first page: the real binary, through a wire that counts what goes over
// it, and without one for the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/browser"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/figures"
)

// settings are what the command line says.
type settings struct {
	rows, rate, rounds, loads int
	span                      time.Duration
	screens, json             string
}

func main() {
	var s settings
	flag.IntVar(&s.rows, "rows", 1000, "tasks that run")
	flag.IntVar(&s.rate, "rate", 200, "tasks with news in a second")
	flag.DurationVar(&s.span, "span", 10*time.Second, "length of a round")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds; medians are shown")
	flag.IntVar(&s.loads, "loads", 10, "loads of the first page; medians are shown")
	flag.StringVar(&s.screens, "screens", "", "make the pictures of the documentation in this folder instead")
	flag.StringVar(&s.json, "json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench/dashboard:", err)
		os.Exit(1)
	}
}

// bench holds what the parts share.
type bench struct {
	settings
	dir     string
	binary  string
	browser *browser.Browser
	figures []figures.Figure
}

func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "signalbox-pages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{settings: s, dir: dir}
	if b.binary, err = director.Build(ctx, dir); err != nil {
		return err
	}
	if b.browser, err = browser.Start(ctx, dir); err != nil {
		return err
	}
	defer b.browser.Stop()
	if s.screens != "" {
		return b.shoot(ctx)
	}
	for _, part := range []func(context.Context) error{b.load, b.firstPage} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return figures.Show(b.figures, 1, "medians", s.json)
}

func (b *bench) add(name string, value float64, unit, target string, met *bool, note string) {
	b.figures = append(b.figures, figures.Figure{Name: name, Value: value, Unit: unit, Target: target, Met: met, Note: note})
	fmt.Fprintf(os.Stderr, "%-80s %10.1f %s\n", name, value, unit)
}

func is(met bool) *bool { return &met }
