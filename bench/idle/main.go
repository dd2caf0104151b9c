package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
)

// target is the share of one core that an idle director may use.
const target = 2.0

// span is what one round saw.
type span struct {
	Percent float64 `json:"percent_of_a_core"`
	Beats   int64   `json:"beats"`
	Asked   int64   `json:"requests_to_agents"`
	RSS     int64   `json:"rss_bytes"`
}

type figures struct {
	Agents  int     `json:"agents"`
	Every   string  `json:"beat_every"`
	Median  float64 `json:"percent_of_a_core"`
	Started float64 `json:"cpu_seconds_until_all_were_registered"`
	Spans   []span  `json:"spans"`
}

func main() {
	agents := flag.Int("agents", 1000, "registered agents")
	length := flag.Duration("span", time.Minute, "length of a round")
	rounds := flag.Int("rounds", 3, "rounds; the median is shown")
	every := flag.Duration("every", 0, "how often an agent beats (default: as the director asks)")
	out := flag.String("json", "", "also write the figures as JSON into this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f, err := measure(ctx, *agents, *length, *rounds, *every)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/idle:", err)
		os.Exit(1)
	}
	f.print(*length)
	if *out != "" {
		text, _ := json.MarshalIndent(f, "", "  ")
		if err := os.WriteFile(*out, append(text, '\n'), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "bench/idle:", err)
			os.Exit(1)
		}
	}
}

func (f figures) print(length time.Duration) {
	last := f.Spans[len(f.Spans)-1]
	met := map[bool]string{true: "yes", false: "**no**"}[f.Median < target]
	fmt.Printf("%d CPUs, %s/%s, %s; median of %d rounds of %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), len(f.Spans), length)
	fmt.Println("| figure | value | target | met |")
	fmt.Println("|---|---|---|---|")
	fmt.Printf("| an idle director with %d registered agents that beat every %s | %.2f %% of a core | < %.0f %% | %s |\n", f.Agents, f.Every, f.Median, target, met)
	fmt.Printf("| heartbeats that it took in %s | %d |  |  |\n", length, last.Beats)
	fmt.Printf("| requests that it made to agents in %s | %d |  |  |\n", length, last.Asked)
	fmt.Printf("| its memory (RSS) | %.0f MB |  |  |\n", float64(last.RSS)/(1<<20))
}

func measure(ctx context.Context, agents int, length time.Duration, rounds int, every time.Duration) (f figures, err error) {
	dir, err := os.MkdirTemp("", "signalbox-idle-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	d, err := startDirector(ctx, dir)
	if err != nil {
		return f, err
	}
	defer d.Stop()
	c := &crowd{url: d.URL, every: every}
	defer c.stop()
	if err := c.start(ctx, agents); err != nil {
		return f, err
	}
	f.Agents = agents
	if f.Started, err = director.CPUTime(d.PID()); err != nil {
		return f, err
	}
	// The first beats, spread over an interval, belong to the start.
	if err := sleep(ctx, c.interval()); err != nil {
		return f, err
	}
	f.Every = c.interval().String()
	for n := range rounds {
		s, err := c.watch(ctx, d, length)
		if err != nil {
			return f, err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %.2f %% of a core, %d beats\n", n+1, rounds, s.Percent, s.Beats)
		f.Spans = append(f.Spans, s)
	}
	sorted := slices.SortedFunc(slices.Values(f.Spans), func(a, b span) int { return int(1e6 * (a.Percent - b.Percent)) })
	f.Median = sorted[len(sorted)/2].Percent
	return f, nil
}

// watch looks at the director for a while.
func (c *crowd) watch(ctx context.Context, d *director.Process, length time.Duration) (s span, err error) {
	beats, asked := c.beats.Load(), c.asked.Load()
	used, err := director.CPUTime(d.PID())
	if err != nil {
		return s, err
	}
	began := time.Now()
	if err := sleep(ctx, length); err != nil {
		return s, err
	}
	now, err := director.CPUTime(d.PID())
	if err != nil {
		return s, err
	}
	s.Percent = 100 * (now - used) / time.Since(began).Seconds()
	s.Beats, s.Asked = c.beats.Load()-beats, c.asked.Load()-asked
	s.RSS, err = director.RSS(d.PID())
	if n := c.failed.Load(); n > 0 && err == nil {
		err = fmt.Errorf("%d heartbeats failed, the last one: %s", n, c.why.Load())
	}
	return s, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
