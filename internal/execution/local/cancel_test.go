package local_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// A cancel ends a task in any state, and a task that had not started does not run.
func TestCancel(t *testing.T) {
	h := newFixture(t, async("tool"), async("lined", inQueue("one")), plain("holder", "one"))
	h.options.Concurrent = 2
	ran := make(chan string, 8)
	hang := func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		ran <- c.Tool
		<-ctx.Done()
		if c.Tool == "holder" {
			return gateway.Result{}, ctx.Err()
		}
		return gateway.Result{IsError: true, Run: &gateway.RunEnd{Reason: signalbox.ReasonCancelled, Message: "cancelled"}}, nil
	}
	for _, tool := range []string{"tool", "lined", "holder"} {
		h.play(tool, hang)
	}
	holding, release := context.WithCancel(t.Context())
	defer release()
	go func() { _, _ = h.gateway.Call(holding, gateway.Call{Tool: "holder"}) }()
	got(h, ran)
	x := h.open()
	lined := h.submit(x, "lined")
	testkit.Wait(h.t, "it stands in its line", func() bool { s, _ := h.queues.Status("one", 0); return s.Depth == 1 })
	working, another := h.submit(x, "tool"), h.submit(x, "tool") // they have both slots: lined has yielded its own
	got(h, ran)
	got(h, ran)
	pending := h.submit(x, "tool")
	for _, id := range []string{pending, lined, working, another} {
		if _, err := x.Cancel(t.Context(), id, "me"); err != nil {
			t.Fatal(err)
		}
		v := h.end(x, id)
		if v.Task.State != signalbox.Cancelled || v.Task.Reason != signalbox.ReasonCancelled || v.Task.Message != "cancelled by me" {
			t.Errorf("%s, %s: %q", v.Task.State, v.Task.Reason, v.Task.Message)
		}
	}
	if s, _ := h.queues.Status("one", 0); s.Depth != 0 || s.InUse != 1 {
		t.Errorf("tool queue: %+v", s)
	}
	testkit.Wait(h.t, "the slots are free", func() bool { return x.Agents()[0].InUse == 0 })
	h.slots(0)
	select {
	case tool := <-ran:
		t.Errorf("%s ran", tool)
	default:
	}
	v, err := x.Cancel(t.Context(), working, "me")
	if signalbox.CodeOf(err) != signalbox.CodeAlreadyEnded || v.Task.State != signalbox.Cancelled {
		t.Errorf("a second cancel: %v, %+v", err, v.Task)
	}
}

// A tool that is not a command is cancelled through its context.
func TestCancelCallWithoutProcesses(t *testing.T) {
	h := newFixture(t, plain("slow", "one"))
	ran := make(chan struct{}, 1)
	h.play("slow", func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		ran <- struct{}{}
		<-ctx.Done()
		return gateway.Result{}, ctx.Err()
	})
	x := h.open()
	id := h.submit(x, "slow")
	got(h, ran)
	if v, err := x.Cancel(t.Context(), id, ""); err != nil || v.Task.State != signalbox.Cancelling {
		t.Errorf("%v: %s", err, v.Task.State)
	}
	if v := h.end(x, id); v.Task.State != signalbox.Cancelled || v.Task.Message != "cancelled" {
		t.Errorf("%s: %q", v.Task.State, v.Task.Message)
	}
}

// If a cancel races with the end, the first one counts, and neither a slot nor a task is left behind.
func TestCancelRacesWithEnd(t *testing.T) {
	h := newFixture(t, async("tool"), async("lined", inQueue("one")))
	for _, tool := range []string{"tool", "lined"} {
		h.play(tool, func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
			if ctx.Err() != nil {
				return gateway.Result{IsError: true, Run: &gateway.RunEnd{Reason: signalbox.ReasonCancelled}}, nil
			}
			return said("done"), nil
		})
	}
	x := h.open()
	var group sync.WaitGroup
	var mu sync.Mutex
	states := map[signalbox.State]int{}
	for i := range 60 {
		group.Go(func() {
			id := h.submit(x, []string{"tool", "lined"}[i%2])
			time.Sleep(time.Duration(i%7) * 300 * time.Microsecond) // so that it meets every state
			_, err := x.Cancel(context.Background(), id, "me")
			v := h.end(x, id)
			mu.Lock()
			defer mu.Unlock()
			states[v.Task.State]++
			if late := signalbox.CodeOf(err) == signalbox.CodeAlreadyEnded; late && v.Task.State != signalbox.Completed || err != nil && !late {
				t.Errorf("%v, %s", err, v.Task.State)
			}
		})
	}
	group.Wait()
	if n := states[signalbox.Completed] + states[signalbox.Cancelled]; n != 60 {
		t.Errorf("%v", states)
	}
	testkit.Wait(h.t, "the slots are free", func() bool { return x.Agents()[0].InUse == 0 })
	h.slots(0)
}
