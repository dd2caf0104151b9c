package director_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
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
