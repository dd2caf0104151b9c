package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// system is what is measured: the bare store, or the engine over it.
type system interface {
	submit(ctx context.Context) error
	claim(ctx context.Context, agent string) (signalbox.Task, error)
	accept(ctx context.Context, t signalbox.Task) (signalbox.Task, error)
	finish(ctx context.Context, t signalbox.Task) error
}

const prompt = "Read the failing test in the payment service, find out why it fails, and repair it without changing the test."

var result = &signalbox.Result{Output: "The test failed because the clock was read twice. It is repaired.", Tail: "ok", DurationSeconds: 12.5}

// bare calls the store as the engine would.
type bare struct{ store.Store }

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func (b bare) submit(ctx context.Context) error {
	s, err := submission()
	if err != nil {
		return err
	}
	_, err = b.Submit(ctx, s)
	return err
}

func submission() (store.Submission, error) {
	at := now()
	id, err := signalbox.NewID(at, rand.Reader)
	if err != nil {
		return store.Submission{}, err
	}
	return store.Submission{
		Task: signalbox.Task{
			ID: id, State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3,
			Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, Preview: signalbox.Preview(prompt), CreatedAt: at,
		},
		Request: signalbox.Request{Prompt: prompt, Queue: signalbox.QueueWork}, Cap: 1 << 30, Now: at,
	}, nil
}

func (b bare) claim(ctx context.Context, agent string) (signalbox.Task, error) {
	at := now()
	got, err := b.Claim(ctx, store.ClaimRequest{
		Agent: agent, AgentURL: "http://127.0.0.1:9000", Slots: 1, Now: at, Expires: at.Add(10 * time.Minute),
		Queues: []string{signalbox.AgentQueue(agent), signalbox.PoolQueue("claude"), signalbox.QueueWork},
	})
	if err == nil && !got.Found {
		err = errNothing
	}
	return got.Task, err
}

func (b bare) happen(ctx context.Context, t signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	ev.Now, ev.Fence = now(), t.Fence
	c, err := signalbox.Next(t, ev)
	if err != nil {
		return t, err
	}
	return b.Apply(ctx, c, ev.Now)
}

func (b bare) accept(ctx context.Context, t signalbox.Task) (signalbox.Task, error) {
	return b.happen(ctx, t, signalbox.Event{Kind: signalbox.EventAccept, TaskID: "task-1"})
}

func (b bare) finish(ctx context.Context, t signalbox.Task) error {
	_, err := b.happen(ctx, t, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: result})
	return err
}

// whole is the engine: validation, ids, routes, positions, estimates, logs.
type whole struct{ *engine.Engine }

func (w whole) submit(ctx context.Context) error {
	_, err := w.Submit(ctx, engine.NewTask{Prompt: prompt})
	return err
}

func (w whole) claim(ctx context.Context, agent string) (signalbox.Task, error) {
	got, found, err := w.Claim(ctx, signalbox.Agent{Name: agent, Kind: "claude", URL: "http://127.0.0.1:9000", Slots: 1}, 0)
	if err == nil && !found {
		err = errNothing
	}
	return got.Task, err
}

func (w whole) accept(ctx context.Context, t signalbox.Task) (signalbox.Task, error) {
	return w.Accept(ctx, t, "task-1", "")
}

func (w whole) finish(ctx context.Context, t signalbox.Task) error {
	_, err := w.Finish(ctx, t, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: result})
	return err
}

var errNothing = fmt.Errorf("a claim found nothing")

// cycle is the whole life of a task, each step durable before the next.
func cycle(ctx context.Context, s system, agent string) error {
	if err := s.submit(ctx); err != nil {
		return err
	}
	t, err := s.claim(ctx, agent)
	if err != nil {
		return err
	}
	if t, err = s.accept(ctx, t); err != nil {
		return err
	}
	return s.finish(ctx, t)
}

// figure is what came out of one case in one round.
type figure struct {
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	CPU       time.Duration `json:"cpu_ns"` // of this process, for each
}

// load has n goroutines do something again and again.
func load(n int, d time.Duration, do func(ctx context.Context, worker int) error) (figure, error) {
	ctx := context.Background()
	took := make([][]time.Duration, n)
	errs := make([]error, n)
	start, used := time.Now(), cpu()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for at := time.Now(); at.Sub(start) < d && errs[i] == nil; {
				errs[i] = do(ctx, i)
				done := time.Now()
				took[i] = append(took[i], done.Sub(at))
				at = done
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start)
	used = cpu() - used
	var every []time.Duration
	for i := range n {
		if errs[i] != nil {
			return figure{}, errs[i]
		}
		every = append(every, took[i]...)
	}
	slices.Sort(every)
	return figure{
		PerSecond: float64(len(every)) / elapsed.Seconds(),
		P50:       every[len(every)/2], P99: every[len(every)*99/100],
		CPU: used / time.Duration(len(every)),
	}, nil
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
