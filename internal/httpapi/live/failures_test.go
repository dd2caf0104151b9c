package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// fail submits a task, for a schedule if job is not empty, and ends it as given.
func fail(b *apitest.Fixture, a signalbox.Agent, job string, reason signalbox.Reason, message string, by ...signalbox.Principal) signalbox.Task {
	b.T.Helper()
	n := engine.NewTask{Prompt: "p", Agent: a.Name, Source: signalbox.SourceAPI}
	if job != "" {
		n.Source, n.SourceJob = signalbox.SourceScheduler, job
	}
	if len(by) > 0 {
		n.By = by[0]
	}
	if _, err := b.Engine.Submit(b.T.Context(), n); err != nil {
		b.T.Fatal(err)
	}
	ended, err := b.Engine.Finish(b.T.Context(), b.Run(a), engine.Outcome{Reason: reason, Message: message, Result: &signalbox.Result{}})
	if err != nil {
		b.T.Fatal(err)
	}
	return ended
}

// The failures of the last hour are one finding for each cause, with their number, places and times,
// and a search that finds exactly these tasks.
func TestFailuresOfTheLastHourByCause(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	builder, writer := b.AddAgent("builder", 1), b.AddAgent("writer", 1)
	wantHealthy(b)
	first := fail(b, builder, "", signalbox.ReasonAgentError, "ChargeError: card_declined (code 402)")
	if at := wantAttention(b, "tasks_failed", "warning", "1 task", "failed on builder: ChargeError: card_declined (code 402)"); at.TaskID != first.ID || at.Count != 1 || at.Cause != first.Cause {
		t.Errorf("%+v", at)
	}
	c.Advance(time.Minute)
	fail(b, writer, "", signalbox.ReasonAgentError, "ChargeError: card_declined (code 17)")
	c.Advance(time.Minute)
	last := fail(b, builder, "", signalbox.ReasonAgentError, "ChargeError: card_declined (code 9)")
	at := wantAttention(b, "tasks_failed", "error", "3 tasks", "failed alike on builder, writer: ChargeError: card_declined", "signalbox retry --match")
	if at.Count != 3 || at.Agents != "builder, writer" || !at.Since.Equal(first.EndedAt) || !at.Last.Equal(last.EndedAt) || at.TaskID != last.ID {
		t.Errorf("%+v", at)
	}
	fail(b, writer, "", signalbox.ReasonAgentError, "no disk")
	fail(b, writer, "", signalbox.ReasonCompleted, "")
	if v := currentVerdict(b); v.OK || len(v.Attention) != 2 || v.Attention[1].Text != "failed on writer: no disk" || v.Text != at.Subject+" "+at.Text+"; and 1 more." {
		t.Errorf("%+v", v)
	}
	var found api.Search
	b.Do("GET", "/api/search?q="+strings.ReplaceAll(at.Query, " ", "+"), "").Want(t, 200, &found)
	if found.Total != 3 || found.Tasks[0].QueueID != last.ID || found.Tasks[0].Cause != at.Cause || found.Tasks[0].FailureLine != "ChargeError: card_declined (code 9)" {
		t.Errorf("%s finds %+v", at.Query, found)
	}
	var task api.Task
	if b.Do("GET", "/api/queue/"+last.ID, "").Want(t, 200, &task); task.Cause != at.Cause || task.FailureLine != found.Tasks[0].FailureLine {
		t.Errorf("%+v", task)
	}
	var count api.Bulk
	if b.Do("POST", "/api/queue/bulk", fmt.Sprintf(`{"query":%q,"action":"retry"}`, at.Query)).Want(t, 200, &count); count.Count != 3 {
		t.Errorf("%+v", count)
	}

	// A director that starts now has the same finding.
	again, err := httpapi.New(httpapi.Config{Engine: b.Engine, Runs: b.Runs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	if err := again.Live().Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, v := again.Live().TotalsAndVerdict(); len(v.Attention) != 2 || v.Attention[0] != at {
		t.Errorf("%+v\nwant %+v", v.Attention, at)
	}

	// A retried failure is no longer a finding, and neither is one older than an hour.
	b.Do("POST", "/api/queue/"+last.ID+"/retry", "{}").Want(t, 201, nil)
	if v := currentVerdict(b); v.Attention[0].Count != 2 || v.Attention[0].Level != "warning" {
		t.Errorf("%+v", v)
	}
	fail(b, builder, "", signalbox.ReasonCompleted, "")
	c.Advance(58 * time.Minute)
	if v := currentVerdict(b); len(v.Attention) != 2 || v.Attention[0].Count != 1 || v.Attention[0].Agents != "writer" {
		t.Errorf("%+v", v)
	}
	c.Advance(2 * time.Minute)
	wantHealthy(b)
}

// A task that a person ended is not a finding.
func TestWhatAPersonEndedNeedsNobody(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"p"}`)
	b.Run(a)
	if _, err := b.Engine.ReleaseLane(t.Context(), "coder", "a test"); err != nil {
		t.Fatal(err)
	}
	id := b.Submit(`{"prompt":"p"}`).QueueID
	if _, err := b.Engine.Cancel(t.Context(), id, "a test"); err != nil {
		t.Fatal(err)
	}
	wantHealthy(b)
}

// The tasks of a schedule fail, although each of its firings made one.
func TestAScheduleWhoseTasksFail(t *testing.T) {
	var c apitest.Clock
	var schedules *apitest.Schedules
	b := apitest.New(t, apitest.WithClock(&c), apitest.WithSchedules(&schedules)).Serve()
	schedules.Now = c.Now
	nightly := signalbox.Schedule{ID: "sched-1", Name: "nightly", Cron: "@yearly", Enabled: true, Cursor: c.Now().Add(1000 * time.Hour), LastStatus: signalbox.RunQueued, LastRun: c.Now()}
	schedules.ByID = map[string]signalbox.Schedule{nightly.ID: nightly}
	a := b.AddAgent("builder", 1)
	var last signalbox.Task
	for range 3 {
		c.Advance(time.Minute)
		last = fail(b, a, "nightly", signalbox.ReasonAgentError, "ChargeError: card_declined")
	}
	at := wantAttention(b, "tasks_failed", "error", "3 tasks of schedule nightly", "failed alike on builder: ChargeError")
	if at.Schedule != "nightly" || at.Schedules != "nightly" {
		t.Errorf("%+v", at)
	}
	var status api.Status
	if b.Do("GET", "/status", "").Want(t, 200, &status); status.Scheduler.Failing != 1 {
		t.Errorf("%+v", status.Scheduler)
	}

	// After the hour the schedule is still a finding, also at a director that starts then.
	c.Advance(9 * time.Hour)
	if at = wantAttention(b, "schedule_failing", "warning", "nightly", "has failed 3 times in a row: ChargeError: card_declined"); at.TaskID != last.ID || at.Query != "state:failed,timeout job:nightly" || at.Schedule != "nightly" {
		t.Errorf("%+v", at)
	}
	// The task is retried and completes.
	retried, err := b.Engine.Retry(t.Context(), last.ID, engine.RetryEdit{Source: signalbox.SourceWeb})
	if err != nil || retried.Task.SourceJob != "nightly" {
		t.Fatalf("%+v, %v", retried, err)
	}
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
	wantHealthy(b)

	// A single failure is a finding for an hour, or until the next task completes.
	fail(b, a, "nightly", signalbox.ReasonAgentError, "no disk")
	wantAttention(b, "tasks_failed", "warning", "1 task of schedule nightly", "failed on builder: no disk")
	c.Advance(time.Minute)
	fail(b, a, "nightly", signalbox.ReasonCompleted, "")
	wantHealthy(b)

	// A disabled schedule is not a finding.
	fail(b, a, "nightly", signalbox.ReasonAgentError, "no disk")
	nightly.Enabled = false
	schedules.ByID = map[string]signalbox.Schedule{nightly.ID: nightly}
	c.Advance(2 * time.Hour)
	b.Server.Live().ForgetSchedules()
	wantHealthy(b)
}

// The tasks of a schedule failed before the history that a director reads at its start.
func TestAScheduleThatFailedLongAgo(t *testing.T) {
	var c apitest.Clock
	var schedules *apitest.Schedules
	b := apitest.New(t, apitest.WithClock(&c), apitest.WithSchedules(&schedules)).Serve()
	schedules.Now = c.Now
	a := b.AddAgent("builder", 1)
	last := fail(b, a, "weekly", signalbox.ReasonAgentError, "no disk")
	weekly := signalbox.Schedule{ID: "sched-1", Name: "weekly", Cron: "@yearly", Enabled: true, Cursor: c.Now().Add(1000 * time.Hour), LastStatus: signalbox.RunQueued, LastRun: c.Now(), LastQueueID: last.ID}
	schedules.ByID = map[string]signalbox.Schedule{weekly.ID: weekly}
	c.Advance(50 * time.Hour)
	if at := wantAttention(b, "schedule_failing", "warning", "weekly", "failed when it ran last: no disk"); at.TaskID != last.ID {
		t.Errorf("%+v", at)
	}
}

// A caller sees only the failures that they may see, and that there are others.
func TestFailuresOfOthersAreTheirs(t *testing.T) {
	b, as := apitest.NewWithUsers(t)
	coder, other := b.AddAgent("coder", 1), b.AddAgent("other", 1)
	b.FinishTask(b.Run(coder), signalbox.ReasonCompleted, signalbox.Result{})
	fail(b, other, "", signalbox.ReasonAgentError, "no disk /srv/1")
	fail(b, coder, "", signalbox.ReasonAgentError, "no disk /srv/2")
	fail(b, coder, "", signalbox.ReasonAgentError, "no net")
	b.RefreshLive()
	verdict := func(name string) (failures []api.Attention, more int) {
		var s api.Status
		b.Do("GET", "/status", "", as[name]...).Want(t, 200, &s)
		for _, a := range s.Health.Attention {
			if a.Kind == "tasks_failed" {
				failures = append(failures, a)
			}
		}
		slices.SortFunc(failures, func(a, b api.Attention) int { return b.Count - a.Count })
		return failures, s.Health.More
	}
	if all, more := verdict("static"); len(all) != 2 || all[0].Count != 2 || !strings.HasSuffix(all[0].Text, "failed alike on coder, other: no disk /srv/2") || more != 0 {
		t.Errorf("%+v %d", all, more)
	}
	if own, more := verdict("limited"); len(own) != 1 || own[0].Count != 1 || !strings.HasSuffix(own[0].Text, "failed on other: no disk /srv/1") || more != 1 {
		t.Errorf("%+v %d", own, more)
	}
}

// A run that takes far longer than those before it.
func TestHealthOfARunThatOutlastsItsUsualTime(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	a := b.AddAgent("coder", 1)
	for range 6 {
		b.Submit(`{"prompt":"p"}`)
		task := b.Run(a)
		c.Advance(5 * time.Minute)
		b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{})
	}
	id := b.Submit(`{"prompt":"p"}`).QueueID
	b.Run(a)
	c.Advance(14 * time.Minute)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard = c.Now() })
	wantHealthy(b)
	c.Advance(2 * time.Minute)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard = c.Now() })
	if at := wantAttention(b, "outlasted", "warning", "coder", "has run "+id+" for 16 min", "within 5 min", "signalbox cancel "+id); at.TaskID != id {
		t.Errorf("%+v", at)
	}
}
