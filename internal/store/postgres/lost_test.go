package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// caller uses a store like a director.
type caller struct {
	*testing.T
	store.Store
	log *lockedText
}

type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), word)
}

func newCaller(t *testing.T, url string) *caller {
	t.Helper()
	log := &lockedText{}
	to := slog.New(slog.NewTextHandler(log, nil))
	backend, err := postgres.Open(context.Background(), postgres.Options{URL: url, Log: to})
	if err != nil {
		t.Fatal(err)
	}
	s, err := verbs.NewShared(context.Background(), backend, verbs.Options{Log: to})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &caller{T: t, Store: s, log: log}
}

// retry repeats a call while the server is unavailable; a refused write was not stored.
func retry[V any](c *caller, ask func() (V, error)) (v V) {
	c.Helper()
	var err error
	testkit.Within(time.Minute, func() bool {
		v, err = ask()
		return signalbox.CodeOf(err) != signalbox.CodeUnavailable
	})
	if err != nil {
		c.Fatal(err)
	}
	return v
}

func (c *caller) submit(n int) signalbox.Task {
	c.Helper()
	now := time.Now()
	return retry(c, func() (store.Submitted, error) {
		return c.Submit(c.Context(), store.Submission{
			Task: signalbox.Task{
				ID: fmt.Sprintf("queue-%08d", n), State: signalbox.Pending, Queue: "work", Limit: "work", MaxAttempts: 3, CreatedAt: now,
				Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, SessionMode: signalbox.SessionRequire,
			},
			Request: signalbox.Request{Prompt: fmt.Sprint("prompt ", n)}, Now: now,
		})
	}).Task
}

func (c *caller) claim(agent string) signalbox.Task {
	c.Helper()
	now := time.Now()
	got := retry(c, func() (store.Claimed, error) {
		return c.Claim(c.Context(), store.ClaimRequest{Agent: agent, Slots: 9, Queues: []string{"work"}, Expires: now.Add(time.Hour), Now: now})
	})
	if !got.Found {
		c.Fatal("nothing to claim")
	}
	return got.Task
}

// apply applies an event to a task as it was known at some time.
func (c *caller) apply(task signalbox.Task, e signalbox.Event) error {
	c.Helper()
	e.Now, e.Fence = time.Now(), task.Fence
	change, err := signalbox.Next(task, e)
	if err != nil {
		c.Fatal(err)
	}
	_, err = c.Apply(c.Context(), change, e.Now)
	return err
}

// began wants that a new generation has begun, and that this was logged once.
func (c *caller) began() {
	c.Helper()
	shared, ok := c.Store.(store.Shared)
	if !ok || shared.Generation() != 2 {
		c.Fatalf("generation %d, want 2", shared.Generation())
	}
	if n := c.log.count("THE SERVER LOST WHAT IT HAD ACKNOWLEDGED"); n != 1 {
		c.Errorf("the log tells %d times of the loss", n)
	}
}

// refusesWhatWasBefore wants writes of an execution to be refused whose claim the server lost.
func (c *caller) refusesWhatWasBefore(lost signalbox.Task) {
	c.Helper()
	now := time.Now()
	n, err := c.Renew(c.Context(), []store.Lease{{Agent: lost.Agent, Slot: lost.Slot, Fence: lost.Fence, Expires: now.Add(2 * time.Hour)}})
	if err != nil || n != 0 {
		c.Errorf("the old fence was renewed: %d, %v", n, err)
	}
	if err := c.apply(lost, signalbox.Event{Kind: signalbox.EventAccept, Agent: lost.Agent}); !errors.Is(err, store.ErrStale) {
		c.Errorf("a change from before was taken: %v", err)
	}
}

// A server whose data folder is replaced by an earlier copy has lost acknowledged data without knowing it: a
// new generation begins before anything else is stored.
func TestIncidentRestoredDataFolder(t *testing.T) {
	server := testserver.NewPostgres(t, testserver.PostgresOptions{})
	c := newCaller(t, server.URL("postgres"))
	other := newCaller(t, server.URL("postgres"))
	kept := c.submit(1)
	putBack, err := server.Copy()
	if err != nil {
		t.Fatal(err)
	}
	lost := c.claim("a") // after the copy, in which the task waits
	gone := other.submit(2)
	if lost.ID != kept.ID {
		t.Fatalf("claimed %s, want %s", lost.ID, kept.ID)
	}
	if err := putBack(); err != nil {
		t.Fatal(err)
	}

	again := c.claim("b")
	c.began()
	if again.ID != kept.ID || again.Fence <= lost.Fence || again.Claims != 1 {
		t.Errorf("%s was given out again with fence %d, after %d", again.ID, again.Fence, lost.Fence)
	}
	c.refusesWhatWasBefore(lost)
	if _, err := c.Task(t.Context(), gone.ID); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("what was lost is there: %v", err)
	}
	next := other.submit(3)
	if next.Seq <= gone.Seq || next.Place <= gone.Place {
		t.Errorf("numbers were given twice: %+v after %+v", next, gone)
	}
	if n := other.log.count("as another process found"); n != 1 {
		t.Errorf("the other process tells %d times of it", n)
	}
	if err := c.apply(again, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "done"}}); err != nil {
		t.Error(err)
	}
	// In the new generation, acknowledged data is kept as usual.
	if err := server.Restart("immediate"); err != nil {
		t.Fatal(err)
	}
	fresh := newCaller(t, server.URL("postgres"))
	if got, err := fresh.Task(t.Context(), kept.ID); err != nil || got.State != signalbox.Completed {
		t.Errorf("it is %s (%v)", got.State, err)
	}
	if r, err := fresh.Request(t.Context(), next.ID); err != nil || r.Prompt != "prompt 3" {
		t.Errorf("%q (%v)", r.Prompt, err)
	}
	if err := storetest.Invariants(t.Context(), fresh.Store); err != nil {
		t.Error(err)
	}
}

// pair is a server with a standby, and the address of both.
func pair(t *testing.T) (primary, standby *testserver.PostgresServer, url string) {
	t.Helper()
	primary = testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"wal_keep_size": "64MB"}})
	standby = primary.NewStandby(t, "second")
	return primary, standby, fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		testserver.PostgresUser, primary.Port, standby.Port)
}

// If a lagging standby is promoted, what it had not received is lost, and the process that knows of it begins
// a new generation.
func TestIncidentAsynchronousStandbyIsPromoted(t *testing.T) {
	primary, standby, url := pair(t)
	c := newCaller(t, url)
	kept := c.submit(1)
	if err := errors.Join(primary.CaughtUp("second"), standby.Follow(primary, "second", false)); err != nil {
		t.Fatal(err)
	}
	lost := c.claim("a")
	gone := c.submit(2)
	if err := errors.Join(primary.Kill(), standby.Promote()); err != nil {
		t.Fatal(err)
	}
	again := c.claim("b")
	c.began()
	if again.ID != kept.ID || again.Fence <= lost.Fence {
		t.Errorf("%s was given out with fence %d, after %d", again.ID, again.Fence, lost.Fence)
	}
	c.refusesWhatWasBefore(lost)
	if _, err := c.Task(t.Context(), gone.ID); signalbox.CodeOf(err) != signalbox.CodeNotFound {
		t.Errorf("what was lost is there: %v", err)
	}
	if next := c.submit(3); next.Seq <= gone.Seq || next.Place <= gone.Place {
		t.Errorf("numbers were given twice: %+v after %+v", next, gone)
	}
}

// A synchronous standby is promoted while two processes submit, claim and finish: all acknowledged data is
// kept, no generation begins, and nothing is done twice.
func TestFailoverToSynchronousStandbyLosesNothing(t *testing.T) {
	primary, standby, url := pair(t)
	if err := errors.Join(
		primary.Reload(map[string]string{"synchronous_standby_names": "second"}),
		primary.Await("the standby is synchronous", "SELECT sync_state FROM pg_stat_replication", "sync"),
	); err != nil {
		t.Fatal(err)
	}
	one, two := newCaller(t, url), newCaller(t, url)
	if promise := one.Info().Durability; !strings.Contains(promise, `and a failover to a standby of "second"`) {
		t.Errorf("it promises %q", promise)
	}
	l := newLoad(t, soak.Pick(200, 400))
	var callers sync.WaitGroup
	for n, s := range []store.Store{one.Store, two.Store, one.Store, two.Store} {
		callers.Go(func() { l.submit(s, n, 4) })
		callers.Go(func() { l.work(s, fmt.Sprintf("agent-%d", n)) })
	}
	l.await(int64(5 * l.tasks / 8))
	if err := errors.Join(primary.Kill(), standby.Promote()); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	l.check(one.Store)
	for _, c := range []*caller{one, two} {
		if shared, ok := c.Store.(store.Shared); !ok || shared.Generation() != 1 || c.log.count("LOST") > 0 {
			t.Errorf("it counts as a loss: generation %d", shared.Generation())
		}
	}
}
