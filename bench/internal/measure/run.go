package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/results"
)

// Options say what is run and for how long.
type Options struct {
	Rounds int
	Span   time.Duration
	Dir    string // each group has its own folder in it
	Bin    string // where programs are built
	Only   []string
	Quick  bool
	// Ours skips peers and limits that no figure needs.
	Ours bool
}

// Run measures a group and returns its figures; none if nothing of it was selected.
func Run(ctx context.Context, g Group, o Options) (out []results.Figure, err error) {
	b := &Bench{Bin: o.Bin, Span: o.Span, Quick: o.Quick}
	duels := selected(g.Duels(b), o.Only)
	if o.Ours {
		for _, d := range duels {
			d.leaveOthers()
		}
	}
	if len(duels) == 0 {
		return nil, nil
	}
	if b.Dir, err = os.MkdirTemp(o.Dir, "signalbox-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.Dir)
	defer b.close()
	defer func() {
		if why, ok := recover().(fatal); ok {
			err = errors.New(string(why))
		}
	}()
	sides := unique(duels)
	for _, s := range sides {
		began := time.Now()
		if s.trial, err = s.Open(ctx, b); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", g.Name, s.Name, err)
		}
		if took := time.Since(began); took > time.Second {
			fmt.Fprintf(os.Stderr, "%s: %s is ready after %s\n", g.Name, s.Name, took.Round(100*time.Millisecond))
		}
	}
	for round := range o.Rounds {
		if err := turn(ctx, g.Name, sides, round); err != nil {
			return nil, err
		}
	}
	return figures(g, duels), nil
}

func unique(duels []*Duel) (out []*Side) {
	for _, d := range duels {
		for _, s := range d.sides() {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// turn is one round.
func turn(ctx context.Context, group string, sides []*Side, round int) error {
	order := slices.Clone(sides)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, s := range order {
		if s.Once && round > 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := s.trial(ctx)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", group, s.Name, err)
		}
		s.seen = append(s.seen, v)
		fmt.Fprintf(os.Stderr, "round %d: %s: %s: %s\n", round+1, group, s.Name, v)
	}
	return nil
}

func (v Values) String() string {
	var names []string
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%s %.4g", name, v[name]))
	}
	return strings.Join(out, ", ")
}

// series returns one value of a side, round by round; nil if it has no such value.
func (s *Side) series(key string) *results.Series {
	if s == nil {
		return nil
	}
	out := results.Series{Name: s.Name}
	for _, v := range s.seen {
		if one, ok := v[key]; ok {
			out.Values = append(out.Values, one)
		}
	}
	if len(out.Values) == 0 {
		return nil
	}
	return &out
}

func figures(g Group, duels []*Duel) (out []results.Figure) {
	for _, d := range duels {
		for _, r := range d.Rows {
			ours := d.Ours.series(r.Key)
			if ours == nil {
				continue // this machine cannot measure it; the side has printed why
			}
			id := d.Name
			if r.ID != "" {
				id += "/" + r.ID
			}
			f := results.Figure{
				ID: id, Duel: d.Name, Group: g.Name, Title: r.Title, Unit: r.Unit, Lower: r.Lower, Delta: r.Delta, Detail: r.Detail,
				Ours: *ours, Limit: d.Limit.series(r.Key), Measured: time.Now().UTC().Format(time.DateOnly),
				Target: results.Target(r.Target),
			}
			for _, p := range d.Peers {
				if s := p.series(r.Key); s != nil {
					f.Peers = append(f.Peers, *s)
				}
			}
			out = append(out, f)
		}
	}
	return out
}
