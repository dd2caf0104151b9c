// Command compare compares this tree with an older checkout, in turns: a round of the
// old benchmark, a round of the new one, in reverse order every second time. It
// prints the medians of each figure for both, and the median of the rounds' ratios;
// more than 1 is always better.
//
//	git worktree add ../../before COMMIT
//	cd bench && go run ./compare -old ../../before -only sqlite,http -rounds 9
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

func main() {
	var old, only string
	var rounds int
	var span time.Duration
	flag.StringVar(&old, "old", "", "checkout to compare with (required)")
	flag.StringVar(&only, "only", "", "only figures with one of these comma-separated words in their names")
	flag.IntVar(&rounds, "rounds", 7, "rounds of each side")
	flag.DurationVar(&span, "span", 500*time.Millisecond, "how long a side works in a round")
	flag.Parse()
	if old == "" || rounds < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, old, only, rounds, span); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// side is one of the two trees.
type side struct {
	name, tree, program string
	args                []string
	seen                results.File // the figures of all rounds
}

func run(ctx context.Context, old, only string, rounds int, span time.Duration) error {
	tmp, err := os.MkdirTemp("", "signalbox-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	sides := []*side{{name: "old", tree: filepath.Join(old, "bench")}, {name: "new", tree: "."}}
	for _, s := range sides {
		if err := s.build(ctx, tmp); err != nil {
			return err
		}
		s.args = append(s.args, "-rounds", "1", "-only", only, "-span", span.String())
	}
	for round := range rounds {
		order := sides
		if round%2 == 1 {
			order = []*side{sides[1], sides[0]}
		}
		for _, s := range order {
			began := time.Now()
			if err := s.round(ctx, filepath.Join(tmp, s.name+strconv.Itoa(round)+".json")); err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s took %s\n", round+1, rounds, s.name, time.Since(began).Round(time.Second))
		}
	}
	fmt.Print(results.Compare(sides[0].seen, sides[1].seen))
	return nil
}

// build compiles the benchmark of a tree. If it supports -ours, the peers are
// skipped.
func (s *side) build(ctx context.Context, tmp string) error {
	s.program = filepath.Join(tmp, s.name)
	build := exec.CommandContext(ctx, "go", "build", "-o", s.program, ".")
	build.Dir = s.tree
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", s.tree, err, out)
	}
	help, _ := exec.CommandContext(ctx, s.program, "-h").CombinedOutput()
	if strings.Contains(string(help), "\n  -ours\n") {
		s.args = append(s.args, "-ours")
	}
	return nil
}

func (s *side) round(ctx context.Context, file string) error {
	one := exec.CommandContext(ctx, s.program, append(s.args, "-json", file)...)
	one.Dir = s.tree
	if out, err := one.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	f, err := results.Read(file)
	if err != nil {
		return err
	}
	s.seen.AddRound(f)
	return nil
}
