package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// NewTask is what a submitter asks for.
type NewTask struct {
	Prompt         string
	Model          string
	Tier           string
	TimeoutSeconds int // limit of the run, 0 to MaxTimeoutSeconds; 0: the agent's default
	SessionID      string
	Session        signalbox.SessionMode // "" is require
	Project        *signalbox.Project
	Env            map[string]string
	Thinking       *bool
	Source         signalbox.Source // "" is api
	SourceJob      string
	Agent          string // only this agent
	Kind           string // only agents of this kind
	Priority       int
	NotBefore      time.Time
	WaitTimeout    time.Duration // 0: waits for ever
	OnLost         signalbox.OnLost
	RetryOf        string
	Mode           signalbox.Mode // chat and bypass need an Agent
	// By is who asks; it takes no part in the digest.
	By signalbox.Principal `json:"-"`
	// Overflow says what to do when no agent can start it at once: "" is wait
	// for a chat, persist for a queued task, and always reject for the bypass.
	Overflow   signalbox.Overflow
	NewSession bool // a chat that begins a conversation
	// CallerID is the execution of By, an agent, that makes the call; "" is
	// the only one that the agent runs. Waits says that it waits for the end.
	CallerID string
	Waits    bool
	// Of the bypass, for runners that know them.
	AllowedTools []string
	SystemPrompt string
	// IdempotencyKey makes at most one task; it takes no part in the digest.
	IdempotencyKey string `json:"-"`
}

// Receipt is the answer to a submit: the task is stored.
type Receipt struct {
	Task     signalbox.Task
	Position store.Position
	ETA      *ETA
	Replayed bool // the idempotency key was known: this is the task of that time
}

// Submit stores a task. When it returns without an error the task is durable.
//
// Errors: CodeValidation with the field, CodeNotFound for an agent that is
// not known, CodeQueueFull, CodeIdempotency, CodeStoreFailed.
func (e *Engine) Submit(ctx context.Context, n NewTask) (Receipt, error) {
	if err := n.normalize(); err != nil {
		return Receipt{}, err
	}
	sub, err := e.submission(n)
	if err != nil {
		return Receipt{}, err
	}
	if err := e.checkRoute(ctx, n); err != nil {
		return Receipt{}, err
	}
	got, err := e.store.Submit(ctx, sub)
	if signalbox.CodeOf(err) == signalbox.CodeQueueFull {
		e.log.Warn("", "queue", "submit_rejected", "reason", "queue_full", "depth", e.opts.MaxSize)
		return Receipt{}, signalbox.Errorf(signalbox.CodeQueueFull, "Queue is at capacity (%d tasks)", e.opts.MaxSize)
	}
	if err != nil {
		return Receipt{}, err
	}
	if !got.Replayed {
		e.publish("", got.Task, signalbox.Entry{Kind: signalbox.EventSubmit})
	}
	return e.receipt(ctx, got)
}

// submission makes the row of a new task.
func (e *Engine) submission(n NewTask) (store.Submission, error) {
	now := e.Now()
	if n.NotBefore.Sub(now) > MaxNotBefore {
		return store.Submission{}, signalbox.Invalid("not_before", "not_before lies more than 366 days ahead")
	}
	id, err := signalbox.NewID(now, e.opts.Random)
	if err != nil {
		return store.Submission{}, err
	}
	t := signalbox.Task{
		ID: id, State: signalbox.Pending, Queue: n.queue(), Limit: signalbox.LimitWork,
		Priority: n.Priority, Bias: time.Duration(n.Priority) * e.opts.AgeStep,
		NotBefore: n.NotBefore, SessionID: n.SessionID, SessionMode: n.Session, OnLost: n.OnLost,
		MaxAttempts: e.opts.MaxAttempts, RetryOf: n.RetryOf, Source: n.Source, SourceJob: n.SourceJob,
		Preview: signalbox.Preview(n.Prompt), CreatedAt: now, HasEnv: len(n.Env) > 0,
	}
	if n.WaitTimeout > 0 {
		t.WaitUntil = now.Add(n.WaitTimeout)
	}
	if n.IdempotencyKey != "" {
		t.IdempotencyKey, t.IdempotencyHash = n.IdempotencyKey, e.digest(n)
	}
	r := signalbox.Request{
		Prompt: n.Prompt, Model: n.Model, Tier: n.Tier, TimeoutSeconds: n.TimeoutSeconds,
		Project: n.Project, Thinking: n.Thinking, SessionID: n.SessionID, Queue: t.Queue, HadEnv: t.HasEnv,
	}
	if t.HasEnv {
		plain, err := json.Marshal(n.Env)
		if err != nil {
			return store.Submission{}, err
		}
		r.SealedEnv = e.opts.Sealer.Seal(plain, id)
	}
	return store.Submission{
		Task: t, Request: r, Cap: e.opts.MaxSize, FollowSession: n.Session != "", Now: now,
	}, nil
}

// digest stands for the body of a submit when its idempotency key comes
// again. It is keyed, because env values go into it.
func (e *Engine) digest(n NewTask) string {
	body, err := json.Marshal(n)
	if err != nil { // strings, numbers and times always marshal
		panic(err)
	}
	return e.opts.Sealer.Digest(body)
}

func (n *NewTask) queue() string {
	switch {
	case n.Agent != "":
		return signalbox.AgentQueue(n.Agent)
	case n.Kind != "":
		return signalbox.PoolQueue(n.Kind)
	}
	return signalbox.QueueWork
}

// checkRoute refuses a task for an agent that nobody knows, and one for
// another agent than the one that holds its session.
func (e *Engine) checkRoute(ctx context.Context, n NewTask) error {
	if n.Agent == "" {
		return nil
	}
	agents, err := e.store.Agents(ctx)
	if err != nil {
		return err
	}
	if !hasAgent(agents, n.Agent) {
		return &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: unknownAgent(n.Agent, agents)}
	}
	if n.SessionID == "" {
		return nil
	}
	s, err := e.store.Session(ctx, n.SessionID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		return nil
	}
	if err == nil && s.Agent != n.Agent {
		return signalbox.Invalid("agent", "session %s is held by agent %s: leave out agent, or name %s", n.SessionID, s.Agent, s.Agent)
	}
	return err
}

// receipt adds the place in line.
func (e *Engine) receipt(ctx context.Context, got store.Submitted) (Receipt, error) {
	r := Receipt{Task: got.Task, Replayed: got.Replayed}
	pos, err := e.store.Position(ctx, got.Task.ID)
	if err != nil {
		// The task is stored and must be acknowledged; its place can be asked for.
		e.log.Error("position unknown after submit", "queue_id", got.Task.ID, "error", err)
		return r, nil
	}
	if pos.N == 0 && r.Task.State == signalbox.Pending {
		// It was claimed since. The receipt is of the moment in which it was
		// stored, when it stood first: otherwise another had been claimed.
		pos.N = 1
	}
	r.Position = pos
	r.ETA = e.ETA(ctx, &r.Task, pos)
	return r, nil
}
