package telemetry

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// syncs are the buckets of store operations, 0.1 ms to 5 s: a commit waits for the disk.
var syncs = []float64{0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5}

// TimedStore is a store with timed verbs: those that every task uses, and the two reads of the whole queue.
type TimedStore struct {
	store.Store
	took     *prometheus.HistogramVec
	failures *prometheus.CounterVec

	submit, claim, apply, renew, counts, snapshot verb
}

// verb holds the metrics of one verb, bound in advance.
type verb struct {
	took     prometheus.Observer
	failures prometheus.Counter
}

// TimeStore wraps a store to time it. Metrics.Store exports the times.
func TimeStore(s store.Store) *TimedStore {
	t := &TimedStore{
		Store:    s,
		took:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "signalbox_store_duration_seconds", Help: "Time of the store's verbs, with the wait for the disk: submit, claim, apply, renew, counts, snapshot.", Buckets: syncs}, []string{"verb"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_store_failures_total", Help: "Verbs that the store could not carry out, such as for want of room on the disk."}, []string{"verb"}),
	}
	for name, v := range map[string]*verb{
		"submit": &t.submit, "claim": &t.claim, "apply": &t.apply, "renew": &t.renew, "counts": &t.counts, "snapshot": &t.snapshot,
	} {
		*v = verb{t.took.WithLabelValues(name), t.failures.WithLabelValues(name)}
	}
	return t
}

// Store adds the times of a store. Call it once.
func (m *Metrics) Store(s *TimedStore) { m.registry.MustRegister(s.took, s.failures) }

// done records a verb. If its caller gave up, it has not failed.
func (v *verb) done(ctx context.Context, begin time.Time, err error) {
	v.took.Observe(time.Since(begin).Seconds())
	if err == nil || ctx.Err() != nil {
		return
	}
	switch signalbox.CodeOf(err) {
	case signalbox.CodeStoreFailed, signalbox.CodeStoreFull, signalbox.CodeStoreCorrupt:
		v.failures.Inc()
	}
}

// Submit implements store.Writer.
func (t *TimedStore) Submit(ctx context.Context, s store.Submission) (store.Submitted, error) {
	begin := time.Now()
	got, err := t.Store.Submit(ctx, s)
	t.submit.done(ctx, begin, err)
	return got, err
}

// Claim implements store.Writer.
func (t *TimedStore) Claim(ctx context.Context, c store.ClaimRequest) (store.Claimed, error) {
	begin := time.Now()
	got, err := t.Store.Claim(ctx, c)
	t.claim.done(ctx, begin, err)
	return got, err
}

// Apply implements store.Writer.
func (t *TimedStore) Apply(ctx context.Context, change signalbox.Change, now time.Time) (signalbox.Task, error) {
	begin := time.Now()
	got, err := t.Store.Apply(ctx, change, now)
	t.apply.done(ctx, begin, err)
	return got, err
}

// Renew implements store.Writer.
func (t *TimedStore) Renew(ctx context.Context, leases []store.Lease) (int, error) {
	begin := time.Now()
	n, err := t.Store.Renew(ctx, leases)
	t.renew.done(ctx, begin, err)
	return n, err
}

// Counts implements store.Reader.
func (t *TimedStore) Counts(ctx context.Context) (store.Counts, error) {
	begin := time.Now()
	got, err := t.Store.Counts(ctx)
	t.counts.done(ctx, begin, err)
	return got, err
}

// Snapshot implements store.Reader.
func (t *TimedStore) Snapshot(ctx context.Context, heads int) (store.Snapshot, error) {
	begin := time.Now()
	got, err := t.Store.Snapshot(ctx, heads)
	t.snapshot.done(ctx, begin, err)
	return got, err
}

// maxServers bounds the series of tool calls; a configuration rarely names as many servers.
const maxServers = 100

// milliseconds are the buckets of the wait for a tool, 1 ms to an hour.
var milliseconds = []float64{1, 5, 10, 50, 100, 500, 1000, 5000, 15000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000}

// ToolMetrics counts events of tool calls and tool queues. The gauges are read from the queues when they are
// scraped, so the depth is right in whatever way a call left its queue.
type ToolMetrics struct {
	waits    []*prometheus.HistogramVec // under our name, and under the seed's if requested
	refusals *prometheus.CounterVec
	calls    *prometheus.CounterVec
	took     *prometheus.HistogramVec
	gauges   *toolGauges

	byQueue  sync.Map // name → *queueHandles
	mu       sync.Mutex
	byServer map[string]prometheus.Observer
}

// queueHandles are the metrics of a queue, bound in advance.
type queueHandles struct {
	waits  []prometheus.Observer
	lastMs atomic.Uint64 // bits of a float64
}

// Tools adds the metrics of tool calls. With seedNames those of tool queues are also exported under the names
// of the seed (tool-queue-manager, step 7). Call it once.
func (m *Metrics) Tools(seedNames bool) *ToolMetrics { return NewToolMetrics(m.registry, seedNames) }

// NewToolMetrics is Tools for a gateway without an engine.
func NewToolMetrics(reg prometheus.Registerer, seedNames bool) *ToolMetrics {
	const wait = "Milliseconds that calls which had to wait for a slot of a tool queue waited until they got one."
	t := &ToolMetrics{
		refusals: counters(reg, "signalbox_tool_queue_refusals_total", "Calls that got no slot of a tool queue, by reason: full, timeout, cancelled, away.", "queue", "reason"),
		calls:    counters(reg, "signalbox_tool_calls_total", "Tool calls that are over, by server and outcome: ok, error, protocol_error, cancelled or an error code.", "server", "outcome"),
		took:     histograms(reg, "signalbox_tool_call_duration_seconds", "Time of tool calls without their wait in line.", seconds, "server"),
		waits:    []*prometheus.HistogramVec{histograms(reg, "signalbox_tool_queue_wait_duration_ms", wait, milliseconds, "queue")},
		byServer: map[string]prometheus.Observer{},
	}
	t.gauges = newToolGauges(t)
	if seedNames {
		t.waits = append(t.waits, histograms(reg, "ai_agent_queue_wait_duration_ms", wait, milliseconds, "name"))
		t.gauges.add("ai_agent_queue", "name")
	}
	reg.MustRegister(t.gauges)
	return t
}

func histograms(reg prometheus.Registerer, name, help string, buckets []float64, label string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	reg.MustRegister(v)
	return v
}

// Hooks are the hooks of the tool queues: pass them as gateway.Hooks.
func (t *ToolMetrics) Hooks() toolqueue.Hooks {
	return toolqueue.Hooks{
		Waited: func(queue string, _ toolqueue.Who, wait time.Duration) {
			ms := float64(wait) / float64(time.Millisecond)
			h := t.queue(queue)
			h.lastMs.Store(math.Float64bits(ms))
			for _, w := range h.waits {
				w.Observe(ms)
			}
		},
		Refused: func(queue string, _ toolqueue.Who, r toolqueue.Reason, _ time.Duration) {
			if r == toolqueue.ReasonUnknown {
				queue = "" // an unknown name does not become a label
			}
			t.refusals.WithLabelValues(queue, string(r)).Inc()
		},
	}
}

// Watch sets the queues that the gauges read. All their series exist from now on, even of unused queues.
func (t *ToolMetrics) Watch(queues *toolqueue.Queues) {
	for _, s := range queues.All(0) {
		t.queue(s.Name)
		for _, r := range []toolqueue.Reason{toolqueue.ReasonFull, toolqueue.ReasonTimeout, toolqueue.ReasonCancelled} {
			t.refusals.WithLabelValues(s.Name, string(r))
		}
		if s.Shared {
			t.refusals.WithLabelValues(s.Name, string(toolqueue.ReasonUnavailable))
		}
	}
	t.gauges.queues.Store(queues)
}

func (t *ToolMetrics) queue(name string) *queueHandles {
	if h, ok := t.byQueue.Load(name); ok {
		return h.(*queueHandles)
	}
	h := &queueHandles{}
	for _, v := range t.waits {
		h.waits = append(h.waits, v.WithLabelValues(name))
	}
	kept, _ := t.byQueue.LoadOrStore(name, h)
	return kept.(*queueHandles)
}

// Ended records a completed call; it is gateway.Options.Ended.
func (t *ToolMetrics) Ended(e gateway.Ended) {
	server, took := t.server(e.Server)
	t.calls.WithLabelValues(server, e.Outcome).Inc()
	took.Observe(max(0, (e.Took - e.Waited).Seconds()))
}

// server returns the label for a server, and its handle.
func (t *ToolMetrics) server(name string) (string, prometheus.Observer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.byServer[name]
	if took == nil {
		if len(t.byServer) >= maxServers {
			name = otherQueues
		}
		took = t.took.WithLabelValues(name)
		t.byServer[name] = took
	}
	return name, took
}

// toolGauges reads the tool queues when it is scraped.
type toolGauges struct {
	metrics *ToolMetrics
	queues  atomic.Pointer[toolqueue.Queues]
	names   []toolNames
}

// maxShown is how many waiters and keys of a tool queue are read.
const maxShown = 1000

// The gauges that the seed does not have.
var (
	toolHeld = prometheus.NewDesc("signalbox_tool_queue_held",
		"Calls that wait in the tool queue for its rate or for it to open, of the first 1,000.", []string{"queue"}, nil)
	toolClosed = prometheus.NewDesc("signalbox_tool_queue_closed_until_seconds",
		"Unix time until which the tool queue, or the last of its keys that are closed, starts no calls; 0 if none is closed.", []string{"queue"}, nil)
)

// toolNames are the gauges under one prefix.
type toolNames struct{ depth, inUse, capacity, lastWait *prometheus.Desc }

func newToolGauges(t *ToolMetrics) *toolGauges {
	g := &toolGauges{metrics: t}
	g.add("signalbox_tool_queue", "queue")
	return g
}

func (g *toolGauges) add(prefix, label string) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, []string{label}, nil)
	}
	g.names = append(g.names, toolNames{
		depth:    desc("_depth", "Calls that wait for a slot of the tool queue; of a shared queue, at all directors."),
		inUse:    desc("_in_use", "Slots of the tool queue that are taken, by calls or by session leases; of a shared queue, at all directors."),
		capacity: desc("_capacity", "Slots of the tool queue."),
		lastWait: desc("_last_wait_ms", "Milliseconds that the last call which had to wait and got its slot waited; 0 if none did."),
	})
}

func (g *toolGauges) Describe(c chan<- *prometheus.Desc) {
	for _, n := range g.names {
		for _, d := range []*prometheus.Desc{n.depth, n.inUse, n.capacity, n.lastWait} {
			c <- d
		}
	}
	c <- toolHeld
	c <- toolClosed
}

func (g *toolGauges) Collect(c chan<- prometheus.Metric) {
	queues := g.queues.Load()
	if queues == nil {
		return
	}
	for _, s := range queues.All(maxShown) {
		held, until := 0, 0.0
		for _, w := range s.Waiters {
			if !w.Held.Until.IsZero() {
				held++
			}
		}
		if c, keys := s.Closed(); keys > 0 {
			until = float64(c.Until.UnixMilli()) / 1000
		}
		last := math.Float64frombits(g.metrics.queue(s.Name).lastMs.Load())
		for _, n := range g.names {
			set := func(d *prometheus.Desc, v float64) {
				c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, s.Name)
			}
			set(n.depth, float64(s.Depth))
			set(n.inUse, float64(s.InUse))
			set(n.capacity, float64(s.Concurrent))
			set(n.lastWait, last)
		}
		c <- prometheus.MustNewConstMetric(toolHeld, prometheus.GaugeValue, float64(held), s.Name)
		c <- prometheus.MustNewConstMetric(toolClosed, prometheus.GaugeValue, until, s.Name)
	}
}
