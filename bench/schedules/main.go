// Command schedules measures what 10,000 schedules cost a director at rest: the
// real binary over SQLite, beside the same one without any, in turns.
//
//	go run ./bench/schedules [--schedules 10000] [--span 30s] [--rounds 3] [--json FILE]
//
// None is due while it is looked at. The figure is the processor time that the
// director's process used, by the kernel's account.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/bench/internal/director"
	"github.com/signalbox-ai/signalbox/bench/internal/figures"
	"github.com/signalbox-ai/signalbox/client"
)

// target is the share of one core that the schedules may cost.
const target = 1.0

func main() {
	count := flag.Int("schedules", 10_000, "schedules")
	span := flag.Duration("span", 30*time.Second, "length of a round")
	rounds := flag.Int("rounds", 3, "rounds; medians are shown")
	out := flag.String("json", "", "file for the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all, err := measure(ctx, *count, *span, *rounds)
	if err == nil {
		err = figures.Show(all, 2, fmt.Sprintf("medians of %d rounds of %s", *rounds, *span), *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/schedules:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, count int, span time.Duration, rounds int) ([]figures.Figure, error) {
	dir, err := os.MkdirTemp("", "signalbox-schedules-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary, err := director.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	with, err := start(ctx, binary, filepath.Join(dir, "with"))
	if err != nil {
		return nil, err
	}
	defer with.Stop()
	without, err := start(ctx, binary, filepath.Join(dir, "without"))
	if err != nil {
		return nil, err
	}
	defer without.Stop()
	began := time.Now()
	if err := fill(ctx, with.URL, count); err != nil {
		return nil, err
	}
	made := time.Since(began)
	select { // what belongs to making them has ended by then
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(15 * time.Second):
	}
	var busy, idle []float64
	for n := range rounds {
		for _, side := range []struct {
			d    *director.Process
			into *[]float64
		}{{with, &busy}, {without, &idle}} {
			share, err := watch(ctx, side.d, span)
			if err != nil {
				return nil, err
			}
			*side.into = append(*side.into, share)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %.3f %% of a core with, %.3f %% without\n", n+1, rounds, busy[n], idle[n])
	}
	memory, err := director.RSS(with.PID())
	if err != nil {
		return nil, err
	}
	bare, err := director.RSS(without.PID())
	if err != nil {
		return nil, err
	}
	share, none := median(busy), median(idle)
	met := share < target
	return []figures.Figure{
		{Name: fmt.Sprintf("a director at rest with %d schedules", count), Value: share, Unit: "% of a core", Target: "< 1 % of a core", Met: &met},
		{Name: "the same without schedules", Value: none, Unit: "% of a core", Note: "control"},
		{Name: "its memory (RSS)", Value: float64(memory) / (1 << 20), Unit: "MB"},
		{Name: "the memory of the one without", Value: float64(bare) / (1 << 20), Unit: "MB", Note: "control"},
		{Name: "making them, by 16 callers", Value: float64(count) / made.Seconds(), Unit: "a second"},
	}, nil
}

func start(ctx context.Context, binary, data string) (*director.Process, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "director", "--addr", "127.0.0.1:0", "--data", data, "--grace", "0s", "--log-level", "error")
	cmd.Dir, cmd.Env = data, append(os.Environ(), "HOME="+data, "SIGNALBOX_HOME="+data)
	return director.Start(cmd)
}

// fill makes schedules of which none is due within hours, each at a time of its
// own.
func fill(ctx context.Context, url string, count int) error {
	c, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	from := time.Now().UTC().Add(3 * time.Hour)
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(count) && failed.Load() == nil && ctx.Err() == nil; i = next.Add(1) {
				at := from.Add(time.Duration(i%1080) * time.Minute) // of the eighteen hours after that
				_, err := c.CreateSchedule(ctx, api.NewSchedule{
					Name: fmt.Sprintf("job-%05d", i), Message: "sleep 1ms", CronExpression: fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()),
				})
				if err != nil {
					failed.Store(err)
				}
			}
		})
	}
	all.Wait()
	if err, ok := failed.Load().(error); ok {
		return err
	}
	return ctx.Err()
}

// watch is the share of a core that a director uses for a while.
func watch(ctx context.Context, d *director.Process, span time.Duration) (float64, error) {
	before, err := director.CPUTime(d.PID())
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(span):
	}
	after, err := director.CPUTime(d.PID())
	return 100 * (after - before) / time.Since(began).Seconds(), err
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
