package telemetry

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

const (
	// maxQueues bounds the series of the depth gauge: every agent and kind that a caller names has a queue.
	// The deepest are shown, the rest is added up under otherQueues.
	maxQueues   = 100
	otherQueues = "other"
	// scrapeTimeout bounds the reads of the store in a scrape.
	scrapeTimeout = 3 * time.Second
)

// gauges reads the store's counts when it is scraped.
type gauges struct {
	engine                                       *engine.Engine
	depth, head, oldest, limit, maxSize, pauses  *prometheus.Desc
	kept, landings                               *prometheus.Desc
	inFlight, agents, slots, inUse               *prometheus.Desc
	info, up                                     *prometheus.Desc
	toolSlots, toolInUse                         *prometheus.Desc
	stepLimit, stepCalls, stepQueued, stepExempt *prometheus.Desc
}

func newGauges(e *engine.Engine) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		engine:     e,
		depth:      desc("signalbox_queue_depth", "Pending tasks, by queue; the smallest of more than 100 queues are summed up as other.", "queue"),
		head:       desc("signalbox_queue_head_age_seconds", "Age of the task that stands first, by queue; of the queues that signalbox_queue_depth names.", "queue"),
		limit:      desc("signalbox_limit_waiting", "Pending tasks, by the limit that they count against: work, chat (of all agents), bypass, commands, calls.", "limit"),
		pauses:     desc("signalbox_pauses", "Pauses that are in force: of a queue, an agent or all."),
		kept:       desc("signalbox_ended_tasks_bytes", "Bytes that are kept of ended tasks, as queue.retention_bytes bounds them."),
		landings:   desc("signalbox_landings", "Work on its way to a branch, by state: queued, landing, returned (its conversation mends it), stands (it needs a person).", "state"),
		slots:      desc("signalbox_agent_slots", "Slots of the agents that are up."),
		inUse:      desc("signalbox_agent_slots_in_use", "Of these, slots that an execution holds."),
		maxSize:    desc("signalbox_queue_max_size", "Pending tasks that the limit work allows."),
		inFlight:   desc("signalbox_tasks_in_flight", "Tasks that hold a slot, by state.", "state"),
		oldest:     desc("signalbox_queue_oldest_age_seconds", "Age of the task that has waited longest; 0 if none waits."),
		agents:     desc("signalbox_agents", "Agents, by state: up (connected), idle (of these, with all slots free), held (of these, offered nothing), closed (of these, held because it fails), down.", "state"),
		toolSlots:  desc("signalbox_tool_task_slots", "Slots of the director's own executor, by the queue that it serves.", "queue"),
		toolInUse:  desc("signalbox_tool_task_slots_in_use", "Of these, slots that a tool call holds; one that waits for its tool queue holds none of commands.", "queue"),
		stepLimit:  desc("signalbox_agent_step_limit", "Tool calls of one step that an agent of kind llm runs: of the step that began last.", "agent"),
		stepCalls:  desc("signalbox_agent_step_calls_total", "Tool calls that the models of an agent of kind llm asked for since it started, by what became of them.", "agent", "outcome"),
		stepQueued: desc("signalbox_agent_step_queued_total", "Of these, calls beyond the limit that waited for others of their step.", "agent"),
		stepExempt: desc("signalbox_agent_step_exempt_total", "Of these, calls that the limit does not count.", "agent"),
		info:       desc("signalbox_store_info", "The store; the value is always 1.", "kind"),
		up:         desc("signalbox_store_up", "1 if the store answered this scrape."),
	}
}

func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		g.depth, g.head, g.oldest, g.limit, g.maxSize, g.pauses, g.kept, g.landings, g.inFlight, g.agents, g.slots, g.inUse, g.info, g.up, g.toolSlots, g.toolInUse,
		g.stepLimit, g.stepCalls, g.stepQueued, g.stepExempt,
	} {
		c <- d
	}
}

// setter sends a value.
type setter func(d *prometheus.Desc, v float64, labels ...string)

func (g *gauges) Collect(c chan<- prometheus.Metric) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	set(g.info, 1, g.engine.Info().Kind)
	set(g.maxSize, float64(g.engine.Options().MaxSize))
	g.collectAgents(set)
	g.collectSteps(c)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	counts, err := g.engine.Read().Counts(ctx)
	if err != nil {
		set(g.up, 0) // no value is better than a stale one
		return
	}
	set(g.up, 1)
	for _, s := range signalbox.States() {
		if s.InFlight() {
			set(g.inFlight, float64(counts.InFlight[s]), string(s))
		}
	}
	set(g.oldest, g.age(counts.Oldest))
	limits := map[string]int{signalbox.LimitWork: 0, "chat": 0, "bypass": 0, signalbox.LimitCommands: 0, signalbox.LimitCalls: 0}
	for limit, n := range counts.Limits {
		kind, _, _ := strings.Cut(limit, ":")
		if _, known := limits[kind]; known {
			limits[kind] += n
		}
	}
	for limit, n := range limits {
		set(g.limit, float64(n), limit)
	}
	for queue, n := range capped(counts.Queues) {
		set(g.depth, float64(n), queue)
		if queue != otherQueues {
			g.collectHead(ctx, set, queue, n)
		}
	}
	if pauses, err := g.engine.Read().Pauses(ctx); err == nil {
		set(g.pauses, float64(len(pauses)))
	}
	if kept, err := g.engine.Read().Kept(ctx); err == nil {
		sum := int64(0)
		for _, bytes := range kept {
			sum += bytes
		}
		set(g.kept, float64(sum))
	}
	g.collectLandings(ctx, set)
}

func (g *gauges) collectLandings(ctx context.Context, set setter) {
	open, err := g.engine.Read().Landings(ctx)
	if err != nil {
		return
	}
	states := map[signalbox.LandingState]int{}
	for i := range open {
		states[open[i].Landing.State]++
	}
	for _, s := range signalbox.LandingStates() {
		if (&signalbox.Landing{State: s}).Open() {
			set(g.landings, float64(states[s]), string(s))
		}
	}
}

// collectHead reads the first task of a queue in which n wait. If it has just been claimed, none is reported.
func (g *gauges) collectHead(ctx context.Context, set setter, queue string, n int) {
	age := 0.0
	if n > 0 {
		first, err := g.engine.Read().Waiting(ctx, queue, store.Cursor{}, 1)
		if err != nil {
			return
		}
		if len(first) > 0 {
			age = g.age(first[0].CreatedAt)
		}
	}
	set(g.head, age, queue)
}

// age is how long ago a time was, in seconds; 0 for the zero time.
func (g *gauges) age(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, g.engine.Now().Sub(t).Seconds())
}

func (g *gauges) collectAgents(set setter) {
	states := map[string]float64{"up": 0, "idle": 0, "held": 0, "closed": 0, "down": 0}
	slots, inUse := 0, 0
	for _, a := range g.engine.LiveAgents() {
		if kind, own := signalbox.ExecutorKind(a.Name); own {
			set(g.toolSlots, float64(a.Slots), kind)
			set(g.toolInUse, float64(a.InUse), kind)
			continue
		}
		if !a.Up {
			states["down"]++
			continue
		}
		states["up"]++
		slots, inUse = slots+a.Slots, inUse+a.InUse
		if a.Closed != nil {
			states["closed"]++
		}
		switch {
		case a.Held:
			states["held"]++
		case a.InUse == 0:
			states["idle"]++
		}
	}
	for state, n := range states {
		set(g.agents, n, state)
	}
	set(g.slots, float64(slots))
	set(g.inUse, float64(inUse))
}

// collectSteps sends the agents' step statistics. The counters are the agents', and restart with them.
func (g *gauges) collectSteps(c chan<- prometheus.Metric) {
	sent := map[string]bool{} // a duplicate value invalidates the whole scrape
	for _, a := range g.engine.LiveAgents() {
		if !a.Up || a.Steps == nil || sent[a.Name] {
			continue
		}
		sent[a.Name] = true
		c <- prometheus.MustNewConstMetric(g.stepLimit, prometheus.GaugeValue, float64(a.Steps.Limit), a.Name)
		count := func(d *prometheus.Desc, n int64, labels ...string) {
			c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{a.Name}, labels...)...)
		}
		for outcome, n := range a.Steps.Calls {
			count(g.stepCalls, n, outcome)
		}
		count(g.stepQueued, a.Steps.Queued)
		count(g.stepExempt, a.Steps.Exempt)
	}
}

// capped keeps the queue work and the deepest other queues.
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
