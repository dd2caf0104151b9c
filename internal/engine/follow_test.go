package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/peers/peerstest"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/telemetry"
)

// twin is one of two engines over one store.
type twin struct {
	*engine.Engine
	view *peerstest.View
	log  *bytes.Buffer

	mu    sync.Mutex
	heard []engine.Applied
	sign  chan struct{}
	rows  bool // an observer needs rows
}

func newTwin(t *testing.T, w *peerstest.World) *twin {
	t.Helper()
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	tw := &twin{view: w.View(), sign: make(chan struct{}, 1000), log: &bytes.Buffer{}, rows: true}
	log := slog.New(slog.NewTextHandler(tw.log, nil))
	tw.Engine = engine.New(tw.view, engine.Options{Sealer: sealer, Log: log})
	telemetry.LogTasks(tw.Engine, log)
	tw.Observe(func(a *engine.Applied) {
		tw.mu.Lock()
		tw.heard = append(tw.heard, *a)
		tw.mu.Unlock()
		tw.sign <- struct{}{}
	})
	return tw
}

func (tw *twin) follow(t *testing.T) *twin {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	err := tw.Follow(ctx, tw.view, engine.FollowOptions{NeedsRow: func(*signalbox.Entry) bool {
		tw.mu.Lock()
		defer tw.mu.Unlock()
		return tw.rows
	}})
	if err != nil {
		t.Fatal(err)
	}
	return tw
}

// hears waits for a change for which ok is true.
func (tw *twin) hears(t *testing.T, what string, ok func(engine.Applied) bool) engine.Applied {
	t.Helper()
	over := time.After(time.Minute)
	for {
		tw.mu.Lock()
		for _, a := range tw.heard {
			if ok(a) {
				tw.mu.Unlock()
				return a
			}
		}
		tw.mu.Unlock()
		select {
		case <-tw.sign:
		case <-over:
			t.Fatalf("not heard of: %s", what)
		}
	}
}

func pair(t *testing.T) (a, b *twin) {
	t.Helper()
	w := peerstest.New(memory.New(memory.Options{}))
	return newTwin(t, w).follow(t), newTwin(t, w).follow(t)
}

func submitTo(t *testing.T, e *twin, n engine.NewTask) signalbox.Task {
	t.Helper()
	n.Prompt = "do it"
	r, err := e.Submit(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return r.Task
}

func TestForeignChangeIsPublishedOnce(t *testing.T) {
	a, b := pair(t)
	ctx := t.Context()
	agent, err := a.PutAgent(ctx, signalbox.Agent{Name: "one", Kind: "demo", URL: "http://127.0.0.1:9"}, "")
	if err != nil {
		t.Fatal(err)
	}
	task := submitTo(t, a, engine.NewTask{})
	got := b.hears(t, "the submit", func(x engine.Applied) bool { return x.Kind == signalbox.EventSubmit })
	if !got.Foreign || got.Partial || got.Task.ID != task.ID {
		t.Errorf("heard %+v", got)
	}
	c, found, err := b.Claim(ctx, agent, 0)
	if err != nil || !found {
		t.Fatalf("claim: %v %v", found, err)
	}
	if c.Task, err = b.Accept(ctx, c.Task, "x", ""); err != nil {
		t.Fatal(err)
	}
	if _, err = a.Cancel(ctx, task.ID, "kim"); err != nil {
		t.Fatal(err)
	}
	got = b.hears(t, "the cancel", func(x engine.Applied) bool { return x.Kind == signalbox.EventCancel })
	if !got.Foreign || got.Task.State != signalbox.Cancelling || !got.Task.CancelRequested || got.By != "kim" || !got.From.InFlight() {
		t.Errorf("heard %+v", got)
	}
	if _, err = b.Finish(ctx, c.Task, engine.Outcome{Reason: signalbox.ReasonCancelled}); err != nil {
		t.Fatal(err)
	}
	got = a.hears(t, "the end", func(x engine.Applied) bool { return x.Task.State.Terminal() })
	if !got.Foreign || !got.From.InFlight() || got.Task.Agent != "one" {
		t.Errorf("heard %+v", got)
	}
	for _, e := range []*twin{a, b} {
		seen := map[signalbox.EventKind]int{}
		e.mu.Lock()
		for _, x := range e.heard {
			if seen[x.Kind]++; seen[x.Kind] > 1 && x.Task.ID != "" {
				t.Errorf("heard of %s twice", x.Kind)
			}
		}
		e.mu.Unlock()
	}
	if n := bytes.Count(a.log.Bytes(), []byte("task_added")); n != 1 {
		t.Errorf("%d lines of the submit in its own director's log", n)
	}
	if bytes.Contains(b.log.Bytes(), []byte("task_added")) {
		t.Error("the submit stands in the log of the other one, too")
	}
}

// A wait ends when another director ends the task, long before its backstop read.
func TestWaitReturnsWhenAnotherDirectorEndsTheTask(t *testing.T) {
	a, b := pair(t)
	b.rows = false // a waiter needs no rows
	task := submitTo(t, a, engine.NewTask{})
	begun := time.Now()
	ended := make(chan signalbox.Task, 1)
	go func() {
		got, _ := b.Wait(context.Background(), task.ID, 20*time.Second, engine.Ended)
		ended <- got
	}()
	if _, err := a.Cancel(t.Context(), task.ID, "kim"); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.State != signalbox.Cancelled || time.Since(begun) > 3*time.Second {
		t.Errorf("the wait ended after %s with %s", time.Since(begun), got.State)
	}
	got := b.hears(t, "the end", func(x engine.Applied) bool { return x.Task.State.Terminal() })
	if !got.Partial || got.Task.ID != task.ID || got.From != signalbox.Pending || got.Task.EndedAt.IsZero() {
		t.Errorf("heard %+v", got)
	}
}

// Events that change no task are published as well: agents, ends of pauses, releases.
func TestForeignAgentChangesAndReleasesArePublished(t *testing.T) {
	a, b := pair(t)
	ctx := t.Context()
	if _, err := a.PutAgent(ctx, signalbox.Agent{Name: "one", Kind: "demo", URL: "http://127.0.0.1:9"}, ""); err != nil {
		t.Fatal(err)
	}
	b.hears(t, "an agent", func(x engine.Applied) bool { return x.Kind == signalbox.EventAgentAdded && x.Task.Agent == "one" })
	if _, err := a.ReleaseLane(ctx, "one", "kim"); err != nil {
		t.Fatal(err)
	}
	b.hears(t, "a release", func(x engine.Applied) bool {
		return x.Kind == signalbox.EventRelease && x.Task.Agent == "one" && x.Task.ID == "" && x.Task.Fence == 0
	})
	if err := a.Pause(ctx, "", "", "kim", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Resume(ctx, "", "kim"); err != nil {
		t.Fatal(err)
	}
	b.hears(t, "the resume", func(x engine.Applied) bool { return x.Kind == signalbox.EventResumed })
	if err := a.RemoveAgent(ctx, "one", "kim"); err != nil {
		t.Fatal(err)
	}
	b.hears(t, "the removal", func(x engine.Applied) bool { return x.Kind == signalbox.EventAgentRemoved })
}

// After an outage of the store, everything that happened meanwhile is published.
func TestFollowResumesWhereItStopped(t *testing.T) {
	a, b := pair(t)
	b.view.Away(true)
	first := submitTo(t, a, engine.NewTask{})
	second := submitTo(t, a, engine.NewTask{})
	b.view.Away(false)
	for _, task := range []signalbox.Task{first, second} {
		b.hears(t, task.ID, func(x engine.Applied) bool { return x.Task.ID == task.ID })
	}
}

// laggingStore is a store whose journal is far ahead of the follower.
type laggingStore struct {
	store.Shared
	mu     sync.Mutex
	newest int64
}

func (f *laggingStore) JournalRange(context.Context) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 1, f.newest, nil
}

func (f *laggingStore) Others(_ context.Context, after int64, limit int) ([]signalbox.Entry, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return nil, min(f.newest, after+int64(limit)), nil
}

func TestFollowSkipsAheadWhenFarBehind(t *testing.T) {
	w := peerstest.New(memory.New(memory.Options{}))
	a := newTwin(t, w)
	s := &laggingStore{Shared: a.view, newest: 10}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	behind := make(chan struct{}, 1)
	if err := a.Follow(ctx, s, engine.FollowOptions{OnGap: func() { behind <- struct{}{} }}); err != nil {
		t.Fatal(err)
	}
	signs, quiet := a.WatchTask("queue-some")
	defer quiet()
	s.mu.Lock()
	s.newest += 1_000_000
	s.mu.Unlock()
	select {
	case <-behind:
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	<-signs
}

// If the store lost acknowledged data, new entries may reuse numbers that a director has passed: everyone
// reads the rows.
func TestFollowResyncsInANewGeneration(t *testing.T) {
	w := peerstest.New(memory.New(memory.Options{}))
	tw := newTwin(t, w)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	behind := make(chan struct{}, 10)
	if err := tw.Follow(ctx, tw.view, engine.FollowOptions{OnGap: func() { behind <- struct{}{} }}); err != nil {
		t.Fatal(err)
	}
	signs, done := tw.WatchJournal()
	defer done()
	w.Forget()
	for _, c := range []<-chan struct{}{behind, signs} {
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("no signal was sent")
		}
	}
}
