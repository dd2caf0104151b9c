package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// A trigger answers with the task, or says why there is none.
func TestATriggerSaysWhatItCameTo(t *testing.T) {
	b, f := newScheduleBox(t)
	b.schedule(nightly)
	id := b.submit(`{"prompt":"p"}`).QueueID
	trigger := func(status signalbox.RunStatus, queueID, text string) reply {
		f.fires = signalbox.ScheduleRun{Status: status, QueueID: queueID, Error: text}
		return b.do("POST", "/api/schedules/nightly/trigger", "")
	}
	var got api.Triggered
	trigger(signalbox.RunQueued, id, "").want(t, http.StatusCreated, &got)
	if got.QueueID != id || got.Execution.Status != "queued" || got.Execution.By != "a local caller" || got.Execution.Trigger != "manual" {
		t.Errorf("%+v", got)
	}
	got = api.Triggered{}
	trigger(signalbox.RunHeld, "", "").want(t, http.StatusCreated, &got)
	if got.QueueID != "" || got.Execution.Status != "held" {
		t.Errorf("%+v", got)
	}
	const full = "Agent queue full (3 waiting), skipping scheduled execution"
	if e := trigger(signalbox.SkippedQueueFull, "", full).wantError(t, http.StatusServiceUnavailable, signalbox.CodeQueueFull); e.Message != full || e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	trigger(signalbox.SkippedBusy, "", "the task before has not ended").wantError(t, http.StatusConflict, signalbox.CodeConflict)
	trigger(signalbox.SkippedError, "", "no agent is named coder").wantError(t, http.StatusConflict, signalbox.CodeConflict)
	f.refuse = signalbox.Errorf(signalbox.CodeConflict, "a firing of nightly is under way")
	b.do("POST", "/api/schedules/nightly/trigger", "").wantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.do("POST", "/api/schedules/other/trigger", "").wantError(t, http.StatusNotFound, signalbox.CodeNotFound)

	var list api.Executions
	b.do("GET", "/api/schedules/nightly/executions", "").want(t, http.StatusOK, &list)
	var words []string
	for _, e := range list.Executions {
		words = append(words, e.Status+"/"+e.Outcome)
	}
	if got := strings.Join(words, " "); got != "failed/skipped_error skipped/skipped_busy failed/skipped_queue_full held/held queued/queued" {
		t.Errorf("%s", got)
	}
	var log api.AuditLog
	b.do("GET", "/api/audit?event_type=schedule&action=triggered", "").want(t, http.StatusOK, &log)
	results := ""
	for _, row := range log.Rows {
		results += row.Result + " "
	}
	if results != "success success failed failed failed failed " {
		t.Errorf("%s", results)
	}
}

// Who fires schedules submits as often in a minute as who submits, and no more.
func TestATriggerCountsInTheRateOfItsCaller(t *testing.T) {
	b, f := newScheduleBox(t, func(o *options) { o.engine.SubmitTasks, o.director.Token = 3, "of-an-admin" })
	ci := bearer(b.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit, signalbox.ScopeSchedule}}))
	b.schedule(nightly, ci)
	f.fires = signalbox.ScheduleRun{Status: signalbox.RunHeld}
	trigger := func(who edit) reply { return b.do("POST", "/api/schedules/nightly/trigger", "", who) }
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, ci).want(t, http.StatusCreated, nil)
	for range 2 {
		trigger(ci).want(t, http.StatusCreated, nil)
	}
	if e := trigger(ci).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited); e.RetryAfter == 0 {
		t.Errorf("%+v", e)
	}
	b.do("POST", "/api/queue/task", `{"prompt":"p"}`, ci).wantError(t, http.StatusTooManyRequests, signalbox.CodeRateLimited)
	for range 5 {
		trigger(bearer("of-an-admin")).want(t, http.StatusCreated, nil)
	}
}

// How a firing goes is what its task says.
func TestAFiringIsAsItsTaskIs(t *testing.T) {
	b, f := newScheduleBox(t)
	a := b.agent("coder", 1)
	s := b.schedule(nightly)
	id := b.submit(`{"prompt":"p","agent":"coder"}`).QueueID
	f.fires = signalbox.ScheduleRun{Status: signalbox.RunQueued, QueueID: id}
	b.do("POST", "/api/schedules/nightly/trigger", "").want(t, http.StatusCreated, nil)
	status := func() string {
		var got api.Schedule
		b.do("GET", "/api/schedules/nightly", "").want(t, http.StatusOK, &got)
		if got.LastQueueID != id || got.LastStatus != "queued" || got.LastRunAt == nil {
			t.Errorf("%+v", got)
		}
		return got.Outcomes[0].Status
	}
	if got := status(); got != "queued" {
		t.Error(got)
	}
	task := b.work(a)
	if got := status(); got != "running" {
		t.Error(got)
	}
	b.finish(task, signalbox.ReasonExitNonzero, signalbox.Result{})
	if got := status(); got != "failed" {
		t.Error(got)
	}
	f.runs[s.ID][0].QueueID = "queue-00000000000000000000000000"
	if got := status(); got != "ended" { // its task has been pruned
		t.Error(got)
	}
}
