package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// bodied returns the routes with a JSON body.
func bodied() []api.Route {
	return slices.DeleteFunc(api.Routes(), func(r api.Route) bool { return r.Request == nil })
}

var wildcard = regexp.MustCompile(`\{[a-z]+\}`)

// storedTasks returns the state that a refused request must not change.
func storedTasks(b *apitest.Fixture) string {
	b.T.Helper()
	ctx := b.T.Context()
	counts, err1 := b.Store.Counts(ctx)
	_, newest, err2 := b.Store.JournalRange(ctx)
	tokens, err3 := b.Store.Tokens(ctx)
	users, err4 := b.Store.Users(ctx)
	agents, err5 := b.Store.Agents(ctx)
	plans, err6 := b.Store.Schedules(ctx)
	pauses, err7 := b.Store.Pauses(ctx)
	history, err8 := b.Store.History(ctx, store.HistoryQuery{Limit: 1000})
	for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
		if err != nil {
			b.T.Fatal(err)
		}
	}
	return fmt.Sprintf("%d waiting, journal %d, %v %v %v %v %v, %d ended", counts.Pending, newest, tokens, users, agents, plans, pauses, len(history.Tasks))
}

// FuzzRoutes sends arbitrary bodies to each route with a body. The answer is never an
// internal error. A refusal names the field and changes nothing. An accepted request is
// stored as it was sent.
func FuzzRoutes(f *testing.F) {
	routes := bodied()
	for i, r := range routes {
		zero, err := json.Marshal(r.Request)
		if err != nil {
			f.Fatal(err)
		}
		for _, body := range []string{string(zero), "{}", "[]", "null", `{"name":"coder"}`, `{"prompt":"x","message":"x","agent":"coder"}`, `{"a":{"b":[1e999]}}`} {
			f.Add(uint8(i), "coder", body)
		}
	}
	for _, c := range badSubmits {
		f.Add(uint8(0), "queue-1", c.body)
	}
	f.Add(uint8(0), "x", seedRequest)
	f.Fuzz(func(t *testing.T, which uint8, id, body string) {
		if len(body) > 32<<10 || len(id) > 300 || id == "" || strings.Trim(id, ".") == "" {
			return
		}
		b := apitest.New(t, func(o *apitest.Options) { o.Config.Tools = apitest.NewTools() })
		b.Server.Stop() // requests that wait for the end of a task are answered now
		route := routes[int(which)%len(routes)]
		path := wildcard.ReplaceAllLiteralString(route.Path, url.PathEscape(id))
		before := storedTasks(b)
		got := b.Do(route.Method, path, body, apitest.Header("Content-Type", "application/json"))
		switch {
		case got.StatusCode >= 500 && got.StatusCode != 501 && got.StatusCode != 503 && got.StatusCode != 502 && got.StatusCode != 504:
			t.Fatalf("%s %s %q: %d %s", route.Method, path, body, got.StatusCode, got.Body)
		case got.StatusCode >= 400:
			var said api.Error
			if err := json.Unmarshal(got.Body, &said); err != nil || said.Error == "" || said.Message == "" || len(got.Body) > 8<<10 {
				t.Fatalf("%s %s %q is refused with %d %s", route.Method, path, body, got.StatusCode, got.Body)
			}
			if after := storedTasks(b); after != before && route.Name != "chat" && route.Name != "bypass" { // which may store the task and refuse only to wait
				t.Fatalf("%s %s %q is refused (%d %s), and changes\n%s\nto\n%s", route.Method, path, body, got.StatusCode, said.Message, before, after)
			}
		case !json.Valid([]byte(body)) && body != "":
			t.Fatalf("%s %s %q: %d %s", route.Method, path, body, got.StatusCode, got.Body)
		case route.Name == "submit" && got.StatusCode == http.StatusCreated:
			wantSameRequest(b, got, body)
		}
	})
}

// wantSameRequest compares the stored request of a submit with the sent one.
func wantSameRequest(b *apitest.Fixture, got apitest.Reply, body string) {
	b.T.Helper()
	var sent api.SubmitRequest
	var answer api.SubmitResponse
	if err := json.Unmarshal(got.Body, &answer); err != nil {
		b.T.Fatal(err)
	}
	if err := httpapi.Decode([]byte(body), &sent); err != nil {
		b.T.Fatalf("%q was taken: %v", body, err)
	}
	q, err := b.Store.Request(b.T.Context(), answer.QueueID)
	if err != nil {
		b.T.Fatal(err)
	}
	if want := sent.Prompt + sent.Message; q.Prompt != want && q.Prompt != sent.Prompt && q.Prompt != sent.Message {
		b.T.Fatalf("%q is stored as %q", want, q.Prompt)
	}
	if q.Model != sent.Model || q.TimeoutSeconds != sent.TimeoutSeconds || q.HadEnv != (len(sent.Env) > 0) {
		b.T.Fatalf("%+v is stored as %+v", sent, q)
	}
	if !signalbox.ValidID(answer.QueueID) {
		b.T.Fatalf("%q is no id", answer.QueueID)
	}
}
