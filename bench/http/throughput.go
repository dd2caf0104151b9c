package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/director"
)

const (
	clients  = 64
	stretch  = 2 * time.Second
	addedMS  = 1
	slowness = addedMS * 1000 // µs, as strace counts
)

// throughput compares 64 clients with one, in turns, on the bare disk.
func (b *bench) throughput(ctx context.Context) error {
	d, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer d.Stop()
	return b.compare(ctx, d, "durable submits over HTTP", 2)
}

// slowThroughput is throughput with 1 ms added to each sync.
func (b *bench) slowThroughput(ctx context.Context) error {
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Fprintln(os.Stderr, "no strace: the figures with a slow disk are left out")
		return nil
	}
	d, err := b.start(ctx, "strace", "-f", "--seccomp-bpf", "-qq", "-o", filepath.Join(b.dir, "slow.trace"),
		"-e", "trace=fsync,fdatasync", "-e", fmt.Sprintf("inject=fsync,fdatasync:delay_exit=%d", slowness))
	if err != nil {
		return err
	}
	defer d.Stop()
	return b.compare(ctx, d, fmt.Sprintf("durable submits over HTTP, %d ms added to each sync", addedMS), 5)
}

func (b *bench) compare(ctx context.Context, d *director.Process, name string, target float64) error {
	var one, many, ratio []float64
	for range b.rounds {
		a, err := rate(ctx, d, 1)
		if err != nil {
			return err
		}
		z, err := rate(ctx, d, clients)
		if err != nil {
			return err
		}
		one, many, ratio = append(one, a), append(many, z), append(ratio, z/a)
	}
	b.add(name+", 1 client", median(one), "/s", "", nil, "")
	b.add(fmt.Sprintf("%s, %d clients", name, clients), median(many), "/s", "", nil, "")
	r := median(ratio)
	b.add(name+", 64 clients over 1", r, "×", fmt.Sprintf("≥ %.0f×", target), is(r >= target), "")
	return nil
}

// rate is how many submits a second n clients are acknowledged.
func rate(ctx context.Context, d *director.Process, n int) (float64, error) {
	var done atomic.Int64
	var failure atomic.Pointer[error]
	begin := time.Now()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			c := newClient()
			defer c.CloseIdleConnections()
			for time.Since(begin) < stretch {
				if err := submit(ctx, c, d.URL, body); err != nil {
					failure.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(begin).Seconds(), nil
}

var syncLine = regexp.MustCompile(`(?m)\b(fsync|fdatasync)\(`)

// syncs counts the syncs of submits that come one at a time.
func (b *bench) syncs(ctx context.Context) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil
	}
	trace := filepath.Join(b.dir, "syncs.trace")
	d, err := b.start(ctx, "strace", "-f", "--seccomp-bpf", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync")
	if err != nil {
		return err
	}
	defer d.Stop()
	c := newClient()
	if err := submit(ctx, c, d.URL, body); err != nil { // the first may create files
		return err
	}
	before, err := count(trace)
	if err != nil {
		return err
	}
	const n = 200
	for range n {
		if err := submit(ctx, c, d.URL, body); err != nil {
			return err
		}
	}
	after, err := count(trace)
	if err != nil {
		return err
	}
	per := float64(after-before) / n
	b.add("syncs for a submit alone", per, "", "1", is(per <= 1.01), strconv.Itoa(n)+" submits, by strace")
	return nil
}

func count(trace string) (int, error) {
	data, err := os.ReadFile(trace)
	return len(syncLine.FindAll(data, -1)), err
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}
