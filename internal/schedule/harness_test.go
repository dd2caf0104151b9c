package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/embedded"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// fixture is a store with a queue and a clock, in which schedulers are started and stopped. It
// is made within a synctest bubble: time advances when all goroutines are blocked, from
// midnight of 1 January 2000, a Saturday, UTC.
type fixture struct {
	t           *testing.T
	store       *failingStore
	queue       *queue
	clockOffset atomic.Int64 // of the clock against the elapsed time
	keyLife     time.Duration
	log         *logLines
	mu          sync.Mutex
	check       func(signalbox.Schedule) error
	schedulers  []*running
	zone        string
	events      func() []signalbox.Entry
}

type running struct {
	*schedule.Scheduler
	stop func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	fx := &fixture{t: t, log: &logLines{}}
	e := engine.New(st, engine.Options{Sealer: sealer, Now: fx.now})
	fx.store = &failingStore{Store: embedded.NewStore(e, nil)}
	fx.queue = &queue{fx: fx, byKey: map[string]*task{}, byID: map[string]*task{}}
	fx.events = func() []signalbox.Entry {
		entries, err := st.Journal(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	t.Cleanup(func() {
		if len(fx.schedulers) > 0 {
			t.Error("a scheduler was not stopped")
		}
	})
	return fx
}

// refuse sets Options.Check.
func (fx *fixture) refuse(check func(signalbox.Schedule) error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.check = check
}

func (fx *fixture) now() time.Time { return time.Now().Add(time.Duration(fx.clockOffset.Load())) }

// jumpClock sets the clock without advancing time.
func (fx *fixture) jumpClock(by time.Duration) { fx.clockOffset.Add(int64(by)) }

// start starts a scheduler.
func (fx *fixture) start() *running {
	fx.t.Helper()
	return fx.startWith(fx.store, fx.queue)
}

func (fx *fixture) startWith(b schedule.Store, q schedule.Queue) *running {
	fx.t.Helper()
	opts := schedule.Options{Zone: fx.zone, Now: fx.now, KeyLife: fx.keyLife, Log: slog.New(slog.NewTextHandler(fx.log, nil))}
	opts.Check = func(_ context.Context, s signalbox.Schedule) error {
		fx.mu.Lock()
		defer fx.mu.Unlock()
		if fx.check == nil {
			return nil
		}
		return fx.check(s)
	}
	s, err := schedule.New(b, q, opts)
	if err != nil {
		fx.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	r := &running{Scheduler: s}
	r.stop = func() {
		s.Close()
		if err := <-done; err != nil {
			fx.t.Error(err)
		}
		fx.schedulers = slices.DeleteFunc(fx.schedulers, func(a *running) bool { return a == r })
	}
	fx.schedulers = append(fx.schedulers, r)
	synctest.Wait()
	return r
}

// withFixture runs a test with a fixture, and stops its schedulers.
func withFixture(t *testing.T, f func(t *testing.T, fx *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := newFixture(t)
		defer func() {
			for _, r := range slices.Clone(fx.schedulers) {
				r.stop()
			}
		}()
		f(t, fx)
	})
}

// add adds a schedule.
func (fx *fixture) add(s *running, expr string, more ...func(*signalbox.Schedule)) signalbox.Schedule {
	fx.t.Helper()
	row := signalbox.Schedule{Name: "nightly", Cron: expr, Prompt: "look after it", Enabled: true, Owner: "user:kim", Agent: "coder"}
	for _, m := range more {
		m(&row)
	}
	row, err := s.Add(fx.t.Context(), row, "kim")
	if err != nil {
		fx.t.Fatal(err)
	}
	return row
}

func (fx *fixture) get(id string) signalbox.Schedule {
	fx.t.Helper()
	row, err := fx.store.Schedule(fx.t.Context(), id)
	if err != nil {
		fx.t.Fatal(err)
	}
	return row
}

// runs lists the firings of a schedule, the oldest first.
func (fx *fixture) runs(id string) []signalbox.ScheduleRun {
	fx.t.Helper()
	runs, err := fx.store.Runs(fx.t.Context(), id, 2000)
	if err != nil {
		fx.t.Fatal(err)
	}
	slices.Reverse(runs)
	return runs
}

// history lists the firings of a schedule, oldest first, as "02T15:04 status", with the number
// of missed instants.
func (fx *fixture) history(id string) string {
	fx.t.Helper()
	var words []string
	for _, r := range fx.runs(id) {
		word := r.Nominal.Format("02T15:04") + " " + string(r.Status)
		if r.Missed > 0 {
			word += fmt.Sprintf(" -%d", r.Missed)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (fx *fixture) wantHistory(id, want string) {
	fx.t.Helper()
	if got := fx.history(id); got != want {
		fx.t.Errorf("firings at %s:\n got  %s\n want %s", fx.now().UTC().Format("02T15:04:05"), got, want)
	}
}

// advance advances the time, and waits for what that triggers.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (fx *fixture) wantTasks(want string) {
	fx.t.Helper()
	if got := fx.queue.tasks(); got != want {
		fx.t.Errorf("tasks:\n got  %s\n want %s", got, want)
	}
}

func queueFull(waiting int) error {
	return &schedule.FullError{Waiting: waiting, Err: signalbox.Errorf(signalbox.CodeQueueFull, "Queue is at capacity")}
}

// failingStore fails writes with err, if set.
type failingStore struct {
	schedule.Store
	mu   sync.Mutex
	fail error
}

func (b *failingStore) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

func (b *failingStore) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	b.mu.Lock()
	err := b.fail
	b.mu.Unlock()
	if err != nil {
		return s, err
	}
	return b.Store.Put(ctx, s, runs, e)
}

// logLines collects the log.
type logLines struct {
	mu  sync.Mutex
	all []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(string(p)))
	return len(p), nil
}

func (fx *fixture) wantLog(part string) {
	fx.t.Helper()
	fx.log.mu.Lock()
	defer fx.log.mu.Unlock()
	if !slices.ContainsFunc(fx.log.all, func(line string) bool { return strings.Contains(line, part) }) {
		fx.t.Errorf("no line of the log has %q:\n%s", part, strings.Join(fx.log.all, "\n"))
	}
}

var errNoAnswer = signalbox.Errorf(signalbox.CodeUnavailable, "nobody answered")

var errStore = signalbox.Errorf(signalbox.CodeStoreFailed, "the disk is full")

func wantField(t *testing.T, err error, code signalbox.Code, field string) {
	t.Helper()
	var e *signalbox.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Errorf("error %v (%s), want %s of field %q", err, signalbox.CodeOf(err), code, field)
	}
}
