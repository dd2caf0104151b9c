package schedules_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A trigger answers with the task, or with the reason why there is none.
func TestATriggerSaysWhatItCameTo(t *testing.T) {
	b, f := newScheduleBox(t)
	createSchedule(b, nightly)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	trigger := func(status signalbox.RunStatus, queueID, text string) apitest.Reply {
		f.TriggerResult = signalbox.ScheduleRun{Status: status, QueueID: queueID, Error: text}
		return b.Do("POST", "/api/schedules/nightly/trigger", "")
	}
	var got api.Triggered
	trigger(signalbox.RunQueued, id, "").Want(t, http.StatusCreated, &got)
	if got.QueueID != id || got.Execution.Status != "queued" || got.Execution.By != "a local caller" || got.Execution.Trigger != "manual" {
		t.Errorf("%+v", got)
	}
	got = api.Triggered{}
	trigger(signalbox.RunHeld, "", "").Want(t, http.StatusCreated, &got)
	if got.QueueID != "" || got.Execution.Status != "held" {
		t.Errorf("%+v", got)
	}
	const full = "Agent queue full (3 waiting), skipping scheduled execution"
	if e := trigger(signalbox.SkippedQueueFull, "", full).WantError(t, http.StatusServiceUnavailable, signalbox.CodeQueueFull); e.Message != full || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	trigger(signalbox.SkippedBusy, "", "the task before has not ended").WantError(t, http.StatusConflict, signalbox.CodeConflict)
	trigger(signalbox.SkippedError, "", "no agent is named coder").WantError(t, http.StatusConflict, signalbox.CodeConflict)
	f.Refuse = signalbox.Errorf(signalbox.CodeConflict, "a firing of nightly is under way")
	b.Do("POST", "/api/schedules/nightly/trigger", "").WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/schedules/other/trigger", "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)

	var list api.Executions
	b.Do("GET", "/api/schedules/nightly/executions", "").Want(t, http.StatusOK, &list)
	var words []string
	for _, e := range list.Executions {
		words = append(words, e.Status+"/"+e.Outcome)
	}
	if got := strings.Join(words, " "); got != "failed/skipped_error skipped/skipped_busy failed/skipped_queue_full held/held queued/queued" {
		t.Errorf("%s", got)
	}
	var log api.AuditLog
	b.Do("GET", "/api/audit?event_type=schedule&action=triggered", "").Want(t, http.StatusOK, &log)
	results := ""
	for _, row := range log.Rows {
		results += row.Result + " "
	}
	if results != "success success failed failed failed failed " {
		t.Errorf("%s", results)
	}
}

// Triggers have the same rate limit per caller as submits.
func TestATriggerCountsInTheRateOfItsCaller(t *testing.T) {
	b, f := newScheduleBox(t, func(o *apitest.Options) { o.Engine.SubmitTasks, o.Config.Token = 3, "of-an-admin" })
	ci := apitest.Bearer(b.AddToken(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeSchedule}}))
	createSchedule(b, nightly, ci)
	f.TriggerResult = signalbox.ScheduleRun{Status: signalbox.RunHeld}
	trigger := func(who apitest.Edit) apitest.Reply { return b.Do("POST", "/api/schedules/nightly/trigger", "", who) }
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, ci).Want(t, http.StatusCreated, nil)
	for range 2 {
		trigger(ci).Want(t, http.StatusCreated, nil)
	}
	if e := trigger(ci).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited); e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	b.Do("POST", "/api/queue/task", `{"prompt":"p"}`, ci).WantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	for range 5 {
		trigger(apitest.Bearer("of-an-admin")).Want(t, http.StatusCreated, nil)
	}
}

// The status of a firing is that of its task.
func TestAFiringIsAsItsTaskIs(t *testing.T) {
	b, f := newScheduleBox(t)
	a := b.AddAgent("coder", 1)
	s := createSchedule(b, nightly)
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	f.TriggerResult = signalbox.ScheduleRun{Status: signalbox.RunQueued, QueueID: id}
	b.Do("POST", "/api/schedules/nightly/trigger", "").Want(t, http.StatusCreated, nil)
	status := func() string {
		var got api.Schedule
		b.Do("GET", "/api/schedules/nightly", "").Want(t, http.StatusOK, &got)
		if got.LastQueueID != id || got.LastStatus != "queued" || got.LastRunAt == nil {
			t.Errorf("%+v", got)
		}
		return got.Outcomes[0].Status
	}
	if got := status(); got != "queued" {
		t.Error(got)
	}
	task := b.Run(a)
	if got := status(); got != "running" {
		t.Error(got)
	}
	b.FinishTask(task, signalbox.ReasonExitNonzero, signalbox.Result{})
	if got := status(); got != "failed" {
		t.Error(got)
	}
	f.RunsOf[s.ID][0].QueueID = "queue-00000000000000000000000000"
	if got := status(); got != "ended" { // its task was pruned
		t.Error(got)
	}
}
