package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// limited is an upstream that refuses calls until a point in time, which it may
// or may not announce.
type limited struct {
	*scripted
	until time.Time
	says  bool

	mu    sync.Mutex
	began time.Time
	asked []time.Duration
}

func newLimited(tl gateway.Tool, d time.Duration, says bool) *limited {
	u := &limited{scripted: &scripted{name: "s", tools: []gateway.Tool{tl}}, until: time.Now().Add(d), says: says, began: time.Now()}
	u.onCall = func(context.Context, gateway.Call) (gateway.Result, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.asked = append(u.asked, time.Since(u.began))
		switch left := time.Until(u.until); {
		case left <= 0:
			return gateway.Result{Content: text}, nil
		case u.says:
			return gateway.Result{}, &gateway.Refused{By: "api.example.com", Status: 429, After: left}
		}
		return gateway.Result{}, &gateway.Refused{By: "api.example.com", Status: 429}
	}
	return u
}

// TestRefusedCallClosesItsQueue: after a refusal no call reaches the upstream before the
// announced time. Then all calls are answered, including the refused one.
func TestRefusedCallClosesItsQueue(t *testing.T) {
	for name, c := range map[string]toolqueue.Config{
		"plain": {Concurrent: 1}, "rate": {Concurrent: 1, Rate: toolqueue.Rate{N: 100, Per: time.Second, Burst: 9}}, "keys": {Concurrent: 1, PerKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newLimited(tool("s__t", "api"), 30*time.Second, true)
				b := open(t, map[string]toolqueue.Config{"api": c}, gateway.Options{}, u)
				h := newRecorder()
				var all []<-chan answer
				starts := 0
				for range 10 {
					all = append(all, b.call(t.Context(), gateway.Call{Tool: "s__t", Progress: h.record, OnStart: func(*gateway.Call) error { starts++; return nil }}))
				}
				synctest.Wait()
				s, _ := b.queues.Status("api", 10)
				if l := s.Limits; s.Depth != 10 || len(l) != 1 || l[0].Closed.Why != "api.example.com answered 429 Too Many Requests" || time.Until(l[0].Closed.Until) != 30*time.Second {
					t.Errorf("%+v", s)
				}
				for _, a := range all {
					if a := <-a; a.err != nil {
						t.Error(a.err)
					}
				}
				if len(u.asked) != 11 || u.asked[0] != 0 || u.asked[1] < 30*time.Second || starts != 10 {
					t.Errorf("asked at %v, %d starts", u.asked, starts)
				}
				until := u.until.UTC().Format(time.TimeOnly)
				told := 0
				for _, word := range h.all() {
					if strings.Contains(word, "in tool queue api, which is closed until "+until+" UTC: api.example.com answered 429") {
						told++
					}
				}
				if told < 10 {
					t.Errorf("%d were reported: %q", told, h.all())
				}
				b.free(t, "api")
			})
		})
	}
}

// A call whose time is too short does not wait for the queue to open.
func TestRefusedCallWithoutTimeIsToldUntilWhen(t *testing.T) {
	short := tool("s__t", "api")
	short.Timeout = 20 * time.Second
	long := tool("s__t", "api")
	for name, x := range map[string]struct {
		tool   gateway.Tool
		config toolqueue.Config
		within time.Duration // the caller's timeout
		closed time.Duration
		call   gateway.Call
	}{
		"the tool's timeout":   {tool: short, closed: 30 * time.Second},
		"the queue's max wait": {tool: long, config: toolqueue.Config{MaxWait: 20 * time.Second}, closed: 30 * time.Second, call: gateway.Call{QueueTimeoutOnly: true}},
		"the caller's time":    {tool: long, within: 20 * time.Second, closed: 30 * time.Second},
		"more than an hour":    {tool: short, closed: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newLimited(x.tool, x.closed, true)
				x.config.Concurrent = 1
				b := open(t, map[string]toolqueue.Config{"api": x.config}, gateway.Options{}, u)
				ctx := t.Context()
				if x.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, x.within)
					defer cancel()
				}
				x.call.Tool = "s__t"
				_, err := b.Call(ctx, x.call)
				closed := min(x.closed, toolqueue.MaxClosed)
				want := `The tool "s__t" did not run: api.example.com answered 429 Too Many Requests. Its tool queue "api" is closed until ` +
					u.began.Add(closed).UTC().Format(time.TimeOnly) + " UTC; call it again then."
				e, ok := errors.AsType[*signalbox.Error](err)
				if !ok || e.Code != signalbox.CodeToolQueueOut || e.Message != want || e.RetryAfter != closed || time.Since(u.began) != 0 {
					t.Fatalf("%v after %s", err, time.Since(u.began))
				}
				// A later call waits and gets the same error.
				_, err = b.Call(ctx, x.call)
				if ctx.Err() == nil && (!strings.Contains(err.Error(), "is closed until") || code(t, err) != signalbox.CodeToolQueueOut) {
					t.Error(err)
				}
			})
		})
	}
}

// If the upstream gives no time, the queue opens after one second, then after two.
func TestRefusedCallWithoutTimeIsGuessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newLimited(tool("s__t", "api"), 20*time.Second, false)
		b := open(t, map[string]toolqueue.Config{"api": {Concurrent: 5}}, gateway.Options{}, u)
		var all []<-chan answer
		for range 5 {
			all = append(all, b.call(t.Context(), gateway.Call{Tool: "s__t"}))
		}
		for _, a := range all {
			if a := <-a; a.err != nil {
				t.Error(a.err)
			}
		}
		var at []time.Duration
		for _, d := range u.asked {
			if len(at) == 0 || at[len(at)-1] != d {
				at = append(at, d)
			}
		}
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("asked at %v", at)
		}
		for i := range at {
			if at[i] != want[i] {
				t.Fatalf("asked at %v", at)
			}
		}
		time.Sleep(time.Hour) // long after that, the guess starts at a second again
		u.until = time.Now().Add(time.Second)
		began := time.Now()
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__t"}); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestCallRefusedForEver: the retries of a call are bounded.
func TestCallRefusedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newLimited(tool("s__t", "api"), 1000*time.Hour, false)
		b := open(t, map[string]toolqueue.Config{"api": {Concurrent: 1}}, gateway.Options{}, u)
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__t"}); code(t, err) != signalbox.CodeToolQueueOut || len(u.asked) != 10 {
			t.Errorf("%v, asked %d times", err, len(u.asked))
		}
		b.free(t, "api")
	})
}

// TestRefusedCallEnds: a call that waits for its queue to open does not outlive its caller and
// does not delay Close.
func TestRefusedCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newLimited(tool("s__t", "api"), time.Minute, true)
		b := open(t, map[string]toolqueue.Config{"api": {Concurrent: 1}}, gateway.Options{}, u)
		ctx, cancel := context.WithCancel(t.Context())
		gone, kept := b.call(ctx, gateway.Call{Tool: "s__t"}), b.call(t.Context(), gateway.Call{Tool: "s__t"})
		synctest.Wait()
		cancel()
		if a := <-gone; !errors.Is(a.err, context.Canceled) {
			t.Error(a.err)
		}
		began := time.Now()
		if err := b.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if a := <-kept; code(t, a.err) != signalbox.CodeUnavailable {
			t.Error(a.err)
		}
	})
}
