package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// recorder records progress with its time.
type recorder struct {
	mu    sync.Mutex
	begin time.Time
	words []string
}

func newRecorder() *recorder { return &recorder{begin: time.Now()} }

func (h *recorder) record(p gateway.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, fmt.Sprintf("%v %d %s", time.Since(h.begin), p.Position, p.Message))
}

func (h *recorder) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.words...)
}

func TestProgressReportsQueuePosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		inner := p.onCall
		p.onCall = func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
			if c.Progress != nil {
				c.Progress(gateway.Progress{Progress: 1, Message: "half", Position: 7})
			}
			return inner(ctx, c)
		}
		b := open(t, one("browser"), gateway.Options{}, p)
		for range 2 { // these do not ask for progress
			b.call(t.Context(), gateway.Call{Tool: "s__click"})
			synctest.Wait()
		}
		h := newRecorder()
		last := b.call(t.Context(), gateway.Call{Tool: "s__click", Progress: h.record})
		time.Sleep(6050 * time.Millisecond)
		letGo <- struct{}{}
		time.Sleep(950 * time.Millisecond)
		letGo <- struct{}{}
		synctest.Wait()
		letGo <- struct{}{}
		if a := <-last; a.err != nil {
			t.Fatal(a.err)
		}
		time.Sleep(time.Minute)
		equal(t, h.all(), "0s 2 queued, position 2", "5s 2 queued, position 2", "6.1s 1 queued, position 1", "7s 0 half")
	})
}

func TestNoPositionWithoutWait(t *testing.T) {
	b := open(t, one("browser"), gateway.Options{}, &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}})
	h := newRecorder()
	if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", Progress: h.record}); err != nil || len(h.all()) != 0 {
		t.Errorf("%q %v", h.all(), err)
	}
}

func TestSlowProgressListenerDoesNotHoldSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		b := open(t, one("browser"), gateway.Options{}, p)
		b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		deaf := make(chan struct{})
		slow := b.call(t.Context(), gateway.Call{Tool: "s__click", Progress: func(gateway.Progress) { <-deaf }})
		synctest.Wait()
		letGo <- struct{}{}
		letGo <- struct{}{} // it runs although its listener is still busy with the position
		synctest.Wait()
		b.free(t, "browser")
		select {
		case <-slow:
			t.Error("the call has returned while a progress report is still running")
		default:
		}
		close(deaf)
		if a := <-slow; a.err != nil {
			t.Error(a.err)
		}
	})
}

func TestNoProgressAfterAnswer(t *testing.T) {
	var late func(gateway.Progress)
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		late = c.Progress
		return gateway.Result{}, nil
	}}
	b := open(t, one("browser"), gateway.Options{}, p)
	h := newRecorder()
	r, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", Progress: h.record})
	if err != nil || string(r.Content) != "[]" {
		t.Errorf("an answer without content is %q, %v", r.Content, err)
	}
	late(gateway.Progress{Message: "late"})
	if len(h.all()) != 0 {
		t.Errorf("%q", h.all())
	}
}
