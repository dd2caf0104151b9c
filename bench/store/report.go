package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is a line of the table.
type row struct {
	Case      string        `json:"case"`
	PerSecond float64       `json:"per_second"` // median of the rounds
	Ratio     float64       `json:"times_fdatasync"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	CPU       time.Duration `json:"cpu_ns"` // of the whole process, for each
	Target    string        `json:"target,omitempty"`
	Rounds    []figure      `json:"rounds"`
}

type report struct {
	Go        string  `json:"go"`
	CPUs      int     `json:"cpus"`
	Overwrite float64 `json:"fdatasync_overwrite_per_second"`
	Append    float64 `json:"fdatasync_append_per_second"`
	Rows      []row   `json:"rows"`
	Pairs     []match `json:"pairs,omitempty"`
}

// match is a line of the second table.
type match struct {
	Case   string    `json:"case"`
	Many   float64   `json:"many_per_second"` // 10,000 agents with one slot; medians of the rounds
	One    float64   `json:"one_per_second"`  // one agent with 10,000 slots
	Ratio  float64   `json:"ratio"`
	Ratios []float64 `json:"ratios"` // by round
}

func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func pick[T any](figures []figure, of func(figure, int) T) (list []T) {
	for i, f := range figures {
		list = append(list, of(f, i))
	}
	return list
}

func (b *bench) report() report {
	r := report{Go: runtime.Version(), CPUs: runtime.NumCPU()}
	if len(b.cases) > 0 {
		r.Overwrite, r.Append = median(b.overwrite), median(b.append)
	}
	for _, p := range b.pairs {
		r.Pairs = append(r.Pairs, match{p.name, median(p.many.rate), median(p.one.rate), median(p.ratio), p.ratio})
	}
	for _, c := range b.cases {
		r.Rows = append(r.Rows, row{
			Case:      c.name,
			PerSecond: median(pick(c.figures, func(f figure, _ int) float64 { return f.PerSecond })),
			Ratio:     median(pick(c.figures, func(f figure, i int) float64 { return f.PerSecond / b.overwrite[i] })),
			P50:       median(pick(c.figures, func(f figure, _ int) time.Duration { return f.P50 })),
			P99:       median(pick(c.figures, func(f figure, _ int) time.Duration { return f.P99 })),
			CPU:       median(pick(c.figures, func(f figure, _ int) time.Duration { return f.CPU })),
			Target:    c.target, Rounds: c.figures,
		})
	}
	return r
}

func (b *bench) table() string {
	r := b.report()
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d CPUs; median of %d rounds; one block overwritten and synced (fdatasync) %.0f/s, appended and synced %.0f/s\n\n",
		r.Go, r.CPUs, len(b.overwrite), r.Overwrite, r.Append)
	s.WriteString("| case | per second | × fdatasync | p50 | p99 | CPU each | target |\n|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&s, "| %s | %.0f | %.2f | %s | %s | %.1f µs | %s |\n", row.Case, row.PerSecond, row.Ratio, brief(row.P50), brief(row.P99),
			float64(row.CPU)/float64(time.Microsecond), row.Target)
	}
	return s.String()
}

func brief(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func (b *bench) pairTable() string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n%s, %d CPUs; median of %d rounds in turns; 100,000 tasks wait, 10,000 are in flight; an execution is finish, claim, accept\n\n",
		runtime.Version(), runtime.NumCPU(), len(b.pairs[0].ratio))
	s.WriteString("| case | 10,000 agents, 1 slot each | 1 agent, 10,000 slots | ratio | target |\n|---|---|---|---|---|\n")
	for _, m := range b.report().Pairs {
		fmt.Fprintf(&s, "| %s | %.0f/s | %.0f/s | %.2f | ≥ %.2f |\n", m.Case, m.Many, m.One, m.Ratio, laneTarget)
	}
	return s.String()
}
