// Package ours is our side of the comparisons: all kinds of stores, and the engine over
// them.
package ours

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// Now returns the time as the engine passes it to stores.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// NewEngine returns an engine over a store, with room for all tasks.
func NewEngine(s store.Store) (*engine.Engine, error) {
	sealer, err := seal.New(make([]byte, 32))
	if err != nil {
		return nil, err
	}
	return engine.New(s, engine.Options{Sealer: sealer, MaxSize: 1 << 30}), nil
}

// Submission returns a task as the engine would submit it.
func Submission() (store.Submission, error) {
	at := Now()
	id, err := signalbox.NewID(at, rand.Reader)
	if err != nil {
		return store.Submission{}, err
	}
	return store.Submission{
		Task: signalbox.Task{
			ID: id, State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, MaxAttempts: 3,
			Source: signalbox.SourceAPI, OnLost: signalbox.LostFail, Preview: signalbox.Preview(load.Prompt), CreatedAt: at,
			IdempotencyKey: "key " + id, IdempotencyHash: "hash", // the peers have none; this is a cost of ours
		},
		Request: signalbox.Request{Prompt: load.Prompt, Queue: signalbox.QueueWork}, Cap: 1 << 30, Now: at,
	}, nil
}

// Submit stores a task, after change if that is not nil.
func Submit(ctx context.Context, s store.Store, change func(*store.Submission)) error {
	sub, err := Submission()
	if err != nil {
		return err
	}
	if change != nil {
		change(&sub)
	}
	_, err = s.Submit(ctx, sub)
	return err
}

// ErrNothing says that there was nothing to claim.
var ErrNothing = errors.New("a claim found nothing")

// Claim takes the next task for an agent with one slot.
func Claim(ctx context.Context, s store.Store, agent string) (signalbox.Task, error) {
	at := Now()
	got, err := s.Claim(ctx, store.ClaimRequest{
		Agent: agent, AgentURL: "http://127.0.0.1:9000", Slots: 1, Now: at, Expires: at.Add(10 * time.Minute),
		Queues: []string{signalbox.AgentQueue(agent), signalbox.PoolQueue("claude"), signalbox.QueueWork},
	})
	if err == nil && !got.Found {
		err = ErrNothing
	}
	return got.Task, err
}

// Result is an agent's answer.
var Result = &signalbox.Result{Output: "The test failed because the clock was read twice. It is repaired.", Tail: "ok", DurationSeconds: 12.5}

// Accept records that the agent has accepted the task.
func Accept(ctx context.Context, s store.Store, t signalbox.Task) (signalbox.Task, error) {
	return happen(ctx, s, t, signalbox.Event{Kind: signalbox.EventAccept, TaskID: "task-1"})
}

// Finish records that an accepted task has ended.
func Finish(ctx context.Context, s store.Store, t signalbox.Task) error {
	_, err := happen(ctx, s, t, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Result: Result, TaskID: "task-1"})
	return err
}

func happen(ctx context.Context, s store.Store, t signalbox.Task, ev signalbox.Event) (signalbox.Task, error) {
	ev.Now, ev.Fence = Now(), t.Fence
	c, err := signalbox.Next(t, ev)
	if err != nil {
		return t, err
	}
	return s.Apply(ctx, c, ev.Now)
}

// Cycle is submit, claim and finish, each durable before the next.
func Cycle(ctx context.Context, s store.Store, agent string) error {
	if err := Submit(ctx, s, nil); err != nil {
		return err
	}
	t, err := Claim(ctx, s, agent)
	if err != nil {
		return err
	}
	return Finish(ctx, s, t)
}

// WholeCycle is Cycle through the engine, with the acceptance as a separate step.
func WholeCycle(ctx context.Context, e *engine.Engine, agent string) error {
	if _, err := e.Submit(ctx, engine.NewTask{Prompt: load.Prompt}); err != nil {
		return err
	}
	got, found, err := e.Claim(ctx, signalbox.Agent{Name: agent, Kind: "claude", URL: "http://127.0.0.1:9000", Slots: 1}, 0)
	if err == nil && !found {
		err = ErrNothing
	}
	if err != nil {
		return err
	}
	t, err := e.Accept(ctx, got.Task, "task-1", "")
	if err == nil {
		_, err = e.Finish(ctx, t, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: Result})
	}
	return err
}

// Agent returns the name of the i-th agent.
func Agent(i int) string { return fmt.Sprintf("agent-%04d", i) }
