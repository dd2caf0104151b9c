package overhttp

import (
	"path/filepath"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// Groups are the director over HTTP, and its footprint.
var Groups = []measure.Group{
	{Name: "http", Duels: duels},
	{Name: "footprint", Duels: footprints},
}

const (
	oursName = "Signalbox"
	trip     = "HTTP round trip on loopback"
)

func duels(*measure.Bench) []*measure.Duel {
	empty := loopback(trip, 1)
	one := submits("one client", 1, nil)
	slow := submits("one client", 1, slowDisk)
	return []*measure.Duel{
		{Name: "http/pickup", Ours: pickup(oursName), Limit: empty, Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "submit → accepted by an idle agent, median", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 2}},
			{ID: "p99", Key: load.P99, Title: "submit → accepted by an idle agent, p99", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 10}},
		}},
		{Name: "http/half-load", Ours: half(oursName), Limit: empty, Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "submit → accepted, half of ten slots busy, median", Unit: "ms", Lower: true},
			{ID: "p99", Key: load.P99, Title: "submit → accepted, half of ten slots busy, p99", Unit: "ms", Lower: true},
		}},
		{Name: "http/gap", Ours: gap(oursName), Limit: empty, Rows: []measure.Row{
			{ID: "p50", Key: load.P50, Title: "an agent's idle gap: end of a task → acceptance of the next, median", Unit: "ms", Lower: true, Target: measure.Target{AtMost: 3}},
			{ID: "p99", Key: load.P99, Title: "an agent's idle gap, p99", Unit: "ms", Lower: true},
		}},
		{Name: "http/submit-1", Ours: submits(oursName, 1, nil), Limit: empty, Rows: []measure.Row{
			{Key: load.Rate, Title: "durable submits over HTTP, 1 client", Unit: "/s"},
		}},
		{Name: "http/submit-64", Ours: submits(oursName, 64, nil), Peers: []*measure.Side{one}, Limit: loopback(trip+", 64 clients", 64), Rows: []measure.Row{
			{Key: load.Rate, Title: "durable submits over HTTP, 64 clients", Unit: "/s", Target: measure.Target{Of: one.Name, AtLeast: 2}},
		}},
		{Name: "http/slow-submit-64", Ours: submits(oursName, 64, slowDisk), Peers: []*measure.Side{slow}, Rows: []measure.Row{
			{Key: load.Rate, Title: "durable submits over HTTP, 1 ms added to each sync, 64 clients", Unit: "/s", Detail: true, Target: measure.Target{Of: slow.Name, AtLeast: 5}},
		}},
		{Name: "http/syncs", Ours: syncs(oursName), Rows: []measure.Row{
			{Key: "syncs", Title: "syncs per single submit, by strace", Lower: true, Detail: true, Target: measure.Target{AtMost: 1.01}},
		}},
	}
}

func footprints(*measure.Bench) []*measure.Duel {
	peers := []*measure.Side{
		smallest("River and one worker", "river", func(b *measure.Bench) string {
			return testserver.NewPostgres(b, testserver.PostgresOptions{}).Database(b)
		}),
		smallest("Asynq and one worker", "asynq", func(b *measure.Bench) string {
			return testserver.NewRedis(b, testserver.RedisOptions{}).Addr()
		}),
		smallest("backlite and one worker", "backlite", func(b *measure.Bench) string {
			return filepath.Join(b.Dir, "tiny.db")
		}),
	}
	return []*measure.Duel{
		{Name: "footprint/start", Ours: footprint(oursName), Peers: peers, Limit: bareStart("the binary says its version"), Rows: []measure.Row{
			{ID: "ready", Key: ready, Title: "start on an empty data folder to the first answer", Unit: "ms", Lower: true},
			{ID: "ready-full", Key: readyFull, Title: "start with 100,000 waiting tasks to the first answer", Unit: "ms", Lower: true},
			{ID: "memory", Key: load.RSS, Title: "memory (RSS) after the start", Unit: "MB", Lower: true},
			{ID: "memory-full", Key: rssFull, Title: "memory (RSS) with 100,000 waiting tasks", Unit: "MB", Lower: true},
			{ID: "per-task", Key: perTask, Title: "memory per waiting task", Unit: "B", Lower: true},
			{ID: "size", Key: size, Title: "size of the stripped binary", Unit: "MB", Lower: true},
		}},
	}
}
