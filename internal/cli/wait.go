package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// errWaitOver is the cause of a context that ended by --wait-timeout.
var errWaitOver = errors.New("the wait is over")

// waitFlags are the flags of commands that can wait for a task.
type waitFlags struct {
	on    bool
	limit durationFlag
}

func (w *waitFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.on, "wait", false, "wait for the task's end; its output goes to standard output")
	cmd.Flags().Var(&w.limit, "wait-timeout", "how long to wait here; the task goes on (default: without limit)")
}

func (w waitFlags) check() error {
	if w.limit != 0 && !w.on {
		return usage("--wait-timeout limits a wait: it needs --wait")
	}
	return nil
}

// bound returns the context of the wait, with --wait-timeout as its limit.
func (w waitFlags) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Duration(w.limit), errWaitOver)
}

// grace limits the wait for the last events and the rest of the log after a task's
// end.
const grace = 2 * time.Second

// waiter waits for a task and shows its progress.
type waiter struct {
	*app
	c  *client.Client
	id string

	drawing    bool      // progress is one line that is redrawn
	lastState  string    // state and agent that were printed last
	gate       string    // gate of a waiting task that was printed last; "": none
	knownUntil time.Time // newest time in the task when it was read
	sawEnd     bool      // the event of its end has arrived
	log        *liveLog  // nil until it runs

	opened chan struct{}
	events chan api.Event
	ended  chan outcome
}

type outcome struct {
	task api.Task
	err  error
}

// wait waits for the task's end, at most until the context wait ends. ctx ends only on
// an interrupt.
func (a *app) wait(ctx, wait context.Context, c *client.Client, job api.SubmitResponse) error {
	end, seen, err := a.await(ctx, wait, c, job.QueueID, job.State, func(ctx context.Context) (api.Task, error) { return c.Wait(ctx, job.QueueID) })
	if err != nil {
		return err
	}
	return a.finish(end, seen)
}

// await shows the progress of a task until the function until returns. seen is the
// last part of the log that was printed.
func (a *app) await(ctx, wait context.Context, c *client.Client, id, state string, until func(context.Context) (api.Task, error)) (task api.Task, seen string, err error) {
	w := &waiter{
		app: a, c: c, id: id, drawing: a.drawing(),
		opened: make(chan struct{}, 1), events: make(chan api.Event, 64), ended: make(chan outcome, 1),
	}
	live, stop := context.WithCancel(wait)
	defer stop()
	w.show(live, state, "", "")
	go w.listen(live)
	go func() {
		task, err := until(live)
		w.ended <- outcome{task, err}
	}()
	end := w.follow(live)
	if end.err == nil {
		w.drain(live)
	}
	a.line.clear()
	if end.err != nil {
		return task, "", a.stillRunning(ctx, wait, w, end.err)
	}
	seen = w.log.finish(live) // before the last line, which reports the end
	w.show(live, end.task.State, end.task.Agent, end.task.Message)
	return end.task, seen, nil
}

// listen receives the task's events. If it fails, the wait goes on with less
// progress.
func (w *waiter) listen(ctx context.Context) {
	opts := client.EventsOptions{After: client.Now, QueueID: w.id, OnOpen: func() {
		select {
		case w.opened <- struct{}{}:
		default:
		}
	}}
	for event, err := range w.c.Events(ctx, opts) {
		if err != nil {
			return
		}
		select {
		case w.events <- event:
		case <-ctx.Done():
			return
		}
	}
}

// follow shows progress until the wait has its result.
func (w *waiter) follow(ctx context.Context) outcome {
	for {
		var tick <-chan time.Time
		if w.drawing {
			tick = w.io.After(2 * time.Second)
		}
		select {
		case <-w.opened:
			w.refresh(ctx)
		case event := <-w.events:
			w.event(ctx, event)
		case <-tick:
			w.refresh(ctx)
		case end := <-w.ended:
			return end
		}
	}
}

// drain shows the events that arrive after the wait has its result.
func (w *waiter) drain(ctx context.Context) {
	limit := time.After(grace / 4)
	for !w.sawEnd && !w.drawing { // a drawn line shows only the current state
		select {
		case event := <-w.events:
			w.event(ctx, event)
		case <-limit:
			return
		}
	}
}

// refresh reads the task and shows it. Errors are ignored: the wait reports them.
func (w *waiter) refresh(ctx context.Context) {
	task, err := w.c.Task(ctx, w.id)
	if err != nil || client.Ended(task.State) {
		return
	}
	for _, at := range []*time.Time{task.DispatchedAt, task.StartedAt} {
		if at != nil && at.After(w.knownUntil) {
			w.knownUntil = *at
		}
	}
	message := task.LastError
	if gate := waitingText(task); gate != "" {
		if message = gate; gate != w.gate {
			w.lastState = "" // it waits for something else now
		}
		w.gate = gate
	}
	w.show(ctx, task.State, task.Agent, message)
	if w.drawing {
		w.drawTask(ctx, task)
	}
}

// event shows a change of state, unless it is older than the task that was read last.
func (w *waiter) event(ctx context.Context, event api.Event) {
	switch {
	case event.Kind == client.KindReset:
		w.refresh(ctx)
	case client.Ended(event.State):
		w.sawEnd = true // the last line is printed from the task, which has more details
	case event.State == "" || !event.At.After(w.knownUntil):
	case w.drawing, event.State == string(signalbox.Parked): // the task says what it waits for
		w.refresh(ctx)
	default:
		w.show(ctx, event.State, event.Agent, event.Message)
	}
}

// show prints a line for each new state, and starts the live log when the task
// runs.
func (w *waiter) show(ctx context.Context, state, agent, message string) {
	if signalbox.State(state).Waiting() {
		agent = ""
	}
	if now := state + " " + agent; now != w.lastState && state != "" {
		if !w.drawing && !w.json { // with --json, standard error has only the error
			w.note("%s", stateLine(w.id, state, agent, message))
		}
		w.lastState = now
	}
	if state == "working" && w.log == nil && w.io.OutTTY && !w.json {
		if w.drawing { // from here on the log is printed
			w.drawing = false
			w.note("%s", stateLine(w.id, state, agent, message))
		}
		w.log = w.startLiveLog(ctx)
	}
}

func stateLine(id, state, agent, message string) string {
	line := id + " " + state
	if signalbox.IsExecutor(agent) {
		agent = "" // the director itself
	}
	switch {
	case state == "dispatching" && agent != "":
		line += " to " + agent
	case state == "working" && agent != "":
		line += " on " + agent
	case signalbox.State(state).Waiting() && message != "", client.Ended(state) && message != "" && message != state:
		line += ": " + message
	}
	return line
}

// stillRunning is the error of a wait that ended before the task.
func (a *app) stillRunning(ctx, wait context.Context, w *waiter, err error) error {
	back := a.resumeHint(ctx, w.c, w.id)
	state, _, _ := strings.Cut(w.lastState, " ")
	switch {
	case ctx.Err() != nil:
		return a.detached(w.id, state, back)
	case errors.Is(context.Cause(wait), errWaitOver):
		return waitOver(w.id, state, back)
	}
	return interruptedBy(err, w.id, back)
}

// detached is the error of a wait that was interrupted, with a hint on how to come
// back.
func (a *app) detached(id, state, back string) *fault {
	f := failure(exitDetached, "detached", "detached: %s goes on (%s)", id, state)
	if f.silent = !a.json; f.silent {
		a.note("%s.", capitalize(f.message))
		a.note("Hint: %s", back)
	}
	return f.withHint("%s", back)
}

// waitOver is the error of a wait that reached --wait-timeout.
func waitOver(id, state, back string) *fault {
	return failure(exitWaitOver, "wait_over", "the wait is over; %s goes on (%s)", id, state).again("%s", back)
}

// interruptedBy is the error of a wait that failed while the task may still run.
func interruptedBy(err error, id, back string) *fault {
	f := *toFault(err)
	f.message = fmt.Sprintf("%s; as far as is known, %s goes on", f.message, id)
	return f.withHint("%s", back)
}

// finish prints the result of a task and returns the fault for its state. shown is
// the last part of the log that was printed.
func (a *app) finish(task api.Task, shown string) error {
	err := a.print(task, func() { a.result(task, shown) })
	f := endFault(task)
	if err != nil || f == nil {
		return err
	}
	f.silent = a.json // the JSON has it
	return f
}

// result prints a task's output, unless the log has just ended with it.
func (a *app) result(task api.Task, shown string) {
	if task.Result == nil || task.Result.Output == "" {
		return
	}
	out := task.Result.Output
	if !strings.HasSuffix(strings.TrimSpace(shown), strings.TrimSpace(out)) {
		a.write(a.forOut(strings.TrimSuffix(out, "\n") + "\n"))
	}
}

// endFault is the fault for a task's final state, nil if it completed.
func endFault(task api.Task) *fault {
	f := &fault{code: "task_" + task.State, message: stateLine(task.QueueID, task.State, "", task.Message)}
	switch {
	case task.State == "completed":
		return nil
	case task.State == "cancelled":
		f.exit = exitCancelled
	case task.State == "timeout" || task.Reason == "lost":
		f.exit = exitLost
	default:
		f.exit = exitFailed
	}
	return f.withHint("signalbox logs %s shows its log, signalbox retry %s submits it again", task.QueueID, task.QueueID)
}
