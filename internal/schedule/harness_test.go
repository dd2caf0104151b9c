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
	"github.com/signalbox-ai/signalbox/internal/schedule/inside"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// world is a store with a queue and a clock, in which schedulers live and die.
// It is made within a synctest bubble: time passes when nobody has anything to
// do, from midnight of 1 January 2000, a Saturday, UTC.
type world struct {
	t       *testing.T
	book    *book
	queue   *queue
	shift   atomic.Int64 // of the clock against the time that really passed
	keyLife time.Duration
	log     *lines
	mu      sync.Mutex
	check   func(signalbox.Schedule) error
	alive   []*running
	zone    string
	events  func() []signalbox.Entry
}

type running struct {
	*schedule.Scheduler
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	w := &world{t: t, log: &lines{}}
	e := engine.New(st, engine.Options{Sealer: sealer, Now: w.now})
	w.book = &book{Book: inside.NewBook(e, nil)}
	w.queue = &queue{w: w, byKey: map[string]*task{}, byID: map[string]*task{}}
	w.events = func() []signalbox.Entry {
		entries, err := st.Journal(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	t.Cleanup(func() {
		if len(w.alive) > 0 {
			t.Error("a scheduler was not stopped")
		}
	})
	return w
}

// refuse sets what the owners of schedules may not have.
func (w *world) refuse(check func(signalbox.Schedule) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check = check
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.shift.Load())) }

// jump moves the clock without that time passes.
func (w *world) jump(by time.Duration) { w.shift.Add(int64(by)) }

// start lets a scheduler live.
func (w *world) start() *running {
	w.t.Helper()
	return w.startWith(w.book, w.queue)
}

func (w *world) startWith(b schedule.Book, q schedule.Queue) *running {
	w.t.Helper()
	opts := schedule.Options{Zone: w.zone, Now: w.now, KeyLife: w.keyLife, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	opts.Check = func(_ context.Context, s signalbox.Schedule) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.check == nil {
			return nil
		}
		return w.check(s)
	}
	s, err := schedule.New(b, q, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	r := &running{Scheduler: s}
	r.stop = func() {
		s.Close()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		w.alive = slices.DeleteFunc(w.alive, func(a *running) bool { return a == r })
	}
	w.alive = append(w.alive, r)
	synctest.Wait()
	return r
}

// within runs a test in a world of its own, and ends its schedulers.
func within(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			for _, r := range slices.Clone(w.alive) {
				r.stop()
			}
		}()
		f(t, w)
	})
}

// add makes a schedule of an expression.
func (w *world) add(s *running, expr string, more ...func(*signalbox.Schedule)) signalbox.Schedule {
	w.t.Helper()
	row := signalbox.Schedule{Name: "nightly", Cron: expr, Prompt: "look after it", Enabled: true, Owner: "user:kim", Agent: "coder"}
	for _, m := range more {
		m(&row)
	}
	row, err := s.Add(w.t.Context(), row, "kim")
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

func (w *world) get(id string) signalbox.Schedule {
	w.t.Helper()
	row, err := w.book.Schedule(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// runs lists the firings of a schedule, the oldest first.
func (w *world) runs(id string) []signalbox.ScheduleRun {
	w.t.Helper()
	runs, err := w.book.Runs(w.t.Context(), id, 2000)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(runs)
	return runs
}

// story is what the firings of a schedule came to, the oldest first, as
// "15:04 status".
func (w *world) story(id string) string {
	w.t.Helper()
	var words []string
	for _, r := range w.runs(id) {
		word := r.Nominal.Format("02T15:04") + " " + string(r.Status)
		if r.Missed > 0 {
			word += fmt.Sprintf(" -%d", r.Missed)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (w *world) wantStory(id, want string) {
	w.t.Helper()
	if got := w.story(id); got != want {
		w.t.Errorf("firings at %s:\n got  %s\n want %s", w.now().UTC().Format("02T15:04:05"), got, want)
	}
}

// pass lets time pass, and what it brings be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) wantTasks(want string) {
	w.t.Helper()
	if got := w.queue.tasks(); got != want {
		w.t.Errorf("tasks:\n got  %s\n want %s", got, want)
	}
}

func full(waiting int) error {
	return &schedule.Full{Waiting: waiting, Err: signalbox.Errorf(signalbox.CodeQueueFull, "Queue is at capacity")}
}

// book is a book that can fail and forget.
type book struct {
	schedule.Book
	mu   sync.Mutex
	fail error
}

func (b *book) set(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

func (b *book) Put(ctx context.Context, s signalbox.Schedule, runs []signalbox.ScheduleRun, e signalbox.Entry) (signalbox.Schedule, error) {
	b.mu.Lock()
	err := b.fail
	b.mu.Unlock()
	if err != nil {
		return s, err
	}
	return b.Book.Put(ctx, s, runs, e)
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, strings.TrimSpace(string(p)))
	return len(p), nil
}

func (w *world) wantLine(part string) {
	w.t.Helper()
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if !slices.ContainsFunc(w.log.all, func(line string) bool { return strings.Contains(line, part) }) {
		w.t.Errorf("no line of the log has %q:\n%s", part, strings.Join(w.log.all, "\n"))
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
