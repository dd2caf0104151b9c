package servers

import (
	"time"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/peers"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
)

// Groups are those of the two servers, and the cost of many waiting tasks on each, which
// uses separate, filled servers.
var Groups = []measure.Group{
	{Name: "postgres", Duels: onPostgres},
	{Name: "redis", Duels: onRedis},
	{Name: "postgres-deep", Duels: deepPostgres},
	{Name: "redis-deep", Duels: deepRedis},
}

// Names of sides.
const (
	oursName     = "Signalbox"
	one          = "one director"
	riverDefault = "River, defaults"
	riverBest    = "River, best"
	asynqDefault = "Asynq, defaults"
	asynqBest    = "Asynq, best"
	pause        = 5 * time.Millisecond
	pickupTimes  = 500 // with fewer, the 99th percentile would be the slowest or second slowest
)

func onPostgres(b *measure.Bench) []*measure.Duel {
	s := &servers{bench: b}
	usual, best := peers.River(s.database, peers.RiverSettings{}), peers.River(s.database, peers.BestRiver)
	rivers := queue.Cycles(riverBest, best, 64, 2000, 40_000)
	slow := queue.Cycles(riverDefault, usual, 64, 100, 1000)
	many := s.on(one, postgresKind, cycles(2000))
	few := s.on(one, postgresKind, cycles(256))
	return []*measure.Duel{
		{
			Name: "postgres/submit-1", Ours: queue.Submits(oursName, s.fresh(postgresKind), 1),
			Peers: []*measure.Side{queue.Submits(riverDefault, usual, 1)}, Limit: s.bareCommits("a bare commit", 1),
			Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 1 caller", Unit: "/s"}},
		}, {
			Name: "postgres/submit-64", Ours: queue.Submits(oursName, s.fresh(postgresKind), 64),
			Peers: []*measure.Side{queue.Submits(riverDefault, usual, 64), queue.Submits(riverBest, best, 64)}, Limit: s.bareCommits("bare commits, 64 connections", 64),
			Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 64 callers", Unit: "/s", Target: measure.Target{Of: riverBest, AtLeast: 5}}},
		},
		storeAlone(s, postgresKind),
		{
			Name: "postgres/cycle-2000", Ours: many, Peers: []*measure.Side{slow, rivers},
			Rows: []measure.Row{{Key: load.Rate, Title: "full cycles, 2,000 callers or workers", Unit: "/s", Target: measure.Target{Of: riverBest, AtLeast: 1}}},
		}, {
			Name: "postgres/cycle-256", Ours: few, Peers: []*measure.Side{rivers},
			Rows: []measure.Row{{Key: load.Rate, Title: "full cycles, 256 callers; River has its 2,000 workers", Unit: "/s"}},
		},
		directors(s, postgresKind, 2000, many), directors(s, postgresKind, 256, few),
		{
			Name: "postgres/fleet", Ours: s.fleet("four directors", 4), Peers: []*measure.Side{s.fleet(one, 1)},
			Rows: []measure.Row{{Key: load.Rate, Title: "tasks through real directors, 256 clients, 256 agents that finish at once", Unit: "/s", Target: measure.Target{Of: one, AtLeast: 0.8}}},
		},
		{
			Name: "postgres/pickup", Ours: queue.Pickups(oursName, s.fresh(postgresKind), pause, pickupTimes),
			Peers: []*measure.Side{queue.Pickups(riverDefault, usual, 120*time.Millisecond, 10), queue.Pickups(riverBest, best, pause, pickupTimes)},
			Limit: s.idleCommits("two bare commits, one after the other"),
			Rows:  pickups(5),
		},
		across(s, postgresKind), half(s, postgresKind, queue.HalfLoad(riverDefault, usual), queue.HalfLoad(riverBest, best)),
	}
}

func onRedis(b *measure.Bench) []*measure.Duel {
	s := &servers{bench: b}
	usual, best := peers.Asynq(s.asynq, 0), peers.Asynq(s.asynq, time.Millisecond)
	asynqs := queue.Cycles(asynqBest, best, 64, 256, 5000)
	few := s.on(one, redisKind, cycles(256))
	return []*measure.Duel{
		{
			Name: "redis/submit-1", Ours: queue.Submits(oursName, s.fresh(redisKind), 1),
			Peers: []*measure.Side{queue.Submits(asynqDefault, usual, 1)}, Limit: s.bareSets("a bare SET", 1),
			Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 1 caller", Unit: "/s"}},
		}, {
			Name: "redis/submit-64", Ours: queue.Submits(oursName, s.fresh(redisKind), 64),
			Peers: []*measure.Side{queue.Submits(asynqDefault, usual, 64)}, Limit: s.bareSets("bare SETs, 64 connections", 64),
			Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 64 callers", Unit: "/s", Target: measure.Target{Of: asynqDefault, AtLeast: 0.8}}},
		},
		storeAlone(s, redisKind),
		{
			Name: "redis/cycle-256", Ours: few, Peers: []*measure.Side{queue.Cycles(asynqDefault, usual, 64, 2, 1000), asynqs},
			Rows: []measure.Row{{Key: load.Rate, Title: "full cycles, 256 callers or workers", Unit: "/s", Target: measure.Target{Of: asynqBest, AtLeast: 4}}},
		},
		directors(s, redisKind, 256, few),
		{
			Name: "redis/pickup", Ours: queue.Pickups(oursName, s.fresh(redisKind), pause, pickupTimes),
			Peers: []*measure.Side{queue.Pickups(asynqDefault, usual, pause, 4), queue.Pickups(asynqBest, best, pause, pickupTimes)},
			Rows:  pickups(5),
		},
		across(s, redisKind), half(s, redisKind, queue.HalfLoad(asynqBest, best)),
	}
}

func pickups(most float64) []measure.Row {
	return []measure.Row{
		{ID: "p50", Key: load.P50, Title: "pick-up by an idle worker, median", Unit: "ms", Lower: true},
		{ID: "p99", Key: load.P99, Title: "pick-up by an idle worker, p99", Unit: "ms", Lower: true, Target: measure.Target{AtMost: most}},
	}
}

func storeAlone(s *servers, k kind) *measure.Duel {
	return &measure.Duel{
		Name: string(k) + "/submit-64-store", Ours: s.on("Signalbox, store alone", k, storeSubmits(64)),
		Rows: []measure.Row{{Key: load.Rate, Title: "durable submits, 64 callers, without the engine", Unit: "/s", Detail: true}},
	}
}

func directors(s *servers, k kind, callers int, control *measure.Side) *measure.Duel {
	name, title := string(k)+"/directors-256", "full cycles of four directors, 256 callers"
	if callers == 2000 {
		name, title = string(k)+"/directors-2000", "full cycles of four directors, 2,000 callers"
	}
	return &measure.Duel{
		Name: name, Ours: s.on("four directors", k, apart(callers, 4)), Peers: []*measure.Side{control},
		Rows: []measure.Row{{Key: load.Rate, Title: title, Unit: "/s", Target: measure.Target{Of: one, AtLeast: 0.8}}},
	}
}

func across(s *servers, k kind) *measure.Duel {
	return &measure.Duel{
		Name: string(k) + "/pickup-across", Ours: s.on("Signalbox, two directors", k, pickupAcross),
		Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "submitted at one director, claimed by another, median", Unit: "ms", Lower: true},
			{ID: "p99", Key: load.P99, Title: "submitted at one director, claimed by another, p99", Unit: "ms", Lower: true},
		},
	}
}

func half(s *servers, k kind, peers ...*measure.Side) *measure.Duel {
	return &measure.Duel{
		Name: string(k) + "/half-load", Ours: queue.HalfLoad(oursName, s.fresh(k)), Peers: peers,
		Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "pick-up with half of the workers busy, median", Unit: "ms", Lower: true},
			{ID: "p99", Key: load.P99, Title: "pick-up with half of the workers busy, p99", Unit: "ms", Lower: true},
		},
	}
}

func deepPostgres(b *measure.Bench) []*measure.Duel {
	s := &servers{bench: b}
	best := peers.River(s.database, peers.BestRiver)
	return depths(s, postgresKind, 1_000_000, queue.Deep(riverBest, best, 1000), queue.Deep(riverBest, best, 100_000))
}

func deepRedis(b *measure.Bench) []*measure.Duel {
	s := &servers{bench: b}
	return depths(s, redisKind, 300_000)
}

// depths returns the duels with many waiting tasks.
func depths(s *servers, k kind, most int, peers ...*measure.Side) []*measure.Duel {
	const flat = "Signalbox, 1,000 wait"
	control := s.deep(flat, k, 1000)
	bound := measure.Target{Of: flat, AtLeast: 1 / 1.5}
	many := s.deep("Signalbox", k, 100_000)
	title := map[int]string{1_000_000: "1,000,000", 300_000: "300,000"}[most]
	out := []*measure.Duel{
		{Name: string(k) + "-deep/wait-100k", Ours: many, Peers: []*measure.Side{control}, Rows: []measure.Row{
			{Key: load.Each, Title: "cycle of one caller, 100,000 wait, a tenth of them blocked", Unit: "µs", Lower: true, Target: bound},
			{ID: "bytes", Key: load.Storage, Title: "bytes per waiting task", Unit: "B", Lower: true},
		}},
		{Name: string(k) + "-deep/wait-most", Ours: s.deep("Signalbox", k, most), Peers: []*measure.Side{control}, Rows: []measure.Row{
			{Key: load.Each, Title: "cycle of one caller, " + title + " wait, a tenth of them blocked", Unit: "µs", Lower: true, Target: bound},
		}},
	}
	if len(peers) == 2 {
		out = append(out, &measure.Duel{
			Name: string(k) + "-deep/tomorrow", Ours: queue.Deep(oursName, s.fresh(k), 100_000), Peers: peers[1:], Rows: []measure.Row{
				{Key: load.Each, Title: "submit to work, one after the other, 100,000 wait for tomorrow", Unit: "µs", Lower: true},
			},
		})
	}
	return out
}
