package schedules

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/cron"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/access"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/view"
)

// Scheduler is the part of the scheduler that the handlers need; *schedule.Scheduler
// implements it. ref is an id or a name. Unknown schedules are CodeNotFound. Schedules
// from the configuration cannot be changed here (CodeConflict), except with SetEnabled
// and Trigger.
type Scheduler interface {
	// All lists the schedules by name.
	All(ctx context.Context) ([]signalbox.Schedule, error)
	Get(ctx context.Context, ref string) (signalbox.Schedule, error)
	// Add stores a new schedule and sets its ID and times. Errors name the field.
	Add(ctx context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error)
	// Edit stores the fields of s that people can change, by its ID.
	Edit(ctx context.Context, s signalbox.Schedule, by string) (signalbox.Schedule, error)
	Remove(ctx context.Context, ref, by string) error
	SetEnabled(ctx context.Context, ref string, on bool, by string) (signalbox.Schedule, error)
	// Trigger fires a schedule now. It returns when the firing is decided or held. It
	// returns CodeConflict while another firing of the schedule is open.
	Trigger(ctx context.Context, ref, by string) (signalbox.ScheduleRun, error)
	// Runs lists the newest firings of a schedule, at most limit.
	Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error)
	// Next returns the next times of a schedule, at most n: none while it is
	// disabled. Due is its next time, which is in the past if it was missed.
	Next(s signalbox.Schedule, n int) []time.Time
	Due(s signalbox.Schedule) time.Time
	// Zone is the time zone of schedules without one.
	Zone() string
}

// Limits for what is shown of schedules.
const (
	maxOutcomes       = 20 // of one schedule
	defaultExecutions = 20
	maxInstants       = 50 // of one cron expression
	defaultInstants   = 3
)

// Handlers has the handlers for schedules and their firings.
type Handlers struct {
	Scheduler Scheduler // nil: this director runs no scheduler
	Engine    *engine.Engine
	Audit     *access.AuditLog
}

// required returns the scheduler of this director, or an error if it has none.
func (h *Handlers) required() (Scheduler, error) {
	if h.Scheduler == nil {
		return nil, httpio.Refuse(signalbox.CodeNotFound, "start it with scheduler.enabled: true", "this director runs no scheduler, and has no schedules")
	}
	return h.Scheduler, nil
}

// seesSchedule reports whether a caller may see a schedule: its tasks belong to its owner,
// and go into the queue of its agent.
func seesSchedule(who signalbox.Principal, s *signalbox.Schedule) bool {
	return who.Sees(s.Owner, scheduleQueue(s), "")
}

func scheduleQueue(s *signalbox.Schedule) string {
	switch {
	case s.Agent != "":
		return signalbox.AgentQueue(s.Agent)
	case s.Kind != "":
		return signalbox.PoolQueue(s.Kind)
	}
	return signalbox.QueueWork
}

// scheduleOf returns the schedule in the path. A schedule that the caller may not see is
// answered as if it did not exist.
func (h *Handlers) scheduleOf(r *http.Request) (Scheduler, signalbox.Schedule, error) {
	all, err := h.required()
	if err != nil {
		return nil, signalbox.Schedule{}, err
	}
	ref := r.PathValue("id")
	unknown := httpio.Refuse(signalbox.CodeNotFound, "signalbox schedules lists them, as GET /api/schedules does", "there is no schedule %q", httpio.Clip(ref))
	if !signalbox.ValidName(ref) { // ids are also valid names
		return nil, signalbox.Schedule{}, unknown
	}
	s, err := all.Get(r.Context(), ref)
	if signalbox.CodeOf(err) == signalbox.CodeNotFound || err == nil && !seesSchedule(access.CallerOf(r).Who, &s) {
		return nil, signalbox.Schedule{}, unknown
	}
	return all, s, err
}

// List is GET /api/schedules.
func (h *Handlers) List(w http.ResponseWriter, r *http.Request) error {
	all, err := h.required()
	if err != nil {
		return err
	}
	q, err := scheduleQueryOf(r)
	if err != nil {
		return err
	}
	rows, err := all.All(r.Context())
	if err != nil {
		return err
	}
	who := access.CallerOf(r).Who
	rows = slices.DeleteFunc(slices.Clone(rows), func(s signalbox.Schedule) bool { return !q.takes(&s) || !seesSchedule(who, &s) })
	slices.SortFunc(rows, func(a, b signalbox.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	out := api.Schedules{Schedules: []api.Schedule{}}
	if len(rows) > q.limit {
		rows = rows[:q.limit]
		out.Next = rows[q.limit-1].Name
	}
	for i := range rows {
		v, err := h.scheduleView(r.Context(), all, rows[i], q.outcomes)
		if err != nil {
			return err
		}
		out.Schedules = append(out.Schedules, v)
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// scheduleQuery has the filters of List.
type scheduleQuery struct {
	agent, name, after, enabled string
	outcomes, limit             int
}

func scheduleQueryOf(r *http.Request) (q scheduleQuery, err error) {
	q = scheduleQuery{agent: httpio.Param(r, "agent"), name: httpio.Param(r, "name"), after: httpio.Param(r, "after"), enabled: httpio.Param(r, "enabled")}
	if q.enabled != "" && q.enabled != "true" && q.enabled != "false" {
		return q, signalbox.Invalid("enabled", "enabled must be true or false, not %q", httpio.Clip(q.enabled))
	}
	if q.outcomes, err = httpio.Number(r, "outcomes", 0, 0, maxOutcomes); err != nil {
		return q, err
	}
	q.limit, err = httpio.Limit(r)
	return q, err
}

func (q *scheduleQuery) takes(s *signalbox.Schedule) bool {
	return (q.agent == "" || s.Agent == q.agent) && (q.name == "" || s.Name == q.name) && s.Name > q.after &&
		(q.enabled == "" || strconv.FormatBool(s.Enabled) == q.enabled)
}

// Get is GET /api/schedules/{id}.
func (h *Handlers) Get(w http.ResponseWriter, r *http.Request) error {
	all, s, err := h.scheduleOf(r)
	if err != nil {
		return err
	}
	v, err := h.scheduleView(r.Context(), all, s, maxOutcomes)
	return httpio.AnswerOr(w, v, err)
}

// Executions is GET /api/schedules/{id}/executions.
func (h *Handlers) Executions(w http.ResponseWriter, r *http.Request) error {
	limit, err := httpio.Number(r, "limit", defaultExecutions, 1, signalbox.MaxScheduleRuns)
	if err != nil {
		return err
	}
	all, s, err := h.scheduleOf(r)
	if err != nil {
		return err
	}
	list, err := h.executionViews(r.Context(), all, s.ID, limit)
	if err != nil {
		return err
	}
	return httpio.Answer(w, http.StatusOK, api.Executions{Executions: list})
}

// CheckCron is GET /api/cron.
func (h *Handlers) CheckCron(w http.ResponseWriter, r *http.Request) error {
	n, err := httpio.Number(r, "n", defaultInstants, 1, maxInstants)
	if err != nil {
		return err
	}
	expr, err := cron.Parse(httpio.Param(r, "expression"))
	if err != nil {
		return signalbox.Invalid("expression", "%s", err)
	}
	name := cmp.Or(httpio.Param(r, "timezone"), h.scheduleZone())
	zone, err := cron.Zone(name)
	if err != nil {
		return signalbox.Invalid("timezone", "%s", err)
	}
	out := api.CronCheck{CronExpression: expr.String(), Timezone: name, Words: expr.Describe()}
	for at := h.Engine.Now(); len(out.NextRuns) < n; out.NextRuns = append(out.NextRuns, at) {
		if at = expr.Next(at, zone); at.IsZero() {
			break
		}
	}
	return httpio.Answer(w, http.StatusOK, out)
}

// scheduleZone is the time zone of schedules without one.
func (h *Handlers) scheduleZone() string {
	if h.Scheduler == nil {
		return "UTC"
	}
	return cmp.Or(h.Scheduler.Zone(), "UTC")
}

// Counts is the scheduler block of GET /status; nil if no scheduler runs here.
func (h *Handlers) Counts(ctx context.Context) (*api.SchedulerCounts, error) {
	if h.Scheduler == nil {
		return nil, nil
	}
	rows, err := h.Scheduler.All(ctx)
	if err != nil {
		return nil, err
	}
	c := &api.SchedulerCounts{Schedules: len(rows)}
	var next time.Time
	for i := range rows {
		if !rows[i].Enabled {
			continue
		}
		c.Enabled++
		if rows[i].LastStatus.Failed() {
			c.Failing++
		}
		if due := h.Scheduler.Due(rows[i]); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	c.NextRun = view.Time(next)
	return c, nil
}

// nextRuns is how many of the next times of a schedule are shown.
const nextRuns = 3

// scheduleView is the API form of a schedule, with its newest firings.
func (h *Handlers) scheduleView(ctx context.Context, all Scheduler, s signalbox.Schedule, outcomes int) (api.Schedule, error) {
	v := api.Schedule{
		ID: s.ID, Name: s.Name, Description: s.Description, CronExpression: s.Cron, Words: wordsOf(s.Cron),
		Timezone: cmp.Or(s.Timezone, h.scheduleZone()), Enabled: s.Enabled, Source: string(s.Source), OwnerID: s.Owner,
		Message: s.Prompt, AgentName: s.Agent, Kind: s.Kind, Model: s.Model, Tier: s.Tier, TimeoutSeconds: s.TimeoutSeconds,
		SessionID: s.SessionID, Thinking: s.Thinking, Priority: s.Priority, OnLost: string(s.OnLost),
		Overlap: string(s.Overlap), Missed: string(s.Missed), MissedWindowSeconds: int64(s.MissedWindow / time.Second), OnFull: string(s.OnFull),
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, NextRuns: all.Next(s, nextRuns),
		LastRunAt: view.Time(s.LastRun), LastStatus: string(s.LastStatus), LastQueueID: s.LastQueueID, LastError: s.LastError,
	}
	v.Project = (*api.Project)(s.Project)
	w := s.Workspace.Said()
	v.Workspace, v.Repo, v.Base = w.Kind, w.Repo, w.Base
	l := s.Landing.Said()
	v.Delivery = api.Delivery{Checks: view.Checks(s.Checking.Checks), CheckRetries: s.Checking.Retries, Land: l.Onto, LandMethod: l.Method, FastForward: l.FastForward}
	if len(v.NextRuns) > 0 {
		v.NextRunAt = &v.NextRuns[0]
	}
	if due := all.Due(s); s.Enabled && !due.IsZero() {
		if late := h.Engine.Now().Sub(due); late > signalbox.OnTime {
			v.OverdueSeconds = int64(late / time.Second)
		}
	}
	if outcomes == 0 {
		return v, nil
	}
	var err error
	v.Outcomes, err = h.executionViews(ctx, all, s.ID, outcomes)
	return v, err
}

// wordsOf describes an expression in words. It returns a stored expression that this version
// no longer accepts unchanged.
func wordsOf(expression string) string {
	expr, err := cron.Parse(expression)
	if err != nil {
		return expression
	}
	return expr.Describe()
}

// executionViews returns the newest firings of a schedule, newest first.
func (h *Handlers) executionViews(ctx context.Context, all Scheduler, id string, limit int) ([]api.ScheduleExecution, error) {
	runs, err := all.Runs(ctx, id, limit)
	if err != nil {
		return nil, err
	}
	out := make([]api.ScheduleExecution, len(runs))
	for i := range runs {
		if out[i], err = h.executionView(ctx, &runs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (h *Handlers) executionView(ctx context.Context, run *signalbox.ScheduleRun) (api.ScheduleExecution, error) {
	v := api.ScheduleExecution{
		ID: run.ID, ScheduleID: run.ScheduleID, Nominal: run.Nominal, FiredAt: run.FiredAt, Trigger: string(run.Trigger), By: run.By,
		Outcome: string(run.Status), QueueID: run.QueueID, Error: run.Error, Missed: run.Missed,
	}
	var err error
	v.Status, err = h.executionStatus(ctx, run)
	return v, err
}

// The status of a firing that made no task, and of one whose task is unknown by now.
const (
	ExecutionSkipped = "skipped"
	ExecutionEnded   = "ended"
)

// executionStatus is the status of a firing, which is that of its task.
func (h *Handlers) executionStatus(ctx context.Context, run *signalbox.ScheduleRun) (string, error) {
	switch {
	case run.Status.Open():
		return string(run.Status), nil
	case run.Status.Failed():
		return string(signalbox.Failed), nil
	case run.Status != signalbox.RunQueued: // skipped by a policy of the schedule
		return ExecutionSkipped, nil
	}
	t, err := h.Engine.Read().Task(ctx, run.QueueID)
	switch {
	case signalbox.CodeOf(err) == signalbox.CodeNotFound: // pruned
		return ExecutionEnded, nil
	case err != nil:
		return "", err
	}
	return view.SeedStatus(t.State), nil
}
