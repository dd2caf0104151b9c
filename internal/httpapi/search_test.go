package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

func searchTasks(b *apitest.Fixture, query string, more ...string) api.Search {
	b.T.Helper()
	var out api.Search
	b.Do("GET", "/api/search?q="+url.QueryEscape(query)+strings.Join(more, ""), "").Want(b.T, http.StatusOK, &out)
	return out
}

func queueIDs(tasks []api.LiveTask) []string {
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].QueueID
	}
	return ids
}

// crowd makes tasks in every phase: two run, three wait, ten have ended.
func crowd(t *testing.T) (b *apitest.Fixture, running, waiting, ended []string) {
	var c apitest.Clock
	b = apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 3)
	for i := range 10 {
		prompt := fmt.Sprintf(`{"prompt":"billing report %d"}`, i)
		id := b.Submit(prompt).QueueID
		reason := signalbox.ReasonCompleted
		if i%2 == 1 {
			reason = signalbox.ReasonExitNonzero
		}
		b.FinishTask(b.Run(a), reason, signalbox.Result{})
		ended = append([]string{id}, ended...)
		c.Advance(time.Minute)
	}
	for range 2 {
		running = append(running, b.Submit(`{"prompt":"running"}`).QueueID)
		b.Run(a)
		c.Advance(time.Minute)
	}
	for i := range 3 {
		waiting = append(waiting, b.Submit(fmt.Sprintf(`{"prompt":"waits %d","agent":"coder"}`, i)).QueueID)
		c.Advance(time.Minute)
	}
	return b, running, waiting, ended
}

func TestSearchFindsAllInOrder(t *testing.T) {
	b, running, waiting, ended := crowd(t)
	all := slices.Concat(running, waiting, ended)
	got := searchTasks(b, "")
	if !slices.Equal(queueIDs(got.Tasks), all) || got.Total != 15 || got.Approximate || got.Next != "" {
		t.Errorf("%v of %d, next %q; want %v", queueIDs(got.Tasks), got.Total, got.Next, all)
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"state:waiting", waiting},
		{"state:running", running},
		{"agent:coder state:waiting,running", slices.Concat(running, waiting)},
		{"state:completed", every(ended, 1)},
		{"state:failed billing", every(ended, 0)},
		{`"report 3"`, ended[6:7]},
		{"-billing", slices.Concat(running, waiting)},
		{"reason:exit_nonzero since:9m", every(ended[:4], 0)},
		{"id:" + waiting[1], waiting[1:2]},
		{"nothing like it", nil},
	} {
		if got := searchTasks(b, c.query); !slices.Equal(queueIDs(got.Tasks), c.want) || got.Total != len(c.want) || got.Query == "" {
			t.Errorf("%s: %v of %d, want %v", c.query, queueIDs(got.Tasks), got.Total, c.want)
		}
	}
	if row := searchTasks(b, "state:waiting").Tasks[1]; row.Position != 2 {
		t.Errorf("its place in line is not told: %+v", row)
	}
}

// every returns every second element of a list.
func every(list []string, from int) []string {
	var out []string
	for i := from; i < len(list); i += 2 {
		out = append(out, list[i])
	}
	return out
}

// The concatenation of pages of any size has all matches, each once, in order.
func TestSearchByPages(t *testing.T) {
	b, _, _, _ := crowd(t)
	for _, query := range []string{"", "state:failed", "-state:failed", "report"} {
		all := queueIDs(searchTasks(b, query).Tasks)
		for limit := 1; limit <= 16; limit++ {
			var got []string
			after := ""
			for page := 0; page == 0 || after != ""; page++ {
				found := searchTasks(b, query, fmt.Sprintf("&limit=%d", limit), after)
				if found.Total != len(all) || found.Approximate {
					t.Fatalf("%q: total %d, want %d", query, found.Total, len(all))
				}
				got = append(got, queueIDs(found.Tasks)...)
				after = ""
				if found.Next != "" {
					after = "&after=" + found.Next
				}
				if len(found.Tasks) > limit || page > 20 {
					t.Fatalf("%q: page %d of %d tasks", query, page, len(found.Tasks))
				}
			}
			if !slices.Equal(got, all) {
				t.Errorf("%q by %d: %v, want %v", query, limit, got, all)
			}
		}
	}
}

// The same holds for a requested order, even if tasks keep running between two pages.
func TestSearchInAnOrder(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 3)
	b.AddAgent("other", 1)
	var ids []string
	for _, minutes := range []int{5, 1, 9, 5} {
		ids = append(ids, b.Submit(`{"prompt":"work"}`).QueueID)
		run := b.Run(a)
		c.Advance(time.Duration(minutes) * time.Minute)
		b.FinishTask(run, signalbox.ReasonCompleted, signalbox.Result{})
	}
	ids = append(ids, b.Submit(`{"prompt":"runs"}`).QueueID)
	b.Run(a)
	c.Advance(6 * time.Minute)
	ids = append(ids, b.Submit(`{"prompt":"waits","agent":"other","priority":3}`).QueueID)
	pick := func(order ...int) (out []string) {
		for _, i := range order {
			out = append(out, ids[i])
		}
		return out
	}
	for sort, want := range map[string][]string{
		"-duration": pick(2, 4, 3, 0, 1, 5),
		"duration":  pick(1, 3, 0, 4, 2, 5),
		"created":   pick(0, 1, 2, 3, 4, 5),
		"-priority": pick(5, 4, 3, 2, 1, 0),
		"ended":     pick(0, 1, 2, 3, 5, 4),
		"agent":     pick(4, 3, 2, 1, 0, 5), // equal ones newest first
	} {
		for limit := 1; limit <= 7; limit++ {
			var got []string
			for after, pages := "", 0; pages == 0 || after != ""; pages++ {
				found := searchTasks(b, "", fmt.Sprintf("&sort=%s&limit=%d", sort, limit), after)
				if found.Sort != sort || found.Total != 6 || found.Approximate || len(found.Tasks) > limit || pages > 6 {
					t.Fatalf("%s by %d: %+v", sort, limit, found)
				}
				got, after = append(got, queueIDs(found.Tasks)...), ""
				if found.Next != "" {
					after = "&after=" + found.Next
				}
				if sort == "-duration" {
					c.Advance(time.Second) // running tasks have run longer, but must not appear twice
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s by %d: %v, want %v", sort, limit, got, want)
			}
		}
	}
	if got := searchTasks(b, "state:ended", "&sort=-duration&limit=1"); !slices.Equal(queueIDs(got.Tasks), pick(2)) || got.Total != 4 {
		t.Errorf("%+v", got)
	}
	if e := b.Do("GET", "/api/search?sort=-durations", "").WantError(t, 400, signalbox.CodeValidation); e.Field != "sort" || !strings.Contains(e.Message, "did you mean") {
		t.Errorf("%+v", e)
	}
	other := searchTasks(b, "", "&sort=created&limit=1").Next
	for _, after := range []string{"x", other, searchTasks(b, "", "&limit=1").Next} {
		if e := b.Do("GET", "/api/search?sort=-duration&after="+after, "").WantError(t, 400, signalbox.CodeValidation); e.Field != "after" {
			t.Errorf("%+v", e)
		}
	}
}

func countsOf(b *apitest.Fixture, queries ...string) []api.SearchCount {
	b.T.Helper()
	body, err := json.Marshal(api.SearchCountsRequest{Queries: queries})
	if err != nil {
		b.T.Fatal(err)
	}
	var out api.SearchCounts
	b.Do("POST", "/api/search/counts", string(body)).Want(b.T, http.StatusOK, &out)
	return out.Counts
}

func TestSearchCounts(t *testing.T) {
	b, _, _, _ := crowd(t)
	queries := []string{"", "state:pending", "state:running", "state:completed", "billing state:failed since:9m", "nothing"}
	for i, got := range countsOf(b, queries...) {
		want := searchTasks(b, queries[i])
		if got.Total != want.Total || got.Approximate || got.Query != want.Query {
			t.Errorf("%q: %+v, the search finds %d", queries[i], got, want.Total)
		}
	}
	if got := countsOf(b); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if e := b.Do("POST", "/api/search/counts", `{"queries":["agnet:x"]}`).WantError(t, 400, signalbox.CodeValidation); e.Field != "queries" || !strings.Contains(e.Message, "did you mean agent?") {
		t.Errorf("%+v", e)
	}
	if e := b.Do("POST", "/api/search/counts", `{"queries":["`+strings.Repeat(`","`, 40)+`"]}`).WantError(t, 400, signalbox.CodeValidation); e.Field != "queries" {
		t.Errorf("%+v", e)
	}
	// Counts include only visible tasks.
	h := b.Server.HandlerAs(signalbox.Principal{Kind: signalbox.PrincipalService, ID: "ci", Scopes: signalbox.Scopes(), Agents: []string{"other"}})
	var got api.SearchCounts
	asked(t, h, "POST", "/api/search/counts", `{"queries":["state:waiting"]}`).Want(t, 200, &got)
	if got.Counts[0].Total != 0 {
		t.Errorf("%+v", got)
	}
}

// If there are more tasks than are searched, counts that may be too low are marked, and
// complete counts are not.
func TestSearchCountsOfMany(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c), func(o *apitest.Options) { o.Engine.MaxSize = 20_000 })
	const most = 10_000
	for range most + 100 {
		if _, err := b.Engine.Submit(t.Context(), engine.NewTask{Prompt: "many"}); err != nil {
			t.Fatal(err)
		}
	}
	b.Do("POST", "/api/queue/bulk", fmt.Sprintf(`{"query":"state:waiting","action":"cancel","expect":%d}`, most)).Want(t, 200, nil)
	b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting","action":"cancel","expect":100}`).Want(t, 200, nil)
	c.Advance(48 * time.Hour)
	id := b.Submit(`{"prompt":"new"}`).QueueID
	b.FinishTask(b.Run(b.AddAgent("coder", 1)), signalbox.ReasonExitNonzero, signalbox.Result{})
	waiting := b.Submit(`{"prompt":"waits"}`).QueueID
	got := countsOf(b, "", "state:cancelled", "state:failed", "state:failed since:24h", "state:waiting", "state:running")
	for i, want := range []struct {
		atLeast, atMost int
		approximate     bool
	}{{most, most + 100, true}, {most - 100, most + 99, true}, {1, 1, true}, {1, 1, false}, {1, 1, false}, {0, 0, false}} {
		if got[i].Total < want.atLeast || got[i].Total > want.atMost || got[i].Approximate != want.approximate {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
	// Only the searched tasks are sorted, and the answer says so.
	if found := searchTasks(b, "", "&sort=-created&limit=2"); found.Total >= most+102 || !found.Approximate || !slices.Equal(queueIDs(found.Tasks), []string{waiting, id}) {
		t.Errorf("%v of %d, %v", queueIDs(found.Tasks), found.Total, found.Approximate)
	}
}

func TestSearchKeys(t *testing.T) {
	b := apitest.New(t)
	var got api.SearchKeys
	b.Do("GET", "/api/search/keys", "").Want(t, 200, &got)
	i := slices.IndexFunc(got.Keys, func(k api.SearchKey) bool { return k.Key == "state" })
	if i < 0 || !slices.Contains(got.Keys[i].Values, "failed") || !slices.Contains(got.Keys[i].Values, "waiting") || got.Keys[i].Text == "" || !slices.Contains(got.Sorts, "duration") {
		t.Errorf("%+v", got)
	}
}

func TestSearchRefusesWhatIsWrong(t *testing.T) {
	b := apitest.New(t)
	if e := b.Do("GET", "/api/search?q=agnet:coder", "").WantError(t, 400, signalbox.CodeValidation); e.Field != "q" || !strings.Contains(e.Message, "did you mean agent?") {
		t.Errorf("%+v", e)
	}
	for _, after := range []string{"x", "eyJwIjoieCIsIm4iOjB9", "eyJwIjoicnVubmluZyIsIm4iOi0xfQ"} {
		if e := b.Do("GET", "/api/search?after="+after, "").WantError(t, 400, signalbox.CodeValidation); e.Field != "after" {
			t.Errorf("%+v", e)
		}
	}
}

// A caller that is limited to some agents finds only tasks that it may see.
func TestSearchIsLimited(t *testing.T) {
	b, _, waiting, _ := crowd(t)
	b.AddAgent("other", 1)
	mine := b.Submit(`{"prompt":"for other","agent":"other"}`).QueueID
	h := b.Server.HandlerAs(signalbox.Principal{Kind: signalbox.PrincipalService, ID: "ci", Scopes: signalbox.Scopes(), Agents: []string{"other"}})
	var got api.Search
	asked(t, h, "GET", "/api/search", "").Want(t, 200, &got)
	if !slices.Equal(queueIDs(got.Tasks), []string{mine}) || got.Total != 1 {
		t.Errorf("%+v", got)
	}
	var bulk api.Bulk
	asked(t, h, "POST", "/api/queue/bulk", `{"query":"state:waiting","action":"cancel","expect":1}`).Want(t, 200, &bulk)
	if bulk.Done != 1 || searchTasks(b, "id:"+waiting[0]).Tasks[0].State != "pending" {
		t.Errorf("%+v", bulk)
	}
}

func TestBulkCountsFirst(t *testing.T) {
	b, running, waiting, _ := crowd(t)
	var got api.Bulk
	b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting,running","action":"cancel"}`).Want(t, 200, &got)
	if got.Count != 5 || got.Done != 0 || got.Query != "state:waiting,running" || searchTasks(b, "state:cancelled").Total != 0 {
		t.Errorf("%+v", got)
	}
	e := b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting,running","action":"cancel","expect":4}`).WantError(t, 409, signalbox.CodeConflict)
	if !strings.Contains(e.Message, "5 tasks that match") || !strings.Contains(e.Message, "not the 4") || searchTasks(b, "state:cancelled").Total != 0 {
		t.Errorf("%+v", e)
	}
	b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting,running","action":"cancel","expect":5}`).Want(t, 200, &got)
	if got.Done != 5 || got.Failed != 0 || len(got.Results) != 0 {
		t.Errorf("%+v", got)
	}
	for _, id := range waiting {
		if state := searchTasks(b, "id:"+id).Tasks[0].State; state != "cancelled" {
			t.Errorf("%s is %s", id, state)
		}
	}
	for _, id := range running {
		if state := searchTasks(b, "id:"+id).Tasks[0].State; state != "cancelling" {
			t.Errorf("%s is %s", id, state)
		}
	}
	var log api.AuditLog
	b.Do("GET", "/api/audit?action=bulk_cancel", "").Want(t, 200, &log)
	if len(log.Rows) != 1 || !strings.Contains(log.Rows[0].Details, `"done":5`) || log.Rows[0].Result != "success" {
		t.Errorf("%+v", log.Rows)
	}
}

func TestBulkRetry(t *testing.T) {
	b, _, _, ended := crowd(t)
	var got api.Bulk
	// Completed tasks are not retried unless the query names that state.
	b.Do("POST", "/api/queue/bulk", `{"query":"billing","action":"retry"}`).Want(t, 200, &got)
	if got.Count != 5 {
		t.Errorf("%+v", got)
	}
	b.Do("POST", "/api/queue/bulk", `{"query":"billing state:completed,failed","action":"retry"}`).Want(t, 200, &got)
	if got.Count != 10 {
		t.Errorf("%+v", got)
	}
	b.Do("POST", "/api/queue/bulk", `{"query":"billing","action":"retry","expect":5}`).Want(t, 200, &got)
	if got.Done != 5 || len(got.Results) != 5 {
		t.Fatalf("%+v", got)
	}
	for _, r := range got.Results {
		var again api.Task
		b.Do("GET", "/api/queue/"+r.NewID, "").Want(t, 200, &again)
		if again.RetryOf != r.QueueID || again.State != "pending" || !slices.Contains(ended, r.QueueID) {
			t.Errorf("%+v of %+v", again, r)
		}
	}
	// A failure does not stop the others.
	b.Do("POST", "/api/queue/task", `{"prompt":"with env","env":{"A":"b"}}`)
	id := searchTasks(b, `"with env"`).Tasks[0].QueueID
	b.Do("POST", "/api/queue/"+id+"/cancel", "")
	b.Do("POST", "/api/queue/bulk", `{"query":"state:failed,cancelled","action":"retry","expect":6}`).Want(t, 200, &got)
	if got.Done != 5 || got.Failed != 1 || !slices.ContainsFunc(got.Results, func(o api.BulkOutcome) bool {
		return o.QueueID == id && o.Error == "validation_error" && strings.Contains(o.Message, "env")
	}) {
		t.Errorf("%+v", got)
	}
}

func TestBulkRefusals(t *testing.T) {
	b := apitest.New(t)
	for body, field := range map[string]string{
		`{"query":"state:failed","action":"delete"}`: "action",
		`{"query":"  ","action":"cancel"}`:           "query",
		`{"query":"\"\" -\"\"","action":"cancel"}`:   "query",
		`{"query":"agnet:x","action":"cancel"}`:      "query",
		`{"action":"cancel","x":1}`:                  "x",
	} {
		if e := b.Do("POST", "/api/queue/bulk", body).WantError(t, 400, signalbox.CodeValidation); e.Field != field {
			t.Errorf("%s: %+v", body, e)
		}
	}
	h := b.Server.HandlerAs(signalbox.Principal{Kind: signalbox.PrincipalService, ID: "ci", Scopes: []signalbox.Scope{signalbox.ScopeRead, signalbox.ScopeCancel}})
	asked(t, h, "POST", "/api/queue/bulk", `{"query":"state:failed","action":"retry"}`).Want(t, 403, nil)
	asked(t, h, "POST", "/api/queue/bulk", `{"query":"state:waiting","action":"cancel"}`).Want(t, 200, nil)
}

// asked returns the answer of a handler.
func asked(t *testing.T, h http.Handler, method, path, body string) apitest.Reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	resp := w.Result()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return apitest.Reply{Response: resp, Body: data}
}
