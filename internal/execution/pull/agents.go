package pull

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// loadAgents updates the lanes to the stored agents.
func (l *Lanes) loadAgents(ctx context.Context) error {
	l.loading.Lock() // so that older rows do not overwrite newer ones
	defer l.loading.Unlock()
	rows, err := l.Engine.Read().Agents(ctx)
	if err != nil {
		return err
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	known := map[string]bool{}
	for _, row := range rows {
		if row.Source == signalbox.AgentPull {
			known[row.Name] = true
			l.putLane(row)
		}
	}
	for _, a := range slices.Clone(l.Order) {
		if !known[a.Name] {
			l.supersede(a)
			l.Remove(a)
		}
	}
	return nil
}

func (l *Lanes) putLane(row signalbox.Agent) {
	a := l.Lanes[row.Name]
	if a != nil {
		a.stale = false
	}
	switch {
	case a == nil:
		a = &lane{Lane: execution.NewLane[*run](row, l.opts.Monotonic())}
		a.Bypass.Check()
		l.Put(a)
		return
	case a.Row.URL != row.URL: // another instance has the name
		l.supersede(a)
		a.Presence, a.reported, a.Isolated, a.HighestFence = execution.NewPresence(l.opts.Monotonic()), report{}, 0, 0
		a.Health.Recover()
	default:
		row.Slots, row.Account = cmp.Or(a.reported.slots, row.Slots), cmp.Or(row.Account, a.Row.Account)
		row.Folder, row.Workplace = a.Row.Folder, a.Row.Workplace
	}
	a.Row = row
	l.Update(a)
}

// loadRuns reads what is in flight: at the start, and as the backstop for missed changes.
func (l *Lanes) loadRuns(ctx context.Context) error {
	tasks, err := l.Engine.Read().InFlight(ctx)
	if err != nil {
		return err
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	there := map[string]bool{}
	for _, t := range tasks {
		if a := l.Lanes[t.Agent]; a != nil {
			there[t.ID] = true
			if l.Runs[t.ID] == nil {
				a.Wake.Send() // it may have to be delivered again, or stopped
			}
			l.putRun(a, t)
		}
	}
	for id, r := range l.Runs {
		// One claimed during the read is dropped only if the next read does not find it
		// either.
		if !there[id] && l.opts.Monotonic().Sub(r.Heard) > l.opts.Tick {
			l.dropRun(r)
		}
	}
	return nil
}

func (l *Lanes) putRun(a *lane, t signalbox.Task) *run {
	r := l.Runs[t.ID]
	if r != nil && r.Matches(&t) && r.Task.Agent == t.Agent {
		r.Update(t)
		return r
	}
	if r != nil {
		if r.Task.Rev >= t.Rev {
			return r
		}
		l.dropRun(r)
	}
	// Until its request is read, messages about a task with an env are withheld.
	c := engine.Claimed{Task: t, Request: signalbox.Request{HadEnv: t.HasEnv}}
	r = &run{Run: execution.NewRun(c, l.opts.Monotonic(), l.Engine.Now)}
	l.Runs[t.ID] = r
	a.PutRun(r)
	l.Update(a)
	return r
}

func (l *Lanes) dropRun(r *run) {
	if r.requestLoaded && !r.Mask.Empty() {
		l.keepMask(r.ID, r.Mask)
	}
	if l.Runs[r.ID] == r {
		delete(l.Runs, r.ID)
	}
	if a := l.Lanes[r.Task.Agent]; a != nil && a.RemoveRun(&r.Run) {
		l.OfferUndecided(a) // in case its offer decided nothing
	}
	r.Tail.End()
}

// laneOf returns the lane of an agent, for a request of an instance of it.
func (l *Lanes) laneOf(ctx context.Context, name, instance string) (*lane, error) {
	for again := false; ; again = true {
		l.Mu.Lock()
		a := l.Lanes[name]
		is := a != nil && !a.stale && a.Row.URL == signalbox.PullURL(instance)
		l.Mu.Unlock()
		switch {
		case is:
			return a, nil
		case again && a == nil:
			return nil, &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: fmt.Sprintf("no agent that pulls is named %s: register it first", name)}
		case again:
			return nil, signalbox.Errorf(signalbox.CodeConflict, "another agent uses the name %s: give one of them another --name, or register again when it has stopped", name)
		}
		if err := l.loadAgents(ctx); err != nil {
			return nil, err
		}
	}
}

// recordHeard records that an agent sent a request, and the runs that it named. It returns
// the runs that exceed a limit.
func (l *Lanes) recordHeard(a *lane, s report, runs []api.PullRun) []execution.StopOrder {
	now, wall := l.opts.Monotonic(), l.Engine.Now()
	l.Mu.Lock()
	cameUp := a.Presence.Heard(now)
	a.lastHeard, a.heardHere = wall, true
	if s.slots > 0 {
		a.setReported(s)
		a.refused, a.claimRefused = a.refused && s.held > 0, ""
	}
	if len(runs) > 0 || s.held > 0 {
		a.Health.AtWork()
	}
	var due []execution.StopOrder
	for _, said := range runs {
		r := a.Runs[said.QueueID]
		if r == nil || r.Fence != said.Fence {
			continue
		}
		r.Heard = now
		if said.Ended {
			continue
		}
		r.SetNote(said.Note)
		silent := time.Duration(said.SilentMS) * time.Millisecond
		if printed := wall.Add(-silent); said.RanMS > said.SilentMS && printed.After(r.Printed) {
			r.Printed = printed
			a.Progress = latest(a.Progress, printed)
		}
		if o, over := l.overLimit(r, said); over {
			due = append(due, o)
		}
	}
	l.Update(a)
	l.Mu.Unlock()
	if cameUp {
		l.Log.Info("", "agent", "up", "name", a.Name, "pulls", true)
		l.Engine.Note(l.Ctx, signalbox.Entry{Kind: signalbox.EventAgentUp, Agent: a.Name, Message: "it asks for its tasks"})
	}
	return due
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *Lanes) noteGone(name, why string) {
	l.Log.Warn("", "agent", "down", "name", name, "error", why)
	l.Engine.Note(l.Ctx, signalbox.Entry{Kind: signalbox.EventAgentDown, Agent: name, Message: why})
}

// Heartbeat handles a heartbeat of an agent that does not claim now, or that stops. ok is
// false if it is not a pull agent.
func (l *Lanes) Heartbeat(ctx context.Context, name string, b api.Heartbeat) (stop []api.PullStop, ok bool, err error) {
	l.Mu.Lock()
	_, ok = l.Lanes[name]
	l.Mu.Unlock()
	if !ok && b.Instance == "" {
		return nil, false, nil
	}
	a, err := l.laneOf(ctx, name, b.Instance)
	if err != nil {
		return nil, true, err
	}
	l.enforce(ctx, l.recordHeard(a, report{}, b.Runs))
	if b.State == "stopping" {
		if err := l.agentStopping(ctx, a, b.Runs); err != nil {
			return nil, true, err
		}
	}
	answer, _, err := l.review(ctx, a, b.Runs, false)
	return answer.Stop, true, err
}

// agentStopping handles that an agent stops: it claims nothing more. Tasks given to it that
// it does not name did not reach it.
func (l *Lanes) agentStopping(ctx context.Context, a *lane, runs []api.PullRun) error {
	named := map[string]bool{}
	for _, s := range runs {
		named[s.QueueID] = true
	}
	var missed []signalbox.Task
	l.Mu.Lock()
	news := a.Presence.Leave(l.opts.Monotonic(), time.Time{}, execution.StoppingMessage) // its next request brings it up again
	l.Update(a)
	l.supersede(a)
	for id, r := range a.Runs {
		if r.Task.State == signalbox.Dispatching && !named[id] {
			missed = append(missed, r.Task)
		}
	}
	l.Mu.Unlock()
	if news {
		l.noteGone(a.Name, execution.StoppingMessage)
	}
	slices.SortFunc(missed, func(x, y signalbox.Task) int { return cmp.Compare(x.Fence, y.Fence) })
	for _, t := range missed {
		if err := l.returnUndelivered(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// returnUndelivered returns a task whose agent stopped before it got it.
func (l *Lanes) returnUndelivered(ctx context.Context, t signalbox.Task) error {
	_, err := l.Engine.Unsent(ctx, t, "agent "+t.Agent+" stopped before the task reached it")
	return execution.UnlessDecided(err)
}

// Answers reports whether an agent is up; ok is false if it is not a pull agent.
func (l *Lanes) Answers(name string) (there, ok bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	a := l.Lanes[name]
	return a != nil && a.Presence.Up(), a != nil
}

func silentFor(d time.Duration) string {
	return fmt.Sprintf("it has not asked for anything for %s", d.Round(time.Second))
}
