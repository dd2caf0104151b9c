package agentd

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
	"github.com/signalbox-ai/signalbox/internal/proc"
)

// spending is the account that the agent's runs use, with what is known of
// its limits.
type spending struct {
	mu   sync.Mutex
	read time.Time // when login and name were read
	seen api.AgentAccount
	news bool // nothing is known about seen yet, and the CLI has not been asked
}

// loginAge bounds how long a new login of the CLI goes unnoticed.
const loginAge = 5 * time.Second

// login returns the account that a run uses, given the environment that its task sets.
func (d *Daemon) login(task map[string]string) runner.Account {
	return d.runner.Account(d.cfg.Home, d.buildEnv(d.cfg.Home, nil, task), task)
}

// follow updates the account if the last look is older than loginAge; the
// caller holds mu.
func (s *spending) follow(d *Daemon) {
	if !s.read.IsZero() && time.Since(s.read) < loginAge {
		return
	}
	who := d.login(nil)
	s.read = time.Now()
	if name := cmp.Or(d.cfg.Account, who.Name); name != s.seen.Name {
		s.seen, s.news = api.AgentAccount{Name: name}, true // what was known is about another account
	}
	s.seen.Login = who.Login
}

// told returns the account as reported to a director; nil if there is none. It leaves out
// windows that have been reset since, because nothing is known about them any more.
func (s *spending) told(d *Daemon) *api.AgentAccount {
	s.mu.Lock()
	s.follow(d)
	a, news, now := s.seen, s.news, time.Now()
	s.news = false
	s.mu.Unlock()
	if news {
		d.askOnce(a.Name)
	}
	if a.Name == "" {
		return nil
	}
	a.Windows = slices.DeleteFunc(slices.Clone(a.Windows), func(w api.AccountWindow) bool { return w.ResetsAt != nil && w.ResetsAt.Before(now) })
	return &a
}

// hear records what was learnt about an account.
func (s *spending) hear(d *Daemon, a *api.AgentAccount) {
	if a == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(d)
	if a.Name != s.seen.Name {
		return
	}
	s.seen.Windows = runner.MergeWindows(s.seen.Windows, a.Windows)
	if at := a.AnsweredAt; at != nil && (s.seen.AnsweredAt == nil || at.After(*s.seen.AnsweredAt)) {
		s.seen.AnsweredAt = at
	}
}

// spendsOf returns the account that a run uses, without its limits. It is empty for a run
// whose task sets a login of its own.
func (d *Daemon) spendsOf(task map[string]string) api.AgentAccount {
	var a api.AgentAccount
	if all := d.account.told(d); all != nil && (len(task) == 0 || d.login(task) == d.login(nil)) {
		a.Name, a.Login = all.Name, all.Login
	}
	return a
}

// limitsPatience is how long to wait for a CLI's answer about the limits of
// its account.
const limitsPatience = 10 * time.Second

// askOnce asks the CLI for the limits of an account about which nothing is known
// yet.
func (d *Daemon) askOnce(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	state := d.runner.StateDir(d.cfg.Home)
	if d.closing || name == "" || state == "" {
		return
	}
	d.wg.Go(func() {
		ctx, cancel := context.WithTimeout(d.open, limitsPatience)
		defer cancel()
		locks, err := lockDirs(ctx, []string{state}, func(string) {})
		if err != nil {
			return // a run is active and will learn more
		}
		defer releaseAll(locks)
		windows := d.askLimits(ctx, d.cfg.Home, nil)
		if len(windows) == 0 {
			return
		}
		d.account.hear(d, &api.AgentAccount{Name: name, Windows: windows})
		d.mu.Lock()
		defer d.mu.Unlock()
		d.notify()
	})
}

// askExactly asks the CLI for the end of the limit that ended a run, if the run did not learn
// it exactly.
func (r *run) askExactly(o *outcome, p runDirs) {
	if !runner.IsVague(o.errType, o.limit) {
		return
	}
	ctx, cancel := context.WithTimeout(r.d.open, limitsPatience)
	defer cancel()
	windows := r.d.askLimits(ctx, p.home, r.task.Env)
	exact, h := runner.ExactLimit(*o.limit, windows), r.lastHeard()
	o.limit, h.Windows = &exact, runner.MergeWindows(h.Windows, windows)
	r.hear(h)
}

// askLimits asks the CLI how much of its account's limits is used. The caller holds the lock of
// the home's state folder. The answer is optional: without it the limits stay unknown.
func (d *Daemon) askLimits(ctx context.Context, home string, task map[string]string) []api.AccountWindow {
	q := d.runner.LimitsQuery(home, d.buildEnv(home, nil, task))
	if q == nil {
		return nil
	}
	windows, err := d.ask(ctx, q, home, d.buildEnv(home, q.Env, task))
	if err != nil {
		d.cfg.Logger.Info("the account's limits are unknown until a run reports them", "asked", strings.Join(q.Argv, " "), "error", err)
	}
	return windows
}

// ask runs the program of a query, and ends it with proof.
func (d *Daemon) ask(ctx context.Context, q *runner.LimitsQuery, home string, env []string) ([]api.AccountWindow, error) {
	input, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer say.Close()
	if _, err := say.WriteString(q.Input); err != nil { // fits into the empty pipe
		input.Close()
		return nil, err
	}
	answered := make(chan struct{})
	once := sync.OnceFunc(func() { close(answered) })
	lines := lineSplitter{line: func(line []byte) {
		if q.Line(line) {
			once()
		}
	}}
	child, err := proc.Start(proc.Spec{
		Argv: q.Argv, Dir: home, Env: env, Input: input, Stdout: &lines, Mark: "limits-" + rand.Text(), Grace: d.cfg.KillGrace, Bound: true,
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-answered:
		say.Close() // makes it end by itself
		select {
		case <-child.Exited():
		case <-ctx.Done():
		}
	case <-child.Exited():
	case <-ctx.Done():
	}
	exit, err := child.End()
	if err != nil {
		return nil, err
	}
	select {
	case <-answered:
		return q.Windows()
	default:
		return nil, fmt.Errorf("it has not answered: %s", exit)
	}
}

// hear records what a run has learnt from its provider, for the run and for
// the agent.
func (r *run) hear(h runner.ProviderReport) {
	r.mu.Lock()
	was := r.heard.Used
	h = h.After(r.heardBefore)
	r.heard = h
	r.mu.Unlock()
	if h.Used != was {
		r.uses(h.Used)
	}
	r.d.account.hear(r.d, r.account(false))
}

// uses records what a run has used so far, so that its cost is known even if the
// agent crashes.
func (r *run) uses(u runner.Used) {
	err := r.change(func(rec *record) { rec.TokenUsage, rec.CostUSD = &u.Tokens, u.USD })
	if err != nil {
		r.d.cfg.Logger.Error("the usage of a run could not be stored", "task", r.record().TaskID, "error", err)
	}
}

func (r *run) lastHeard() runner.ProviderReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// account is what the run learnt about its account. Without news it is nil,
// unless always is set.
func (r *run) account(always bool) *api.AgentAccount {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec.terminal() {
		return r.rec.Account
	}
	a, h := r.spends, r.heard
	if a.Name == "" || (!always && h.AnsweredAt.IsZero() && len(h.Windows) == 0) {
		return nil
	}
	a.Windows = h.Windows
	if !h.AnsweredAt.IsZero() {
		a.AnsweredAt = &h.AnsweredAt
	}
	return &a
}

// limitOf is a limit as it is stored in the record of the run.
func (r *run) limitOf(l *api.AgentLimit) *api.AgentLimit {
	if l == nil {
		return nil
	}
	said := *l
	said.Text = r.printableText(said.Text)
	said.Began = said.Began || (r.task.Resume != nil && r.task.Resume.Began)
	return &said
}

// budgetLeft is the budget left for the next program of a run.
func (r *run) budgetLeft() signalbox.Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.job.budget.Left(r.heardBefore.Used.Spent())
}
