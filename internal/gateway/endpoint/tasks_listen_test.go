package endpoint_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testkit"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// listens opens a stream of notifications and returns their data.
func (r *fixture) listens(what, meta string, headers ...string) (events <-chan string, stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	body := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{` + what + `},"_meta":{` + metaOf(meta) + `}}}`
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	headers = append(headers, "Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", modern, "Mcp-Method", "subscriptions/listen")
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		r.t.Fatal(err)
	}
	out := make(chan string, 100)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				out <- data
			}
		}
	}()
	return out, cancel
}

// A client that listens is notified when its tasks change, and of no others.
func TestListenReportsTasks(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	ask := func(who string) string {
		return r.read(r.sendModern("tools/call", `"name":"s__job"`, declaring, principalHeader, who)).Result.TaskID
	}
	mine, another := ask("user:anna"), ask("user:ben")
	b.set(mine, func(t *gateway.ToolTask) { t.Task.State, t.Position = signalbox.Pending, 2 })
	events, closeStream := r.listens(`"taskIds":["`+mine+`","`+another+`","x","`+mine+`"]`, declaring, principalHeader, "user:anna")
	defer closeStream()
	if first := testkit.Receive(t, "the acknowledgement", events); !strings.Contains(first, `"method":"notifications/subscriptions/acknowledged"`) || !strings.Contains(first, `"taskIds":["`+mine+`"]`) || !strings.Contains(first, `"io.modelcontextprotocol/subscriptionId":7`) {
		t.Error(first)
	}
	next := func(what string, want ...string) {
		t.Helper()
		got := testkit.Receive(t, what, events)
		for _, w := range append(want, `"method":"notifications/tasks"`, `"taskId":"`+mine+`"`, `"io.modelcontextprotocol/subscriptionId":7`) {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %s has no %s", what, got, w)
			}
		}
	}
	next("how it is", `"status":"working"`, "queued, position 2")
	b.set(mine, func(t *gateway.ToolTask) { t.Task.State, t.Position = signalbox.Working, 0 })
	next("that it runs", `"status":"working"`)
	b.set(mine, func(t *gateway.ToolTask) {
		t.Task.State, t.Task.Reason, t.Result = signalbox.Completed, signalbox.ReasonCompleted, &gateway.Result{Content: json.RawMessage(`[]`)}
	})
	next("its end", `"status":"completed"`, `"result":{"resultType":"complete","content":[]}`)
	if last := testkit.Receive(t, "the end of the stream, for nothing else is told there", events); !strings.Contains(last, `"id":7`) || !strings.Contains(last, `"result"`) {
		t.Error(last)
	}
	got := r.sendModern("subscriptions/listen", `"notifications":{"taskIds":["`+mine+`"]}`, "")
	if e := r.read(got).Error; e == nil || e.Code != -32021 || got.status != 400 {
		t.Errorf("a client that did not declare tasks: %+v", got)
	}
	// Tasks and tools share one stream, which lives until the client disconnects.
	both, closeBoth := r.listens(`"taskIds":["`+another+`"],"toolsListChanged":true`, declaring, principalHeader, "user:ben")
	if first := testkit.Receive(t, "the acknowledgement", both); !strings.Contains(first, `"toolsListChanged":true`) || !strings.Contains(first, another) {
		t.Error(first)
	}
	testkit.Receive(t, "how it is", both)
	r.script.offer(r.script.Tools()[:1])
	if word := testkit.Receive(t, "that tools are others", both); !strings.Contains(word, "tools/list_changed") {
		t.Error(word)
	}
	closeBoth()
	for range both { // until it is closed
	}
}

// Requests about tasks that do not exist end with a clear error and are
// cheap.
func TestHostileTaskRequests(t *testing.T) {
	r, b := newTaskFixture(t, endpoint.Options{})
	r.sendModern("tools/call", `"name":"s__job"`, declaring)
	id := b.only(t)
	for name, params := range map[string]string{
		"a number": `"taskId":5`, "null": `"taskId":null`, "none": `"x":1`, "an object": `"taskId":{"taskId":"` + id + `"}`, "long": `"taskId":"` + strings.Repeat("q", 1<<20) + `"`,
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			got := r.sendModern(method, params, declaring, "Mcp-Name", "x")
			if e := r.read(got).Error; got.status != 400 || e == nil || e.Code != -32602 && e.Code != -32020 || len(got.body) > 2000 {
				t.Errorf("%s of %s: %d %.300s", method, name, got.status, got.body)
			}
		}
	}
	if got := r.about("tasks/update", id); got.status != 200 {
		t.Errorf("%+v", got)
	}
	if got := r.sendModern("tasks/update", `"taskId":"`+id+`","inputResponses":[1,2]`, declaring, "Mcp-Name", id); got.status != 200 { // answers to no question
		t.Errorf("%+v", got)
	}
	many := strings.TrimSuffix(strings.Repeat(`"queue-`+strings.Repeat("0", 26)+`",`, soak.Pick(5_000, 50_000)), ",")
	events, stop := r.listens(`"taskIds":[`+many+`,"`+id+`"]`, declaring)
	defer stop()
	if first := testkit.Receive(t, "the acknowledgement", events); !strings.Contains(first, `"taskIds":["`+id+`"]`) {
		t.Error(first)
	}
}
