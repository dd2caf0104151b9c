package measure

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

// Values are what a side saw in one round, by name.
type Values map[string]float64

// Trial does the work of a side once.
type Trial func(ctx context.Context) (Values, error)

// Side is something that does the work.
type Side struct {
	Name string
	// Open is called once, before the first round; what it opens ends by
	// Bench.Cleanup.
	Open func(ctx context.Context, b *Bench) (Trial, error)
	Once bool // too long for each round: in the first one only

	trial Trial
	seen  []Values
}

// Row is one figure of a duel.
type Row struct {
	ID     string // behind the duel's name; "" where it has one row only
	Key    string // of Values
	Title  string
	Unit   string
	Lower  bool // less is better
	Target Target
	Detail bool // not in the first table
	Delta  bool // what counts is ours less the peer's, not the ratio
}

// Target is what a figure should reach: at least so many times as good as the
// peer, the control or the limit, or a bound in its own unit. The zero value
// asks for nothing.
type Target struct {
	Of      string  `json:"of,omitempty"`       // name of the side, "" for the figure itself
	AtLeast float64 `json:"at_least,omitempty"` // times as good as that side, or the figure itself
	AtMost  float64 `json:"at_most,omitempty"`  // the figure itself, or its difference to the side
}

// Duel is one piece of work, and who does it.
type Duel struct {
	Name  string // "sqlite/submit-64": what -only looks for
	Ours  *Side
	Peers []*Side
	Limit *Side
	Rows  []Row
}

func (d *Duel) sides() []*Side {
	out := append([]*Side{d.Ours}, d.Peers...)
	if d.Limit != nil {
		out = append(out, d.Limit)
	}
	return out
}

// leaveOthers keeps only our side and those that a figure cannot do without: what
// a target compares it with, and the first peer of a difference.
func (d *Duel) leaveOthers() {
	needed := func(s *Side) bool {
		return slices.ContainsFunc(d.Rows, func(r Row) bool {
			return r.Target.Of == s.Name || r.Delta && len(d.Peers) > 0 && s == d.Peers[0]
		})
	}
	var peers []*Side
	for _, s := range d.Peers {
		if needed(s) {
			peers = append(peers, s)
		}
	}
	d.Peers = peers
	if d.Limit != nil && !needed(d.Limit) {
		d.Limit = nil
	}
}

// Group is a number of duels that share servers and processes.
type Group struct {
	Name  string
	Duels func(b *Bench) []*Duel
}

// Bench is a run of one group.
type Bench struct {
	Dir   string        // on the disk to measure; emptied after the group
	Bin   string        // where programs are built, once for all groups
	Span  time.Duration // how long a side works in a round
	Quick bool          // small numbers, to see whether it works

	closing []func()
}

// Scale is n, or a hundredth of it in a quick run.
func (b *Bench) Scale(n int) int {
	if b.Quick {
		return max(10, n/100)
	}
	return n
}

// Cleanup has f called after the group, the last one first.
func (b *Bench) Cleanup(f func()) { b.closing = append(b.closing, f) }

// The other methods of testserver.TB: a server that cannot be started ends the
// run, as an error does.

func (b *Bench) Helper()                        {}
func (b *Bench) Logf(format string, a ...any)   { fmt.Fprintf(os.Stderr, format+"\n", a...) }
func (b *Bench) Errorf(format string, a ...any) { b.Logf(format, a...) }
func (b *Bench) Fatalf(format string, a ...any) { panic(fatal(fmt.Sprintf(format, a...))) }

type fatal string

func (b *Bench) close() {
	for i := len(b.closing) - 1; i >= 0; i-- {
		b.closing[i]()
	}
	b.closing = nil
}

// selected are the duels that are asked for: all of a group by its name, or
// those with one of the words in theirs.
func selected(all []*Duel, only []string) (out []*Duel) {
	for _, d := range all {
		for _, word := range only {
			if strings.Contains(d.Name, word) {
				out = append(out, d)
				break
			}
		}
		if len(only) == 0 {
			out = append(out, d)
		}
	}
	return out
}

// Median of some values.
func Median(v []float64) float64 { return results.Series{Values: v}.Median() }
