package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// load is a set of callers that submit, claim and finish, and what was acknowledged to them.
type load struct {
	t     *testing.T
	tasks int
	acks  atomic.Int64
	mu    sync.Mutex
	ids   map[string]string // by idempotency key
	taken map[string]int    // how often a claim returned a task
	ended map[string]bool
}

func newLoad(t *testing.T, tasks int) *load {
	return &load{t: t, tasks: tasks, ids: map[string]string{}, taken: map[string]int{}, ended: map[string]bool{}}
}

// submit submits its share of the tasks, each until it is acknowledged.
func (l *load) submit(s store.Store, who, callers int) {
	for n := who; n < l.tasks; n += callers {
		key := fmt.Sprintf("key-%d", n)
		sub := store.Submission{
			Task: signalbox.Task{
				ID: fmt.Sprintf("queue-%08d", n), State: signalbox.Pending, Queue: "work", Limit: "work", IdempotencyKey: key, IdempotencyHash: "h",
				MaxAttempts: 3, CreatedAt: time.Now(), Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, SessionMode: signalbox.SessionRequire,
			},
			Request: signalbox.Request{Prompt: key}, Now: time.Now(),
		}
		for {
			got, err := s.Submit(l.t.Context(), sub)
			if err == nil {
				l.mu.Lock()
				l.ids[key] = got.Task.ID
				l.mu.Unlock()
				l.acks.Add(1)
				break
			}
			if l.t.Context().Err() != nil {
				return
			}
		}
	}
}

// work claims and finishes until all have ended.
func (l *load) work(s store.Store, agent string) {
	for l.t.Context().Err() == nil {
		now := time.Now()
		got, err := s.Claim(l.t.Context(), store.ClaimRequest{Agent: agent, Slots: 1, Queues: []string{"work"}, Expires: now.Add(time.Hour), Now: now})
		if err == nil && got.Found {
			l.mu.Lock()
			l.taken[got.Task.ID]++
			l.mu.Unlock()
			l.finish(s, got.Task)
			continue
		}
		if err == nil && l.done() {
			return
		}
		// The answer to a claim may be lost: the claimed task is in the slot.
		slots, _ := s.Slots(l.t.Context())
		for _, slot := range slots {
			if task, err := s.Task(l.t.Context(), slot.TaskID); err == nil && slot.Agent == agent && task.State.InFlight() {
				l.finish(s, task)
			}
		}
	}
}

func (l *load) done() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended) == l.tasks
}

// finish ends a task, with retries.
func (l *load) finish(s store.Store, task signalbox.Task) {
	for l.t.Context().Err() == nil {
		now := time.Now()
		change, err := signalbox.Next(task, signalbox.Event{
			Kind: signalbox.EventFinish, Now: now, Fence: task.Fence, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: task.ID},
		})
		if err != nil {
			l.t.Errorf("%s: %v", task.ID, err)
			return
		}
		_, err = s.Apply(l.t.Context(), change, now)
		again, bad := s.Task(l.t.Context(), task.ID)
		if err == nil || (bad == nil && again.State.Terminal()) {
			l.mu.Lock()
			l.ended[task.ID] = true
			l.mu.Unlock()
			l.acks.Add(1)
			return
		}
	}
}

// await waits until that many more calls were acknowledged.
func (l *load) await(more int64) {
	want := min(l.acks.Load()+more, int64(2*l.tasks))
	testkit.Wait(l.t, "more is acknowledged", func() bool { return l.acks.Load() >= want })
}

// check compares what was acknowledged with what is stored.
func (l *load) check(s store.Store) {
	l.t.Helper()
	ctx := context.Background()
	if len(l.ids) != l.tasks || len(l.ended) != l.tasks {
		l.t.Fatalf("%d submitted and %d ended, want %d", len(l.ids), len(l.ended), l.tasks)
	}
	stored := 0
	q := store.HistoryQuery{Limit: 1000}
	for {
		page, err := s.History(ctx, q)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, task := range page.Tasks {
			stored++
			if task.State != signalbox.Completed || l.ids[task.IdempotencyKey] != task.ID || task.Claims != 1 {
				l.t.Errorf("stored %+v, acknowledged as %s", task, l.ids[task.IdempotencyKey])
			}
		}
		if q.Before = page.Next; q.Before == "" {
			break
		}
	}
	if stored != l.tasks {
		l.t.Errorf("%d tasks are stored, want %d", stored, l.tasks)
	}
	for id, n := range l.taken {
		if n > 1 {
			l.t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if slots, err := s.Slots(ctx); err != nil || len(slots) > 0 {
		l.t.Errorf("slots in use: %+v (%v)", slots, err)
	}
	if err := storetest.Invariants(ctx, s); err != nil {
		l.t.Error(err)
	}
}

// The server is restarted in all ways while two processes submit, claim and finish. They continue by
// themselves; nothing is lost, and nothing done twice.
func TestIncidentServerRestartsLoseAndDuplicateNothing(t *testing.T) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	one, two := open(t, server.URL("postgres")), open(t, server.URL("postgres"))
	l := newLoad(t, soak.Pick(300, 600))
	var callers sync.WaitGroup
	for n, s := range []store.Store{one, two, one, two} {
		callers.Go(func() { l.submit(s, n, 4) })
		callers.Go(func() { l.work(s, fmt.Sprintf("agent-%d", n)) })
	}
	for _, restart := range []func() error{
		func() error { return server.Restart("fast") },
		func() error { return server.Restart("immediate") },
		func() error {
			if err := server.Kill(); err != nil {
				return err
			}
			return server.Start()
		},
	} {
		l.await(int64(5 * l.tasks / 12))
		if err := restart(); err != nil {
			t.Fatal(err)
		}
	}
	callers.Wait()
	l.check(one)
	for _, s := range []store.Store{one, two} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The sessions of three processes are terminated while they prepare a batch, or store one that the next
// process has followed already.
func TestTerminatedSessionsLoseAndDuplicateNothing(t *testing.T) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	var stores []store.Store
	for range 3 {
		stores = append(stores, open(t, server.URL("postgres")))
	}
	times := soak.Pick(10, 20)
	l := newLoad(t, 30*times)
	var callers sync.WaitGroup
	for n := range 6 {
		callers.Go(func() { l.submit(stores[n%3], n, 6) })
		callers.Go(func() { l.work(stores[n%3], fmt.Sprintf("agent-%d", n)) })
	}
	for n := range times {
		l.await(50)
		err := server.Exec("postgres", fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_locks
			WHERE granted AND mode = 'ExclusiveLock' AND relation = 'signalbox.%s'::regclass`, []string{"turn", "storing"}[n%2]))
		if err != nil {
			t.Fatal(err)
		}
	}
	callers.Wait()
	l.check(stores[0])
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
