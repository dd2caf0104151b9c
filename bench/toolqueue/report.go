package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// lineCase is the name of what line.go measures, for -only.
const lineCase = "line"

type report struct {
	Go     string    `json:"go"`
	CPUs   int       `json:"cpus"`
	Rounds int       `json:"rounds"`
	Cases  []row     `json:"cases"`
	Line   []lineRow `json:"line"`
}

// row is a case: what each system took, and ours in proportion to it, each the
// median over all slices.
type row struct {
	Case    string   `json:"case"`
	Target  string   `json:"target"`
	Results []result `json:"results"`
}

type result struct {
	System string `json:"system"`
	figure
	Ratio  float64  `json:"ours_to_it"`
	Slices []figure `json:"slices"`
}

type lineRow struct {
	Waiting int `json:"waiting"`
	steps
}

func median[T cmp.Ordered](list []T) T {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func medianOf[F any, T cmp.Ordered](figures []F, of func(int, F) T) T {
	var list []T
	for i, f := range figures {
		list = append(list, of(i, f))
	}
	return median(list)
}

func newReport(rounds int, list []*aCase, waits [len(depths)][]steps) report {
	r := report{Go: runtime.Version(), CPUs: runtime.GOMAXPROCS(0), Rounds: rounds}
	for _, c := range list {
		out := row{Case: c.name, Target: c.target}
		ours := c.figures[systems[0].name]
		for _, s := range systems {
			f := c.figures[s.name]
			out.Results = append(out.Results, result{
				System: s.name,
				figure: figure{
					PerOp:  medianOf(f, func(_ int, f figure) float64 { return f.PerOp }),
					Allocs: medianOf(f, func(_ int, f figure) float64 { return f.Allocs }),
				},
				Ratio:  medianOf(f, func(i int, f figure) float64 { return ours[i].PerOp / f.PerOp }),
				Slices: f,
			})
		}
		r.Cases = append(r.Cases, out)
	}
	for i, depth := range depths {
		if f := waits[i]; len(f) > 0 {
			r.Line = append(r.Line, lineRow{depth, steps{
				Enqueue: medianOf(f, func(_ int, s steps) float64 { return s.Enqueue }),
				Cancel:  medianOf(f, func(_ int, s steps) float64 { return s.Cancel }),
				HandOff: medianOf(f, func(_ int, s steps) float64 { return s.HandOff }),
			}})
		}
	}
	return r
}

func (r report) table() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d CPUs; take a place and give it back, capacity %d; medians of %d rounds of %d turns each; in brackets: allocations, and ours as a multiple of it\n\n",
		r.Go, r.CPUs, capacity, r.Rounds, turns)
	s.WriteString("| case |")
	for _, sys := range systems {
		fmt.Fprintf(&s, " %s |", sys.name)
	}
	s.WriteString(" target |\n|---|" + strings.Repeat("---|", len(systems)+1) + "\n")
	for _, c := range r.Cases {
		fmt.Fprintf(&s, "| %s |", c.Case)
		for i, f := range c.Results {
			if i == 0 {
				fmt.Fprintf(&s, " %.1f ns (%.0f) |", f.PerOp, f.Allocs)
			} else {
				fmt.Fprintf(&s, " %.1f ns (%.0f; %.2f×) |", f.PerOp, f.Allocs, f.Ratio)
			}
		}
		fmt.Fprintf(&s, " %s |\n", c.Target)
	}
	if len(r.Line) > 0 {
		s.WriteString("\n| calls in line | enqueue | give up | hand on |\n|---|---|---|---|\n")
		for _, l := range r.Line {
			fmt.Fprintf(&s, "| %d | %.0f ns | %.0f ns | %.0f ns |\n", l.Waiting, l.Enqueue, l.Cancel, l.HandOff)
		}
	}
	return s.String()
}
