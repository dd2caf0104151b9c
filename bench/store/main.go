package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/store:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 5, "rounds; the table shows the median")
	span := flag.Duration("span", time.Second, "time for each case in a round")
	dir := flag.String("dir", "", "folder on the disk to measure (default: the system's temporary folder)")
	deep := flag.Int("deep", 1_000_000, "tasks that wait in the deep queue")
	only := flag.String("only", "", "only cases with this in their name")
	jsonFile := flag.String("json", "", "also write the figures as JSON into this file")
	gogc := flag.Int("gogc", 400, "GOGC; the director sets 400")
	profile := flag.String("cpuprofile", "", "write a CPU profile")
	flag.Parse()
	debug.SetGCPercent(*gogc)
	tmp, err := os.MkdirTemp(*dir, "signalbox-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b := &bench{dir: tmp, span: *span, deep: *deep}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := b.turns(*only, *rounds); err != nil {
		return err
	}
	if err := b.lanes(*only, *rounds); err != nil {
		return err
	}
	return b.write(*jsonFile)
}

// turns measures the cases and prints their table.
func (b *bench) turns(only string, rounds int) error {
	defer b.close()
	if err := b.prepare(only); err != nil || len(b.cases) == 0 {
		return err
	}
	for n := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, rounds)
		if err := b.round(context.Background()); err != nil {
			return err
		}
	}
	fmt.Print(b.table())
	return nil
}

// lanes measures the pairs and prints theirs.
func (b *bench) lanes(only string, rounds int) error {
	for _, p := range pairs() {
		if !strings.Contains(p.name, only) {
			continue
		}
		fmt.Fprintln(os.Stderr, p.name)
		if err := b.compare(p, rounds); err != nil {
			return err
		}
		b.pairs = append(b.pairs, p)
	}
	if len(b.pairs) > 0 {
		fmt.Print(b.pairTable())
	}
	return nil
}

func (b *bench) prepare(only string) error {
	for _, c := range cases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		b.cases = append(b.cases, &c)
	}
	return b.open()
}

func (b *bench) write(file string) error {
	if file == "" {
		return nil
	}
	out, err := json.MarshalIndent(b.report(), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o644)
}
