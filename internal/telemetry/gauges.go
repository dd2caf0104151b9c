package telemetry

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

const (
	// maxQueues bounds the series of the depth gauge: every agent and kind
	// that a caller names has a queue. The deepest are shown, the rest is
	// summed up under otherQueues.
	maxQueues   = 100
	otherQueues = "other"
	// scrapeTimeout bounds what a scrape asks of the store.
	scrapeTimeout = 3 * time.Second
)

// gauges reads the store's counts when it is scraped.
type gauges struct {
	engine                                   *engine.Engine
	depth, maxSize, inFlight, oldest, agents *prometheus.Desc
	info, up                                 *prometheus.Desc
	toolSlots, toolInUse                     *prometheus.Desc
}

func newGauges(e *engine.Engine) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		engine:    e,
		depth:     desc("signalbox_queue_depth", "Pending tasks, by queue; the smallest of more than 100 queues are summed up as other.", "queue"),
		maxSize:   desc("signalbox_queue_max_size", "Pending tasks that the limit work allows."),
		inFlight:  desc("signalbox_tasks_in_flight", "Tasks that hold a slot, by state.", "state"),
		oldest:    desc("signalbox_queue_oldest_age_seconds", "Age of the task that has waited longest; 0 if none waits."),
		agents:    desc("signalbox_agents", "Agents, by state: up (connected), idle (connected with all slots free).", "state"),
		toolSlots: desc("signalbox_tool_task_slots", "Slots of the director's own executor, by the queue that it serves.", "queue"),
		toolInUse: desc("signalbox_tool_task_slots_in_use", "Of these, slots that a tool call holds.", "queue"),
		info:      desc("signalbox_store_info", "The store; the value is always 1.", "kind"),
		up:        desc("signalbox_store_up", "1 if the store answered this scrape."),
	}
}

func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.depth, g.maxSize, g.inFlight, g.oldest, g.agents, g.info, g.up, g.toolSlots, g.toolInUse} {
		c <- d
	}
}

func (g *gauges) Collect(c chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	set(g.info, 1, g.engine.Info().Kind)
	set(g.maxSize, float64(g.engine.MaxSize()))
	for _, a := range g.engine.LiveAgents() {
		if kind, own := signalbox.ExecutorKind(a.Name); own {
			set(g.toolSlots, float64(a.Slots), kind)
			set(g.toolInUse, float64(a.InUse), kind)
		}
	}
	up, idle := g.countAgents()
	set(g.agents, up, "up")
	set(g.agents, idle, "idle")
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	counts, err := g.engine.Read().Counts(ctx)
	if err != nil {
		set(g.up, 0) // no figure is better than a stale one
		return
	}
	set(g.up, 1)
	for queue, n := range capped(counts.Queues) {
		set(g.depth, float64(n), queue)
	}
	for _, s := range signalbox.States() {
		if s.InFlight() {
			set(g.inFlight, float64(counts.InFlight[s]), string(s))
		}
	}
	age := 0.0
	if !counts.Oldest.IsZero() {
		age = max(0, g.engine.Now().Sub(counts.Oldest).Seconds())
	}
	set(g.oldest, age)
}

func (g *gauges) countAgents() (up, idle float64) {
	for _, a := range g.engine.LiveAgents() {
		if _, own := signalbox.ExecutorKind(a.Name); own || !a.Up {
			continue
		}
		up++
		if !a.Held && a.InUse == 0 {
			idle++
		}
	}
	return up, idle
}

// capped keeps the queue work and the deepest of the others.
func capped(queues map[string]int) map[string]int {
	out := map[string]int{signalbox.QueueWork: queues[signalbox.QueueWork]}
	names := slices.Collect(maps.Keys(queues))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(queues[b], queues[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		if name == signalbox.QueueWork {
			continue
		}
		shown := name
		if len(out) >= maxQueues {
			shown = otherQueues
		}
		out[shown] += queues[name]
	}
	return out
}
