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

// Values are the values that a side measured in one round, by name.
type Values map[string]float64

// Trial does the work of a side once.
type Trial func(ctx context.Context) (Values, error)

// Side is a system that does the work.
type Side struct {
	Name string
	// Open is called once, before the first round; it registers what it opens with
	// Bench.Cleanup.
	Open func(ctx context.Context, b *Bench) (Trial, error)
	Once bool // only in the first round, because it takes too long

	trial Trial
	seen  []Values
}

// Row is one figure of a duel.
type Row struct {
	ID     string // suffix of the duel's name; "" if it has only one row
	Key    string // of Values
	Title  string
	Unit   string
	Lower  bool // less is better
	Target Target
	Detail bool // not in the first table
	Delta  bool // the figure is ours minus the peer's, not the ratio
}

// Target is what a figure should reach: a minimum ratio to the peer, the control or the
// limit, or a bound in its own unit. The zero value means no target.
type Target struct {
	Of      string  `json:"of,omitempty"`       // name of the side, "" for the figure itself
	AtLeast float64 `json:"at_least,omitempty"` // times as good as that side, or the figure itself
	AtMost  float64 `json:"at_most,omitempty"`  // the figure itself, or its difference to the side
}

// Duel is one piece of work with the sides that do it.
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

// leaveOthers keeps only our side and the sides that a figure needs: the side of a
// target, and the first peer of a difference.
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

// Group is a set of duels that share servers and processes.
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

// Scale returns n, or a hundredth of it in a quick run.
func (b *Bench) Scale(n int) int {
	if b.Quick {
		return max(10, n/100)
	}
	return n
}

// Cleanup registers f to be called after the group, in reverse order.
func (b *Bench) Cleanup(f func()) { b.closing = append(b.closing, f) }

// The other methods of testserver.TB. If a server cannot be started, the run ends, as
// with an error.

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

// selected returns the selected duels: all of a group by its name, or those with one of
// the words in their names.
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

// Median returns the median of some values.
func Median(v []float64) float64 { return results.Series{Values: v}.Median() }
