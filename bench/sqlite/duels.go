package sqlite

import (
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/peers"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
)

// Names of sides.
const (
	oursName     = "Signalbox"
	riverDefault = "River (SQLite), defaults"
	riverBest    = "River (SQLite), best"
	liteName     = "backlite"
	overwritten  = "fdatasync of a block in place"
	appended     = "fdatasync of what one submit writes, appended"
)

// submitBytes is how many bytes a single submit appends to the log: seven pages, each
// with its header.
const submitBytes = 7 * (4096 + 24)

func duels(*measure.Bench) []*measure.Duel {
	r := &peers.RiverSQLite{}
	over, app := disk(overwritten, 4096, false), disk(appended, submitBytes, true)
	return append(append(lives(r, over, app), depths(r)...), append(slow(), lanes()...)...)
}

// lives returns the duels of submits, cycles and pick-ups with a small file.
func lives(r *peers.RiverSQLite, over, app *measure.Side) []*measure.Duel {
	whole := kept("Signalbox, engine", callers, 0, nil, submitWhole)
	return []*measure.Duel{
		{
			Name: "sqlite/submit-1", Limit: app,
			Ours:  queue.Submits(oursName, fresh, 1),
			Peers: []*measure.Side{river(r, riverDefault, peers.Order{Do: "submit", N: 1}), queue.Submits(liteName, peers.Backlite, 1)},
			Rows:  []measure.Row{{Key: load.Rate, Title: "durable submits, 1 caller", Unit: "/s"}},
		}, {
			Name: "sqlite/submit-64", Limit: over,
			Ours:  whole,
			Peers: []*measure.Side{river(r, riverDefault, peers.Order{Do: "submit", N: callers}), queue.Submits(liteName, peers.Backlite, callers)},
			Rows: []measure.Row{
				{Key: load.Rate, Title: "durable submits, 64 callers", Unit: "/s", Target: measure.Target{Of: overwritten, AtLeast: 6}},
				{ID: "cpu", Key: load.CPU, Title: "processor time of a submit, 64 callers", Unit: "µs", Lower: true, Detail: true},
			},
		}, {
			Name: "sqlite/submit-64-store", Limit: over, Ours: kept("Signalbox, store alone", callers, 0, nil, submitBare),
			Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 64 callers, without the engine", Unit: "/s", Detail: true}},
		}, {
			Name: "sqlite/cycle-64", Limit: over,
			Ours: kept("Signalbox, engine, 4 steps", callers, 0, nil, wholeCycle),
			Peers: []*measure.Side{
				river(r, riverDefault, peers.Order{Do: "cycles", N: 300, Workers: 100}),
				river(r, riverBest, peers.Order{Do: "cycles", N: 2000, Workers: 1000, Best: true}),
				queue.Cycles(liteName, peers.Backlite, callers, callers, 2000),
			},
			Rows: []measure.Row{
				{Key: load.Rate, Title: "full cycles, 64 callers", Unit: "/s", Target: measure.Target{Of: overwritten, AtLeast: 1}},
				{ID: "cpu", Key: load.CPU, Title: "processor time of a full cycle, 64 callers", Unit: "µs", Lower: true, Detail: true},
			},
		}, {
			Name:  "sqlite/pickup",
			Ours:  queue.Pickups(oursName, fresh, 5*time.Millisecond, 100),
			Limit: app,
			Peers: []*measure.Side{
				river(r, riverDefault, peers.Order{Do: "pickup", N: 5, Pause: 5 * time.Millisecond, Workers: 10}),
				river(r, riverBest, peers.Order{Do: "pickup", N: 50, Pause: 5 * time.Millisecond, Workers: 10, Best: true}),
				queue.Pickups(liteName, peers.Backlite, 5*time.Millisecond, 100),
			},
			Rows: []measure.Row{
				{ID: "p50", Key: load.P50, Title: "pick-up by an idle worker, median", Unit: "ms", Lower: true},
				{ID: "p99", Key: load.P99, Title: "pick-up by an idle worker, p99", Unit: "ms", Lower: true},
			},
		}, {
			Name: "sqlite/half-load",
			Ours: queue.HalfLoad(oursName, fresh),
			Peers: []*measure.Side{
				river(r, riverBest, peers.Order{Do: "half", Workers: 10, Best: true}),
				queue.HalfLoad(liteName, peers.Backlite),
			},
			Rows: []measure.Row{
				{ID: "p50", Key: load.P50, Title: "pick-up with half of the workers busy, median", Unit: "ms", Lower: true},
				{ID: "p99", Key: load.P99, Title: "pick-up with half of the workers busy, p99", Unit: "ms", Lower: true},
			},
		},
	}
}

// depths returns the duels with many waiting tasks.
func depths(r *peers.RiverSQLite) []*measure.Duel {
	const flat = "Signalbox, 1,000 wait"
	bound := measure.Target{Of: flat, AtLeast: 1 / 1.5}
	few, most := &file{fill: waiting(1000)}, &file{fill: waiting(1_000_000)}
	short, crowded := on(flat, 1, few, cycle), on(flat, callers, few, cycle)
	against := func(name, title string, s, control *measure.Side) *measure.Duel {
		return &measure.Duel{Name: "sqlite/" + name, Ours: s, Peers: []*measure.Side{control}, Rows: []measure.Row{
			{Key: load.Each, Title: title, Unit: "µs", Lower: true, Target: bound},
		}}
	}
	deep := queue.Deep(oursName, fresh, manyBlocked)
	return []*measure.Duel{
		against("wait-100k", "cycle of one caller, 100,000 wait", kept("Signalbox", 1, 0, waiting(100_000), cycle), short),
		against("wait-1m", "cycle of one caller, 1,000,000 wait", on(oursName, 1, most, cycle), short),
		against("wait-1m-64", "cycle of one of 64 callers, 1,000,000 wait", on(oursName, callers, most, cycle), crowded),
		against("blocked-sessions", "cycle of one caller, 1,000 wait, 100,000 for their session", kept("Signalbox", 1, 0, behind(sessions), cycle), short),
		against("blocked-tomorrow", "cycle of one caller, 1,000 wait, 100,000 not before tomorrow", kept("Signalbox", 1, 0, behind(tomorrow), cycle), short),
		{
			Name: "sqlite/tomorrow", Ours: deep,
			Peers: []*measure.Side{r.Deep(riverBest, manyBlocked), queue.Deep(liteName, peers.Backlite, manyBlocked)},
			Rows: []measure.Row{
				{Key: load.Each, Title: "submit to work, one after the other, 100,000 wait for tomorrow", Unit: "µs", Lower: true},
				{ID: "bytes", Key: load.Storage, Title: "bytes in the file per waiting task", Unit: "B", Lower: true},
			},
		},
	}
}

// slow returns the duels with a millisecond added to each sync: a slower disk.
func slow() []*measure.Duel {
	with := func(name, title string, do *measure.Side) *measure.Duel {
		return &measure.Duel{Name: "sqlite/slow-" + name, Ours: do, Rows: []measure.Row{
			{Key: load.Rate, Title: title + ", 1 ms added to each sync", Unit: "/s", Detail: true},
		}}
	}
	return []*measure.Duel{
		with("submit-1", "durable submits, 1 caller", kept(oursName, 1, slowSync, nil, submitWhole)),
		with("submit-64", "durable submits, 64 callers", kept(oursName, callers, slowSync, nil, submitWhole)),
		with("submit-512", "durable submits, 512 callers", kept(oursName, 512, slowSync, nil, submitWhole)),
		with("cycle-64", "full cycles, 64 callers", kept(oursName, callers, slowSync, nil, wholeCycle)),
	}
}
