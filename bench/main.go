// Command bench compares Signalbox with its peers and with the limit of the machine, in
// turns, on the same work with the same durability. It writes its figures as JSON and
// as a Markdown page.
//
//	cd bench && go run .                          everything, five rounds
//	cd bench && go run . -only postgres/cycle     figures with this in their names; several, separated by commas
//	cd bench && go run . -only sqlite -json ""    a part, without changing the committed figures
//	cd bench && go run ./compare -old ../../before -only sqlite   this tree and an older checkout, in turns
//	cd bench && go run . -docs ../docs/benchmarks.md   the page again, from the existing figures
//
// Parts can be measured separately: figures replace the same ones in the file and have
// their own date. Progress goes to standard error, a table of the results to standard
// output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/bench/dashboard"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/page"
	"github.com/signalbox-ai/signalbox/bench/internal/results"
	"github.com/signalbox-ai/signalbox/bench/rest"
	"github.com/signalbox-ai/signalbox/bench/servers"
)

// settings are the command line options.
type settings struct {
	measure.Options
	only, json, docs, profile, screens string
	list                               bool
	gogc                               int
}

func main() {
	if os.Getenv(rest.Constant) != "" { // started by this program itself
		fmt.Fprintln(os.Stderr, "bench:", rest.ServeConstant())
		os.Exit(1)
	}
	if order := os.Getenv(servers.Part); order != "" { // likewise
		if err := servers.RunPart(context.Background(), order, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench: a director:", err)
			os.Exit(1)
		}
		return
	}
	var s settings
	flag.IntVar(&s.Rounds, "rounds", 5, "rounds; medians and spreads are shown")
	flag.DurationVar(&s.Span, "span", 500*time.Millisecond, "how long a side works in a round")
	flag.StringVar(&s.only, "only", "", "only figures with one of these comma-separated words in their names")
	flag.BoolVar(&s.Quick, "quick", false, "one short round with small numbers, to check that everything works; stores nothing")
	flag.BoolVar(&s.Ours, "ours", false, "skip peers and limits that no figure needs")
	flag.StringVar(&s.Dir, "dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	flag.StringVar(&s.json, "json", "results.json", "file for the figures; \"\" for none")
	flag.StringVar(&s.docs, "docs", "", "write the page from the figures in the file, and measure only what -only selects")
	flag.StringVar(&s.profile, "cpuprofile", "", "write a CPU profile of this process")
	flag.StringVar(&s.screens, "screens", "", "write the screenshots of the documentation into this folder instead")
	flag.BoolVar(&s.list, "list", false, "list the figures, and measure nothing")
	flag.IntVar(&s.gogc, "gogc", 400, "GOGC of this process; the director sets 400")
	flag.Parse()
	debug.SetGCPercent(s.gogc)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.only != "" {
		s.Only = words(s.only)
	}
	if s.Quick {
		s.Rounds, s.Span, s.json = 1, 50*time.Millisecond, ""
	}
	switch {
	case s.list:
		list()
		return nil
	case s.screens != "":
		return dashboard.Shoot(ctx, s.screens)
	}
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if s.docs == "" || len(s.Only) > 0 {
		if err := measureAll(ctx, s); err != nil {
			return err
		}
	}
	if s.docs == "" {
		return nil
	}
	f, err := results.Read(s.json)
	if err != nil {
		return err
	}
	text, err := page.Make(f)
	if err != nil {
		return err
	}
	return os.WriteFile(s.docs, text, 0o644)
}

// measureAll measures the groups and stores the results of each at once, so that a later
// failure loses nothing.
func measureAll(ctx context.Context, s settings) error {
	machine, err := lookAround(s.Dir)
	if err != nil {
		return err
	}
	if s.Bin, err = os.MkdirTemp("", "signalbox-bench-bin-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.Bin)
	var seen []results.Figure
	for _, g := range groups {
		began := time.Now()
		got, err := measure.Run(ctx, g, s.Options)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			continue
		}
		seen = append(seen, got...)
		fmt.Fprintf(os.Stderr, "%s took %s\n", g.Name, time.Since(began).Round(time.Second))
		fmt.Printf("\n%s", page.Table(got))
		if s.json == "" {
			continue
		}
		f, err := results.Read(s.json)
		if err != nil {
			return err
		}
		f.Machine = machine
		f.Merge(got)
		if err := f.Write(s.json); err != nil {
			return err
		}
	}
	switch {
	case len(seen) == 0:
		return fmt.Errorf("no figure is named %q: -list shows the names", s.only)
	case s.only != "" || s.json == "":
		return nil
	}
	f, err := results.Read(s.json)
	if err != nil {
		return err
	}
	f.Keep(seen, time.Now().UTC().Format(time.DateOnly))
	return f.Write(s.json)
}

// words returns the words of -only. The name of a group selects that group, not other
// figures with the same word in their names.
func words(only string) []string {
	out := strings.Split(only, ",")
	for i, w := range out {
		for _, g := range groups {
			if w == g.Name {
				out[i] = w + "/"
			}
		}
	}
	return out
}

func list() {
	for _, g := range groups {
		for _, d := range g.Duels(&measure.Bench{}) {
			fmt.Println(d.Name)
		}
	}
}
