package agentd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/checks"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/agentd/workspace"
)

// Checks say how the work of successful runs is checked. Isolated runs have an empty folder,
// and only the checks that their task brings.
type Checks struct {
	List    []api.TaskCheck      // for tasks that bring none
	Retries int                  // how often failed checks start another turn of the conversation with their output, 0 to 10
	From    signalbox.TaskChecks // whose tasks may bring checks; default: admins' tasks
	// Repository returns the checks of the repository whose top folder is top. It is used if
	// List is empty and returns nil, nil if there are none. The error says what to do, such as
	// to trust the checks. nil: repositories have no checks.
	Repository func(top string) ([]api.TaskCheck, error) `json:"-"`
}

func (c *Config) checkChecks() error {
	return signalbox.Checking{Checks: rootChecks(c.Checks.List), Retries: &c.Checks.Retries}.Validate()
}

// checkTask refuses checks that a task may not bring.
func (d *Daemon) checkTask(t *api.AgentTask) *refusal {
	if len(t.Checks) == 0 && t.CheckRetries == nil {
		return nil
	}
	if err := (signalbox.Checking{Checks: rootChecks(t.Checks), Retries: t.CheckRetries}).Validate(); err != nil {
		return invalid("%v", err)
	}
	switch {
	case len(t.Checks) == 0:
		return nil
	case d.runner.Inside():
		return invalid("checks cannot be used with a %s agent: its runs work in no folder", d.cfg.Kind)
	case t.Director != "" && t.EnvBy != string(signalbox.EnvByAdmin) && d.cfg.Checks.From != signalbox.ChecksOfEveryone:
		return invalid("checks are commands for the agent's host, and only admins may give them at this agent: its operator can allow others with agent.task_checks, and configure checks in agent.checks")
	}
	return nil
}

func rootChecks(list []api.TaskCheck) []signalbox.Check {
	out := make([]signalbox.Check, len(list))
	for i, c := range list {
		out[i] = signalbox.Check(c)
	}
	return out
}

// checking is the configuration of the checks of one run.
type checking struct {
	list    []api.TaskCheck
	dir     string
	retries int
	said    *api.AgentChecks // nil: no result yet
}

// checking determines the checks of a run before it starts, so that changes by the run do not
// count.
func (r *run) checking(p runDirs, w *watched) checking {
	own, c := r.d.cfg.Checks, checking{list: r.task.Checks, dir: p.dir}
	c.retries = own.Retries
	if r.task.CheckRetries != nil {
		c.retries = *r.task.CheckRetries
	}
	if len(c.list) > 0 || r.record().Isolated && r.task.Land == nil {
		return c
	}
	if c.list = own.List; len(c.list) > 0 || own.Repository == nil {
		return c
	}
	top, err := r.sourceTop(p)
	if err == nil {
		c.list, err = own.Repository(top)
	}
	if err != nil {
		c.said = &api.AgentChecks{State: api.CheckUnavailable, Message: r.printableText(err.Error())}
		r.logNote("this run is not checked: %v", err)
	}
	if w != nil {
		c.dir = w.repo.Dir
	}
	return c
}

// sourceTop is the top folder of the repository that a run works on, as its user has it, or
// the run's folder if that is not in a repository.
func (r *run) sourceTop(p runDirs) (string, error) {
	dir := p.dir
	if p.worktree != "" {
		w, err := r.d.disk.loadWorktree(p.worktree)
		if err != nil {
			return "", err
		}
		dir = w.Source
	}
	ctx, cancel := r.workspaceContext(changesTimeout)
	defer cancel()
	repo, err := workspace.Open(ctx, dir, r.d.cfg.Environ)
	switch {
	case errors.Is(err, workspace.ErrNone):
		return dir, nil
	case err != nil:
		return "", err
	}
	return repo.Dir, nil
}

// runChecked executes the program and then the checks. While checks fail, their output
// starts another turn of the conversation, as often as allowed.
func (r *run) runChecked(p runDirs, c checking) outcome {
	r.until = time.Now().Add(r.job.timeout)
	rounds := r.roundsBefore()
	for {
		v := r.runProcess(p)
		if v = r.withEarlier(v); v.state != stateCompleted || len(c.list) == 0 {
			v.checks = c.said
			return v
		}
		said, err := r.runChecks(p, c)
		said.Rounds += rounds
		rounds = said.Rounds
		c.said, v.checks = &said, &said
		if alive, ok := errors.AsType[*checks.AliveError](err); ok {
			v.state, v.errType, v.alive = stateFailed, "unkillable", alive.Alive
			v.message = "the checks were stopped, but " + alive.Error() + "; the slot stays occupied until they end"
			return v
		}
		if s := r.stopReason(); s != nil && (err != nil || checks.Fails(said.State) && rounds <= c.retries) {
			v = s.verdict(v.out)
			v.checks = c.said
			return v
		}
		if !checks.Fails(said.State) {
			return v
		}
		v.state, v.errType, v.message = stateFailed, "checks", failure(&said)
		if rounds > c.retries {
			return v
		}
		if why := r.lastHeard().Used.Over(r.job.budget); why != "" {
			v.errType, v.message = runner.OverBudget, why
			return v
		}
		if _, known := r.conversation(p.home); !known {
			v.message += "; the run has no conversation that could go on with that"
			return v
		}
		if err := r.change(func(rec *record) { rec.Checks = c.said }); err != nil {
			r.d.cfg.Logger.Error("the check results of a run could not be stored", "task", r.record().TaskID, "error", err)
		}
		r.nextTurn(failureTurn(&said, c.list), v.out)
	}
}

// roundsBefore is how often the checks ran before a parked run was resumed.
func (r *run) roundsBefore() int {
	r.mu.Lock()
	before := r.replaced
	r.mu.Unlock()
	if r.task.Resume == nil || before == nil {
		return 0
	}
	if c := before.record().Checks; c != nil {
		return c.Rounds
	}
	return 0
}

// runChecks runs the checks once, within the time limit of the run. The error says that
// they were stopped, or is an *checks.AliveError.
func (r *run) runChecks(p runDirs, c checking) (api.AgentChecks, error) {
	ctx, cancel := r.workspaceContext(time.Until(r.until))
	defer cancel()
	log := r.newRedactor(r.log)
	said, err := checks.Run(ctx, checks.Options{
		Dir: c.dir, Env: r.d.buildEnv(p.home, r.around(), r.task.Env), Log: log,
		Mark: r.record().TaskID, Begun: r.savePID, Grace: r.d.cfg.KillGrace,
	}, c.list)
	log.end()
	if errors.Is(err, context.DeadlineExceeded) {
		r.requestStop(r.overLimit())
	}
	for i := range said.Results {
		said.Results[i].Output = r.printableText(said.Results[i].Output)
	}
	return said, err
}

// nextTurn makes the next start of the program continue the conversation.
func (r *run) nextTurn(text string, before runner.Outcome) {
	r.turn, r.before = text, before
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heardBefore = r.heard
}

// withEarlier adds the figures of earlier rounds to the end of a program.
func (r *run) withEarlier(v outcome) outcome {
	if r.turn == "" {
		return v
	}
	v.out.ToolCount += r.before.ToolCount
	v.out.Refused = append(r.before.Refused[:len(r.before.Refused):len(r.before.Refused)], v.out.Refused...)
	if v.limit != nil {
		began := *v.limit
		began.Began, v.limit = true, &began
	}
	return v
}

// failure says which checks failed, and quotes the end of the first failed check's
// output.
func failure(said *api.AgentChecks) string {
	var names []string
	quote := ""
	for _, c := range said.Results {
		if checks.Fails(c.State) {
			names = append(names, c.Name+" ("+verdictOf(&c)+")")
			quote = cmp.Or(quote, runner.LastLines(c.Output, 5))
		}
	}
	text := fmt.Sprintf("the work was checked %s, and does not pass: %s", times(said.Rounds), strings.Join(names, ", "))
	if quote != "" {
		text += ": " + quote
	}
	return text
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// verdictOf describes the state of a failed check.
func verdictOf(c *api.CheckResult) string {
	switch {
	case c.State == api.CheckTimeout:
		return "timeout"
	case c.ExitCode != nil:
		return fmt.Sprintf("exit status %d", *c.ExitCode)
	}
	return "ended by a signal"
}

// turnBytes bounds the quoted output of all checks in the next turn, in
// bytes.
const turnBytes = 24 << 10

// failureTurn tells the model which checks failed, and how.
func failureTurn(said *api.AgentChecks, list []api.TaskCheck) string {
	var b strings.Builder
	b.WriteString("Your work was checked, and does not pass. Find out why and mend the cause. Do not change, weaken or skip the checks: they run again when you are done.\n")
	failed := 0
	for _, c := range said.Results {
		if checks.Fails(c.State) {
			failed++
		}
	}
	for i, c := range said.Results {
		if !checks.Fails(c.State) {
			continue
		}
		most := min(len(c.Output), turnBytes/failed)
		fmt.Fprintf(&b, "\nCheck %s: %s\nIt ended with: %s\n", c.Name, list[i].Run, verdictOf(&c))
		if c.Output == "" {
			b.WriteString("It printed nothing.\n")
			continue
		}
		fmt.Fprintf(&b, "The end of its output:\n%s\n", strings.TrimRight(strings.ToValidUTF8(c.Output[len(c.Output)-most:], ""), "\n"))
	}
	return b.String()
}
