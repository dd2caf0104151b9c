package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// outcome is how a run ended.
type outcome struct {
	state   string
	errType string
	message string
	out     runner.Outcome
	limit   *api.AgentLimit // the provider's limit that ended the run
	alive   func() []int    // processes that could not be killed
	changes *api.Changes    // in the repository of the run
	checks  *api.AgentChecks
	landed  *api.AgentLanded // result of a landing
}

func completedOutcome(o runner.Outcome) outcome {
	if o.ErrType != "" {
		return outcome{state: stateFailed, errType: o.ErrType, message: o.ErrMessage, out: o, limit: o.Limit}
	}
	return outcome{state: stateCompleted, out: o}
}

func notStarted(err error) outcome {
	if gone, ok := errors.AsType[*goneError](err); ok {
		return outcome{state: stateFailed, errType: "cannot_resume", message: gone.Error()}
	}
	return outcome{state: stateFailed, errType: "start_error", message: "the task could not be started: " + err.Error()}
}

func (s *stop) verdict(o runner.Outcome) outcome {
	return outcome{state: s.state, errType: s.errType, message: s.message, out: o, limit: s.limit}
}

// execute runs an accepted run to its end.
func (r *run) execute() {
	r.trace.begin(r)
	v := r.executeLocked()
	r.trace.end(r, &v)
	r.finish(v)
}

func (r *run) executeLocked() outcome {
	if s := r.stopReason(); s != nil {
		return s.verdict(runner.Outcome{})
	}
	if r.task.Land != nil {
		return r.land()
	}
	if r.d.runner.Inside() {
		return r.executeInProcess()
	}
	p := r.dirs()
	locks, err := r.prepare(p)
	if err != nil {
		if s := r.stopReason(); s != nil {
			return s.verdict(runner.Outcome{})
		}
		return notStarted(err)
	}
	r.mu.Lock()
	r.locks = locks
	r.mu.Unlock()
	if p.worktree != "" {
		if err := r.enterWorktree(&p); err != nil {
			if s := r.stopReason(); s != nil {
				return s.verdict(runner.Outcome{})
			}
			return notStarted(err)
		}
	}
	defer r.d.sizes.forget(r.d.disk.worktreeDir(p.worktree))
	w := r.watch(p)
	v := r.runChecked(p, r.checking(p, w))
	if v.alive == nil {
		v.changes = r.changes(w, p)
	}
	return v
}

// executeInProcess executes a run in the daemon's own folder. It waits only for another run of
// its conversation.
func (r *run) executeInProcess() outcome {
	p := runDirs{home: r.d.cfg.DataDir, dir: r.d.cfg.WorkDir}
	if rec := r.record(); !rec.Isolated && r.d.tellsSession() {
		ctx, cancel := r.waitDeadline()
		defer cancel()
		err := r.d.conversations.acquire(ctx, rec.SessionID, func() {
			fmt.Fprintf(r.log, "[signalbox] waiting for another turn of %s\n", rec.SessionID)
		})
		if s := r.stopReason(); s != nil && err != nil {
			return s.verdict(runner.Outcome{})
		} else if err != nil {
			return notStarted(err)
		}
		defer r.d.conversations.release(rec.SessionID)
	}
	return r.runFunc(p)
}

var errLockWait = errors.New("waited too long")

// waitDeadline bounds waits for resources of other runs: they end when the run is stopped or
// after LockWait. The task's timeout counts from the start of the program.
func (r *run) waitDeadline() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), r.d.cfg.LockWait, errLockWait)
	go func() {
		select {
		case <-r.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// lock locks the run's folders.
func (r *run) lock(dirs []string) ([]*dirLock, error) {
	ctx, cancel := r.waitDeadline()
	defer cancel()
	return lockDirs(ctx, dirs, func(dir string) {
		fmt.Fprintf(r.log, "[signalbox] waiting for %s, which another run is using\n", dir)
	})
}

func (r *run) plan(p runDirs) (runner.Plan, error) {
	rec, spends := r.record(), r.d.spendsOf(r.task.Env)
	r.mu.Lock()
	r.spends = spends
	r.mu.Unlock()
	cli, known := r.conversation(p.home)
	prompt, err := r.prompt(known)
	if err != nil {
		return runner.Plan{}, err
	}
	plan, err := r.d.runner.Plan(runner.Task{
		Prompt: prompt, Model: r.job.model, SessionID: rec.SessionID,
		CLISession: cli, Resume: known, Thinking: r.task.Thinking, Home: p.home,
		AllowedTools: r.task.AllowedTools, SystemPrompt: r.task.SystemPrompt,
		Env: r.d.buildEnv(p.home, r.identity(), r.task.Env), Brought: r.task.Env, Dir: p.dir, Gateway: r.gateway(), Budget: r.budgetLeft(), Hear: r.hear,
	})
	for _, note := range plan.Notes {
		r.logNote("%s", note)
	}
	return plan, err
}

// runFunc executes within this process.
func (r *run) runFunc(p runDirs) outcome {
	plan, err := r.plan(p)
	if err != nil {
		return notStarted(err)
	}
	r.rememberNamed(p)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.logExecution("start", time.Now(), os.Getpid())
	defer func() { r.logExecution("end", time.Now(), os.Getpid()) }()
	ended := make(chan runner.Outcome, 1)
	log := r.newRedactor(r.log)
	go func() {
		o := plan.Func(ctx, log)
		log.end()
		ended <- o
	}()
	select {
	case o := <-ended:
		return completedOutcome(o)
	case <-time.After(r.job.timeout):
		r.requestStop(r.overLimit())
	case <-r.stopping:
	}
	cancel()
	return r.stopReason().verdict(<-ended)
}

func (r *run) overLimit() stop {
	message := fmt.Sprintf("the task was stopped at its run timeout of %s (%s)", r.job.timeout, r.job.limit)
	if heard := r.lastTroubleText(); heard != "" {
		message += "; the last that was heard: " + heard
	}
	return stop{state: stateFailed, errType: "timeout", message: message}
}

// failHopeless ends a run whose CLI keeps retrying what cannot succeed soon or at all, and a
// run whose budget is used up.
func (r *run) failHopeless(h runner.ProviderReport) stop {
	s := stop{state: stateFailed, errType: h.ErrType, limit: h.Limit}
	if h.ErrType == runner.OverBudget {
		s.message = r.lastTroubleText()
	} else if h.ErrType == "login_refused" {
		s.message = fmt.Sprintf("%s was stopped, because trying again cannot help: %s; see its key or login", r.d.cfg.Kind, r.lastTroubleText())
	} else {
		s.message = fmt.Sprintf("%s was stopped, because it waits at a limit of its provider: %s", r.d.cfg.Kind, h.Limit.Text)
	}
	return s
}

// runProcess executes a program.
func (r *run) runProcess(p runDirs) outcome {
	plan, err := r.plan(p)
	if err != nil {
		return notStarted(err)
	}
	out, err := newStdio(r, plan, p)
	if err != nil {
		return notStarted(err)
	}
	defer out.close()
	// Log before the program starts: a kill in between must not hide a start.
	r.logExecution("start", time.Now(), 0)
	child, err := proc.Start(proc.Spec{
		Argv: r.fromWorkDir(plan.Argv, p.dir), Dir: p.dir, Env: r.d.buildEnv(p.home, append(plan.Env, r.identity()...), r.task.Env), Stdin: plan.Stdin,
		Stdout: out.stdout(), Stderr: out.stderr(), Mark: r.record().TaskID, Grace: r.d.cfg.KillGrace,
	})
	if err != nil {
		r.logExecution("end", time.Now(), 0)
		return notStarted(err)
	}
	r.savePID(child.Ident())
	r.rememberNamed(p)
	finished := r.await(child, out)
	exit, err := child.End()
	out.flush()
	if err != nil {
		return outcome{state: stateFailed, errType: "unkillable", message: "the run was stopped, but " + err.Error() + "; the slot stays occupied until they end", alive: child.Alive}
	}
	r.logExecution("end", time.Now(), child.Ident().PID)
	o := plan.Stream.Outcome(out.exit(exit))
	r.hear(plan.Stream.Heard()) // some report more at the end
	v := completedOutcome(o)
	if s := r.stopReason(); s != nil && !finished {
		v = s.verdict(o)
	}
	r.askExactly(&v, p)
	return v
}

// await returns when the program has ended or must end. It reports whether the program ended by
// itself, which has precedence over a later stop.
func (r *run) await(child *proc.Process, out *stdio) bool {
	limit := time.NewTimer(time.Until(r.until))
	defer limit.Stop()
	terminal := out.terminal
	var settled <-chan time.Time
	for {
		select {
		case <-child.Exited():
			return r.stopReason() == nil || terminal == nil
		case <-terminal:
			// The CLI is done; some CLIs wait for their children.
			terminal = nil
			settled = time.After(r.d.cfg.SettleWait)
		case <-settled:
			return true
		case <-limit.C:
			r.requestStop(r.overLimit())
		case <-r.stopping:
			select {
			case <-out.terminal:
				return true
			default:
				return false
			}
		}
	}
}

// savePID stores the program's identity for the start after a crash. Before that, the mark in
// its environment identifies it. The file is not synced: a power cut ends the program too.
func (r *run) savePID(id proc.Ident) {
	if err := r.change(func(rec *record) { rec.Process = &id }); err != nil {
		r.d.cfg.Logger.Error("the process of a run could not be recorded", "task", r.record().TaskID, "error", err)
	}
}
