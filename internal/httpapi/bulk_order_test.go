package httpapi_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
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

// A bulk action takes 10,000 tasks at most, and says so where more match.
func TestBulkSaysThatMoreMatch(t *testing.T) {
	const most = 10_000
	b := newBox(t, func(o *options) { o.engine.MaxSize = 2 * most })
	fill := func(n int) (got api.Bulk) {
		for range n {
			if _, err := b.engine.Submit(t.Context(), engine.NewTask{Prompt: "waits"}); err != nil {
				t.Fatal(err)
			}
		}
		b.do("POST", "/api/queue/bulk", `{"query":"state:waiting","action":"cancel"}`).want(t, http.StatusOK, &got)
		return got
	}
	if got := fill(most); got.Count != most || got.More {
		t.Errorf("with as many as it takes: %d, more: %v", got.Count, got.More)
	}
	if got := fill(1); got.Count != most || !got.More {
		t.Errorf("with one more: %d, more: %v", got.Count, got.More)
	}
}
