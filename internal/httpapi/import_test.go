package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// What has ended is stored side by side, what waits one by one, in the order of
// the import; what is known or wrong is said, wherever it stands.
func TestAnImportKeepsTheOrderOfWhatWaits(t *testing.T) {
	old := newBox(t)
	a := old.agent("coder", 1)
	for i := range 200 {
		old.submit(`{"prompt":"ended ` + strconv.Itoa(i) + `"}`)
		old.finish(old.work(a), signalbox.ReasonCompleted, signalbox.Result{Output: strconv.Itoa(i)})
	}
	var waiting []string
	for i := range 10 {
		waiting = append(waiting, old.submit(`{"prompt":"waits `+strconv.Itoa(i)+`"}`).QueueID)
	}
	var page api.Export
	old.do("GET", "/api/export?limit=1000", "").want(t, http.StatusOK, &page)
	var ended api.Export
	old.do("GET", "/api/export?limit=1000&after="+page.Next, "").want(t, http.StatusOK, &ended)
	if ended.Next != "" { // running ones come between
		old.do("GET", "/api/export?limit=1000&after="+ended.Next, "").want(t, http.StatusOK, &ended)
	}
	var mixed api.ImportRequest
	for i, x := range page.Tasks {
		mixed.Tasks = append(append(mixed.Tasks, ended.Tasks[i*20:(i+1)*20]...), x)
	}
	wrong := ended.Tasks[0]
	wrong.QueueID, wrong.Key, wrong.Reason = "queue-06f0v4m2k0a1b2c3d4e5f6g7h8", "", "luck"
	mixed.Tasks = slices.Insert(mixed.Tasks, 7, wrong, ended.Tasks[150])
	body, err := json.Marshal(mixed)
	if err != nil {
		t.Fatal(err)
	}

	next := newBox(t)
	var got api.Imported
	next.do("POST", "/api/import", string(body)).want(t, http.StatusOK, &got)
	if got.Imported != 210 || got.Known != 1 || len(got.Refused) != 1 || got.Refused[0].QueueID != wrong.QueueID {
		t.Errorf("imported %d, known %d, refused %+v", got.Imported, got.Known, got.Refused)
	}
	var there api.Export
	next.do("GET", "/api/export?limit=1000", "").want(t, http.StatusOK, &there)
	var order []string
	for _, x := range there.Tasks {
		order = append(order, x.QueueID)
	}
	if !slices.Equal(order, waiting) {
		t.Errorf("what waits stands in another order:\n%v\nnot\n%v", order, waiting)
	}
	next.do("POST", "/api/import", string(body)).want(t, http.StatusOK, &got)
	if got.Imported != 0 || got.Known != 211 || len(got.Refused) != 1 {
		t.Errorf("the second time imported %d, known %d", got.Imported, got.Known)
	}
}

// What was imported from another queue is asked for by the id that it had there,
// by who may ask for it.
func TestAnImportedTaskIsFoundByItsOldID(t *testing.T) {
	b := newBox(t, func(o *options) { o.director.Token = "of-an-admin" })
	admin := bearer("of-an-admin")
	imported := func(kind, old string) string {
		t.Helper()
		id, err := signalbox.NewID(b.engine.Now(), strings.NewReader(kind+old+"0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		at := b.engine.Now()
		body, err := json.Marshal(api.ImportRequest{Tasks: []api.ExportedTask{{
			QueueID: id, State: "pending", Queue: "work", Limit: "work", EnqueuedAt: at, CreatedAt: at, MaxAttempts: 3, Source: "api",
			Key: signalbox.ImportKey(kind, old), KeyHash: "import", Request: json.RawMessage(`{"prompt":"from ` + kind + `"}`),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var got api.Imported
		if b.do("POST", "/api/import", string(body), admin).want(t, http.StatusOK, &got); got.Imported != 1 {
			t.Fatalf("%+v", got)
		}
		return id
	}
	queued, ran := imported(signalbox.ImportWorkQueue, "queue-abc12345"), imported(signalbox.ImportExecutionQueue, "0b5c-11")
	imported(signalbox.ImportAsyncTaskQueue, "queue-abc12345") // the same id in another queue
	for old, id := range map[string]string{"queue-abc12345": queued, "0b5c-11": ran} {
		var task api.Task
		if b.do("GET", "/api/queue/"+old, "", admin).want(t, http.StatusOK, &task); task.QueueID != id {
			t.Errorf("%s is %s, want %s", old, task.QueueID, id)
		}
		b.do("GET", "/api/queue/"+old+"/why", "", admin).want(t, http.StatusOK, nil)
		b.do("GET", "/api/queue/"+old+"/output", "", admin).want(t, http.StatusOK, nil)
		var found api.Found
		if b.do("GET", "/api/find/"+old, "", admin).want(t, http.StatusOK, &found); len(found.QueueIDs) != 1 || found.QueueIDs[0] != id {
			t.Errorf("%s is found as %q", old, found.QueueIDs)
		}
	}
	events := b.serve().open("/api/events?after=0&queue_id=queue-abc12345", admin)
	submitter := bearer(b.token(identity.NewToken{Name: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}))
	b.do("POST", "/api/queue/queue-abc12345/cancel", "", submitter).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("GET", "/api/queue/queue-abc12345", "", submitter).wantError(t, http.StatusForbidden, signalbox.CodeForbidden)
	b.do("POST", "/api/queue/queue-abc12345/cancel", "", admin).want(t, http.StatusOK, nil)
	var task api.Task
	if b.do("GET", "/api/queue/"+queued, "", admin).want(t, http.StatusOK, &task); task.State != "cancelled" {
		t.Errorf("%+v", task)
	}
	for said := ""; !strings.Contains(said, "cancelled"); {
		if said = events.must().data; strings.Contains(said, "queue-") && !strings.Contains(said, queued) {
			t.Fatalf("an event of another task: %s", said)
		}
	}
	for _, unknown := range []string{"queue-abc1234", "0B5C-11", "%00", strings.Repeat("x", 500), "import%20work-queue%20queue-abc12345"} {
		b.do("GET", "/api/queue/"+unknown, "", admin).wantError(t, http.StatusNotFound, signalbox.CodeNotFound)
	}
}
