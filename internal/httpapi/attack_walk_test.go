package httpapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// No route, not even a public one, answers requests of a page with another host name that
// resolves here, or of a page of another site, whatever rights the browser has.
func TestAttackEveryRouteFromAnotherPage(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	for _, route := range api.Routes() {
		path := strings.Replace(sample(route.Path), "{tool}", "search__find", 1)
		attacks := map[string][]apitest.Edit{
			"a name that leads here":         {host("attacker.example")},
			"that name, as its own origin":   {host("attacker.example"), apitest.Header("Origin", "http://attacker.example"), apitest.Header("Sec-Fetch-Site", "same-origin")},
			"a fetch of another site":        {apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "cors"), apitest.Header("Origin", "https://attacker.example")},
			"an old browser":                 {apitest.Header("Origin", "https://attacker.example")},
			"another port of this host":      {apitest.Header("Origin", "http://127.0.0.1:9999")},
			"an upgrade of another site":     {apitest.Header("Origin", "https://attacker.example"), apitest.Header("Connection", "Upgrade"), apitest.Header("Upgrade", "websocket"), apitest.Header("Sec-WebSocket-Version", "13"), apitest.Header("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")},
			"a picture, a script or a frame": {apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "no-cors")},
		}
		if route.Method != http.MethodGet {
			attacks["a form"] = []apitest.Edit{apitest.Header("Sec-Fetch-Site", "cross-site"), apitest.Header("Sec-Fetch-Mode", "navigate"), apitest.Header("Content-Type", "application/x-www-form-urlencoded")}
		}
		for name, edits := range attacks {
			got := b.Do(route.Method, path, "{}", slices.Concat(show["cookie"], edits)...)
			if got.StatusCode != http.StatusForbidden {
				t.Errorf("%s at %s %s: %d %.200s", name, route.Method, path, got.StatusCode, got.Body)
			}
			for _, h := range []string{"Access-Control-Allow-Origin", "Set-Cookie"} {
				if v := got.Header.Get(h); v != "" {
					t.Errorf("%s at %s is answered %s: %s", name, path, h, v)
				}
			}
		}
	}
}

// traversals are ids that would leave a folder or break a header if a handler used them in
// a path or a header.
var traversals = []string{
	"..", "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..%5cetc%5cpasswd", "..%252f..%252fetc%252fpasswd",
	"%2fetc%2fpasswd", "....//....//etc/passwd", "x%00.json", "x%0d%0aX-Evil:%201", "%0aX-Evil:%201", "~root", "C:%5cwindows", "%ff%fe", "%c0%ae%c0%ae%2f", "-rf", "'%20OR%201=1--",
	"%24%7bx%7d", "{{x}}", strings.Repeat("a", 5000), "%F0%9F%92%A9",
}

// Whatever the id, name or file in a path is, no route fails or finds something with it.
// Tools and pages are fakes here; e2e tests a real director.
func TestAttackTraversalAtEveryRoute(t *testing.T) {
	b, show := apitest.NewWithUsers(t)
	tried := 0
	for _, route := range api.Routes() {
		if !strings.Contains(route.Path, "{") || route.Path == "/{$}" || route.Scope == api.ScopeTicket || slices.Contains([]string{"callTool", "createToolTask", "asset"}, route.Name) {
			continue
		}
		for _, in := range traversals {
			tried++
			path := route.Path
			for _, p := range []string{"{id}", "{name}", "{part}", "{tool}", "{path...}"} {
				path = strings.ReplaceAll(path, p, in)
			}
			if _, err := url.ParseRequestURI(path); err != nil {
				t.Fatal(err)
			}
			body := ""
			if route.Request != nil {
				body = "{}"
			}
			got := b.Do(route.Method, path, body, show["admin"]...)
			found := got.StatusCode < 400 && !(got.StatusCode/100 == 3 && strings.HasPrefix(got.Header.Get("Location"), "/") && !strings.HasPrefix(got.Header.Get("Location"), "//"))
			if route.Name == "page" || route.Name == "find" { // pages have any path, and find may find nothing
				found = got.StatusCode == http.StatusOK && strings.Contains(string(got.Body), "root:")
			}
			if found || got.StatusCode >= 500 && got.StatusCode != http.StatusNotImplemented || strings.Contains(string(got.Body), "root:x:") || got.Header.Get("X-Evil") != "" {
				t.Errorf("%s %s: %d %.200s", route.Method, path, got.StatusCode, got.Body)
			}
		}
	}
	if tried < 20*len(traversals) {
		t.Errorf("only %d were tried", tried)
	}
}

// A client that does not read the answer is disconnected, at every route with an answer.
func TestAttackSlowReaderAtEveryRoute(t *testing.T) {
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet {
			continue
		}
		t.Run(route.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := apitest.New(t, apitest.WithPages)
				p, stop := apitest.ServePipes(t, b)
				c := p.Dial(t)
				apitest.WriteString(t, c, "GET "+sample(route.Path)+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
				time.Sleep(httpapi.WriteTimeout + httpapi.Heartbeat + time.Second)
				synctest.Wait()
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("the connection is still held, with an answer that nobody takes")
				}
				c.Close()
				stop()
			})
		})
	}
}

// A lost agent that comes back with its token and an old fence changes nothing through any
// of the routes for agents.
func TestAttackReplayAfterTheFenceMoved(t *testing.T) {
	b := newPullBox(t)
	const claim = `{"instance":"0123456789abcdef","slots":1}`
	b.Do("POST", "/api/agents", farAgent).Want(t, http.StatusCreated, nil)
	b.Do("POST", "/api/agents/far/claim", claim).Want(t, http.StatusOK, nil)
	b.Do("POST", "/api/queue/task", `{"prompt":"p","agent":"far","on_lost":"requeue"}`).Want(t, http.StatusCreated, nil)
	var old, now api.PullAnswer
	b.Do("POST", "/api/agents/far/claim", claim).Want(t, http.StatusOK, &old)
	id := old.Task.QueueID
	report := func(body string) apitest.Reply { return b.Do("POST", "/api/agents/far/tasks/"+id+"/report", body) }
	with := func(rest string, fence int64) string {
		return `{"instance":"0123456789abcdef","fence":` + strconv.FormatInt(fence, 10) + `,` + rest + `}`
	}
	accepted := `"accepted":{"task_id":"task-1"}`
	report(with(accepted, old.Task.Fence)).Want(t, http.StatusOK, nil)
	row, err := b.Engine.Read().Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Engine.Lose(t.Context(), row, signalbox.ReasonLost, "it was silent", false, nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); now.Task == nil; {
		if time.Now().After(end) {
			t.Fatal("it is not given again")
		}
		if _, _, err := b.Engine.Wake(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Do("POST", "/api/agents/far/claim?wait=1s", claim).Want(t, http.StatusOK, &now)
	}
	if now.Task.QueueID != id || now.Task.Fence <= old.Task.Fence {
		t.Fatalf("%+v", now.Task)
	}
	report(with(accepted, now.Task.Fence)).Want(t, http.StatusOK, nil)
	for what, rest := range map[string]string{
		"accepts":       accepted,
		"refuses":       `"refused":{"status":400,"message":"no"}`,
		"is busy":       `"refused":{"status":409,"error":"agent_busy","message":"no"}`,
		"moves a fence": `"refused":{"status":409,"error":"stale_fence","message":"no","highest_fence":9000}`,
		"prints":        `"output":{"seq":0,"text":"forged","next":6}`,
		"knows nothing": `"unknown":true`,
		"completes":     `"finished":{"task_id":"task-1","state":"completed","output":"forged"}`,
		"fails":         `"finished":{"task_id":"task-1","state":"failed","error":{"type":"x","message":"forged"}}`,
		"was cancelled": `"finished":{"task_id":"task-1","state":"cancelled","error":{"type":"cancelled","message":"forged"}}`,
	} {
		for range 2 {
			if got := report(with(rest, old.Task.Fence)); got.StatusCode != http.StatusConflict {
				t.Errorf("with an old fence it %s: %d %s", what, got.StatusCode, got.Body)
			}
		}
		report(with(rest, now.Task.Fence+1)).Want(t, http.StatusNotFound, nil) // nor a fence that was never issued
	}
	// A claim and a heartbeat that name the old run neither keep it nor affect the new
	// one.
	b.Do("POST", "/api/agents/far/heartbeat", `{"state":"working","instance":"0123456789abcdef","runs":[{"queue_id":"`+id+`","fence":`+strconv.FormatInt(old.Task.Fence, 10)+`}]}`)
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
	if task.State != "working" {
		t.Errorf("an old fence made it %+v", task)
	}
	if got := b.Do("GET", "/api/queue/"+id+"/output", ""); strings.Contains(string(got.Body), "forged") {
		t.Errorf("what an old fence printed is shown: %s", got.Body)
	}
	report(with(`"finished":{"task_id":"task-1","state":"completed","output":"true"}`, now.Task.Fence)).Want(t, http.StatusOK, nil)
	b.Do("GET", "/api/queue/"+id, "").Want(t, http.StatusOK, &task)
	if task.State != "completed" || task.Result == nil || task.Result.Output != "true" {
		t.Errorf("%+v", task)
	}
	report(with(`"finished":{"task_id":"task-1","state":"failed","error":{"type":"x","message":"forged"}}`, old.Task.Fence)).Want(t, http.StatusConflict, nil)
}
