package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
)

// figure is one line of the table.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"`
	Note   string  `json:"note,omitempty"`
}

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
	if err == nil && *out != "" {
		data, _ := json.MarshalIndent(b.figures, "", "  ")
		err = os.WriteFile(*out, append(data, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	b.print()
}

func (b *bench) print() {
	fmt.Printf("%d CPUs, %s/%s, %s, limits by %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), b.method)
	fmt.Println("| figure | value | target | met |")
	fmt.Println("|---|---|---|---|")
	for _, f := range b.figures {
		met := ""
		if f.Met != nil {
			met = map[bool]string{true: "yes", false: "**no**"}[*f.Met]
		}
		name := f.Name
		if f.Note != "" {
			name += " (" + f.Note + ")"
		}
		fmt.Printf("| %s | %.2f %s | %s | %s |\n", name, f.Value, f.Unit, f.Target, met)
	}
}
