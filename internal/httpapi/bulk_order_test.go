package httpapi_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// A bulk cancel cancels waiting tasks before running ones: otherwise a freed slot goes to a
// task that is about to be cancelled.
func TestBulkCancelEndsWhatWaitsFirst(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	a := b.AddAgent("coder", 1)
	running := b.Submit(`{"prompt":"runs"}`).QueueID
	b.Run(a)
	for range 40 {
		b.Submit(`{"prompt":"waits"}`)
	}
	var got api.Bulk
	b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting,running","action":"cancel","expect":41}`).Want(t, http.StatusOK, &got)
	entries, err := b.Engine.Read().Journal(t.Context(), 0, 1000)
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

// A bulk action applies to at most 10,000 tasks, and says if more match.
func TestBulkSaysThatMoreMatch(t *testing.T) {
	const most = 10_000
	b := apitest.New(t, func(o *apitest.Options) { o.Engine.MaxSize = 2 * most })
	fill := func(n int) (got api.Bulk) {
		for range n {
			if _, err := b.Engine.Submit(t.Context(), engine.NewTask{Prompt: "waits"}); err != nil {
				t.Fatal(err)
			}
		}
		b.Do("POST", "/api/queue/bulk", `{"query":"state:waiting","action":"cancel"}`).Want(t, http.StatusOK, &got)
		return got
	}
	if got := fill(most); got.Count != most || got.More {
		t.Errorf("with as many as it takes: %d, more: %v", got.Count, got.More)
	}
	if got := fill(1); got.Count != most || !got.More {
		t.Errorf("with one more: %d, more: %v", got.Count, got.More)
	}
}
