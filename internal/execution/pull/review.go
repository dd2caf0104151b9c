package pull

import (
	"cmp"
	"context"
	"slices"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
)

// review returns what an agent must know about its runs: runs to stop and, with give, tasks
// that it should have and does not name.
func (l *Lanes) review(ctx context.Context, a *lane, runs []api.PullRun, give bool) (answer api.PullAnswer, something bool, err error) {
	l.Mu.Lock()
	var unknown []api.PullRun
	named := map[string]bool{}
	for _, s := range runs {
		r := a.Runs[s.QueueID]
		switch {
		case r == nil || r.Task.Fence != s.Fence:
			if !s.Stopping && !s.Ended {
				unknown = append(unknown, s)
			}
			continue
		case r.Task.CancelRequested && !s.Stopping && !s.Ended:
			answer.Stop = append(answer.Stop, api.PullStop{QueueID: s.QueueID, Fence: s.Fence})
		}
		named[s.QueueID] = true
	}
	var missing []signalbox.Task
	for id, r := range a.Runs {
		if !named[id] {
			missing = append(missing, r.Task)
		}
	}
	l.Mu.Unlock()
	for _, s := range unknown {
		if err := l.reviewUnknown(ctx, a, s, &answer); err != nil {
			return answer, false, err
		}
	}
	if give {
		slices.SortFunc(missing, func(x, y signalbox.Task) int { return cmp.Compare(x.Fence, y.Fence) })
		for _, t := range missing {
			if err := l.reviewMissing(ctx, a, t, &answer); err != nil {
				return answer, false, err
			}
		}
	}
	return answer, answer.Task != nil || len(answer.Stop) > 0 || len(answer.Ask) > 0, nil
}

// reviewUnknown decides about a run that the agent names and that is not known here.
func (l *Lanes) reviewUnknown(ctx context.Context, a *lane, s api.PullRun, answer *api.PullAnswer) error {
	t, err := l.Engine.Read().Task(ctx, s.QueueID)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound {
		t, err = signalbox.Task{}, nil
	}
	if err != nil {
		return err
	}
	stop := api.PullStop{QueueID: s.QueueID, Fence: s.Fence}
	if !holds(a.Name, s.Fence, &t) {
		stop.Void = true
		answer.Stop = append(answer.Stop, stop)
		return nil
	}
	l.Mu.Lock()
	l.putRun(a, t)
	l.Mu.Unlock()
	if t.CancelRequested {
		answer.Stop = append(answer.Stop, stop)
	}
	return nil
}

// holds reports whether an agent has the task with that fence.
func holds(agent string, fence int64, t *signalbox.Task) bool {
	return t.State.InFlight() && t.Agent == agent && t.Fence == fence
}

// reviewMissing decides about a task that the agent should have and does not name: it is
// delivered again if not accepted yet, else the agent is asked about it.
func (l *Lanes) reviewMissing(ctx context.Context, a *lane, was signalbox.Task, answer *api.PullAnswer) error {
	t, err := l.Engine.Read().Task(ctx, was.ID)
	missing := signalbox.CodeOf(err) == signalbox.CodeNotFound
	switch {
	case err != nil && !missing:
		return err
	case missing || !holds(a.Name, was.Fence, &t):
		l.dropStale(a, &was)
		return nil
	case t.State != signalbox.Dispatching || t.CancelRequested:
		answer.Ask = append(answer.Ask, api.PullAsk{QueueID: was.ID, Fence: was.Fence})
		return nil
	case answer.Task != nil:
		return nil // one at a time
	}
	c, err := l.Engine.Load(ctx, was.ID)
	switch {
	case c.Task.ID == "":
		return err
	case c.Task.Rev != t.Rev: // the next poll handles it
	case err != nil: // its env cannot be decrypted here
		_, err = l.Engine.Reject(ctx, c.Task, err.Error()+"; submit the task again")
		return execution.UnlessDecided(err)
	default:
		again := l.deliver(a, c, true)
		answer.Task, answer.Traceparent, answer.RunToken, answer.EnvBy = again.Task, again.Traceparent, again.RunToken, again.EnvBy
		l.Log.Info("", "queue", "given_again", "queue_id", was.ID, "agent", a.Name, "fence", was.Fence)
	}
	return nil
}

// dropStale drops the run of a task that the agent turned out not to have.
func (l *Lanes) dropStale(a *lane, was *signalbox.Task) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if r := a.Runs[was.ID]; r != nil && r.Task.Fence == was.Fence {
		l.dropRun(r)
	}
}
