package local_test

import (
	"slices"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/local"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// pages reads a list to its end, limit tasks at a time.
func (h *fixture) pages(x *local.Executor, q gateway.TaskQuery, limit int) (ids []string) {
	h.t.Helper()
	q.Limit = limit
	for range 1000 {
		page, err := x.List(h.t.Context(), q)
		h.must(err)
		if len(page.Tasks) > limit {
			h.t.Fatalf("a page of %d has %d tasks", limit, len(page.Tasks))
		}
		for _, v := range page.Tasks {
			ids = append(ids, v.Task.ID)
		}
		if page.Next == "" {
			return ids
		}
		q.Before = page.Next
	}
	h.t.Fatal("the list has no end")
	return nil
}

// A list has running, waiting and ended tasks with any page size, and only tool calls.
func TestList(t *testing.T) {
	h := newFixture(t, async("tool"), async("other"), plain("plain", "one"))
	h.options.Concurrent = 2
	_, err := h.engine.Submit(t.Context(), engine.NewTask{Prompt: "no tool"})
	h.must(err)
	x := h.open()
	var ended []string
	for i := range 5 {
		id := h.submit(x, []string{"tool", "other"}[i%2])
		h.end(x, id)
		ended = append([]string{id}, ended...)
	}
	begun, goOn := h.hangs("tool", "plain")
	defer close(goOn)
	var flying, waits []string
	for _, tool := range []string{"tool", "plain", "tool"} {
		flying = append(flying, h.submit(x, tool))
		got(h, begun)
	}
	for range 3 {
		waits = append(waits, h.submit(x, "other"))
	}
	h.must(h.engine.Pause(t.Context(), signalbox.QueueCalls, "", "", time.Time{}))
	waits = append(waits, h.submit(x, "plain"))
	cancelled := h.submit(x, "other")
	_, err = x.Cancel(t.Context(), cancelled, "")
	h.must(err)
	ended = append([]string{cancelled}, ended...)
	all := slices.Concat(flying, waits, ended)
	for _, limit := range []int{1, 2, 3, 4, 5, 100} {
		if ids := h.pages(x, gateway.TaskQuery{}, limit); !slices.Equal(ids, all) {
			t.Errorf("by %d: %v, want %v", limit, ids, all)
		}
	}
	for name, c := range map[string]struct {
		q    gateway.TaskQuery
		want []string
	}{
		"pending":   {gateway.TaskQuery{Status: "pending"}, waits},
		"running":   {gateway.TaskQuery{Status: "running"}, flying},
		"completed": {gateway.TaskQuery{Status: "completed"}, ended[1:]},
		"cancelled": {gateway.TaskQuery{Status: "cancelled"}, ended[:1]},
		"failed":    {gateway.TaskQuery{Status: "failed"}, nil},
		"of a tool": {gateway.TaskQuery{Tool: "plain"}, []string{flying[1], waits[3]}},
		"seen":      {gateway.TaskQuery{Sees: func(t *signalbox.Task) bool { return t.ID == ended[2] }}, ended[2:3]},
	} {
		for _, limit := range []int{1, 100} {
			if ids := h.pages(x, c.q, limit); !slices.Equal(ids, c.want) {
				t.Errorf("%s by %d: %v, want %v", name, limit, ids, c.want)
			}
		}
	}
	page, err := x.List(t.Context(), gateway.TaskQuery{Status: "pending", Limit: 10})
	h.must(err)
	var says []string
	for _, v := range page.Tasks {
		says = append(says, v.Wait)
	}
	if want := []string{"queued, position 1 in the queue commands", "queued, position 2 in the queue commands", "queued, position 3 in the queue commands", "queued, position 1 in the queue calls"}; !slices.Equal(says, want) {
		t.Errorf("%q", says)
	}
	for _, q := range []gateway.TaskQuery{{Limit: 0}, {Limit: 1001}, {Limit: 1, Status: "done"}, {Limit: 1, Before: "x"}, {Limit: 1, Before: "w:calls:"},
		{Limit: 1, Before: store.ScanCursor{Phase: "gone"}.String()}, {Limit: 1, Before: store.ScanCursor{Phase: "waiting", Queue: "work"}.String()},
		{Limit: 1, Before: store.ScanCursor{Phase: "waiting"}.String()}, {Limit: 1, Before: store.ScanCursor{Phase: "ended", Before: "x"}.String()}} {
		if _, err := x.List(t.Context(), q); signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// A task that is not a tool call is not found as one.
func TestTaskThatIsNotAToolCall(t *testing.T) {
	h := newFixture(t, async("tool"))
	r, err := h.engine.Submit(t.Context(), engine.NewTask{Prompt: "p"})
	h.must(err)
	x := h.open()
	for _, id := range []string{r.Task.ID, "queue-00000000000000000000000000"} {
		_, err := x.Task(t.Context(), id)
		_, waits := x.Wait(t.Context(), id, time.Hour)
		_, cancels := x.Cancel(t.Context(), id, "")
		for _, err := range []error{err, waits, cancels} {
			if signalbox.CodeOf(err) != signalbox.CodeNotFound {
				t.Errorf("%v", err)
			}
		}
	}
	if h.task(r.Task.ID).State != signalbox.Pending {
		t.Error("it was cancelled")
	}
}

// The poll interval follows from the position, the run time so far, and the run times of earlier runs.
func TestPoll(t *testing.T) {
	h := newFixture(t, async("tool"))
	h.options.Concurrent, h.options.Retention = 1, time.Hour
	begun, goOn := h.hangs("tool")
	x := h.open()
	first := h.submit(x, "tool")
	got(h, begun)
	h.reaches(first, signalbox.Working)
	v, err := x.Task(t.Context(), first)
	h.must(err)
	if v.Poll != 500*time.Millisecond || v.Wait != "" || v.Position != 0 || v.TTL != 0 {
		t.Errorf("%+v", v)
	}
	var last gateway.ToolTask
	for range 80 {
		if last, err = x.Submit(t.Context(), call("tool")); err != nil {
			t.Fatal(err)
		}
	}
	if last.Position != 80 || last.Poll != 30*time.Second || last.Wait != "queued, position 80 in the queue commands" {
		t.Errorf("position %d, poll %s, %q", last.Position, last.Poll, last.Wait)
	}
	why, err := h.engine.Why(t.Context(), last.Task.ID)
	h.must(err)
	if why.Summary != "It waits: All 1 command slots are in use." {
		t.Errorf("%s", why.Summary)
	}
	for _, g := range why.Gates {
		if !g.OK && (g.Cure == "" || g.Name == "agent_free" && g.TaskID != first) {
			t.Errorf("%+v", g)
		}
	}
	close(goOn)
	end := h.end(x, last.Task.ID)
	if want := end.Task.EndedAt.Sub(end.Task.CreatedAt) + time.Hour; end.TTL != want || end.Poll != 0 {
		t.Errorf("ttl %s, want %s", end.TTL, want)
	}
	testkit.Wait(h.t, "there is an estimate", func() bool { // the stats that it is based on are cached for a second
		eta := h.engine.ETA(t.Context(), &signalbox.Task{State: signalbox.Pending, Queue: signalbox.QueueCommands}, store.Position{N: 5})
		return eta != nil && eta.Runs >= 5
	})
}
