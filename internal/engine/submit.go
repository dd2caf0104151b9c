package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/resources"
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
	Priority       int    // 0: that of the source (Options.SourcePriority)
	NotBefore      time.Time
	WaitTimeout    time.Duration    // 0: no limit; with overflow wait, Options.WaitTimeout
	OnLost         signalbox.OnLost // "": Options.OnLost
	RetryOf        string

	// Empty fields from here on are omitted from the digest, so that digests of tasks
	// without them do not change.

	Mode signalbox.Mode `json:",omitempty"` // chat and bypass need an Agent
	// Overflow says what to do when no agent can start the task at once: "" is wait for a
	// chat, reject for the bypass (its only policy), else persist.
	Overflow   signalbox.Overflow `json:",omitempty"`
	NewSession bool               `json:",omitempty"` // a chat that starts a new conversation
	// Bypass only, for runners that support them.
	AllowedTools []string             `json:",omitempty"`
	SystemPrompt string               `json:",omitempty"`
	Budget       signalbox.Budget     `json:",omitzero"` // zero figures: Options.Budgets.Task
	Checking     signalbox.Checking   `json:",omitzero"`
	Needs        map[string]int       `json:",omitempty"` // units of resources that its run holds
	Workspace    *signalbox.Workspace `json:",omitempty"`
	// Holds replaces Needs for tasks of the director itself, which may also hold exclusive resources.
	Holds   *[]signalbox.Need   `json:"-"`
	Landing *signalbox.LandWish `json:",omitempty"` // where its work lands when it has completed
	Land    *signalbox.Land     `json:",omitempty"` // ModeLand only
	// ModeTool only. Secrets are the arguments that the tool marks as secret, as JSON by
	// name; they are not in Arguments.
	Tool      string            `json:",omitempty"`
	Arguments json.RawMessage   `json:",omitempty"`
	Metadata  json.RawMessage   `json:",omitempty"`
	Secrets   map[string]string `json:",omitempty"`
	TimeoutMS int64             `json:",omitempty"`
	// Calls: the tool of this ModeTool task is not an async command, so the task goes to
	// the queue calls.
	Calls bool `json:"-"`
	// Waiter: the call already has a place in its tool queue. It goes to the queue calls,
	// under its ID and ahead of all others.
	Waiter bool `json:"-"`
	// ID is the id of a Waiter, made with NewID; other tasks get theirs in Submit.
	ID string `json:"-"`

	// By is the submitter. It is not part of the digest: keys are scoped by owner.
	By signalbox.Principal `json:"-"`
	// Scheduled: a schedule of By submits it, so even if By is an agent, it is not a call
	// from one of its executions.
	Scheduled bool `json:"-"`
	// CallerID is the calling execution of By, an agent; "" means the only one that it
	// runs. Waits: that execution waits for the task to end.
	CallerID string `json:"-"`
	Waits    bool   `json:"-"`
	// Trace is the traceparent of the submitting span; "" for none.
	Trace string `json:"-"`
	// IdempotencyKey makes at most one task; it is not part of the digest.
	IdempotencyKey string `json:"-"`
}

// Receipt is the answer to a submit: the task is stored.
type Receipt struct {
	Task     signalbox.Task
	Position store.Position
	ETA      *ETA
	Replayed bool // the idempotency key was known; Task is the existing task
}

// Submit stores a task, durably when it returns without an error.
//
// Errors: CodeValidation with the field; CodeNotFound for an unknown agent; CodeQueueFull,
// CodeIdempotency, CodeRateLimited, CodeStoreFailed. Tasks that need an agent at once:
// CodeAgentBusy, CodeAgentDown, CodeUnsupported. Calls made by agents: CodeForbidden,
// CodeCallDepth, CodeCallCycle.
func (e *Engine) Submit(ctx context.Context, n NewTask) (r Receipt, err error) {
	if err := n.normalize(); err != nil {
		return Receipt{}, err
	}
	asked := n
	if n.By.Run != "" {
		n.CallerID = n.By.Run
	}
	n.applyDefaults(&e.opts)
	if n.ID == "" {
		if n.ID, err = signalbox.NewID(e.Now(), e.opts.Random); err != nil {
			return Receipt{}, err
		}
	}
	if err := e.checkSessionAccess(ctx, &n); err != nil {
		return Receipt{}, err
	}
	origin, refused := e.resolveOrigin(ctx, &n)
	defer func() {
		if err != nil || r.Replayed {
			e.calls.DropUnstored(n.ID)
		}
	}()
	if e.trace != nil {
		var ended func(Receipt, error)
		n.Trace, ended = e.trace(ctx, origin.parent)
		defer func() { ended(r, err) }()
	}
	sub, err := e.submission(n, origin)
	if err != nil {
		return Receipt{}, err
	}
	if n.IdempotencyKey != "" {
		sub.Task.IdempotencyKey, sub.Task.IdempotencyHash = ScopedKey(n.By, n.IdempotencyKey), e.digest(asked)
	}
	if refused == nil && !n.Scheduled { // a scheduled firing is not rate limited, or is charged to whoever triggered it
		refused = e.ChargeRate(n.By, sizeOf(&n))
	}
	if refused == nil {
		refused = cmp.Or(e.checkRoute(ctx, n), e.checkBudgets(ctx, &n), resources.Check(e.opts.Resources, n.Needs))
	}
	if refused == nil {
		refused = e.setRoom(&n, &sub)
	}
	if refused != nil {
		if n.IdempotencyKey == "" {
			return Receipt{}, refused
		}
		// It may be the replay of a task that was stored before it would have been refused:
		// let the store look up the key. A room without agents admits no new task.
		sub.Room, sub.Chat = &store.Room{Queues: []string{sub.Task.Queue}, Must: true}, nil
	}
	submit, published := e.earlyWake.begin(ctx, sub.Task.ID, sub.Task.Queue)
	defer published()
	got, err := e.store.Submit(submit, sub)
	if signalbox.CodeOf(err) == signalbox.CodeIdempotency {
		if old := e.legacyDigest(n); old != sub.Task.IdempotencyHash {
			sub.Task.IdempotencyHash = old
			got, err = e.store.Submit(submit, sub)
		}
	}
	if err != nil && refused != nil && signalbox.CodeOf(err) == signalbox.CodeAgentBusy {
		return Receipt{}, refused
	}
	if err != nil {
		return Receipt{}, e.refusal(err, &n, &sub)
	}
	if signalbox.CodeOf(refused) == signalbox.CodeCallCycle && !got.Task.State.Terminal() {
		return Receipt{}, refused // waiting for the replayed task would close the cycle, too
	}
	if !got.Replayed {
		e.Publish(Applied{Task: got.Task, Kind: signalbox.EventSubmit, Depth: got.Depth, Trace: n.Trace})
		published()
		if err := e.recheckCycle(ctx, &n, &got.Task); err != nil {
			return Receipt{}, err
		}
	}
	return e.receipt(ctx, got)
}

// submission builds the row of a new task.
func (e *Engine) submission(n NewTask, origin callOrigin) (store.Submission, error) {
	now := e.Now()
	if n.NotBefore.Sub(now) > MaxNotBefore {
		return store.Submission{}, signalbox.Invalid("not_before", "not_before lies more than 366 days ahead")
	}
	t := signalbox.Task{
		ID: n.ID, State: signalbox.Pending, Queue: n.queue(), Mode: n.Mode,
		Priority: n.Priority, Bias: e.bias(n.Priority),
		NotBefore: n.NotBefore, SessionID: n.SessionID, SessionMode: n.Session, OnLost: e.onLost(&n),
		MaxAttempts: e.opts.MaxAttempts, RetryOf: n.RetryOf, Source: n.Source, SourceJob: n.SourceJob,
		Preview: signalbox.Preview(n.Prompt), CreatedAt: now, HasEnv: len(n.Env) > 0, Tool: n.Tool,
		Owner: n.By.Key(), OwnerEmail: n.By.Email, ParentID: origin.parent, Depth: origin.depth, Waits: n.Waits && origin.parent != "",
	}
	if n.Landing != nil {
		t.Landing = &signalbox.Landing{LandWish: *n.Landing, State: signalbox.LandingWanted, By: n.By.String(), At: now, Since: now}
	}
	secrets := n.Env
	if n.Mode == signalbox.ModeTool {
		t.Preview, secrets = signalbox.Preview("tool "+n.Tool), n.Secrets
		t.HasEnv = len(secrets) > 0
	}
	if n.Mode != signalbox.ModeTool {
		t.Budget, t.Needs = n.Budget.Or(e.opts.Budgets.Task), cmp.Or(n.Holds, resources.Needs(n.Needs))
		t.Workplace = n.Workspace.Place(n.Project)
	}
	if n.Waiter {
		t.Bias = 365 * 24 * time.Hour // ahead of all others
	}
	sub := store.Submission{FollowSession: n.Session != "", Now: now}
	t.Limit, sub.Cap = e.limit(&n)
	if n.WaitTimeout > 0 {
		t.WaitUntil = now.Add(n.WaitTimeout)
	}
	r := signalbox.Request{
		Prompt: n.Prompt, Model: n.Model, Tier: n.Tier, TimeoutSeconds: n.TimeoutSeconds,
		Project: n.Project, Thinking: n.Thinking, SessionID: n.SessionID, Queue: t.Queue, HadEnv: t.HasEnv,
		AllowedTools: n.AllowedTools, SystemPrompt: n.SystemPrompt, NewSession: n.NewSession, Checking: n.Checking, Land: n.Land,
		Arguments: n.Arguments, Metadata: n.Metadata, TimeoutMS: n.TimeoutMS, Trace: n.Trace, Workspace: n.Workspace,
	}
	if t.HasEnv {
		r.SealedEnv = e.sealEnv(n.ID, secrets)
	}
	if (t.HasEnv || len(n.Checking.Checks) > 0) && !n.By.Has(signalbox.ScopeAdmin) && n.Mode != signalbox.ModeTool {
		r.EnvBy = signalbox.EnvByCaller
	}
	t.RequestSize = r.Size()
	sub.Task, sub.Request = t, r
	return sub, nil
}

// onLost returns the task's policy for a lost agent. It is not filled into NewTask, so that
// the configuration is not part of the digest. Tasks that cannot wait for another agent
// end, unless the caller says otherwise.
func (e *Engine) onLost(n *NewTask) signalbox.OnLost {
	switch {
	case n.OnLost != "":
		return n.OnLost
	case n.Mode == signalbox.ModeQueue || n.Mode == signalbox.ModeChat:
		return e.opts.OnLost
	}
	return signalbox.LostFail
}

func (e *Engine) sealEnv(id string, env map[string]string) []byte {
	plain, _ := json.Marshal(env) // strings always marshal
	return e.opts.Sealer.Seal(plain, id)
}

// limit returns the limit that a waiting task counts against, and its maximum; 0: none.
func (e *Engine) limit(n *NewTask) (name string, most int) {
	switch {
	case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand:
		return signalbox.LimitBypass(n.Agent), 0 // it never waits; its room bounds it
	case n.Mode == signalbox.ModeChat && n.Overflow != signalbox.OverflowPersist:
		return signalbox.LimitChat(n.Agent), e.opts.MaxChats
	case n.Mode == signalbox.ModeTool && n.queue() == signalbox.QueueCalls:
		return signalbox.LimitCalls, 0 // bounded by its tool queue
	case n.Mode == signalbox.ModeTool:
		return signalbox.LimitCommands, e.opts.MaxCommands
	}
	return signalbox.LimitWork, e.opts.MaxSize
}

// ScopedKey scopes an idempotency key to its owner: nobody gets another principal's task by
// guessing its key.
func ScopedKey(by signalbox.Principal, key string) string {
	if owner := by.Key(); owner != "" {
		return owner + " " + key
	}
	return key
}

// digest identifies what a caller sent, to compare it when its idempotency key is reused.
// It does not depend on the configuration. It is keyed, because env values go into it.
func (e *Engine) digest(n NewTask) string {
	if n.Mode == signalbox.ModeTool {
		n.Arguments, n.Secrets = withSecrets(n.Arguments, n.Secrets), nil
	}
	return e.legacyDigest(n)
}

// withSecrets merges the secrets back into the arguments.
func withSecrets(arguments json.RawMessage, secrets map[string]string) json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(arguments, &all) // checkObject has refused arguments that are no object
	for name, value := range secrets {
		all[name] = json.RawMessage(value)
	}
	if len(all) == 0 {
		return arguments
	}
	joined, err := json.Marshal(all)
	if err != nil { // checkSecrets refused secrets that are not JSON
		return arguments
	}
	return joined
}

// legacyDigest is the digest as computed until 2026-11, including defaults from the
// configuration. Tasks stored with it are still found by it.
func (e *Engine) legacyDigest(n NewTask) string {
	switch {
	case n.Mode == signalbox.ModeTool:
		n.OnLost = "" // set by the tool's configuration, not by the caller
	case n.OnLost == "":
		n.OnLost = signalbox.LostFail // the default before it became configurable
	}
	body, err := json.Marshal(n)
	if err != nil { // strings, numbers and times always marshal
		panic(err)
	}
	return e.opts.Sealer.Digest(body)
}

func (n *NewTask) queue() string {
	switch {
	case n.Mode == signalbox.ModeTool && (n.Calls || n.Waiter):
		return signalbox.QueueCalls
	case n.Mode == signalbox.ModeTool:
		return signalbox.QueueCommands
	case n.Mode == signalbox.ModeBypass, n.Mode == signalbox.ModeLand:
		return signalbox.BypassQueue(n.Agent)
	}
	return signalbox.Route{Agent: n.Agent, Kind: n.Kind}.Queue()
}

// receipt adds position and ETA.
func (e *Engine) receipt(ctx context.Context, got store.Submitted) (Receipt, error) {
	r := Receipt{Task: got.Task, Replayed: got.Replayed}
	pos := got.Position
	if pos.N == 0 {
		var err error
		if pos, err = e.store.Position(ctx, got.Task.ID); err != nil {
			// The task is stored and must be acknowledged; its position can be read later.
			e.log.Error("position unknown after submit", "queue_id", got.Task.ID, "error", err)
			return r, nil
		}
	}
	if pos.N == 0 && r.Task.State == signalbox.Pending {
		// It was claimed in the meantime. When it was stored it was first, or another task
		// would have been claimed.
		pos.N = 1
	}
	r.Position = pos
	r.ETA = e.ETA(ctx, &r.Task, pos)
	return r, nil
}

// SubmitTrace starts the span of a submit, as a child of the span in ctx or, without one,
// of the calling execution's (parent, "" for none). It returns the traceparent to store
// with the task, and a function to call with the result.
type SubmitTrace func(ctx context.Context, parent string) (trace string, ended func(Receipt, error))

// TraceSubmits sets the function that starts spans of submits. Call it before the engine is
// used.
func (e *Engine) TraceSubmits(f SubmitTrace) { e.trace = f }
