package postgres

import (
	"os"
	"strconv"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// BenchmarkCycles takes tasks through their life, in batches with as many submits as claims and ends.
func BenchmarkCycles(b *testing.B) {
	for _, size := range []int{1, 16, 64, 256, 512} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			url := os.Getenv("SIGNALBOX_BENCH_PG")
			if url == "" {
				url = testserver.Postgres(b)
			}
			p := newProcess(b, openTest(b, url), "bench")
			var waiting, running []*signalbox.Task
			d := p.delta()
			waiting = p.submit(d, size)
			p.commit(d)
			b.ResetTimer()
			n := 0
			for n < b.N {
				d := p.delta()
				for _, t := range running {
					p.finish(d, t)
				}
				running = running[:0]
				for i, t := range waiting {
					running = append(running, p.claim(d, t, i))
				}
				waiting = p.submit(d, size)
				d.Slots = merge(d.Slots)
				p.commit(d)
				n += size
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}

// merge keeps the last change of each slot. A slot that was in use before has a row.
func merge(all []verbs.SlotChange) []verbs.SlotChange {
	last, used := map[int]int{}, map[int]bool{}
	for n, c := range all {
		last[c.Slot] = n
		used[c.Slot] = used[c.Slot] || c.After == nil
	}
	var kept []verbs.SlotChange
	for n, c := range all {
		if last[c.Slot] != n {
			continue
		}
		if used[c.Slot] {
			c.Before = &signalbox.Slot{}
		}
		kept = append(kept, c)
	}
	return kept
}

// BenchmarkSubmits only stores new tasks.
func BenchmarkSubmits(b *testing.B) {
	for _, size := range []int{1, 16, 64, 512} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			url := os.Getenv("SIGNALBOX_BENCH_PG")
			if url == "" {
				url = testserver.Postgres(b)
			}
			p := newProcess(b, openTest(b, url), "bench")
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				d := p.delta()
				p.submit(d, size)
				p.commit(d)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
		})
	}
}
