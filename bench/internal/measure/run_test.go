package measure_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// record has sides that record their turns.
type record struct {
	turns  []string
	closed []string
}

func (r *record) side(name string, v float64) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		b.Cleanup(func() { r.closed = append(r.closed, name) })
		return func(context.Context) (measure.Values, error) {
			r.turns = append(r.turns, name)
			return measure.Values{"rate": v}, nil
		}, nil
	}}
}

func group(duels ...*measure.Duel) measure.Group {
	return measure.Group{Name: "g", Duels: func(*measure.Bench) []*measure.Duel { return duels }}
}

// Ours and the peers take turns, and a side in two duels is measured once per round.
func TestSidesTakeTurns(t *testing.T) {
	var r record
	peer := r.side("peer", 10)
	one := &measure.Duel{Name: "g/one", Ours: r.side("ours", 20), Peers: []*measure.Side{peer}, Limit: r.side("limit", 40), Rows: []measure.Row{{Key: "rate"}}}
	two := &measure.Duel{Name: "g/two", Ours: r.side("other", 30), Peers: []*measure.Side{peer}, Rows: []measure.Row{{ID: "x", Key: "rate"}, {ID: "none", Key: "unknown"}}}
	dir := t.TempDir()
	got, err := measure.Run(t.Context(), group(one, two), measure.Options{Rounds: 3, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ours", "peer", "limit", "other", "other", "limit", "peer", "ours", "ours", "peer", "limit", "other"}
	if !slices.Equal(r.turns, want) {
		t.Errorf("turns %q, not %q", r.turns, want)
	}
	if len(got) != 2 || got[0].ID != "g/one" || got[1].ID != "g/two/x" {
		t.Fatalf("figures %+v", got)
	}
	if f := got[0]; f.Ratio(f.Peers[0]) != 2 || f.Ratio(*f.Limit) != 0.5 || len(f.Ours.Values) != 3 {
		t.Errorf("one: %+v", f)
	}
	if want := []string{"other", "limit", "peer", "ours"}; !slices.Equal(r.closed, want) {
		t.Errorf("closed %q, not %q", r.closed, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestOnlyWhatIsAskedForIsOpened(t *testing.T) {
	var r record
	a := &measure.Duel{Name: "g/submit-1", Ours: r.side("a", 1), Rows: []measure.Row{{Key: "rate"}}}
	b := &measure.Duel{Name: "g/cycle", Ours: r.side("b", 1), Rows: []measure.Row{{Key: "rate"}}}
	for only, want := range map[string]string{"submit": "a", "cycle,none": "b", "none": ""} {
		r = record{}
		if _, err := measure.Run(t.Context(), group(a, b), measure.Options{Rounds: 1, Dir: t.TempDir(), Only: strings.Split(only, ",")}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.turns, " "); got != want {
			t.Errorf("-only %s: %q, not %q", only, got, want)
		}
	}
}

// If a side fails or a server cannot be started, the group ends, and everything that
// was opened is closed.
func TestFailureClosesAll(t *testing.T) {
	for name, fail := range map[string]func(b *measure.Bench) error{
		"an error": func(*measure.Bench) error { return errors.New("no disk") },
		"a server": func(b *measure.Bench) error { b.Fatalf("no %s", "disk"); return nil },
	} {
		var r record
		bad := &measure.Side{Name: "bad", Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) { return nil, fail(b) }}
		d := &measure.Duel{Name: "g/x", Ours: r.side("ours", 1), Peers: []*measure.Side{bad}, Rows: []measure.Row{{Key: "rate"}}}
		_, err := measure.Run(t.Context(), group(d), measure.Options{Rounds: 1, Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "no disk") {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(r.closed, []string{"ours"}) {
			t.Errorf("%s: closed %q", name, r.closed)
		}
	}
}

// A side with Once is measured in one round only; the others continue.
func TestOnceIsOnce(t *testing.T) {
	var r record
	long := r.side("long", 5)
	long.Once = true
	d := &measure.Duel{Name: "g/x", Ours: long, Peers: []*measure.Side{r.side("peer", 10)}, Rows: []measure.Row{{Key: "rate"}}}
	got, err := measure.Run(t.Context(), group(d), measure.Options{Rounds: 3, Dir: t.TempDir()})
	if err != nil || len(got) != 1 || len(got[0].Ours.Values) != 1 || len(got[0].Peers[0].Values) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got[0].Ratio(got[0].Peers[0]) != 0.5 {
		t.Errorf("ratio %v", got[0].Ratio(got[0].Peers[0]))
	}
}

// With Ours, a difference keeps the peer that it refers to, and a figure with a target
// keeps the side of the target.
func TestOurs(t *testing.T) {
	var ran []string
	side := func(name string) *measure.Side {
		return &measure.Side{Name: name, Open: func(context.Context, *measure.Bench) (measure.Trial, error) {
			return func(context.Context) (measure.Values, error) {
				ran = append(ran, name)
				return measure.Values{"v": 1}, nil
			}, nil
		}}
	}
	duels := []*measure.Duel{
		{Name: "difference", Ours: side("a"), Peers: []*measure.Side{side("direct"), side("a peer")}, Limit: side("a limit"), Rows: []measure.Row{{Key: "v", Delta: true}}},
		{Name: "target", Ours: side("b"), Peers: []*measure.Side{side("another peer"), side("control")}, Rows: []measure.Row{{Key: "v", Target: measure.Target{Of: "control"}}}},
	}
	g := measure.Group{Name: "g", Duels: func(*measure.Bench) []*measure.Duel { return duels }}
	if _, err := measure.Run(t.Context(), g, measure.Options{Rounds: 1, Dir: t.TempDir(), Ours: true}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "direct", "b", "control"}; !slices.Equal(ran, want) {
		t.Errorf("%q ran, want %q", ran, want)
	}
}
