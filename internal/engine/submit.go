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
	Priority       int    // 0: that of the source (Options.SourcePriority)
	NotBefore      time.Time
	WaitTimeout    time.Duration    // 0: waits for ever; with overflow wait, Options.WaitTimeout
	OnLost         signalbox.OnLost // "": as Options.OnLost says
	RetryOf        string

	// What follows is left out of the digest where it is empty, so that the
	// digests of tasks without it are what they always were.

	Mode signalbox.Mode `json:",omitempty"` // chat and bypass need an Agent
	// Overflow says what to do when no agent can start it at once: "" is wait
	// for a chat, reject for the bypass (which knows nothing else), else persist.
	Overflow   signalbox.Overflow `json:",omitempty"`
	NewSession bool               `json:",omitempty"` // a chat that begins a conversation
	// Of the bypass, for runners that know them.
	AllowedTools []string `json:",omitempty"`
	SystemPrompt string   `json:",omitempty"`
	// Of ModeTool: what is called. Secrets are the properties of the arguments
	// that the tool marks as secret, as JSON by name; they are not in Arguments.
	Tool      string            `json:",omitempty"`
	Arguments json.RawMessage   `json:",omitempty"`
	Metadata  json.RawMessage   `json:",omitempty"`
	Secrets   map[string]string `json:",omitempty"`
	TimeoutMS int64             `json:",omitempty"`
	// Calls says of a ModeTool task that its tool is no async command: it goes
	// to the queue calls.
	Calls bool `json:"-"`
	// Waiter says that the call stands in line of its tool queue already: it goes
	// to the queue calls, under its ID, and before all others, because its place
	// is in the other line.
	Waiter bool `json:"-"`
	// ID is the id of a Waiter, made with NewID; all others get theirs here.
	ID string `json:"-"`

	// By is who asks. It takes no part in the digest: keys are kept apart by
	// owner.
	By signalbox.Principal `json:"-"`
	// Scheduled says that a schedule of By submits it: where By is an agent, it is
	// no call that the agent makes from within an execution.
	Scheduled bool `json:"-"`
	// CallerID is the execution of By, an agent, that makes the call; "" is
	// the only one that the agent runs. Waits says that it waits for the end.
	CallerID string `json:"-"`
	Waits    bool   `json:"-"`
	// Trace is the traceparent of the span that submits it; "" for none.
	Trace string `json:"-"`
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
// not known, CodeQueueFull, CodeIdempotency, CodeStoreFailed. Of calls that
// want an agent at once: CodeAgentBusy, CodeAgentDown, CodeUnsupported. Of
// calls that an agent makes: CodeForbidden, CodeCallDepth, CodeCallCycle.
func (e *Engine) Submit(ctx context.Context, n NewTask) (r Receipt, err error) {
	if err := n.normalize(); err != nil {
		return Receipt{}, err
	}
	asked := n
	if n.By.Run != "" {
		n.CallerID = n.By.Run
	}
	n.fill(&e.opts)
	if n.ID == "" {
		if n.ID, err = signalbox.NewID(e.Now(), e.opts.Random); err != nil {
			return Receipt{}, err
		}
	}
	if err := e.checkTalk(ctx, &n); err != nil {
		return Receipt{}, err
	}
	from, refused := e.callOf(ctx, &n)
	defer func() {
		if err != nil || r.Replayed {
			e.book.callNotMade(n.ID)
		}
	}()
	if e.trace != nil {
		var ended func(Receipt, error)
		n.Trace, ended = e.trace(ctx, from.parent)
		defer func() { ended(r, err) }()
	}
	sub, err := e.submission(n, from)
	if err != nil {
		return Receipt{}, err
	}
	if n.IdempotencyKey != "" {
		sub.Task.IdempotencyKey, sub.Task.IdempotencyHash = ownKey(n.By, n.IdempotencyKey), e.digest(asked)
	}
	if refused == nil && !n.Scheduled { // a firing is of the clock, or counted with who asked for it
		refused = e.Count(n.By, sizeOf(&n))
	}
	if refused == nil {
		refused = e.checkRoute(ctx, n)
	}
	if refused == nil {
		refused = e.makeRoom(&n, &sub)
	}
	if refused != nil {
		if n.IdempotencyKey == "" {
			return Receipt{}, refused
		}
		// The call may be one that was stored when it was not to be refused: its
		// caller has come back for the answer. A room without agents takes no
		// new one.
		sub.Room, sub.Talk = &store.Room{Queues: []string{sub.Task.Queue}, Must: true}, nil
	}
	submit, told := e.ahead.begin(ctx, sub.Task.ID, sub.Task.Queue)
	defer told()
	got, err := e.store.Submit(submit, sub)
	if signalbox.CodeOf(err) == signalbox.CodeIdempotency {
		if old := e.digestBefore(n); old != sub.Task.IdempotencyHash {
			sub.Task.IdempotencyHash = old
			got, err = e.store.Submit(submit, sub)
		}
	}
	if err != nil && refused != nil && signalbox.CodeOf(err) == signalbox.CodeAgentBusy {
		return Receipt{}, refused
	}
	if err != nil {
		return Receipt{}, e.noRoom(err, &n, &sub)
	}
	if signalbox.CodeOf(refused) == signalbox.CodeCallCycle && !got.Task.State.Terminal() {
		return Receipt{}, refused // to come back and wait for what was called without waiting closes the circle too
	}
	if !got.Replayed {
		e.logSubmit(&got)
		e.publishTraced("", got.Task, signalbox.Entry{Kind: signalbox.EventSubmit}, n.Trace)
		told()
		if err := e.closedElsewhere(ctx, &n, &got.Task); err != nil {
			return Receipt{}, err
		}
	}
	return e.receipt(ctx, got)
}

// submission makes the row of a new task.
func (e *Engine) submission(n NewTask, from call) (store.Submission, error) {
	now := e.Now()
	if n.NotBefore.Sub(now) > MaxNotBefore {
		return store.Submission{}, signalbox.Invalid("not_before", "not_before lies more than 366 days ahead")
	}
	t := signalbox.Task{
		ID: n.ID, State: signalbox.Pending, Queue: n.queue(), Mode: n.Mode,
		Priority: n.Priority, Bias: time.Duration(n.Priority) * e.opts.AgeStep,
		NotBefore: n.NotBefore, SessionID: n.SessionID, SessionMode: n.Session, OnLost: e.onLost(&n),
		MaxAttempts: e.opts.MaxAttempts, RetryOf: n.RetryOf, Source: n.Source, SourceJob: n.SourceJob,
		Preview: signalbox.Preview(n.Prompt), CreatedAt: now, HasEnv: len(n.Env) > 0, Tool: n.Tool,
		Owner: n.By.Key(), OwnerEmail: n.By.Email, ParentID: from.parent, Depth: from.depth, Waits: n.Waits && from.parent != "",
	}
	secrets := n.Env
	if n.Mode == signalbox.ModeTool {
		t.Preview, secrets = signalbox.Preview("tool "+n.Tool), n.Secrets
		t.HasEnv = len(secrets) > 0
	}
	if n.Waiter {
		t.Bias = waiterBias
	}
	sub := store.Submission{FollowSession: n.Session != "", Now: now}
	t.Limit, sub.Cap = e.limit(&n)
	if n.WaitTimeout > 0 {
		t.WaitUntil = now.Add(n.WaitTimeout)
	}
	r := signalbox.Request{
		Prompt: n.Prompt, Model: n.Model, Tier: n.Tier, TimeoutSeconds: n.TimeoutSeconds,
		Project: n.Project, Thinking: n.Thinking, SessionID: n.SessionID, Queue: t.Queue, HadEnv: t.HasEnv,
		AllowedTools: n.AllowedTools, SystemPrompt: n.SystemPrompt, NewSession: n.NewSession,
		Arguments: n.Arguments, Metadata: n.Metadata, TimeoutMS: n.TimeoutMS, Trace: n.Trace,
	}
	if t.HasEnv {
		plain, err := json.Marshal(secrets)
		if err != nil {
			return store.Submission{}, err
		}
		r.SealedEnv = e.opts.Sealer.Seal(plain, n.ID)
		if envBy(n.By) == signalbox.EnvByCaller && n.Mode != signalbox.ModeTool {
			r.EnvBy = signalbox.EnvByCaller
		}
	}
	t.RequestSize = r.Size()
	sub.Task, sub.Request = t, r
	return sub, nil
}

// onLost is what becomes of a task whose agent is lost. It is filled in here and
// not in NewTask, so that the configuration is in no digest. What cannot wait for
// another agent ends, unless its caller says otherwise.
func (e *Engine) onLost(n *NewTask) signalbox.OnLost {
	switch {
	case n.OnLost != "":
		return n.OnLost
	case n.Mode == signalbox.ModeQueue || n.Mode == signalbox.ModeChat:
		return e.opts.OnLost
	}
	return signalbox.LostFail
}

// envBy says as what a principal gives an environment.
func envBy(who signalbox.Principal) signalbox.EnvBy {
	if who.Has(signalbox.ScopeAdmin) {
		return signalbox.EnvByAdmin
	}
	return signalbox.EnvByCaller
}

// limit returns the limit that a task counts against while it waits, and how
// many that allows.
func (e *Engine) limit(n *NewTask) (name string, most int) {
	switch {
	case n.Mode == signalbox.ModeBypass:
		return signalbox.LimitBypass(n.Agent), 0 // it does not wait: its room is what bounds it
	case n.Mode == signalbox.ModeChat && n.Overflow != signalbox.OverflowPersist:
		return signalbox.LimitChat(n.Agent), e.opts.MaxChats
	case n.Mode == signalbox.ModeTool && n.toolQueue() == signalbox.QueueCalls:
		return signalbox.LimitCalls, 0 // each has a place in a tool queue, which has a bound of its own
	case n.Mode == signalbox.ModeTool:
		return signalbox.LimitCommands, e.opts.MaxCommands
	}
	return signalbox.LimitWork, e.opts.MaxSize
}

// ownKey keeps the idempotency keys of different principals apart: nobody
// gets another one's task by guessing its key.
func ownKey(by signalbox.Principal, key string) string {
	if owner := by.Key(); owner != "" {
		return owner + " " + key
	}
	return key
}

// digest stands for what a caller sent when its idempotency key comes again:
// nothing in it is of the configuration. It is keyed, because env values go into
// it.
func (e *Engine) digest(n NewTask) string {
	if n.Mode == signalbox.ModeTool {
		n.Arguments, n.Secrets = withSecrets(n.Arguments, n.Secrets), nil
	}
	return e.digestBefore(n)
}

// withSecrets joins what the tool's configuration told apart.
func withSecrets(arguments json.RawMessage, secrets map[string]string) json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(arguments, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, value := range secrets {
		all[name] = json.RawMessage(value)
	}
	if len(all) == 0 {
		return arguments
	}
	joined, err := json.Marshal(all)
	if err != nil { // a secret that is no JSON was refused before
		return arguments
	}
	return joined
}

// digestBefore is the digest as it was until 2026-11: with what the configuration
// had filled in. Tasks that were stored with it are found by it for as long as
// they are kept.
func (e *Engine) digestBefore(n NewTask) string {
	switch {
	case n.Mode == signalbox.ModeTool:
		n.OnLost = "" // the tool's configuration says it, not the caller
	case n.OnLost == "":
		n.OnLost = signalbox.LostFail // as it was before there was a default to configure
	}
	body, err := json.Marshal(n)
	if err != nil { // strings, numbers and times always marshal
		panic(err)
	}
	return e.opts.Sealer.Digest(body)
}

func (n *NewTask) queue() string {
	switch {
	case n.Mode == signalbox.ModeTool:
		return n.toolQueue()
	case n.Mode == signalbox.ModeBypass:
		return signalbox.BypassQueue(n.Agent)
	case n.Agent != "":
		return signalbox.AgentQueue(n.Agent)
	case n.Kind != "":
		return signalbox.PoolQueue(n.Kind)
	}
	return signalbox.QueueWork
}

// receipt adds the place in line.
func (e *Engine) receipt(ctx context.Context, got store.Submitted) (Receipt, error) {
	r := Receipt{Task: got.Task, Replayed: got.Replayed}
	pos := got.Position
	if pos.N == 0 {
		var err error
		if pos, err = e.store.Position(ctx, got.Task.ID); err != nil {
			// The task is stored and must be acknowledged; its place can be asked for.
			e.log.Error("position unknown after submit", "queue_id", got.Task.ID, "error", err)
			return r, nil
		}
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
