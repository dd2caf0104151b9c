package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/toolqueue:", err)
		os.Exit(1)
	}
}

func bench() error {
	rounds := flag.Int("rounds", 7, "rounds; the tables show the medians")
	only := flag.String("only", "", "only cases with this in their name")
	jsonFile := flag.String("json", "", "also write the figures as JSON into this file")
	flag.Parse()
	r := measure(*rounds, *only)
	fmt.Print(r.table())
	if *jsonFile == "" {
		return nil
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(out, '\n'), 0o644)
}

// measure runs all cases in turns.
func measure(rounds int, only string) report {
	var list []*aCase
	for _, c := range cases() {
		if strings.Contains(c.name, only) {
			c.prepare()
			list = append(list, c)
		}
	}
	line := strings.Contains(lineCase, only)
	var waits [len(depths)][]steps
	for n := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, rounds)
		for _, c := range list {
			c.round()
		}
		for i, depth := range depths {
			if line {
				waits[i] = append(waits[i], measureLine(depth))
			}
		}
	}
	return newReport(rounds, list, waits)
}
