package local

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// waiter is a call that may become a task while it waits in its tool queue.
//
//	attached ─slot─▶ running ─▶ its answer is the caller's
//	   │ waits for longer than the grace
//	   ▼
//	becoming ─stored─▶ task: the caller is told, and the call continues without it
//	   └─not stored─▶ attached
type waiter struct {
	x    *Executor
	id   string
	stop context.CancelCauseFunc // of the call
	line atomic.Pointer[toolqueue.Waiting]

	overdue chan struct{} // the grace is over
	answer  chan answer   // how the call ended
	claimed chan *run     // its task, once it has been claimed

	mu      sync.Mutex
	state   waiterState
	settled chan struct{} // closed when it is no longer becoming; nil while it is attached

	callerMu sync.Mutex // held while progress is passed to the caller
	detached bool       // guarded by callerMu: the caller gets no more progress

	// Used by the goroutine that makes the call only.
	run  *run
	lost bool // its task could not be claimed
}

type waiterState int

const (
	attached waiterState = iota
	becoming
	running
	isTask
)

type answer struct {
	res gateway.Result
	err error
}

// CallOrPromote implements gateway.Tasks.
func (x *Executor) CallOrPromote(ctx context.Context, c gateway.TaskCall, grace time.Duration) (gateway.Result, *gateway.ToolTask, error) {
	ctx = gateway.WithMetaTrace(ctx, c.Meta)
	tool, there := x.gateway.Tool(c.Tool)
	if there && tool.Async {
		t, err := x.Submit(ctx, c)
		if err != nil {
			return gateway.Result{}, nil, err
		}
		return gateway.Result{}, &t, nil
	}
	if !there || tool.Queue == "" || tool.Kind == gateway.KindInternal {
		r, err := x.gateway.Call(ctx, c.Call)
		return r, nil, err
	}
	w, callCtx, err := x.newWaiter(ctx)
	if err != nil {
		return gateway.Result{}, nil, err
	}
	if !x.launch(w, callCtx, c.Call, grace) {
		r, err := x.gateway.Call(ctx, c.Call)
		return r, nil, err
	}
	return w.wait(ctx, &tool, &c)
}

func (x *Executor) newWaiter(ctx context.Context) (*waiter, context.Context, error) {
	id, err := signalbox.NewID(x.engine.Now(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	w := &waiter{x: x, id: id, overdue: make(chan struct{}, 1), answer: make(chan answer, 1), claimed: make(chan *run, 1)}
	callCtx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	w.stop = stop
	return w, callCtx, nil
}

// launch makes the call on its own goroutine, unless the executor is stopping.
func (x *Executor) launch(w *waiter, ctx context.Context, call gateway.Call, grace time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.started || x.draining {
		return false
	}
	call.QueueTimeoutOnly = true
	call.OnStart = w.begun
	if tell := call.Progress; tell != nil {
		call.Progress = func(p gateway.Progress) { w.tell(tell, p) }
	}
	var timer *time.Timer // of the goroutine that makes the call
	call.OnWait = func(place toolqueue.Waiting) {
		w.line.Store(&place)
		timer = time.AfterFunc(grace, func() {
			select {
			case w.overdue <- struct{}{}:
			default:
			}
		})
	}
	x.group.Go(func() {
		stopped := context.AfterFunc(x.runCtx, func() { w.stop(errStopping) })
		defer stopped()
		defer w.stop(nil)
		res, err := x.gateway.Call(ctx, call)
		if timer != nil {
			timer.Stop()
		}
		w.ended(res, err)
	})
	return true
}

// wait returns to the caller when the call has ended or has become a task.
func (w *waiter) wait(ctx context.Context, tool *gateway.Tool, c *gateway.TaskCall) (gateway.Result, *gateway.ToolTask, error) {
	for {
		select {
		case a := <-w.answer:
			if a.err != nil && ctx.Err() == nil && w.x.stopping() && interrupted(a.err) {
				a.err = signalbox.Errorf(signalbox.CodeUnavailable, "The director is stopping: call the tool %q again when it is back.", tool.Name)
			}
			return a.res, nil, a.err
		case <-ctx.Done():
			w.stop(context.Cause(ctx))
			<-w.answer // a provider returns soon after
			return gateway.Result{}, nil, ctx.Err()
		case <-w.overdue:
		}
		t, err := w.become(ctx, tool, c)
		switch {
		case err != nil:
			w.x.log.Warn("a call that has waited for long could not be made a task and goes on waiting", "tool", c.Tool, "error", err)
		case t != nil:
			w.detach()
			return gateway.Result{}, t, nil
		}
	}
}

// become makes the call a task, unless it already has its slot. A nil task without an error means that the
// call continues as it was.
func (w *waiter) become(ctx context.Context, tool *gateway.Tool, c *gateway.TaskCall) (*gateway.ToolTask, error) {
	w.mu.Lock()
	if w.state != attached {
		w.mu.Unlock()
		return nil, nil
	}
	settled := make(chan struct{})
	w.state, w.settled = becoming, settled
	w.mu.Unlock()
	t, err := w.submit(ctx, tool, c)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer close(settled)
	w.state, w.settled = attached, nil
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // the caller is gone, so cancel the task
		w.state = isTask
		if _, err := w.x.engine.Cancel(context.WithoutCancel(ctx), w.id, "the caller, who had gone"); err != nil {
			w.x.log.Warn("the task of a caller that had gone was not cancelled", "queue_id", w.id, "error", err)
		}
		return t, nil
	}
	w.state = isTask
	return t, nil
}

// submit stores the task of the call and claims it at once: its place is in the tool queue, so it waits
// behind no other task.
func (w *waiter) submit(ctx context.Context, tool *gateway.Tool, c *gateway.TaskCall) (*gateway.ToolTask, error) {
	n, err := newTask(tool, c)
	if err != nil {
		return nil, err
	}
	n.Waiter, n.ID, n.IdempotencyKey = true, w.id, ""
	w.x.mu.Lock()
	w.x.waiters[w.id] = w
	w.x.mu.Unlock()
	got, err := w.x.engine.Submit(context.WithoutCancel(ctx), n)
	if err != nil {
		w.x.forget(w)
		return nil, err
	}
	w.x.claimFor(w)
	v, err := w.x.view(context.WithoutCancel(ctx), &got.Task, nil)
	if err != nil { // the task is stored, so its caller must learn of it
		v = gateway.ToolTask{Task: got.Task}
	}
	return &v, nil
}

// tell passes progress on while the caller is there.
func (w *waiter) tell(f func(gateway.Progress), p gateway.Progress) {
	w.callerMu.Lock()
	defer w.callerMu.Unlock()
	if !w.detached {
		f(p)
	}
}

// detach stops progress to the caller. When it returns, none is under way.
func (w *waiter) detach() {
	w.callerMu.Lock()
	defer w.callerMu.Unlock()
	w.detached = true
}
