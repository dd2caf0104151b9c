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
	rounds := flag.Int("rounds", 9, "how often each figure is measured; medians are shown")
	calls := flag.Int("calls", 300, "calls in a round")
	dir := flag.String("dir", "", "folder for the data (default: the system's temporary folder)")
	out := flag.String("json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	figures, err := measure(ctx, *dir, *rounds, *calls)
	if err == nil && *out != "" {
		data, _ := json.MarshalIndent(figures, "", "  ")
		err = os.WriteFile(*out, append(data, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	print(figures)
}

func print(figures []figure) {
	fmt.Printf("%d CPUs, %s/%s, %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Println("| figure | value | target | met |")
	fmt.Println("|---|---|---|---|")
	for _, f := range figures {
		met := ""
		if f.Met != nil {
			met = map[bool]string{true: "yes", false: "**no**"}[*f.Met]
		}
		name := f.Name
		if f.Note != "" {
			name += " (" + f.Note + ")"
		}
		fmt.Printf("| %s | %.3f %s | %s | %s |\n", name, f.Value, f.Unit, f.Target, met)
	}
}
