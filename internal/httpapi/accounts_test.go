package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// parked makes a director with a task of agent coder that is parked at its account coder, which
// is closed for an hour, and another task that waits behind it.
func parked(t *testing.T, change ...func(*apitest.Options)) (b *apitest.Fixture, id, behind string) {
	t.Helper()
	b = apitest.New(t, change...)
	b.AddAgent("coder", 1)
	a := b.ReportAccount("coder", nil)
	id = b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	behind = b.Submit(`{"prompt":"later","agent":"coder"}`).QueueID
	b.Park(b.Run(a), time.Hour)
	return b, id, behind
}

func accountOf(t *testing.T, b *apitest.Fixture, edits ...apitest.Edit) api.Account {
	t.Helper()
	var all api.Accounts
	b.Do("GET", "/api/accounts", "", edits...).Want(t, http.StatusOK, &all)
	if len(all.Accounts) != 1 {
		t.Fatalf("%+v", all)
	}
	return all.Accounts[0]
}

func TestAnAccountAtItsLimit(t *testing.T) {
	b, id, behind := parked(t)
	a := accountOf(t, b)
	if a.State != "closed" || a.Window != "five_hour" || a.Source != "event" || a.Reason != "You've hit your limit" || a.Waiting != 1 || a.Parked != 1 || !slices.Equal(a.Agents, []string{"coder"}) {
		t.Errorf("%+v", a)
	}
	// The first request after the reset comes within a second of it.
	if wait := time.Until(*a.Until); wait < 59*time.Minute || wait > time.Hour+time.Second {
		t.Errorf("it is closed for %s", wait)
	}
	var first, second api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &first)
	b.Do("GET", "/api/queue/"+behind, "").Want(t, 200, &second)
	if first.State != "parked" || first.Parks != 1 || first.Position != 1 || first.Attempts != 0 || first.WaitingFor == nil || first.WaitingFor.Since == nil {
		t.Errorf("%+v", first)
	}
	if second.State != "pending" || second.Position != 2 || second.WaitingFor == nil || second.WaitingFor.Since == nil || second.WaitingFor.Text != a.Text || !second.WaitingFor.Until.Equal(*a.Until) {
		t.Errorf("%+v %+v", second, second.WaitingFor)
	}
	var q api.Queue
	b.Do("GET", "/api/queue", "").Want(t, 200, &q)
	if q.Depth != 2 || len(q.Tasks) != 2 || q.Tasks[0].QueueID != id || q.Tasks[0].WaitingFor == nil || q.Tasks[0].WaitingFor.Name != "coder" {
		t.Errorf("%+v", q)
	}
	var lane api.Lane
	b.Do("GET", "/api/agents/coder/queue", "").Want(t, 200, &lane)
	if lane.QueueLength != 2 || lane.IsBusy || lane.QueuedExecutions[0].ID != id || lane.QueuedExecutions[0].Status != "queued" || lane.QueuedExecutions[0].StartedAt != nil {
		t.Errorf("%+v", lane)
	}
	var done api.Activity
	b.Do("GET", "/api/activities/"+id, "").Want(t, 200, &done)
	if done.State != "queued" || done.StartedAt != nil {
		t.Errorf("%+v", done)
	}
	if c, found, err := b.Engine.Claim(t.Context(), b.Live.List[0].Agent, 0); found || !c.Held || err != nil {
		t.Errorf("a claim through a closed account: %+v, %v", c, err)
	}
}

// Actions that a parked task does not allow are refused with a helpful message, and change
// nothing.
func TestParkedTaskRefusals(t *testing.T) {
	b, id, _ := parked(t)
	var before, after, end api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &before)
	for _, r := range []struct{ method, path, body, message string }{
		{"PATCH", "/api/queue/" + id, `{"revision":4,"prompt":"another"}`, "parked"},
		{"POST", "/api/queue/" + id + "/retry", "", "parked"},
		{"POST", "/api/sessions/talk-coder/archive", "", ""},
	} {
		got := b.Do(r.method, r.path, r.body).WantError(t, http.StatusConflict, signalbox.CodeConflict)
		if !strings.Contains(got.Message, r.message) {
			t.Errorf("%s %s: %s", r.method, r.path, got.Message)
		}
	}
	var released api.Released
	b.Do("POST", "/api/agents/coder/queue/release", "").Want(t, 200, &released) // the parked task holds no slot
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &after)
	if after.State != "parked" || after.Revision != before.Revision {
		t.Errorf("%+v\n%+v", before, after)
	}
	var cancelled api.Cancelled
	b.Do("POST", "/api/queue/"+id+"/cancel", "").Want(t, 200, &cancelled)
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &end)
	if cancelled.State != "cancelled" || cancelled.WasDispatched || end.Reason != "cancelled" || end.WaitingFor != nil || end.Parks != 1 || accountOf(t, b).Parked != 0 {
		t.Errorf("%+v\n%+v", cancelled, end)
	}
}

// Clearing an agent's queue or removing the agent handles its parked tasks.
func TestClearAndRemoveWithAParkedTask(t *testing.T) {
	b, id, behind := parked(t)
	b.Do("DELETE", "/api/agents/coder", "").Want(t, http.StatusNoContent, nil)
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	if task.State != "parked" || task.WaitingFor == nil {
		t.Errorf("%+v", task)
	}
	b, id, behind = parked(t)
	b.Do("POST", "/api/agents/coder/queue/clear", "").Want(t, 200, nil)
	for _, one := range []string{id, behind} {
		var task api.Task
		b.Do("GET", "/api/queue/"+one, "").Want(t, 200, &task)
		if task.State != "cancelled" {
			t.Errorf("%+v", task)
		}
	}
}

func TestAccountsAreOpenedAndClosed(t *testing.T) {
	b, id, _ := parked(t)
	for body, field := range map[string]string{
		`{"until":"2020-01-01T00:00:00Z"}`:              "until",
		`{"until":"2999-01-01T00:00:00Z"}`:              "until",
		`{"until":"soon"}`:                              "until",
		`{"reason":"two\nlines"}`:                       "reason",
		`{"reason":"` + strings.Repeat("x", 301) + `"}`: "reason",
		`{"for":"2h"}`:                                  "for",
	} {
		if got := b.Do("POST", "/api/accounts/coder/close", body).WantError(t, http.StatusBadRequest, signalbox.CodeValidation); got.Field != field {
			t.Errorf("%s: %+v", body, got)
		}
	}
	for _, verb := range []string{"open", "close"} {
		got := b.Do("POST", "/api/accounts/nobody/"+verb, "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if !strings.Contains(got.Message, "signalbox accounts") {
			t.Error(got.Message)
		}
	}
	var v api.Account
	b.Do("POST", "/api/accounts/coder/close", "").Want(t, 200, &v)
	if v.State != "closed" || v.Until != nil || v.Parked != 1 || v.Waiting != 1 || v.Source != "a local caller" || !strings.Contains(v.Text, "until someone opens it") {
		t.Errorf("%+v", v)
	}
	b.Do("POST", "/api/accounts/coder/open", "").Want(t, 200, &v)
	if v.State != "open" || v.Until != nil || v.Reason != "" || len(v.Agents) != 1 {
		t.Errorf("%+v", v)
	}
	if err := b.Engine.OpenGates(t.Context()); err != nil {
		t.Fatal(err)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	if task.State != "pending" || task.Position != 1 || task.Parks != 1 || task.WaitingFor != nil {
		t.Errorf("%+v", task)
	}
	if again := b.Run(b.Live.List[0].Agent); again.ID != id || again.SessionID != "talk-coder" {
		t.Errorf("%+v", again)
	}
}

// The audit log records who closes and opens accounts. Callers that are limited to agents see
// only the accounts of these agents, and cannot open any.
func TestWhoOpensAccounts(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	b.Do("POST", "/api/accounts/coder/close", `{"reason":"left for the release"}`, show["cookie"]...).Want(t, 200, nil)
	row := b.LastAudit()
	if row.EventType != "account" || row.Action != "close" || row.Resource != "coder" || row.UserID != "anna" || !strings.Contains(string(row.Details), "left for the release") {
		t.Errorf("%+v", row)
	}
	if a := accountOf(t, b, show["read"]...); a.State != "closed" || a.Reason != "left for the release" {
		t.Errorf("%+v", a)
	}
	var all api.Accounts
	b.Do("GET", "/api/accounts", "", show["limited"]...).Want(t, 200, &all)
	if all.Accounts == nil || len(all.Accounts) != 0 {
		t.Errorf("%+v", all)
	}
	b.ReportAccount("other", nil)
	b.Do("GET", "/api/accounts", "", show["limited"]...).Want(t, 200, &all)
	if len(all.Accounts) != 1 || all.Accounts[0].Name != "other" {
		t.Errorf("%+v", all)
	}
}
