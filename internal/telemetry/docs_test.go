package telemetry_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// metric is a metric of a registry, or of the page.
type metric struct {
	kind   string
	labels []string
	where  string
}

// families are the metrics of the parts of Signalbox, after all counted events have happened.
type families struct{ director, scheduler []*dto.MetricFamily }

var exercised = sync.OnceValues(exercise)

func exercise() (families, error) {
	timed := telemetry.TimeStore(memory.New(memory.Options{}))
	sealer, err := newSealer()
	if err != nil {
		return families{}, err
	}
	e := engine.New(timed, engine.Options{
		Sealer: sealer, MaxSize: 2,
		Budgets: signalbox.Budgets{Agents: map[string]signalbox.Budget{"coder": {NanoUSD: 1e18, Tokens: 1e15}}},
	})
	m := telemetry.NewMetrics(e)
	m.Store(timed)
	m.Readers(readers{})
	tools := m.Tools(true)
	schedules := m.Schedules(noon)
	alone := telemetry.NewScheduleMetrics(noon)
	if err := work(e, m, tools); err != nil {
		return families{}, err
	}
	for _, s := range []*telemetry.ScheduleMetrics{schedules, alone} {
		fire(s)
	}
	out := families{}
	if out.director, err = m.Gatherer().Gather(); err != nil {
		return out, err
	}
	out.scheduler, err = alone.Gatherer().Gather()
	return out, err
}

// work makes a queue and its tools do everything that is counted.
func work(e *engine.Engine, m *telemetry.Metrics, tools *telemetry.ToolMetrics) error {
	ctx := context.Background()
	a, err := e.PutAgent(ctx, signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1}, "")
	if err != nil {
		return err
	}
	e.SetLive(fleet{a})
	e.AddLive(executors{})
	if _, err := e.ChangeAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: "claude-2"}); err != nil {
		return err
	}
	if err := e.ReportAccount(ctx, "coder", accounts.News{Name: "claude-1", Windows: []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: 40}}}); err != nil {
		return err
	}
	for range 3 { // the last one finds no room
		if _, err := e.Submit(ctx, engine.NewTask{Prompt: "p"}); err != nil {
			m.Refused(signalbox.CodeOf(err))
		}
	}
	c, _, err := e.Claim(ctx, a, 0)
	if err != nil {
		return err
	}
	t, err := e.Accept(ctx, c.Task, "task-1", "")
	if err == nil {
		_, err = e.Finish(ctx, t, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{InputTokens: 7, OutputTokens: 9, CostUSD: 0.5}})
	}
	if err != nil {
		return err
	}
	m.Request("submit", 201, time.Millisecond)
	queues := toolqueue.New(tools.Hooks())
	if err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1}}); err != nil {
		return err
	}
	tools.Watch(queues)
	tools.Hooks().Waited("browser", toolqueue.Who{}, time.Second)
	tools.Ended(gateway.Ended{Server: "web", Tool: "click", Outcome: gateway.OutcomeOK, Took: time.Second})
	return nil
}

// fire has schedules of every state, and firings of every status.
func fire(m *telemetry.ScheduleMetrics) {
	m.Watch(calendar{})
	counting := m.Store(fakeStore{})
	for _, status := range []signalbox.RunStatus{signalbox.RunFiring, signalbox.RunQueued, signalbox.SkippedBusy} {
		_, _ = counting.Put(context.Background(), signalbox.Schedule{}, []signalbox.ScheduleRun{{Status: status}}, signalbox.Entry{}) // fakeStore refuses nothing
	}
}

type readers struct{}

func (readers) OpenStreams() int { return 3 }
func (readers) LiveReaders() int { return 2 }

func (readers) LiveDirectors() int { return 3 }

type fakeStore struct{ schedule.Store }

func (fakeStore) Put(_ context.Context, s signalbox.Schedule, _ []signalbox.ScheduleRun, _ signalbox.Entry) (signalbox.Schedule, error) {
	return s, nil
}

type calendar struct{}

func (calendar) All(context.Context) ([]signalbox.Schedule, error) {
	return []signalbox.Schedule{
		{Name: "well", Enabled: true, LastStatus: signalbox.RunQueued}, {Name: "full", Enabled: true, LastStatus: signalbox.SkippedQueueFull},
		{Name: "off", LastStatus: signalbox.SkippedError}, {Name: "new", Enabled: true},
	}, nil
}

func noon() time.Time { return time.Date(2025, 1, 17, 12, 0, 0, 0, time.UTC) }

func (calendar) Due(s signalbox.Schedule) time.Time {
	if s.Name == "full" {
		return noon().Add(-time.Hour)
	}
	return noon().Add(time.Hour)
}

// everything returns the metrics of the director, by name.
func everything(t *testing.T) map[string]metric {
	t.Helper()
	f, err := exercised()
	if err != nil {
		t.Fatal(err)
	}
	return byName(f.director)
}

func byName(families []*dto.MetricFamily) map[string]metric {
	out := map[string]metric{}
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		m := metric{kind: strings.ToLower(f.GetType().String())}
		for _, l := range f.GetMetric()[0].GetLabel() {
			m.labels = append(m.labels, l.GetName())
		}
		out[name] = m
	}
	return out
}

// valuesOf are the values of labels with a fixed set.
func valuesOf(t *testing.T) map[string]map[string]map[string]bool {
	t.Helper()
	f, err := exercised()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]map[string]bool{}
	for _, family := range f.director {
		labels := map[string]map[string]bool{}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
		out[family.GetName()] = labels
	}
	return out
}

// page reads the tables of docs/metrics.md.
func page(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		m := metric{kind: cells[1], where: cells[4]}
		for l := range strings.SplitSeq(cells[2], ",") {
			if l = strings.Trim(strings.TrimSpace(l), "`"); l != "" {
				m.labels = append(m.labels, l)
			}
		}
		slices.Sort(m.labels)
		name := strings.Trim(cells[0], "`")
		if _, twice := out[name]; twice || cells[3] == "" || cells[5] == "" {
			t.Errorf("%s stands there twice, or without unit or meaning", name)
		}
		out[name] = m
	}
	return out
}

// docs/metrics.md has every metric, and no other, with its type, its labels and the parts that have it.
func TestMetricsAreDocumented(t *testing.T) {
	f, err := exercised()
	if err != nil {
		t.Fatal(err)
	}
	documented, have := page(t), everything(t)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		got, there := documented[name]
		if !there {
			t.Errorf("docs/metrics.md does not tell of %s (%s, %v)", name, have[name].kind, have[name].labels)
		} else if got.kind != have[name].kind || !slices.Equal(got.labels, have[name].labels) {
			t.Errorf("docs/metrics.md has %s as a %s with %v; it is a %s with %v", name, got.kind, got.labels, have[name].kind, have[name].labels)
		}
	}
	alone := byName(f.scheduler)
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, there := have[name]; !there {
			t.Errorf("docs/metrics.md tells of %s, which is not there", name)
		}
		if _, there := alone[name]; there != strings.Contains(documented[name].where, "scheduler") {
			t.Errorf("%s: a standalone scheduler has it: %v; docs/metrics.md says %q", name, there, documented[name].where)
		}
	}
}

// The metrics of schedules are the scheduler's, and a firing counts once it is decided.
func TestMetricsOfSchedules(t *testing.T) {
	e, _, _ := newEngine(t)
	m := telemetry.NewMetrics(e)
	s := m.Schedules(noon)
	if text := scrape(t, m); strings.Contains(text, "signalbox_schedules{") {
		t.Error("figures without a scheduler")
	}
	fire(s)
	text := scrape(t, m)
	has(t, text, `signalbox_schedule_overdue_seconds 3600`, `signalbox_schedules{state="enabled"} 3`, `signalbox_schedules{state="failing"} 1`, `signalbox_schedules{state="disabled"} 1`, `signalbox_schedule_failing{schedule="full"} 1`,
		`signalbox_schedule_firings_total{status="queued"} 1`, `signalbox_schedule_firings_total{status="skipped_busy"} 1`, `signalbox_schedule_firings_total{status="skipped_error"} 0`)
	if strings.Contains(text, `status="firing"`) {
		t.Error("a firing that is not decided is counted")
	}
}

// fullDisk is a store that can store nothing more.
type fullDisk struct{ *memory.Store }

func (fullDisk) Submit(context.Context, store.Submission) (store.Submitted, error) {
	return store.Submitted{}, signalbox.Errorf(signalbox.CodeStoreFailed, "no space left on the disk")
}

// The store's verbs are timed, and failures counted; a verb whose caller gave up is not a failure.
func TestTheStoreIsTimed(t *testing.T) {
	timed := telemetry.TimeStore(fullDisk{memory.New(memory.Options{})})
	e := engine.New(timed, engine.Options{Sealer: sealer(t)})
	m := telemetry.NewMetrics(e)
	m.Store(timed)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), gone} {
		if _, err := e.Submit(ctx, engine.NewTask{Prompt: "p"}); signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
			t.Fatal(err)
		}
	}
	has(t, scrape(t, m), `signalbox_store_duration_seconds_count{verb="submit"} 2`, `signalbox_store_failures_total{verb="submit"} 1`)
}
