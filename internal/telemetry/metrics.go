package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// Metrics counts events. Make one with NewMetrics.
type Metrics struct {
	handler  http.Handler
	registry *prometheus.Registry

	// Handles are bound in advance, so that the hot path looks up no labels.
	submitted map[signalbox.Source]prometheus.Counter
	ended     map[endKey]prometheus.Counter
	failures  map[signalbox.EventKind]prometheus.Counter
	parks     map[signalbox.GateKind]prometheus.Counter
	usage     usage
	refusals  *prometheus.CounterVec
	requests  *prometheus.CounterVec
	took      *prometheus.HistogramVec
	agents    map[string]times // by the kind of queue of agents' tasks
	tools     map[string]times // by the queue of tool tasks
	routes    map[string]bool
}

// times are the histograms of a task: until its claim, and after it.
type times struct{ wait, run prometheus.Observer }

// endKey is the way in which a task ended.
type endKey struct {
	state  signalbox.State
	reason signalbox.Reason
}

// failureKinds are the events of a dispatch that does not lead to a run that ends by itself.
var failureKinds = []signalbox.EventKind{
	signalbox.EventBusy, signalbox.EventRefuse, signalbox.EventUnsent, signalbox.EventReject,
	signalbox.EventLost, signalbox.EventUndeliverable,
}

// seconds are the buckets of the histograms of tasks, 10 ms to about a day: a wait is often zero, a run often
// takes hours.
var seconds = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400}

// answers are the buckets of HTTP requests, 1 ms to 30 s.
var answers = []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30}

// The kinds of queues: a label with a fixed set of values.
const (
	kindWork, kindPool, kindAgent, kindBypass = "work", "pool", "agent", "bypass"
)

func kindOf(t *signalbox.Task) string {
	if t.Mode == signalbox.ModeBypass {
		return kindBypass
	}
	if t.Queue == signalbox.QueueWork {
		return kindWork
	}
	if _, own := signalbox.QueueAgent(t.Queue); own {
		return kindAgent
	}
	return kindPool
}

// NewMetrics observes an engine. Call it before the engine is used.
func NewMetrics(e *engine.Engine) *Metrics {
	reg := prometheus.NewRegistry()
	m := &Metrics{registry: reg, routes: map[string]bool{"": true}}
	for _, r := range api.Routes() {
		m.routes[r.Name] = true
	}
	m.bindTasks(reg)
	m.refusals = counters(reg, "signalbox_submit_refusals_total", "Submits that were not accepted, by error code.", "code")
	m.refusals.WithLabelValues(string(signalbox.CodeQueueFull))
	m.requests = counters(reg, "signalbox_http_requests_total", "Answered HTTP requests, by route and status.", "route", "status")
	m.took = histograms(reg, "signalbox_http_request_duration_seconds", "Time of HTTP requests, by route; streams and polls that wait apart.", answers, "route")
	reg.MustRegister(
		newGauges(e),
		newAccountGauges(e), newBudgetGauges(e),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
	e.Observe(m.observe)
	return m
}

func (m *Metrics) bindTasks(reg *prometheus.Registry) {
	submitted := counters(reg, "signalbox_tasks_submitted_total", "Tasks stored, by source.", "source")
	m.submitted = map[signalbox.Source]prometheus.Counter{}
	for _, source := range signalbox.Sources() {
		m.submitted[source] = submitted.WithLabelValues(string(source))
	}
	ended := counters(reg, "signalbox_tasks_ended_total", "Tasks that ended, by state and reason.", "state", "reason")
	m.ended = map[endKey]prometheus.Counter{}
	for _, reason := range signalbox.Reasons() {
		key := endKey{reason.End(), reason}
		m.ended[key] = ended.WithLabelValues(string(key.state), string(key.reason))
	}
	failures := counters(reg, "signalbox_dispatch_failures_total", "Dispatches that did not lead to a run that ended by itself, by kind.", "kind")
	m.failures = map[signalbox.EventKind]prometheus.Counter{}
	for _, kind := range failureKinds {
		m.failures[kind] = failures.WithLabelValues(string(kind))
	}
	parks := counters(reg, "signalbox_task_parks_total", "Runs that were ended at a gate, to go on later, by the kind of gate.", "gate")
	m.parks = map[signalbox.GateKind]prometheus.Counter{}
	for _, kind := range []signalbox.GateKind{signalbox.GateAccount, signalbox.GateTime} {
		m.parks[kind] = parks.WithLabelValues(string(kind))
	}
	m.bindTimes(reg)
	m.usage = newUsage(reg)
}

func (m *Metrics) bindTimes(reg *prometheus.Registry) {
	agentWait := histograms(reg, "signalbox_task_wait_seconds", "Time from when an agent's task could first start until it was claimed, by the kind of its queue.", seconds, "queue_kind")
	agentRun := histograms(reg, "signalbox_task_run_seconds", "Time from acceptance by an agent until the end, by the kind of the task's queue.", seconds, "queue_kind")
	m.agents = map[string]times{}
	for _, kind := range []string{kindWork, kindPool, kindAgent, kindBypass} {
		m.agents[kind] = times{agentWait.WithLabelValues(kind), agentRun.WithLabelValues(kind)}
	}
	wait := histograms(reg, "signalbox_tool_task_wait_seconds", "Time from when a tool call that is a task could first start until it was claimed.", seconds, "queue")
	run := histograms(reg, "signalbox_tool_task_run_seconds", "Time from the start of a tool call that is a task until its end.", seconds, "queue")
	m.tools = map[string]times{}
	for _, queue := range []string{signalbox.QueueCommands, signalbox.QueueCalls} {
		m.tools[queue] = times{wait.WithLabelValues(queue), run.WithLabelValues(queue)}
	}
}

func counters(reg prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	reg.MustRegister(v)
	return v
}

// observe records a durable change.
func (m *Metrics) observe(a *engine.Applied) {
	if a.Foreign {
		return // the director that made the change counts it
	}
	t := &a.Task
	switch a.Kind {
	case signalbox.EventSubmit:
		count(m.submitted, t.Source)
	case signalbox.EventClaim:
		if t.Parking != nil {
			break // since its submit it has run, and waited at a gate
		}
		since := t.EnqueuedAt
		if t.NotBefore.After(since) {
			since = t.NotBefore
		}
		m.timesOf(t).wait.Observe(max(0, t.DispatchedAt.Sub(since).Seconds()))
	case signalbox.EventPark:
		if t.State == signalbox.Parked {
			count(m.parks, t.Parking.Kind)
		}
	}
	count(m.failures, a.Kind)
	if a.Used.Runs > 0 {
		m.usage.add(&a.Used)
	}
	if !t.State.Terminal() || t.ID == "" {
		return
	}
	count(m.ended, endKey{t.State, t.Reason})
	if !t.StartedAt.IsZero() {
		m.timesOf(t).run.Observe(max(0, t.EndedAt.Sub(t.StartedAt).Seconds()))
	}
}

// timesOf keeps tool tasks apart: they wait for the director's own executor, and many are so short that they
// would hide how long agents take.
func (m *Metrics) timesOf(t *signalbox.Task) times {
	if own, ok := m.tools[t.Queue]; ok && t.Mode == signalbox.ModeTool {
		return own
	}
	return m.agents[kindOf(t)]
}

// count increments a bound counter; others are ignored.
func count[K comparable](bound map[K]prometheus.Counter, key K) {
	if c := bound[key]; c != nil {
		c.Inc()
	}
}

// Request counts an answered HTTP request. route is a name of the route table; any other value is counted as
// "". A negative took is not counted.
func (m *Metrics) Request(route string, status int, took time.Duration) {
	if !m.routes[route] {
		route = ""
	}
	if status < 100 || status > 599 {
		status = 0
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if took >= 0 {
		m.took.WithLabelValues(route).Observe(took.Seconds())
	}
}

// Refused counts a submit that was not accepted.
func (m *Metrics) Refused(code signalbox.Code) { m.refusals.WithLabelValues(string(code)).Inc() }

// Readers counts the readers of a director's streams; *httpapi.Server implements it.
type Readers interface {
	OpenStreams() int
	LiveReaders() int
	// LiveDirectors is how many directors over the store are alive, including this one.
	LiveDirectors() int
}

// Readers adds the metrics of readers. Call it once.
func (m *Metrics) Readers(r Readers) {
	gauge := func(name, help string, f func() int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(f()) }))
	}
	gauge("signalbox_streams", "Streams that are open: of events, of what is live, of calls and outputs.", r.OpenStreams)
	gauge("signalbox_live_readers", "Of these, readers of the live stream: pages, signalbox top.", r.LiveReaders)
	gauge("signalbox_directors", "Directors over the store that live, as this one sees it; 1 for one that is alone.", r.LiveDirectors)
}

// Gatherer has all metrics, for other exporters.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// ServeHTTP answers GET /metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// ScheduleSource provides the schedules; *schedule.Scheduler implements it.
type ScheduleSource interface {
	All(ctx context.Context) ([]signalbox.Schedule, error)
	// Due is the next instant of a schedule; in the past if it has not been fired.
	Due(s signalbox.Schedule) time.Time
}

// ScheduleMetrics counts the outcomes of firings. The gauges are read from the scheduler when they are
// scraped.
type ScheduleMetrics struct {
	firings map[signalbox.RunStatus]prometheus.Counter
	source  atomic.Pointer[ScheduleSource]
	now     func() time.Time
	// Of a standalone scheduler; nil: the metrics are part of others.
	registry *prometheus.Registry
	handler  http.Handler

	schedules, failing, overdue *prometheus.Desc
}

// maxFailing bounds the schedules that are named.
const maxFailing = 100

// decided are the final statuses of a firing.
var decided = []signalbox.RunStatus{
	signalbox.RunQueued, signalbox.SkippedQueueFull, signalbox.SkippedBusy, signalbox.SkippedMissed,
	signalbox.SkippedNoDirector, signalbox.SkippedError,
}

// Schedules adds the metrics of schedules. Call it once.
func (m *Metrics) Schedules(now func() time.Time) *ScheduleMetrics {
	return newScheduleMetrics(m.registry, now)
}

// NewScheduleMetrics is Schedules for a standalone scheduler: as a handler it answers GET /metrics.
func NewScheduleMetrics(now func() time.Time) *ScheduleMetrics {
	reg := prometheus.NewRegistry()
	m := newScheduleMetrics(reg, now)
	m.registry = reg
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
	return m
}

func newScheduleMetrics(reg prometheus.Registerer, now func() time.Time) *ScheduleMetrics {
	m := &ScheduleMetrics{
		now: now, firings: map[signalbox.RunStatus]prometheus.Counter{},
		schedules: prometheus.NewDesc("signalbox_schedules", "Schedules, by state: enabled, failing (of these, those whose newest firing should have made a task and did not), disabled.", []string{"state"}, nil),
		failing:   prometheus.NewDesc("signalbox_schedule_failing", "1 for each schedule that is failing, the first 100 by name.", []string{"schedule"}, nil),
		overdue:   prometheus.NewDesc("signalbox_schedule_overdue_seconds", "How long ago the schedule that is overdue for longest should have fired; 0 if none is.", nil, nil),
	}
	firings := counters(reg, "signalbox_schedule_firings_total", "Firings of schedules that are decided, by what they came to.", "status")
	for _, status := range decided {
		m.firings[status] = firings.WithLabelValues(string(status))
	}
	reg.MustRegister(m)
	return m
}

// Store wraps a store to count the decided firings.
func (m *ScheduleMetrics) Store(b schedule.Store) schedule.Store { return countingStore{b, m} }

// Watch sets the scheduler that the gauges read.
func (m *ScheduleMetrics) Watch(s ScheduleSource) { m.source.Store(&s) }

// Gatherer has all metrics of a standalone scheduler.
func (m *ScheduleMetrics) Gatherer() prometheus.Gatherer { return m.registry }

// ServeHTTP answers GET /metrics of a standalone scheduler.
func (m *ScheduleMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.handler.ServeHTTP(w, r)
}

// countingStore counts decided runs. The store refuses to decide a run twice.
type countingStore struct {
	schedule.Store
	metrics *ScheduleMetrics
}

// Put implements schedule.Store.
func (b countingStore) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := b.Store.Put(ctx, s, runs, e)
	if err == nil {
		for i := range runs {
			count(b.metrics.firings, runs[i].Status)
		}
	}
	return stored, err
}

// Describe implements prometheus.Collector.
func (m *ScheduleMetrics) Describe(c chan<- *prometheus.Desc) {
	c <- m.schedules
	c <- m.failing
	c <- m.overdue
}

// Collect implements prometheus.Collector. Without a scheduler, or if it does not answer, there are no
// values.
func (m *ScheduleMetrics) Collect(c chan<- prometheus.Metric) {
	source := m.source.Load()
	if source == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	all, err := (*source).All(ctx)
	if err != nil {
		return
	}
	now, overdue := m.now(), time.Duration(0)
	states := map[string]int{"enabled": 0, "failing": 0, "disabled": 0}
	for i := range all {
		s := &all[i]
		if !s.Enabled {
			states["disabled"]++
			continue
		}
		states["enabled"]++
		if s.LastStatus.Failed() {
			if states["failing"]++; states["failing"] <= maxFailing {
				c <- prometheus.MustNewConstMetric(m.failing, prometheus.GaugeValue, 1, s.Name)
			}
		}
		if due := (*source).Due(*s); !due.IsZero() {
			overdue = max(overdue, now.Sub(due))
		}
	}
	for state, n := range states {
		c <- prometheus.MustNewConstMetric(m.schedules, prometheus.GaugeValue, float64(n), state)
	}
	c <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, overdue.Seconds())
}
