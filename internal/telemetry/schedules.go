package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// ScheduleSource knows the schedules; *schedule.Scheduler does.
type ScheduleSource interface {
	All(ctx context.Context) ([]signalbox.Schedule, error)
	// Due is the next instant of a schedule; one that was not fired lies in the
	// past.
	Due(s signalbox.Schedule) time.Time
}

// ScheduleMetrics counts what schedules come to. The gauges are read from the
// scheduler when they are scraped.
type ScheduleMetrics struct {
	firings map[signalbox.RunStatus]prometheus.Counter
	source  atomic.Pointer[ScheduleSource]
	now     func() time.Time
	// Of a scheduler that stands alone; nil: they are a part of others.
	registry *prometheus.Registry
	handler  http.Handler

	schedules, failing, overdue *prometheus.Desc
}

// maxFailing bounds how many schedules are named.
const maxFailing = 100

// decided are the statuses in which a firing ends.
var decided = []signalbox.RunStatus{
	signalbox.RunQueued, signalbox.SkippedQueueFull, signalbox.SkippedBusy, signalbox.SkippedMissed,
	signalbox.SkippedNoDirector, signalbox.SkippedError,
}

// Schedules adds the metrics of schedules. Call it once.
func (m *Metrics) Schedules(now func() time.Time) *ScheduleMetrics {
	return newScheduleMetrics(m.registry, now)
}

// NewScheduleMetrics is Schedules for a scheduler that stands alone: as a
// handler it answers GET /metrics.
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

// Book counts the firings that are decided in a book.
func (m *ScheduleMetrics) Book(b schedule.Book) schedule.Book { return countedBook{b, m} }

// Watch has the gauges read a scheduler.
func (m *ScheduleMetrics) Watch(s ScheduleSource) { m.source.Store(&s) }

// Gatherer has all metrics of a scheduler that stands alone.
func (m *ScheduleMetrics) Gatherer() prometheus.Gatherer { return m.registry }

// ServeHTTP answers GET /metrics of a scheduler that stands alone.
func (m *ScheduleMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.handler.ServeHTTP(w, r)
}

// countedBook counts what is written into a book. A firing is written once as
// decided: the book refuses a second time.
type countedBook struct {
	schedule.Book
	metrics *ScheduleMetrics
}

// Put implements schedule.Book.
func (b countedBook) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	stored, err := b.Book.Put(ctx, s, runs, e)
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

// Collect implements prometheus.Collector. Without a scheduler, and where it
// does not answer, there are no figures.
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
