package director_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// A bulk cancel ends what waits before what runs: else a slot that it frees is
// given to a task that is about to be cancelled.
func TestBulkCancelEndsWhatWaitsFirst(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c))
	a := b.agent("coder", 1)
	running := b.submit(`{"prompt":"runs"}`).QueueID
	b.work(a)
	for range 40 {
		b.submit(`{"prompt":"waits"}`)
	}
	var got api.Bulk
	b.do("POST", "/api/queue/bulk", `{"query":"state:waiting,running","action":"cancel","expect":41}`).want(t, http.StatusOK, &got)
	entries, err := b.engine.Read().Journal(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range entries {
		if e.Kind == signalbox.EventCancel {
			order = append(order, e.QueueID)
		}
	}
	if at := slices.Index(order, running); len(order) != 41 || at < 25 {
		t.Errorf("what runs is cancelled as number %d of %d", at+1, len(order))
	}
}
