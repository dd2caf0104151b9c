package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// A task shows the checks that it was submitted with, and their results.
func TestChecksOfATask(t *testing.T) {
	b := apitest.New(t)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"build it","checks":[{"name":"test","run":"make test","timeout_seconds":60}],"check_retries":0}`)
	task := b.Run(a)
	code := 2
	b.FinishTask(task, signalbox.ReasonChecks, signalbox.Result{Output: "done", Checked: &signalbox.Checked{
		State: signalbox.CheckFailed, Rounds: 3, Results: []signalbox.CheckResult{
			{Name: "test", State: signalbox.CheckFailed, ExitCode: &code, Seconds: 1.5, Output: "FAIL <x>\n"}, {Name: "lint", State: signalbox.CheckPassed, Seconds: 1},
		},
	}})
	var shown api.Task
	b.Do("GET", "/api/queue/"+task.ID, "").Want(t, http.StatusOK, &shown)
	if len(shown.Checks) != 1 || shown.Checks[0] != (api.TaskCheck{Name: "test", Run: "make test", TimeoutSeconds: 60}) || shown.CheckRetries == nil || *shown.CheckRetries != 0 {
		t.Errorf("asked for %+v, %v", shown.Checks, shown.CheckRetries)
	}
	c := shown.Result.Checks
	if shown.Reason != "checks" || c == nil || c.State != "failed" || c.Rounds != 3 || len(c.Results) != 2 || c.Results[0].Output != "FAIL <x>\n" || *c.Results[0].ExitCode != 2 {
		t.Fatalf("%s %+v", shown.Reason, c)
	}
	if got := c.Summary(); got != "failed (test) after 3 rounds" {
		t.Errorf("in words: %s", got)
	}
	var h api.History
	b.Do("GET", "/api/history?reason=checks", "").Want(t, http.StatusOK, &h)
	if len(h.Tasks) != 1 || h.Tasks[0].QueueID != task.ID {
		t.Errorf("the history has %+v", h.Tasks)
	}

	var page api.Export
	for b.Do("GET", "/api/export", "").Want(t, http.StatusOK, &page); len(page.Tasks) == 0; {
		next := page.Next
		page = api.Export{}
		b.Do("GET", "/api/export?after="+next, "").Want(t, http.StatusOK, &page)
	}
	var r map[string]any
	if err := json.Unmarshal(page.Tasks[0].Result, &r); err != nil {
		t.Fatal(err)
	}
	r["checked"].(map[string]any)["message"] = "\x1b[31m"
	page.Tasks[0].Result = json.RawMessage(jsonOf(t, r))
	other := apitest.New(t)
	other.Do("POST", "/api/import", jsonOf(t, api.ImportRequest{Tasks: page.Tasks})).Want(t, http.StatusOK, nil)
	shown = api.Task{}
	other.Do("GET", "/api/queue/"+task.ID, "").Want(t, http.StatusOK, &shown)
	if len(shown.Checks) != 1 || shown.Result.Checks == nil || shown.Result.Checks.Rounds != 3 || shown.Result.Checks.Message != "\uFFFD[31m" {
		t.Errorf("imported: %+v", shown.Result.Checks)
	}
}

func TestChecksInWords(t *testing.T) {
	two := []api.CheckResult{{Name: "test", State: "passed"}, {Name: "lint", State: "unavailable"}}
	for want, c := range map[string]api.AgentChecks{
		"passed (test) after 1 round":      {State: "passed", Rounds: 1, Results: two[:1]},
		"failed (a, b) after 2 rounds":     {State: "failed", Rounds: 2, Results: []api.CheckResult{{Name: "a", State: "failed"}, {Name: "c", State: "passed"}, {Name: "b", State: "timeout"}}},
		"unchecked: lint could not be run": {State: "unavailable", Rounds: 1, Results: two},
		"unchecked: signalbox trust FILE":  {State: "unavailable", Message: "signalbox trust FILE"},
		"unchecked: no check could be run": {State: "unavailable"},
	} {
		if got := c.Summary(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestChecksThatAreRefused(t *testing.T) {
	b := apitest.New(t)
	for body, want := range map[string]string{
		`{"prompt":"p","checks":[{"name":"","run":"x"}]}`:                                                          "name of a check",
		`{"prompt":"p","checks":[{"name":"a","run":""}]}`:                                                          "no command",
		`{"prompt":"p","checks":[{"name":"a","run":"x","timeout_seconds":-1}]}`:                                    "timeout_seconds",
		`{"prompt":"p","checks":[{"name":"a","run":"x"},{"name":"a","run":"y"}]}`:                                  "two checks",
		`{"prompt":"p","checks":[{"name":"a","run":"x","when":"now"}]}`:                                            "when",
		`{"prompt":"p","checks":{"a":"x"}}`:                                                                        "checks",
		`{"prompt":"p","check_retries":11}`:                                                                        "0 to 10",
		`{"prompt":"p","check_retries":-1}`:                                                                        "0 to 10",
		`{"prompt":"p","check_retries":"all"}`:                                                                     "check_retries",
		`{"prompt":"p","checks":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","run":"x"},`, 21), ",") + `]}`: "21 entries",
	} {
		got := b.Do("POST", "/api/queue/task", body)
		got.WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if !strings.Contains(string(got.Body), want) {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
}
