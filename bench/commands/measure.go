// Package commands measures the cost of a command tool in addition to the start of
// its program. The program is true. In turns with it, a bare loop only forks, execs
// and waits.
//
//	bare      os.StartProcess and Wait: no pipes, no environment, no limits
//	run       a run of a tool as in the director, without task and store: a line of
//	          JSON in, both outputs read to their end, no process left
//	path      submit, durable, slot, durable start, run, durable result, caller
//	          told: with the director's parts in this process, and through HTTP
//	          with the real binary
package commands

import (
	"context"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
)

// Group is command tools.
var Group = measure.Group{Name: "commands", Duels: duels}

const (
	// side is the number of concurrent runs in the figures with many: as many as
	// the director allows by default.
	side = 10
	// callers is the number of callers for the whole path, so that some always wait.
	callers = 32
	// least is the fraction of the bare loop's rate that a tool has to reach, and
	// rate the target of the whole path in tasks per second.
	least = 0.5
	rate  = 300
)

// one executes one run or one task.
type one func(ctx context.Context) error

func duels(*measure.Bench) (out []*measure.Duel) {
	r := &rig{}
	const alone, many = "bare fork, exec, wait", "bare fork, exec, wait, 10 concurrent"
	single, crowd := r.side(alone, 1, r.bare), r.side(many, side, r.bare)
	for _, t := range []struct {
		name, title, method string
		limits              toolconf.CommandLimits
	}{
		{"run", "runs of a tool", "auto", toolconf.CommandLimits{}},
		{"run-limits", "runs of a tool, limits of memory, processes and file size", "auto", bounds},
		{"rlimit", "runs of a tool without control groups", "rlimit", toolconf.CommandLimits{}},
		{"rlimit-limits", "runs of a tool without control groups, with limits", "rlimit", bounds},
	} {
		run := r.tool(t.method, t.limits)
		row := func(title, of string) []measure.Row {
			return []measure.Row{{Key: load.Rate, Title: title, Unit: "/s", Detail: t.limits != toolconf.CommandLimits{}, Target: measure.Target{Of: of, AtLeast: least}}}
		}
		out = append(out,
			&measure.Duel{Name: "commands/" + t.name, Ours: r.side("Signalbox", 1, run), Peers: []*measure.Side{single}, Rows: row(t.title, alone)},
			&measure.Duel{Name: "commands/" + t.name + "-10", Ours: r.side("Signalbox", side, run), Peers: []*measure.Side{crowd}, Rows: row(t.title+", 10 concurrent", many)},
		)
	}
	return append(out,
		&measure.Duel{Name: "commands/path", Ours: r.side("Signalbox, in process", callers, r.inside), Peers: []*measure.Side{crowd}, Rows: []measure.Row{
			{Key: load.Rate, Title: "the whole path of a command task, 32 callers", Unit: "/s", Target: measure.Target{AtLeast: rate}},
		}},
		&measure.Duel{Name: "commands/path-http", Ours: r.side("Signalbox, over HTTP", callers, r.outside), Peers: []*measure.Side{crowd}, Rows: []measure.Row{
			{Key: load.Rate, Title: "the whole path of a command task over HTTP, 32 callers", Unit: "/s", Target: measure.Target{AtLeast: rate}},
		}},
		&measure.Duel{Name: "commands/path-1", Ours: r.side("Signalbox, over HTTP", 1, r.outside), Peers: []*measure.Side{single}, Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "the whole path of a command task over HTTP, one caller, median", Unit: "ms", Lower: true, Delta: true},
			{ID: "p99", Key: load.P99, Title: "the whole path of a command task over HTTP, one caller, p99", Unit: "ms", Lower: true, Delta: true, Detail: true},
		}},
	)
}

// rig is the shared state of the sides.
type rig struct {
	hosts    map[string]*host
	bareLoop *bare
	in, over one
}

// side returns a side with a number of callers.
func (r *rig) side(name string, callers int, open func(ctx context.Context, b *measure.Bench) (one, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		do, err := open(ctx, b)
		if err != nil {
			return nil, err
		}
		if err := do(ctx); err != nil { // warms caches
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			return load.Run(ctx, callers, b.Span, func(ctx context.Context, _ int) error { return do(ctx) })
		}, nil
	}}
}
