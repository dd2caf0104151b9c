package local

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// run is a task that has, or had, a slot.
type run struct {
	execution.Run // guarded by Executor.mu, except the tail

	x    *Executor
	pool *pool

	slot    slotState // of its pool, guarded by Executor.mu
	request signalbox.Request
	secrets map[string]string

	ctx     context.Context
	stop    context.CancelCauseFunc
	printed bool                              // the tool printed something while it ran
	line    atomic.Pointer[toolqueue.Waiting] // its place in its tool queue

	begun time.Time // when it became working; zero: not yet
	lost  bool      // the task was taken away
}

func newRun(x *Executor, p *pool, c engine.Claimed) *run {
	r := &run{
		Run: execution.NewRun(c, time.Now(), x.engine.Now), x: x, pool: p, request: c.Request, secrets: c.Env,
	}
	r.ctx, r.stop = context.WithCancelCause(x.runCtx)
	return r
}

// markOf identifies the processes of a run.
func markOf(t *signalbox.Task) string { return fmt.Sprintf("%s.%d", t.ID, t.Fence) }

// appendLog is gateway.Call.Log.
func (r *run) appendLog(_ string, text []byte) {
	r.printed = true
	r.Tail.Append(string(text))
}

// row is the task as last seen.
func (r *run) row() signalbox.Task {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return r.Task
}

func (r *run) setRow(t signalbox.Task) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.Update(t)
}

// run makes the call of a claimed task and returns when it has ended.
func (x *Executor) run(r *run) {
	defer x.removeRun(r)
	args, err := withSecrets(r.request.Arguments, r.secrets)
	if err == nil {
		err = x.awaitTool(r)
	}
	var place *place
	if err == nil {
		place, err = r.enterQueue()
	}
	if err != nil {
		r.conclude(gateway.Result{}, err)
		return
	}
	t := r.row()
	agent, _ := signalbox.OwnerAgent(t.Owner)
	ctx, meta := r.withTrace()
	res, err := x.gateway.Call(ctx, gateway.Call{
		Tool: t.Tool, Arguments: args, Meta: meta,
		Caller:           gateway.Caller{Principal: t.Owner, Agent: agent, Execution: t.ParentID},
		Task:             r.ID,
		Mark:             markOf(&t),
		Secrets:          slices.Collect(maps.Keys(r.secrets)),
		Limit:            time.Duration(r.request.TimeoutMS) * time.Millisecond,
		QueueTimeoutOnly: true,
		Log:              r.appendLog,
		OnWait:           func(w toolqueue.Waiting) { r.line.Store(&w); r.yield(); place.join() },
		OnStart:          func(*gateway.Call) error { place.leave(); return r.begin() },
	})
	place.leave()
	r.conclude(res, err)
}

// withTrace returns the context and _meta of the call, with the task's trace.
func (r *run) withTrace() (context.Context, json.RawMessage) {
	if r.x.opts.Trace == nil {
		return r.ctx, r.request.Metadata
	}
	ctx := r.x.opts.Trace(r.ctx, r.ID)
	return ctx, gateway.MetaTrace(ctx, r.request.Metadata)
}

// awaitTool waits for a tool whose server is still starting.
func (x *Executor) awaitTool(r *run) error {
	until := time.Now().Add(toolGrace)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		t := r.row()
		if _, there := x.gateway.Tool(t.Tool); there {
			return nil
		}
		err := x.gateway.Check(gateway.Call{Tool: t.Tool})
		switch code := signalbox.CodeOf(err); {
		case code == signalbox.CodeNotFound:
			return signalbox.Errorf(code, "tool %s is no longer there: %v", t.Tool, err)
		case code != signalbox.CodeToolDown || time.Now().After(until):
			return err
		}
		if !execution.Sleep(r.ctx, pause) {
			return r.ctx.Err()
		}
	}
}

// accept makes the task working, durably, before its tool runs.
func (r *run) accept() error {
	for pause := storeRetry; ; pause = min(2*pause, storeGrace) {
		switch {
		case r.x.stopping(): // its own context may not have ended yet
			return errStopping
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		}
		t, err := r.tryAccept(pause > storeRetry)
		switch {
		case err == nil:
			return r.accepted(t)
		case execution.Decided(err):
			r.lost = true
			return errLost
		}
		r.x.log.Error("start of a tool task not stored, trying again", "queue_id", r.ID, "error", err)
		if !execution.Sleep(r.ctx, pause) {
			return context.Cause(r.ctx)
		}
	}
}

// tryAccept accepts the task. An earlier attempt may have been stored despite an error:
// then the task is working and ours already.
func (r *run) tryAccept(again bool) (signalbox.Task, error) {
	t, err := r.x.engine.Accept(context.WithoutCancel(r.ctx), r.row(), "", "")
	if err == nil || !again {
		return t, err
	}
	if now := r.x.stateOf(r.ID); now.Fence == r.Fence && (now.State == signalbox.Working || now.State == signalbox.Cancelling) {
		return now, nil
	}
	return t, err
}

// accepted records that the task is working.
func (r *run) accepted(t signalbox.Task) error {
	r.setRow(t)
	r.line.Store(nil)
	r.begun = time.Now()
	_ = execution.ContinueLog(r.ctx, r.x.engine.Read(), &t, r.Tail) // on an error the log starts with this attempt
	if t.CancelRequested {
		r.stop(errCancelled)
		return errCancelled
	}
	return nil
}

// waitsFor describes what a run waits for before it starts.
func (r *run) waitsFor() (text string, position int) {
	w, has := r.line.Load(), r.slotState()
	if w == nil && has == slotHeld {
		return "", 0
	}
	queue := "its tool queue"
	if tool, ok := r.x.gateway.Tool(r.row().Tool); ok && tool.Queue != "" {
		queue = fmt.Sprintf("tool queue %q", tool.Queue)
	}
	if w != nil {
		position = w.Position() // 0: it has its slot, or left the line
	}
	switch {
	case position > 0:
		return fmt.Sprintf("queued, position %d in %s", position, queue), position
	case has == slotWanted:
		return fmt.Sprintf("its turn in %s has come: waits for a slot of the queue %s, which has %d", queue, r.row().Queue, r.pool.limit), 0
	case w == nil:
		return "queued behind others for " + queue, 0
	}
	return "", 0
}

// withSecrets merges the secret properties back into the arguments.
func withSecrets(args json.RawMessage, secrets map[string]string) (json.RawMessage, error) {
	if len(secrets) == 0 {
		return args, nil
	}
	all := map[string]json.RawMessage{}
	if len(args) > 0 {
		if err := json.Unmarshal(args, &all); err != nil {
			return nil, signalbox.Errorf(signalbox.CodeStoreCorrupt, "the arguments of the task cannot be read: call the tool again")
		}
	}
	for name, value := range secrets {
		all[name] = json.RawMessage(value)
	}
	return json.Marshal(all)
}
