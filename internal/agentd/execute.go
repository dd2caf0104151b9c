package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// verdict is how a run ended.
type verdict struct {
	state   string
	errType string
	message string
	out     runner.Outcome
	lives   func() []int // set when it could not be killed
}

func natural(o runner.Outcome) verdict {
	if o.ErrType != "" {
		return verdict{stateFailed, o.ErrType, o.ErrMessage, o, nil}
	}
	return verdict{state: stateCompleted, out: o}
}

func notStarted(err error) verdict {
	return verdict{state: stateFailed, errType: "start_error", message: "the task could not be started: " + err.Error()}
}

func (s *stop) verdict(o runner.Outcome) verdict {
	return verdict{s.state, s.errType, s.message, o, nil}
}

// execute carries an accepted run to its end.
func (r *run) execute() {
	r.trace.begin(r)
	v := r.perform()
	r.trace.end(r, &v)
	r.finish(v)
}

func (r *run) perform() verdict {
	if s := r.stopReason(); s != nil {
		return s.verdict(runner.Outcome{})
	}
	if r.d.runner.Inside() {
		return r.performInside()
	}
	p := r.place()
	dirs, err := r.prepare(p)
	if err != nil {
		return notStarted(err)
	}
	locks, err := r.lock(dirs)
	if err != nil {
		if s := r.stopReason(); s != nil {
			return s.verdict(runner.Outcome{})
		}
		return notStarted(err)
	}
	r.mu.Lock()
	r.locks = locks
	r.mu.Unlock()
	return r.runProcess(p)
}

// performInside executes a run that uses no folder but the agent's own: all it
// may have to wait for is another turn of its conversation.
func (r *run) performInside() verdict {
	p := place{home: r.d.cfg.DataDir, dir: r.d.cfg.WorkDir}
	if rec := r.record(); !rec.Isolated && r.d.tellsSession() {
		ctx, cancel := r.patience()
		defer cancel()
		err := r.d.talks.take(ctx, rec.SessionID, func() {
			fmt.Fprintf(r.log, "[signalbox] waiting for another turn of %s\n", rec.SessionID)
		})
		if s := r.stopReason(); s != nil && err != nil {
			return s.verdict(runner.Outcome{})
		} else if err != nil {
			return notStarted(err)
		}
		defer r.d.talks.give(rec.SessionID)
	}
	return r.runFunc(p)
}

var errLockWait = errors.New("waited too long")

// patience is how long a run waits for what another one uses: until it is
// stopped or LockWait is over. The task's own limit counts from the start of
// the program.
func (r *run) patience() (context.Context, context.CancelFunc) {
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

// lock waits for the run's folders.
func (r *run) lock(dirs []string) ([]*dirLock, error) {
	ctx, cancel := r.patience()
	defer cancel()
	return lockDirs(ctx, dirs, func(dir string) {
		fmt.Fprintf(r.log, "[signalbox] waiting for %s, which another run is using\n", dir)
	})
}

func (r *run) plan(p place) (runner.Plan, error) {
	rec := r.record()
	cli, resume := r.conversation(p.home)
	plan, err := r.d.runner.Plan(runner.Task{
		Prompt: r.task.Prompt, Model: r.job.model, SessionID: rec.SessionID,
		CLISession: cli, Resume: resume, Thinking: r.task.Thinking, Home: p.home,
		AllowedTools: r.task.AllowedTools, SystemPrompt: r.task.SystemPrompt,
		Env: r.d.buildEnv(p.home, r.identity(), r.task.Env), Brought: r.task.Env, Dir: p.dir, Gateway: r.gateway(),
	})
	for _, note := range plan.Notes {
		r.remark("%s", note)
	}
	return plan, err
}

// runFunc executes within this process.
func (r *run) runFunc(p place) verdict {
	plan, err := r.plan(p)
	if err != nil {
		return notStarted(err)
	}
	r.noteNamed(p)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.logExecution("start", time.Now(), os.Getpid())
	defer func() { r.logExecution("end", time.Now(), os.Getpid()) }()
	ended := make(chan runner.Outcome, 1)
	log := r.hiding(r.log)
	go func() {
		o := plan.Func(ctx, log)
		log.end()
		ended <- o
	}()
	select {
	case o := <-ended:
		return natural(o)
	case <-time.After(r.job.timeout):
		r.requestStop(r.overLimit())
	case <-r.stopping:
	}
	cancel()
	return r.stopReason().verdict(<-ended)
}

func (r *run) overLimit() stop {
	message := fmt.Sprintf("the task was stopped at its run timeout of %s (%s)", r.job.timeout, r.job.limit)
	if heard := r.trouble(); heard != "" {
		message += "; the last that was heard: " + heard
	}
	return stop{stateFailed, "timeout", message}
}

// cannotGoOn ends a run whose CLI would only try again what cannot succeed.
func (r *run) cannotGoOn() stop {
	return stop{stateFailed, "login_refused", fmt.Sprintf("%s was stopped, because trying again cannot help: %s; see its key or login", r.d.cfg.Kind, r.trouble())}
}

// runProcess executes a program.
func (r *run) runProcess(p place) verdict {
	plan, err := r.plan(p)
	if err != nil {
		return notStarted(err)
	}
	out, err := newStdio(r, plan, p)
	if err != nil {
		return notStarted(err)
	}
	defer out.close()
	// Before the program starts: a kill in between must not hide a start.
	r.logExecution("start", time.Now(), 0)
	child, err := proc.Start(proc.Spec{
		Argv: r.fromWorkDir(plan.Argv, p.dir), Dir: p.dir, Env: r.d.buildEnv(p.home, append(plan.Env, r.identity()...), r.task.Env), Stdin: plan.Stdin,
		Stdout: out.stdout(), Stderr: out.stderr(), Mark: r.record().TaskID, Grace: r.d.cfg.KillGrace,
	})
	if err != nil {
		r.logExecution("end", time.Now(), 0)
		return notStarted(err)
	}
	r.notePID(child.Ident())
	r.noteNamed(p)
	finished := r.await(child, out)
	exit, err := child.End()
	out.flush()
	if err != nil {
		v := verdict{stateFailed, "unkillable", "the run was stopped, but " + err.Error() + "; the slot stays occupied until they end", runner.Outcome{}, child.Alive}
		return v
	}
	r.logExecution("end", time.Now(), child.Ident().PID)
	o := plan.Stream.Outcome(out.exit(exit))
	if s := r.stopReason(); s != nil && !finished {
		return s.verdict(o)
	}
	return natural(o)
}

// await returns when the program has ended or must end. It reports whether it
// came to its own end, which then stands over a later request to stop.
func (r *run) await(child *proc.Process, out *stdio) bool {
	limit := time.NewTimer(r.job.timeout)
	defer limit.Stop()
	terminal, hopeless := out.terminal, out.hopeless
	var settled <-chan time.Time
	for {
		select {
		case <-child.Exited():
			return r.stopReason() == nil || terminal == nil
		case <-terminal:
			// It has said all; some CLIs linger over their children.
			terminal = nil
			settled = time.After(r.d.cfg.SettleWait)
		case <-settled:
			return true
		case <-limit.C:
			r.requestStop(r.overLimit())
		case <-hopeless:
			hopeless = nil
			r.requestStop(r.cannotGoOn())
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

// notePID puts the program's identity on disk, for a daemon that comes after
// a crash of this one. Until then the mark in its environment finds it. It is
// not synced: a power cut ends the program too.
func (r *run) notePID(id proc.Ident) {
	rec := r.record()
	rec.Process = &id
	if err := r.store(rec); err != nil {
		r.d.cfg.Logger.Error("the process of a run could not be recorded", "task", rec.TaskID, "error", err)
	}
}
