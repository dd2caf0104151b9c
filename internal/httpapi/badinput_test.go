package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// bad is an input that must be refused, by default with status 400 and that field.
type bad struct {
	body, field string
	says        string // part of the message
}

var badSubmits = []bad{
	{``, "", "empty"},
	{`null`, "", "must be an object, not null"},
	{`[]`, "", "must be an object, not an array"},
	{`"p"`, "", "must be an object, not a string"},
	{`{"prompt":"p"`, "", "byte 13"},
	{`{"prompt":"p"} {}`, "", "byte 16"},
	{`{"prompt":"p"}x`, "", "byte 15"},
	{`{"prompt":"p",}`, "", "not valid JSON"},
	{`{'prompt':'p'}`, "", "not valid JSON"},
	{`{"prompt":"p","prompt":"q"}`, "prompt", "given twice"},
	{`{"prompt":"p","env":{"A":"1","A":"2"}}`, "env.A", "given twice"},
	{`{"Prompt":"p"}`, "Prompt", "not a known field"},
	{`{"promt":"p"}`, "promt", "not a known field"},
	{`{"prompt":"p","project":{"nme":"x"}}`, "project.nme", "not a known field"},
	{`{"prompt":5}`, "prompt", "prompt must be a string, not a number"},
	{`{"prompt":["p"]}`, "prompt", "prompt must be a string, not an array"},
	{`{"prompt":{"a":1}}`, "prompt", "prompt must be a string, not an object"},
	{`{"prompt":true}`, "prompt", "prompt must be a string, not a boolean"},
	{"{\"prompt\":\"\xff\"}", "", "UTF-8"},
	{`{"prompt":"\ud800"}`, "", "surrogate"},
	{`{"prompt":"\ud83d\u0041"}`, "", "surrogate"},
	{`{"prompt":"\udc00"}`, "", "surrogate"},
	{`{"prompt":"a\u0000b"}`, "prompt", "NUL"},
	{`{"prompt":"p","message":"m"}`, "message", "give one of them"},
	{`{"prompt":"p","timeout_seconds":"30"}`, "timeout_seconds", "must be a whole number, not a string"},
	{`{"prompt":"p","timeout_seconds":1.5}`, "timeout_seconds", "not 1.5"},
	{`{"prompt":"p","timeout_seconds":1e3}`, "timeout_seconds", "in digits"},
	{`{"prompt":"p","timeout_seconds":-1}`, "timeout_seconds", "0 to 604800"},
	{`{"prompt":"p","timeout_seconds":604801}`, "timeout_seconds", "0 to 604800"},
	{`{"prompt":"p","timeout_seconds":99999999999999999999}`, "timeout_seconds", "whole number"},
	{`{"prompt":"p","wait_timeout":-5}`, "wait_timeout", "seconds"},
	{`{"prompt":"p","wait_timeout":9223372036854775807}`, "wait_timeout", "seconds"},
	{`{"prompt":"p","wait_timeout":18446744074}`, "wait_timeout", "seconds"}, // in nanoseconds it wraps around to 0.3 s
	{`{"prompt":"p","priority":11}`, "priority", "-10 to 10"},
	{`{"prompt":"p","priority":-11}`, "priority", "-10 to 10"},
	{`{"prompt":"p","thinking":"yes"}`, "thinking", "true or false"},
	{`{"prompt":"p","env":["A=1"]}`, "env", "must be an object, not an array"},
	{`{"prompt":"p","env":{"A":1}}`, "env.A", "env.A must be a string, not a number"},
	{`{"prompt":"p","env":{"A":null}}`, "env.A", "not null"},
	{`{"prompt":"p","env":{"A=B":"1"}}`, "env", "name of an environment variable"},
	{`{"prompt":"p","env":{"":"1"}}`, "env", "name of an environment variable"},
	{`{"prompt":"p","not_before":"tomorrow"}`, "not_before", "2026-01-31T10:00:00Z"},
	{`{"prompt":"p","not_before":1700000000}`, "not_before", "not a number"},
	{`{"prompt":"p","not_before":"2999-01-01T00:00:00Z"}`, "not_before", "366 days"},
	{`{"prompt":"p","source":"mars"}`, "source", "one of"},
	{`{"prompt":"p","source_job":"a b"}`, "source_job", "name of a job"},
	{`{"prompt":"p","agent":"../x"}`, "agent", "name of an agent"},
	{`{"prompt":"p","agent":"a","kind":"b"}`, "kind", "exclude each other"},
	{`{"prompt":"p","kind":"a/b"}`, "kind", "kind of agent"},
	{`{"prompt":"p","session_id":"../../etc"}`, "session_id", "letters"},
	{`{"prompt":"p","session":"prefer"}`, "session", "session_id"},
	{`{"prompt":"p","session":"maybe","session_id":"s"}`, "session", "require or prefer"},
	{`{"prompt":"p","on_lost":"ignore"}`, "on_lost", "fail or requeue"},
	{`{"prompt":"p","model":"-rf"}`, "model", "hyphen"},
	{`{"prompt":"p","tier":"a\nb"}`, "tier", "printable"},
	{`{"prompt":"p","project":"x"}`, "project", "must be an object, not a string"},
	{`{"prompt":"p","project":{"path":"a\u0007"}}`, "project.path", "printable"},
}

func TestBadSubmits(t *testing.T) {
	b := apitest.New(t)
	for _, path := range []string{"/api/queue/task", "/api/task"} {
		for _, c := range badSubmits {
			e := b.Do("POST", path, c.body, apitest.Header("Content-Type", "application/json")).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
			if e.Field != c.field || !strings.Contains(e.Message, c.says) || e.Retryable {
				t.Errorf("%s %q: %+v", path, c.body, e)
			}
		}
	}
	n, err := b.Engine.Read().Counts(t.Context())
	if err != nil || n.Pending != 0 {
		t.Errorf("%d tasks were stored, %v", n.Pending, err)
	}
	e := b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"nobody"}`).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	if e.Field != "agent" {
		t.Errorf("%+v", e)
	}
}

func TestUnusualButGoodSubmits(t *testing.T) {
	b := apitest.New(t)
	for _, body := range []string{
		"  {\"prompt\":\"p\"}\n",
		`{"prompt":"\ud83d\ude00 \\ud800"}`,
		`{"prompt":"p","timeout_seconds":null,"env":null,"project":null,"thinking":null,"not_before":null}`,
		`{"prompt":"p","timeout_seconds":604800,"priority":-10,"thinking":false,"env":{},"not_before":"2020-01-01T00:00:00+02:00"}`,
		`{"message":"p"}`, `{"prompt":"","message":"p"}`,
	} {
		b.Submit(body)
	}
}

// known is the beginning of a valid registration.
const known = `{"name":"coder","kind":"demo","url":"http://127.0.0.1:9000"`

func TestBadInputEverywhere(t *testing.T) {
	b := apitest.New(t)
	b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	for _, c := range []struct {
		method, path string
		bad
	}{
		{"GET", "/api/queue?limit=0", bad{"", "limit", "1 to 1000"}},
		{"GET", "/api/queue?limit=1001", bad{"", "limit", "1 to 1000"}},
		{"GET", "/api/queue?limit=x", bad{"", "limit", "1 to 1000"}},
		{"GET", "/api/queue?limit=1&limit=2", bad{"", "limit", "twice"}},
		{"GET", "/api/queue?queue=nowhere", bad{"", "queue", "not a queue"}},
		{"GET", "/api/queue?after=!!", bad{"", "after", "next of the page before"}},
		{"GET", "/api/queue?after=MQ", bad{"", "after", "next of the page before"}},
		{"GET", "/api/queue?lmit=1", bad{"", "lmit", "not a query parameter"}},
		{"GET", "/api/queue?queue=%ff", bad{"", "queue", "not valid text"}},
		{"GET", "/api/queue?queue=%", bad{"", "", "malformed"}},
		{"GET", "/api/queue?a=1;b=2", bad{"", "", "malformed"}},
		{"GET", "/api/queue/" + id + "?wait=soon", bad{"", "wait", "30s"}},
		{"GET", "/api/queue/" + id + "?wait=-1s", bad{"", "wait", "30s"}},
		{"GET", "/api/queue/" + id + "?wait=301s", bad{"", "wait", "5m"}},
		{"GET", "/api/queue/" + id + "/output?after=-1", bad{"", "after", "from 0"}},
		{"GET", "/api/queue/" + id + "/output?after=1.5", bad{"", "after", "from 0"}},
		{"GET", "/api/queue/" + id + "/why?x=1", bad{"", "x", "not a query parameter"}},
		{"GET", "/api/events?after=x", bad{"", "after", "from 0"}},
		{"GET", "/api/events?queue_id=x", bad{"", "queue_id", "not the id"}},
		{"GET", "/api/history?state=pending", bad{"", "state", "completed, failed"}},
		{"GET", "/api/history?reason=because", bad{"", "reason", "one of"}},
		{"GET", "/api/history?since=yesterday", bad{"", "since", "an age such as 2h"}},
		{"GET", "/api/history?until=-2h", bad{"", "until", "an age such as 2h"}},
		{"GET", "/api/history?before=zz!", bad{"", "", ""}},
		{"POST", "/api/queue/" + id + "/retry", bad{`{"prompt":1}`, "prompt", "must be a string"}},
		{"POST", "/api/queue/" + id + "/retry", bad{`{"priority":1}`, "priority", "not a known field"}},
		{"POST", "/api/queue/pause", bad{`{"queue":"nowhere"}`, "queue", "not a queue"}},
		{"POST", "/api/queue/pause", bad{`{"until":"2020-01-01T00:00:00Z"}`, "until", "past"}},
		{"POST", "/api/queue/pause", bad{`{"seconds":-1}`, "seconds", "0 to"}},
		{"POST", "/api/queue/pause", bad{`{"seconds":1,"until":"2999-01-01T00:00:00Z"}`, "seconds", "give one"}},
		{"POST", "/api/queue/pause", bad{`{"reason":"a\nb"}`, "reason", "printable"}},
		{"POST", "/api/queue/pause", bad{`{"reason":"` + strings.Repeat("a", 2000) + `"}`, "reason", "printable"}},
		{"POST", "/api/queue/resume", bad{`{"reason":"x"}`, "reason", "belongs to a pause"}},
		{"POST", "/api/queue/resume", bad{`{"queue":"x y"}`, "queue", "not a queue"}},
		{"POST", "/api/agents", bad{`{}`, "url", "address of an agent"}},
		{"POST", "/api/agents", bad{`{"name":"a b","kind":"demo","url":"http://127.0.0.1:9000"}`, "name", "name of an agent"}},
		{"POST", "/api/agents", bad{`{"name":"a","kind":"","url":"http://127.0.0.1:9000"}`, "kind", "kind of agent"}},
		{"POST", "/api/agents", bad{known + `,"slots":-1}`, "slots", "1 to"}},
		{"POST", "/api/agents", bad{known + `,"slots":99999}`, "slots", "1 to"}},
		{"POST", "/api/agents", bad{known + `,"version":"a\nb"}`, "version", "printable"}},
		{"POST", "/api/agents", bad{known + `,"work_dir":"a\u001b[0m"}`, "work_dir", "printable"}},
		{"POST", "/api/agents", bad{known + `,"token":"a\nb"}`, "token", "printable"}},
		{"POST", "/api/agents/coder/heartbeat", bad{`{}`, "state", "idle or working"}},
		{"POST", "/api/agents/coder/heartbeat", bad{``, "", "empty"}},
		{"POST", "/api/agents/coder/heartbeat", bad{`{"state":"idle","current_tasks":{}}`, "current_tasks", "must be an array"}},
		{"POST", "/api/agents/coder/heartbeat", bad{`{"state":"idle","current_tasks":[{"id":1}]}`, "current_tasks[0].id", "must be a string"}},
		{"POST", "/api/agents/coder/queue/clear", bad{`{"x":1}`, "x", "not a known field"}},
		{"DELETE", "/api/agents/coder", bad{`[]`, "", "must be an object"}},
	} {
		e := b.Do(c.method, c.path, c.body, apitest.Header("Content-Type", "application/json")).WantError(t, http.StatusBadRequest, signalbox.CodeValidation)
		if (c.says != "" && e.Field != c.field) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %s %s: %+v", c.method, c.path, c.body, e)
		}
	}
}

func TestWhatDoesNotExist(t *testing.T) {
	b := apitest.New(t)
	never := "queue-00000000000000000000000000"
	for _, route := range api.Routes() {
		if !strings.HasPrefix(route.Path, "/api/queue/{id}") && !strings.HasPrefix(route.Path, "/api/activities/{id}") {
			continue // its {id} is not a task
		}
		body := ""
		if route.Name == "edit" {
			body = `{"revision":1,"place":"top"}`
		}
		e := b.Do(route.Method, strings.Replace(route.Path, "{id}", never, 1), body).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
		if !strings.Contains(e.Message, never) {
			t.Errorf("%s: %+v", route.Name, e)
		}
		for _, id := range []string{"queue-abc12345", "QUEUE-00000000000000000000000000", "x", "queue-", "a%2fb", strings.Repeat("a", 300), "queue-0000000000000000000000000l"} {
			e := b.Do(route.Method, strings.Replace(route.Path, "{id}", id, 1), "").WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
			if !strings.Contains(e.Message, "26 lower-case letters and digits") || e.Hint == "" {
				t.Errorf("%s %s: %+v", route.Name, id, e)
			}
		}
	}
	for _, c := range [][3]string{
		{"POST", "/api/agents/nobody/heartbeat", `{"state":"idle"}`}, {"DELETE", "/api/agents/nobody", ""}, {"POST", "/api/agents/nobody/queue/clear", ""},
		{"POST", "/api/agents/nobody/queue/release", ""}, {"POST", "/api/agents/%2e%2e/queue/release", ""}, {"GET", "/api/events?queue_id=" + never, ""},
	} {
		b.Do(c[0], c[1], c[2]).WantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
}
