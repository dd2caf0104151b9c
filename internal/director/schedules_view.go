package director

import (
	"cmp"
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cron"
)

// nextRuns is how many instants of a schedule are shown.
const nextRuns = 3

// scheduleView is a schedule as the API shows it, with its newest firings.
func (d *Director) scheduleView(ctx context.Context, all Schedules, s signalbox.Schedule, outcomes int) (api.Schedule, error) {
	v := api.Schedule{
		ID: s.ID, Name: s.Name, Description: s.Description, CronExpression: s.Cron, Words: wordsOf(s.Cron),
		Timezone: cmp.Or(s.Timezone, d.scheduleZone()), Enabled: s.Enabled, Source: string(s.Source), OwnerID: s.Owner,
		Message: s.Prompt, AgentName: s.Agent, Kind: s.Kind, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds,
		SessionID: s.SessionID, Thinking: s.Thinking, Priority: s.Priority, OnLost: string(s.OnLost),
		Overlap: string(s.Overlap), Missed: string(s.Missed), MissedWindowSeconds: int64(s.MissedWindow / time.Second), OnFull: string(s.OnFull),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, NextRuns: all.Next(s, nextRuns),
		LastRunAt: timePtr(s.LastRun), LastStatus: string(s.LastStatus), LastQueueID: s.LastQueueID, LastError: s.LastError,
	}
	if s.Project != nil {
		v.Project = &api.Project{Name: s.Project.Name, Path: s.Project.Path}
	}
	if len(v.NextRuns) > 0 {
		v.NextRunAt = &v.NextRuns[0]
	}
	if due := all.Due(s); s.Enabled && !due.IsZero() {
		if late := d.engine.Now().Sub(due); late > signalbox.OnTime {
			v.OverdueSeconds = int64(late / time.Second)
		}
	}
	if outcomes == 0 {
		return v, nil
	}
	var err error
	v.Outcomes, err = d.executionViews(ctx, all, s.ID, outcomes)
	return v, err
}

// wordsOf says an expression in plain words. One that is stored was parsed
// before; of one that a later version no longer takes there is nothing to say.
func wordsOf(expression string) string {
	expr, err := cron.Parse(expression)
	if err != nil {
		return expression
	}
	return expr.Words()
}

// executionViews are the newest firings of a schedule, newest first.
func (d *Director) executionViews(ctx context.Context, all Schedules, id string, limit int) ([]api.ScheduleExecution, error) {
	runs, err := all.Runs(ctx, id, limit)
	if err != nil {
		return nil, err
	}
	out := make([]api.ScheduleExecution, len(runs))
	for i := range runs {
		if out[i], err = d.executionView(ctx, &runs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Director) executionView(ctx context.Context, run *signalbox.ScheduleRun) (api.ScheduleExecution, error) {
	v := api.ScheduleExecution{
		ID: run.ID, ScheduleID: run.ScheduleID, Nominal: run.Nominal, FiredAt: run.FiredAt, Trigger: string(run.Trigger), By: run.By,
		Outcome: string(run.Status), QueueID: run.QueueID, Error: run.Error, Missed: run.Missed,
	}
	var err error
	v.Status, err = d.executionStatus(ctx, run)
	return v, err
}

// What a firing is that made no task, and one whose task nobody knows any more.
const (
	executionSkipped = "skipped"
	executionEnded   = "ended"
)

// executionStatus says how a firing goes: its task says so itself.
func (d *Director) executionStatus(ctx context.Context, run *signalbox.ScheduleRun) (string, error) {
	switch {
	case run.Status.Open():
		return string(run.Status), nil
	case run.Status.Failed():
		return string(signalbox.Failed), nil
	case run.Status != signalbox.RunQueued: // as the schedule wants it
		return executionSkipped, nil
	}
	t, err := d.engine.Read().Task(ctx, run.QueueID)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound: // pruned
		return executionEnded, nil
	case err != nil:
		return "", err
	}
	return seedStatus(t.State), nil
}
