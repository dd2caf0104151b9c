package embedded

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
)

// Queue implements schedule.Queue: it submits to the engine as the owner of the schedule.
type Queue struct {
	engine *engine.Engine
	owners *owners

	mu    sync.Mutex
	signs map[chan struct{}]struct{}
}

var _ schedule.Queue = (*Queue)(nil)

// NewQueue returns a queue. Call it before the engine is used.
func NewQueue(e *engine.Engine) *Queue {
	q := &Queue{engine: e, owners: &owners{engine: e}, signs: map[chan struct{}]struct{}{}}
	e.Observe(q.observe)
	return q
}

func (q *Queue) task(ctx context.Context, s *signalbox.Schedule) (engine.NewTask, error) {
	by, err := q.owners.find(ctx, s)
	return engine.NewTask{
		Prompt: s.Prompt, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds, SessionID: s.SessionID,
		Project: s.Project, Workspace: s.Workspace, Thinking: s.Thinking, Agent: s.Agent, Kind: s.Kind, Priority: s.Priority, OnLost: s.OnLost,
		Checking: s.Checking, Landing: s.Landing,
		Source: signalbox.SourceScheduler, SourceJob: s.Name, By: by, Scheduled: true,
	}, err
}

// Check refuses a schedule whose task the engine would refuse.
func (q *Queue) Check(ctx context.Context, s signalbox.Schedule) error {
	n, err := q.task(ctx, &s)
	if err != nil {
		return err
	}
	return q.engine.Check(ctx, n)
}

func (q *Queue) Submit(ctx context.Context, s signalbox.Schedule, key string) (schedule.Submitted, error) {
	n, err := q.task(ctx, &s)
	if err != nil {
		return schedule.Submitted{}, err
	}
	n.IdempotencyKey = key
	got, err := q.engine.Submit(ctx, n)
	if signalbox.CodeOf(err) == signalbox.CodeQueueFull {
		err = &schedule.FullError{Waiting: q.depth(ctx), Err: err}
	}
	return schedule.Submitted{QueueID: got.Task.ID, Known: got.Replayed}, err
}

// depth returns how many tasks wait under the limit that schedules count against.
func (q *Queue) depth(ctx context.Context) int {
	counts, err := q.engine.Read().Counts(ctx)
	if err != nil {
		return q.engine.Options().MaxSize // the queue was full
	}
	return counts.Limits[signalbox.LimitWork]
}

// Ended reports whether a task has ended or does not exist.
func (q *Queue) Ended(ctx context.Context, queueID string) (bool, error) {
	t, err := q.engine.Read().Task(ctx, queueID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return true, nil
	}
	return err == nil && t.State.Terminal(), err
}

// Cancel asks for the end of a task.
func (q *Queue) Cancel(ctx context.Context, queueID, by string) error {
	_, err := q.engine.Cancel(ctx, queueID, by)
	switch signalbox.CodeOf(err) {
	case signalbox.CodeAlreadyEnded, signalbox.CodeNotFound:
		return nil
	}
	return err
}

// Ends signals that tasks of schedules have ended.
func (q *Queue) Ends() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.signs[c] = struct{}{}
	return c, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.signs, c)
	}
}

func (q *Queue) observe(a *engine.Applied) {
	if a.Task.Source != signalbox.SourceScheduler || !a.Task.State.Terminal() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.signs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// staticService owns what was created with the configured token.
const staticService = "static"

// rightsTTL is how long rights are cached.
const rightsTTL = 5 * time.Second

// owners finds the current rights of the owners of schedules.
type owners struct {
	engine *engine.Engine

	mu     sync.Mutex
	readAt time.Time // monotonic; zero: never
	users  map[string]signalbox.User
	tokens map[string]signalbox.Token // in force, by Principal.Key
}

// find returns the owner of a schedule, or CodeForbidden if it was removed or disabled. A schedule without
// owner has no limits, like a local caller.
func (o *owners) find(ctx context.Context, s *signalbox.Schedule) (signalbox.Principal, error) {
	if s.Owner == "" {
		return signalbox.Principal{}, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.read(ctx); err != nil {
		return signalbox.Principal{}, err
	}
	if id, ok := signalbox.OwnerUser(s.Owner); ok {
		u, known := o.users[id]
		if !known || u.Disabled {
			return signalbox.Principal{}, errOwnerGone(s)
		}
		return signalbox.Principal{Kind: signalbox.PrincipalUser, ID: id, Email: u.Email, Scopes: u.Role.Scopes(), Agents: u.Agents}, nil
	}
	t, known := o.tokens[s.Owner]
	switch {
	case known:
		return signalbox.Principal{Kind: t.Kind, ID: t.Principal, Scopes: t.Scopes, Agents: t.Agents}, nil
	case s.Owner == string(signalbox.PrincipalService)+":"+staticService:
		return signalbox.Principal{Kind: signalbox.PrincipalService, ID: staticService, Scopes: signalbox.Scopes()}, nil
	}
	return signalbox.Principal{}, errOwnerGone(s)
}

func errOwnerGone(s *signalbox.Schedule) error {
	return signalbox.Errorf(signalbox.CodeForbidden, "the owner of schedule %s, %s, is no longer there or was disabled: an admin can make the schedule anew", s.Name, s.Owner)
}

func (o *owners) read(ctx context.Context) error {
	if !o.readAt.IsZero() && time.Since(o.readAt) < rightsTTL {
		return nil
	}
	users, err := o.engine.Read().Users(ctx)
	if err != nil {
		return err
	}
	tokens, err := o.engine.Read().Tokens(ctx)
	if err != nil {
		return err
	}
	o.users, o.tokens = map[string]signalbox.User{}, map[string]signalbox.Token{}
	for _, u := range users {
		o.users[u.ID] = u
	}
	now := o.engine.Now()
	for _, t := range tokens {
		if !t.RevokedAt.IsZero() || (!t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)) {
			continue
		}
		key := signalbox.Principal{Kind: t.Kind, ID: t.Principal}.Key()
		if known, two := o.tokens[key]; two {
			t = wider(known, t)
		}
		o.tokens[key] = t
	}
	o.readAt = time.Now()
	return nil
}

// wider returns the less restricted of two tokens of a principal.
func wider(a, b signalbox.Token) signalbox.Token {
	if len(b.Agents) == 0 || (len(a.Agents) > 0 && len(b.Agents) > len(a.Agents)) {
		return b
	}
	return a
}
