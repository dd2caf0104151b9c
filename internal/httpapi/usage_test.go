package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

func usageOf(b *apitest.Fixture, query string, edits ...apitest.Edit) api.Usage {
	b.T.Helper()
	var out api.Usage
	b.Do("GET", "/api/usage"+query, "", edits...).Want(b.T, http.StatusOK, &out)
	return out
}

// rowsOf formats the names, runs and costs of the rows.
func rowsOf(u api.Usage) string {
	var list []string
	for _, r := range append(u.Rows, api.UsageRow{Name: "total", UsageSums: u.Total}) {
		list = append(list, fmt.Sprintf("%s %d %g", r.Name, r.Runs, r.CostUSD))
	}
	return strings.Join(list, ", ")
}

// spenders makes runs of two agents, models and schedules on two days.
func spenders(t *testing.T) *apitest.Fixture {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	run := func(agent, body, model string, usd float64) {
		t.Helper()
		a, err := b.Engine.Agent(t.Context(), agent)
		if err != nil {
			a = b.AddAgent(agent, 1)
		}
		b.Submit(body)
		b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{CostUSD: usd, InputTokens: 10, OutputTokens: 1, DurationSeconds: 2, Model: model})
	}
	run("coder", `{"prompt":"a"}`, "opus", 0.1)
	run("coder", `{"prompt":"b","source":"scheduler","source_job":"nightly"}`, "opus", 0.2)
	run("coder", `{"prompt":"c","source":"api","source_job":"nightly"}`, "sonnet", 1) // not from a scheduler
	c.Advance(24 * time.Hour)
	run("writer", `{"prompt":"d","source":"scheduler","source_job":"weekly"}`, "", 4)
	return b
}

func TestUsage(t *testing.T) {
	b := spenders(t)
	today := signalbox.DayOf(b.Engine.Now())
	for query, want := range map[string]string{
		"":                                     fmt.Sprintf("%s 3 1.3, %s 1 4, total 4 5.3", today-1, today),
		"?by=agent":                            "writer 1 4, coder 3 1.3, total 4 5.3",
		"?by=schedule":                         "weekly 1 4,  2 1.1, nightly 1 0.2, total 4 5.3",
		"?by=model":                            " 1 4, sonnet 1 1, opus 2 0.3, total 4 5.3",
		"?by=user":                             " 4 5.3, total 4 5.3",
		"?by=agent&agent=coder":                "coder 3 1.3, total 3 1.3",
		"?by=agent&schedule=nightly":           "coder 1 0.2, total 1 0.2",
		"?by=agent&model=opus":                 "coder 2 0.3, total 2 0.3",
		"?by=agent&user=user:ann":              "total 0 0",
		"?by=agent&from=" + today.String():     "writer 1 4, total 1 4",
		"?by=agent&to=" + (today - 1).String(): "coder 3 1.3, total 3 1.3",
	} {
		if got := rowsOf(usageOf(b, query)); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	u := usageOf(b, "")
	if u.From != (today-29).String() || u.To != today.String() || u.By != "day" || u.Total.InputTokens != 40 || u.Total.OutputTokens != 4 || u.Total.RunSeconds != 8 {
		t.Errorf("got %+v", u)
	}
	for _, query := range []string{"?by=hour", "?from=yesterday", "?to=2025-02-30", "?from=2025-01-02&to=2025-01-01", "?from=2020-01-01&to=2025-01-01"} {
		b.Do("GET", "/api/usage"+query, "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
}

// Rows of tasks show what their runs reported; a task that was lost and ran again shows the sum.
func TestListsShowWhatTasksCost(t *testing.T) {
	b := spenders(t)
	var h api.History
	b.Do("GET", "/api/history?agent=writer", "").Want(t, http.StatusOK, &h)
	if got := h.Tasks[0]; got.CostUSD != 4 || got.TokenUsage == nil || *got.TokenUsage != (api.TokenUsage{Input: 10, Output: 1}) {
		t.Errorf("the history has %+v", got)
	}
	if got := searchTasks(b, "agent:writer").Tasks[0]; got.CostUSD != 4 || got.Tokens != 11 {
		t.Errorf("the search has %+v", got)
	}
}

// A caller that is limited to some agents sees the usage of these agents, and of its own tasks.
func TestUsageOfLimitedCallers(t *testing.T) {
	b := spenders(t)
	h := b.Server.HandlerAs(signalbox.Principal{Kind: signalbox.PrincipalService, ID: "x", Scopes: signalbox.Scopes(), Agents: []string{"writer"}})
	var u api.Usage
	apitest.StartOn(t, h, "GET", "/api/usage?by=agent", "").Reply().Want(t, http.StatusOK, &u)
	if got := rowsOf(u); got != "writer 1 4, total 1 4" {
		t.Errorf("got %s", got)
	}
}

// An export has the sums, and an import stores each row once.
func TestUsageGoesWithAnExport(t *testing.T) {
	old := spenders(t)
	var rows []api.ExportedUsage
	var tasks []api.ExportedTask
	for after := ""; ; {
		var page api.Export
		old.Do("GET", "/api/export?limit=2&after="+after, "").Want(t, http.StatusOK, &page)
		rows, tasks = append(rows, page.Usage...), append(tasks, page.Tasks...)
		if after = page.Next; after == "" {
			break
		}
	}
	if len(rows) != 4 || len(tasks) != 4 {
		t.Fatalf("%d rows of usage and %d tasks: %+v", len(rows), len(tasks), rows)
	}
	body, err := json.Marshal(api.ImportRequest{Tasks: tasks, Usage: rows})
	if err != nil {
		t.Fatal(err)
	}
	next := apitest.New(t)
	for _, want := range []int{4, 0} {
		var got api.Imported
		next.Do("POST", "/api/import", string(body)).Want(t, http.StatusOK, &got)
		if got.Usage != want {
			t.Errorf("%d rows were stored, want %d", got.Usage, want)
		}
	}
	from := "?by=agent&from=" + rows[0].Day + "&to=" + rows[0].Day
	if a, b := usageOf(old, from), usageOf(next, from); rowsOf(a) != rowsOf(b) || len(a.Rows) == 0 {
		t.Errorf("usage was %+v and is %+v", a, b)
	}
	var h api.History
	next.Do("GET", "/api/history?agent=writer", "").Want(t, http.StatusOK, &h)
	if h.Tasks[0].CostUSD != 4 {
		t.Errorf("an imported task cost %v", h.Tasks[0].CostUSD)
	}
	for _, bad := range []string{`{"day":"x"}`, `{"day":"2025-01-01","runs":-1}`, `{"day":"2025-01-01","agent":"` + strings.Repeat("x", 300) + `"}`} {
		next.Do("POST", "/api/import", `{"tasks":[],"usage":[`+bad+`]}`).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
	}
	next.Do("GET", "/api/export?after=usage:x", "").WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
}
