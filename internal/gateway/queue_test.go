package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// holder is a provider whose calls last until they are released.
func holder(name string, tools ...gateway.Tool) (*scripted, chan struct{}, *atomic.Int64) {
	letGo, most := make(chan struct{}), &atomic.Int64{}
	var running atomic.Int64
	return &scripted{name: name, tools: tools, onCall: func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		select {
		case <-letGo:
			return gateway.Result{Content: text}, nil
		case <-ctx.Done():
			return gateway.Result{}, ctx.Err()
		}
	}}, letGo, most
}

// TestCapacityOneSerializesCalls (seed tool-queue-manager, step 9).
func TestCapacityOneSerializesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, most := holder("s", tool("s__click", "browser"))
		b := open(t, one("browser"), gateway.Options{}, p)
		first := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		if lines := b.log.lines("queued"); len(lines) != 0 {
			t.Errorf("a call that does not wait is logged: %q", lines)
		}
		second := b.call(t.Context(), gateway.Call{Tool: "s__click", Caller: gateway.Caller{Session: "secret-session", Agent: "coder"}})
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		letGo <- struct{}{}
		if a := <-first; a.err != nil {
			t.Error(a.err)
		}
		letGo <- struct{}{}
		if a := <-second; a.err != nil || string(a.Content) != string(text) {
			t.Errorf("%s %v", a.Content, a.err)
		}
		if most.Load() != 1 {
			t.Errorf("%d ran side by side", most.Load())
		}
		mark := gateway.SessionLabel("secret-session")
		equal(t, b.log.lines("queued"), "VRB queued reason=capacity queue=browser queued_at_depth=1 max_concurrent=1 tool=s__click session="+mark+" agent=coder")
		equal(t, b.log.lines("waited"), "VRB waited queue=browser wait_ms=1500 tool=s__click session="+mark+" agent=coder")
		equal(t, b.log.lines("started"), "VRB started server=s tool=s__click", "VRB started server=s tool=s__click session="+mark+" agent=coder")
		equal(t, b.log.lines("finished"), "VRB finished outcome=ok duration_ms=1500 server=s tool=s__click",
			"VRB finished outcome=ok duration_ms=0 server=s tool=s__click session="+mark+" agent=coder")
		if strings.Contains(b.log.buf.String(), "secret-session") {
			t.Error("the log has a session's id")
		}
		b.free(t, "browser")
	})
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestIncidentQueuedLineOnlyAfterTheWait: in the seed's system a stuck call was
// not visible (notes on tool-queue-manager).
func TestIncidentQueuedLineOnlyAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		b := open(t, one("browser"), gateway.Options{}, p)
		b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		if b.depth("browser") != 1 || len(b.log.lines("queued")) != 1 || len(b.log.lines("waited")) != 0 {
			t.Errorf("while it waits: %q", b.log.buf.String())
		}
		close(letGo)
	})
}

// TestCancelledWaiterLeavesQueue (seed, step 9).
func TestCancelledWaiterLeavesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		b := open(t, one("browser"), gateway.Options{}, p)
		first := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := b.call(ctx, gateway.Call{Tool: "s__click"})
		synctest.Wait()
		third := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		cancel()
		if a := <-second; !errors.Is(a.err, context.Canceled) {
			t.Errorf("cancelled: %v", a.err)
		}
		if d := b.depth("browser"); d != 1 {
			t.Errorf("depth %d after one of two gave up", d)
		}
		letGo <- struct{}{}
		letGo <- struct{}{}
		if a, c := <-first, <-third; a.err != nil || c.err != nil {
			t.Errorf("%v %v", a.err, c.err)
		}
		b.free(t, "browser")
	})
}

// TestIncidentWaitOutsideToolTimeout (seed, step 9): in the seed's system the wait was not
// part of the tool's timeout and had no bound.
func TestIncidentWaitOutsideToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		click := tool("s__click", "browser")
		click.Timeout = time.Minute
		p, letGo, _ := holder("s", tool("s__hold", "browser"), click)
		b := open(t, one("browser"), gateway.Options{}, p)
		b.call(t.Context(), gateway.Call{Tool: "s__hold"})
		synctest.Wait()
		begin := time.Now()
		_, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"})
		if code(t, err) != signalbox.CodeToolQueueOut || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if !strings.Contains(err.Error(), "s__click") || !strings.Contains(err.Error(), "browser") {
			t.Errorf("the error does not say what it is about: %v", err)
		}
		if b.depth("browser") != 0 || len(b.log.lines("started")) != 1 {
			t.Error("it is still in the queue, or was called")
		}
		close(letGo)
	})
}

// TestQueueMaxWaitReplacesToolTimeout: a call that has its slot still gets the whole tool
// timeout.
func TestQueueMaxWaitReplacesToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		click := tool("s__click", "browser")
		click.Timeout = time.Minute
		p, letGo, _ := holder("s", tool("s__hold", "browser"), click)
		b := open(t, map[string]toolqueue.Config{"browser": {Concurrent: 1, MaxWait: 10 * time.Minute}}, gateway.Options{}, p)
		b.call(t.Context(), gateway.Call{Tool: "s__hold"})
		synctest.Wait()
		second := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		time.Sleep(9 * time.Minute)
		letGo <- struct{}{} // the second one runs now
		begin := time.Now()
		a := <-second
		if code(t, a.err) != signalbox.CodeToolTimeout || time.Since(begin) != time.Minute {
			t.Errorf("after %v of running: %v", time.Since(begin), a.err)
		}
		b.call(t.Context(), gateway.Call{Tool: "s__hold"})
		synctest.Wait()
		begin = time.Now()
		_, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"})
		if code(t, err) != signalbox.CodeToolQueueOut || time.Since(begin) != 10*time.Minute {
			t.Errorf("after %v in line: %v", time.Since(begin), err)
		}
		close(letGo)
	})
}

func TestFullQueueIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		b := open(t, map[string]toolqueue.Config{"browser": {Concurrent: 1, MaxWaiters: 1}}, gateway.Options{}, p)
		for range 2 {
			b.call(t.Context(), gateway.Call{Tool: "s__click"})
			synctest.Wait()
		}
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"}); code(t, err) != signalbox.CodeToolQueue {
			t.Error(err)
		}
		if len(b.log.lines("reason=full")) != 1 {
			t.Error("the log does not mention it")
		}
		close(letGo)
	})
}

// TestQueuesAreIsolated (seed, step 9).
func TestQueuesAreIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, letGo, _ := holder("s", tool("s__click", "browser"), tool("s__note", ""))
		quick := &scripted{name: "q", tools: []gateway.Tool{tool("q__get", "default")}}
		b := open(t, map[string]toolqueue.Config{"browser": {Concurrent: 1}, "default": {Concurrent: 1}}, gateway.Options{}, slow, quick)
		for range 3 {
			b.call(t.Context(), gateway.Call{Tool: "s__click"})
		}
		synctest.Wait()
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "q__get"}); err != nil {
			t.Error(err)
		}
		b.free(t, "default")
		// Internal tools bypass all queues: neither call takes a slot.
		inside := []<-chan answer{b.call(t.Context(), gateway.Call{Tool: "s__note"}), b.call(t.Context(), gateway.Call{Tool: "s__note"})}
		synctest.Wait()
		if s, _ := b.queues.Status("browser", 0); s.InUse != 1 || s.Depth != 2 {
			t.Errorf("browser: %d in use, depth %d", s.InUse, s.Depth)
		}
		close(letGo)
		for _, done := range inside {
			if a := <-done; a.err != nil {
				t.Error(a.err)
			}
		}
	})
}

func TestEndSessionReleasesLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}}
		b := open(t, map[string]toolqueue.Config{"browser": {Concurrent: 1, Lease: toolqueue.Lease{Idle: time.Hour}}}, gateway.Options{}, p)
		mine := gateway.Call{Tool: "s__click", Caller: gateway.Caller{Session: "mine"}}
		for range 2 {
			if _, err := b.Call(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
		}
		other := b.call(t.Context(), gateway.Call{Tool: "s__click", Caller: gateway.Caller{Session: "other"}})
		synctest.Wait()
		if b.depth("browser") != 1 {
			t.Fatal("the other session did not wait")
		}
		b.EndSession("mine")
		if a := <-other; a.err != nil {
			t.Error(a.err)
		}
		b.EndSession("other")
		b.EndSession("")
		equal(t, p.ended, "mine", "other")
		b.free(t, "browser")
	})
}
