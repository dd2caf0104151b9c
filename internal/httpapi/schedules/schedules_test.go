package schedules_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

func newScheduleBox(t *testing.T, change ...func(*apitest.Options)) (*apitest.Fixture, *apitest.Schedules) {
	t.Helper()
	var f *apitest.Schedules
	b := apitest.New(t, append(change, apitest.WithSchedules(&f))...)
	return b, f
}

const nightly = `{"name":"nightly","cron_expression":"0 1 * * *","message":"Tidy up","agent_name":"coder"}`

func createSchedule(b *apitest.Fixture, body string, who ...apitest.Edit) api.Schedule {
	b.T.Helper()
	var out api.Schedule
	b.Do("POST", "/api/schedules", body, who...).Want(b.T, http.StatusCreated, &out)
	return out
}

// sendSchedule sends a request and returns the schedule in the answer.
func sendSchedule(b *apitest.Fixture, method, path, body string) (s api.Schedule) {
	b.T.Helper()
	b.Do(method, path, body).Want(b.T, http.StatusOK, &s)
	return s
}

func TestAScheduleIsMadeChangedAndForgotten(t *testing.T) {
	var c apitest.Clock
	b, f := newScheduleBox(t, apitest.WithClock(&c))
	s := createSchedule(b, nightly)
	if s.Words == "" || s.Timezone != "Europe/Berlin" || !s.Enabled || s.Source != "api" || len(s.NextRuns) != 3 || s.NextRunAt == nil || s.OverdueSeconds != 0 ||
		s.MissedWindowSeconds != 86400 || s.Overlap != "queue" || s.Message != "Tidy up" || s.AgentName != "coder" || s.Outcomes != nil {
		t.Fatalf("%+v", s)
	}
	for _, ref := range []string{s.ID, "nightly"} {
		b.Do("GET", "/api/schedules/"+ref, "").Want(t, http.StatusOK, &s)
	}
	s = sendSchedule(b, "POST", "/api/schedules/nightly/disable", "")
	if s.Enabled || s.NextRunAt != nil || s.NextRuns != nil {
		t.Errorf("disabled: %+v", s)
	}
	// enabled stays if the body does not have it; all other fields are replaced.
	s = sendSchedule(b, "PUT", "/api/schedules/nightly", `{"name":"nightly2","schedule":"@weekly","prompt":"Tidy up well","timezone":"UTC","priority":2,"project":{"path":"/srv"},"thinking":false}`)
	if s.Enabled || s.Name != "nightly2" || s.CronExpression != "@weekly" || s.AgentName != "" || s.Timezone != "UTC" || s.Project.Path != "/srv" || *s.Thinking {
		t.Errorf("edited: %+v", s)
	}
	sendSchedule(b, "POST", "/api/schedules/"+s.ID+"/enable", "")
	b.Do("DELETE", "/api/schedules/nightly2", "").Want(t, http.StatusNoContent, nil)
	b.Do("GET", "/api/schedules/nightly2", "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	want := "add nightly by a local caller, enabled false nightly by a local caller, edit nightly2 by a local caller, enabled true nightly2 by a local caller, remove nightly2 by a local caller"
	if got := strings.Join(f.ChangedBy, ", "); got != want {
		t.Errorf("%s", got)
	}
	wantAudit(t, b, "created", "disabled", "edited", "enabled", "removed")
}

// wantAudit checks the rows of schedules in the audit log, and that an edit has the old values.
func wantAudit(t *testing.T, b *apitest.Fixture, actions ...string) {
	t.Helper()
	var log api.AuditLog
	b.Do("GET", "/api/audit?event_type=schedule", "").Want(t, http.StatusOK, &log)
	for i, row := range log.Rows {
		if i >= len(actions) || row.Action != actions[i] || row.Result != "success" || !strings.HasPrefix(row.Resource, "sched-") {
			t.Errorf("row %d: %+v", i, row)
		}
		if row.Action != "edited" {
			continue
		}
		var d struct{ Before, After map[string]any }
		if err := json.Unmarshal([]byte(row.Details), &d); err != nil || d.Before["cron_expression"] != "0 1 * * *" || d.After["cron_expression"] != "@weekly" ||
			d.Before["agent_name"] != "coder" || d.After["agent_name"] != nil || d.Before["overlap"] != nil || !strings.HasPrefix(fmt.Sprint(d.Before["message"]), "Tidy up (7 bytes, sha256 ") {
			t.Errorf("%v %s", err, row.Details)
		}
	}
	if len(log.Rows) != len(actions) {
		t.Errorf("%d rows, want %d", len(log.Rows), len(actions))
	}
}

func TestASchedulesBodyIsReadStrictly(t *testing.T) {
	b, f := newScheduleBox(t)
	for _, x := range []struct {
		body, field string
		code        signalbox.Code
		status      int
	}{
		{`{"cron_expression":"@daily","message":"m"}`, "name", "validation_error", 400},
		{`{"name":"a","message":"m"}`, "cron_expression", "validation_error", 400},
		{`{"name":"a","schedule":"@daily"}`, "message", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":" "}`, "message", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","cron_expression":"@daily","prompt":"m"}`, "schedule", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","message":"m"}`, "prompt", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","agent":"x","agent_name":"x"}`, "agent", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","agent":"commands@local"}`, "agent_name", "validation_error", 400},
		{`{"name":"a","schedule":"0 0 31 2 *","prompt":"m"}`, "schedule", "validation_error", 400},
		{`{"name":"a","cron_expression":"@every 5m","prompt":"m"}`, "cron_expression", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","timezone":"Mars/Olympus"}`, "timezone", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","missed_window_seconds":59}`, "missed_window_seconds", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","missed_window_seconds":9223372036854775807}`, "missed_window_seconds", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","delivery":{}}`, "delivery", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","checks":[{"name":"a","run":1}]}`, "checks[0].run", "validation_error", 400},
		{`{"name":"a","schedule":"@daily","prompt":"m","cron":"@daily"}`, "cron", "validation_error", 400},
		{`{"name":"taken","schedule":"@daily","prompt":"m"}`, "name", "conflict", 409},
		{`{"name":"a","schedule":"@daily","prompt":"` + strings.Repeat("x", 1<<20) + `"}`, "", "too_large", 413},
	} {
		if _, err := f.Get(t.Context(), "taken"); err != nil {
			createSchedule(b, strings.Replace(nightly, "nightly", "taken", 1))
		}
		if e := b.Do("POST", "/api/schedules", x.body).WantError(t, x.status, x.code); e.Field != x.field {
			t.Errorf("%.100s: field %q, want %q: %s", x.body, e.Field, x.field, e.Message)
		}
		if x.status != 409 {
			b.Do("PUT", "/api/schedules/taken", x.body).WantError(t, x.status, x.code)
		}
	}
	// Errors of the scheduler use the field name that was sent.
	for sent, field := range map[string]string{"agent": "agent", "agent_name": "agent_name"} {
		f.Refuse = &signalbox.Error{Code: signalbox.CodeNotFound, Field: "agent", Message: "no agent is named x"}
		e := b.Do("POST", "/api/schedules", `{"name":"a","schedule":"@daily","prompt":"m","`+sent+`":"x"}`).WantError(t, 404, signalbox.CodeNotFound)
		if e.Field != field {
			t.Errorf("%s: %q", sent, e.Field)
		}
	}
}

func TestScheduleFromTheConfigurationIsChangedThere(t *testing.T) {
	b, f := newScheduleBox(t)
	f.ByID["sched-job"] = signalbox.Schedule{ID: "sched-job", Name: "job", Cron: "@daily", Prompt: "p", Source: signalbox.ScheduleFromConfig, Enabled: true}
	b.Do("PUT", "/api/schedules/job", nightly).WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("DELETE", "/api/schedules/job", "").WantError(t, http.StatusConflict, signalbox.CodeConflict)
	b.Do("POST", "/api/schedules/job/disable", "").Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/schedules/job/enable", "").Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/schedules/job/trigger", "").Want(t, http.StatusCreated, nil)
}

// A schedule belongs to its owner: others with the same rights may only read it. A caller that is
// limited to other agents cannot see it.
func TestOnlyTheOwnerAndAdminsChangeASchedule(t *testing.T) {
	b, f := newScheduleBox(t, apitest.WithToken)
	b.AddAgent("coder", 1)
	b.AddUser(identity.PutUser{ID: "ada"})
	b.AddUser(identity.PutUser{ID: "ben"})
	owner, other := apitest.Bearer(b.AddToken(identity.NewToken{Name: "t1", User: "ada"})), apitest.Bearer(b.AddToken(identity.NewToken{Name: "t2", User: "ben"}))
	agent := apitest.Bearer(b.AddToken(identity.NewToken{Name: "t3", Agent: "coder"}))
	all := []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSubmit, signalbox.ScopeSchedule}
	limited := apitest.Bearer(b.AddToken(identity.NewToken{Name: "t4", Scopes: all, Agents: []string{"reviewer"}}))
	s := createSchedule(b, nightly, owner)
	if s.OwnerID != "user:ada" {
		t.Errorf("%+v", s)
	}
	deeds := [][3]string{
		{"PUT", "/api/schedules/nightly", strings.Replace(nightly, "Tidy", "Clean", 1)}, {"POST", "/api/schedules/nightly/disable", ""},
		{"POST", "/api/schedules/nightly/enable", ""}, {"POST", "/api/schedules/nightly/trigger", ""}, {"DELETE", "/api/schedules/nightly", ""},
	}
	for _, deed := range deeds {
		for _, who := range []apitest.Edit{other, agent} {
			b.Do(deed[0], deed[1], deed[2], who).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
		}
		b.Do(deed[0], deed[1], deed[2], limited).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
	for _, path := range []string{"/api/schedules/nightly", "/api/schedules/nightly/executions"} {
		b.Do("GET", path, "", other).Want(t, http.StatusOK, nil)
		b.Do("GET", path, "", limited).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
	var list api.Schedules
	b.Do("GET", "/api/schedules", "", limited).Want(t, http.StatusOK, &list)
	if len(list.Schedules) != 0 {
		t.Errorf("%+v", list)
	}
	for _, who := range []apitest.Edit{owner, apitest.Bearer(apitest.Secret)} {
		for _, deed := range deeds[:4] {
			if got := b.Do(deed[0], deed[1], deed[2], who); got.StatusCode >= 300 {
				t.Errorf("%v: %d %s", deed, got.StatusCode, got.Body)
			}
		}
	}
	if got, _ := f.Get(t.Context(), "nightly"); got.Owner != "user:ada" {
		t.Errorf("an admin's change made it %s's", got.Owner)
	}
}

// A caller that is limited to some agents can make schedules only for these.
func TestALimitedCallerMakesSchedulesForItsAgents(t *testing.T) {
	b, _ := newScheduleBox(t, apitest.WithToken)
	who := apitest.Bearer(b.AddToken(identity.NewToken{Name: "t", Scopes: []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeSchedule}, Agents: []string{"reviewer"}}))
	make := func(name, agent string) apitest.Reply {
		return b.Do("POST", "/api/schedules", `{"name":"`+name+`","schedule":"@daily","prompt":"p"`+agent+`}`, who)
	}
	if e := make("a", `,"agent":"coder"`).WantError(t, http.StatusNotFound, signalbox.CodeNotFound); e.Field != "agent" || strings.Contains(e.Message, "is not known") {
		t.Errorf("%+v", e)
	}
	make("a", ``).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	make("a", `,"kind":"claude"`).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	make("a", `,"agent":"reviewer"`).Want(t, http.StatusCreated, nil)
	b.Do("PUT", "/api/schedules/a", `{"name":"a","schedule":"@daily","prompt":"p","agent_name":"coder"}`, who).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("PUT", "/api/schedules/a", `{"name":"a","schedule":"@daily","prompt":"p"}`, who).WantError(t, http.StatusForbidden, signalbox.CodeForbidden)
}

func TestSchedulesAreListedByPagesAndFilters(t *testing.T) {
	b, f := newScheduleBox(t)
	for i := range 5 {
		s := createSchedule(b, fmt.Sprintf(`{"name":"job-%d","schedule":"@daily","prompt":"p","agent":"a%d","enabled":%v}`, i, i%2, i != 3))
		f.RunsOf[s.ID] = []signalbox.ScheduleRun{{ID: "1", Status: signalbox.SkippedBusy}, {ID: "2", Status: signalbox.SkippedBusy}}
	}
	names := func(query string) string {
		var page api.Schedules
		b.Do("GET", "/api/schedules?"+query, "").Want(t, http.StatusOK, &page)
		var out []string
		for _, s := range page.Schedules {
			out = append(out, fmt.Sprintf("%s:%d", strings.TrimPrefix(s.Name, "job-"), len(s.Outcomes)))
		}
		return strings.Join(out, " ") + " " + page.Next
	}
	for query, want := range map[string]string{
		"": "0:0 1:0 2:0 3:0 4:0 ", "limit=2": "0:0 1:0 job-1", "limit=2&after=job-1": "2:0 3:0 job-3", "limit=2&after=job-3": "4:0 ",
		"agent=a1": "1:0 3:0 ", "agent=a1&enabled=true": "1:0 ", "enabled=false": "3:0 ", "name=job-4&outcomes=1": "4:1 ", "name=none": " ", "outcomes=20": "0:2 1:2 2:2 3:2 4:2 ",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "outcomes=21", "outcomes=x", "enabled=yes", "state=enabled"} {
		b.Do("GET", "/api/schedules?"+query, "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	b.Do("GET", "/api/schedules/job-1/executions?limit=101", "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}

func TestStatusCountsSchedules(t *testing.T) {
	var c apitest.Clock
	b, f := newScheduleBox(t, apitest.WithClock(&c))
	createSchedule(b, nightly)
	s := createSchedule(b, `{"name":"late","schedule":"@daily","prompt":"p"}`)
	late := f.ByID[s.ID]
	late.Cursor, late.LastStatus = c.Now().Add(-5*time.Minute), signalbox.SkippedQueueFull
	f.ByID[s.ID] = late
	createSchedule(b, `{"name":"off","schedule":"@daily","prompt":"p","enabled":false}`)
	var got api.Status
	b.Do("GET", "/status", "").Want(t, http.StatusOK, &got)
	if g := got.Scheduler; g == nil || g.Schedules != 3 || g.Enabled != 2 || g.Failing != 1 || g.NextRun == nil || !g.NextRun.Equal(late.Cursor) {
		t.Errorf("%+v", g)
	}
	b.Do("GET", "/api/schedules/late", "").Want(t, http.StatusOK, &s)
	if s.OverdueSeconds != 300 {
		t.Errorf("%+v", s)
	}
}

func TestWhatAnExpressionMeans(t *testing.T) {
	var c apitest.Clock
	b, _ := newScheduleBox(t, apitest.WithClock(&c))
	var got api.CronCheck
	check := func(expression, more string) apitest.Reply {
		return b.Do("GET", "/api/cron?expression="+url.QueryEscape(expression)+more, "")
	}
	check("0  9 * * 1-5", "&n=2").Want(t, http.StatusOK, &got)
	if got.CronExpression != "0 9 * * 1-5" || got.Timezone != "Europe/Berlin" || got.Words == "" || len(got.NextRuns) != 2 || got.NextRuns[0].UTC().Hour() != 8 {
		t.Errorf("%+v", got)
	}
	for query, field := range map[string]string{"": "expression", "0 0 31 2 *": "expression"} {
		if e := check(query, "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation); e.Field != field {
			t.Errorf("%q: %+v", query, e)
		}
	}
	if e := check("@daily", "&timezone=Mars/Olympus").WantError(t, http.StatusBadRequest, signalbox.CodeValidation); e.Field != "timezone" {
		t.Errorf("%+v", e)
	}
	check("@daily", "&n=51").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}

func TestADirectorWithoutAScheduler(t *testing.T) {
	b := apitest.New(t)
	b.Do("GET", "/api/schedules", "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("POST", "/api/schedules", nightly).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	b.Do("GET", "/api/cron?expression=@daily", "").Want(t, http.StatusOK, nil)
	var got api.Status
	if b.Do("GET", "/status", "").Want(t, http.StatusOK, &got); got.Scheduler != nil {
		t.Errorf("%+v", got.Scheduler)
	}
}

// A task of a schedule is an activity of its own type, whoever owns it.
func TestTasksOfSchedulesAreActivitiesOfSchedules(t *testing.T) {
	b, _ := newScheduleBox(t)
	id := b.Submit(`{"prompt":"p","source":"scheduler","source_job":"nightly"}`).QueueID
	var got api.Activity
	b.Do("GET", "/api/activities/"+id, "").Want(t, http.StatusOK, &got)
	if got.Type != "schedule_start" || got.TriggeredBy != "schedule" || got.Details.Job != "nightly" {
		t.Errorf("%+v", got)
	}
}
