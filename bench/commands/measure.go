package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/figures"
)

const (
	// side is how many runs there are side by side where there are many: as many
	// as the director allows by default.
	side = 10
	// callers is how many there are for the whole path, so that some always wait.
	callers = 32
	// least is the part of the bare loop's runs that a tool has to reach, and
	// rate the tasks a second of the whole path.
	least = 0.5
	rate  = 300
)

// bench holds what the sections share.
type bench struct {
	rounds, runs int
	profile      string
	figures      []figures.Figure
	method       string
}

// one does one run, or one task, to its end.
type one func(ctx context.Context) error

// system is something that runs the program.
type system struct {
	name string
	one  one
	side int
	took [][]float64 // of each round, the ms of each run
	rate []float64   // of each round, runs a second
}

func (b *bench) measure(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp(dir, "signalbox-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	bare, err := newBare()
	if err != nil {
		return err
	}
	defer bare.close()
	tools, closeTools, err := b.tools()
	if err != nil {
		return err
	}
	defer closeTools()
	inside, closeInside, err := b.inside(ctx, work)
	if err != nil {
		return err
	}
	defer closeInside()
	outside, closeOutside, err := b.outside(ctx, work)
	if err != nil {
		return err
	}
	defer closeOutside()
	one, many := &system{name: "bare fork, exec, wait", one: bare.run, side: 1}, &system{name: fmt.Sprintf("bare fork, exec, wait, %d side by side", side), one: bare.run, side: side}
	all := []*system{one, many}
	for _, t := range tools {
		all = append(all, &system{name: t.name, one: t.one, side: 1}, &system{name: fmt.Sprintf("%s, %d side by side", t.name, side), one: t.one, side: side})
	}
	paths := []*system{
		{name: fmt.Sprintf("whole path in this process, %d callers", callers), one: inside, side: callers},
		{name: fmt.Sprintf("whole path through a director over HTTP, %d callers", callers), one: outside, side: callers},
	}
	alone := []*system{
		{name: "whole path in this process, one caller", one: inside, side: 1},
		{name: "whole path through a director over HTTP, one caller", one: outside, side: 1},
	}
	if err := b.turns(ctx, slices.Concat(all, paths, alone)); err != nil {
		return err
	}
	b.report(one, many, all[2:], paths, alone)
	return nil
}

// turns lets the systems take turns, once to warm up and then round by round.
func (b *bench) turns(ctx context.Context, all []*system) error {
	for round := range b.rounds + 1 {
		for _, s := range all {
			begin := time.Now()
			took, err := times(ctx, s.one, b.runs, s.side)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				s.rate = append(s.rate, float64(len(took))/time.Since(begin).Seconds())
				s.took = append(s.took, took)
			}
		}
		if round == 0 && b.profile != "" {
			if err := b.profiled(ctx, all); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round, b.rounds)
	}
	return nil
}

func (b *bench) report(one, many *system, tools, paths, alone []*system) {
	b.rates(one)
	b.rates(many)
	for i, s := range tools {
		control := []*system{one, many}[i%2]
		ratio := median(against(s.rate, control.rate))
		b.rates(s)
		b.add(s.name+", over the bare loop", ratio, "×", fmt.Sprintf("≥ %.1f×", least), is(ratio >= least), "")
	}
	for _, s := range paths {
		got := median(s.rate)
		b.add(s.name, got, "/s", fmt.Sprintf("≥ %d /s", rate), is(got >= rate), "")
		var above []float64
		for i, r := range s.rate {
			above = append(above, 1e3/r-1e3/many.rate[i])
		}
		b.add(s.name+", overhead of a task above the bare loop", median(above), "ms", "", nil, "of "+fmt.Sprint(side)+" side by side")
	}
	for _, s := range alone {
		b.latency(s)
	}
	b.latency(one)
}

func (b *bench) rates(s *system) { b.add(s.name, median(s.rate), "/s", "", nil, "") }

func (b *bench) latency(s *system) {
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		var all []float64
		for _, took := range s.took {
			all = append(all, quantile(took, q.of))
		}
		b.add(s.name+", "+q.name, median(all), "ms", "", nil, "")
	}
}

func (b *bench) add(name string, value float64, unit, target string, met *bool, note string) {
	b.figures = append(b.figures, figures.Figure{Name: name, Value: value, Unit: unit, Target: target, Met: met, Note: note})
}

func is(met bool) *bool { return &met }

// against are the ratios of each round.
func against(v, control []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = v[i] / control[i]
	}
	return out
}

// times does n runs, some of them side by side, and returns how many ms each
// took.
func times(ctx context.Context, one one, n, side int) ([]float64, error) {
	type result struct {
		ms  []float64
		err error
	}
	results := make(chan result, side)
	for worker := range side {
		go func() {
			var r result
			for range (n + worker) / side {
				begin := time.Now()
				if r.err = one(ctx); r.err != nil {
					break
				}
				r.ms = append(r.ms, float64(time.Since(begin).Nanoseconds())/1e6)
			}
			results <- r
		}()
	}
	var all []float64
	var err error
	for range side {
		r := <-results
		all = append(all, r.ms...)
		if r.err != nil {
			err = r.err
		}
	}
	return all, err
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}
