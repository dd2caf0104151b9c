package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestOnStart: OnStart is called when the slot is held and before anything runs, and may set fields
// of the call.
func TestOnStart(t *testing.T) {
	var b *fixture
	calls := make(chan gateway.Call, 4)
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		calls <- c
		return gateway.Result{Content: text}, nil
	}}
	b = open(t, one("browser"), gateway.Options{}, p)
	begun := func(c *gateway.Call) error {
		if s, _ := b.queues.Status("browser", 0); s.InUse != 1 {
			t.Errorf("%d slots in use when it begins", s.InUse)
		}
		c.Task, c.Mark = "task", "mark"
		return nil
	}
	if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", OnStart: begun}); err != nil {
		t.Fatal(err)
	}
	if c := <-calls; c.Task != "task" || c.Mark != "mark" {
		t.Errorf("%+v", c)
	}
	refused := errors.New("not stored")
	if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", OnStart: func(*gateway.Call) error { return refused }}); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if len(calls) > 0 {
		t.Error("it ran nevertheless")
	}
	b.free(t, "browser")
}

// TestOnWait: a waiting call has a position; a call that does not wait has none.
func TestOnWait(t *testing.T) {
	hold := make(chan struct{})
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) {
		<-hold
		return gateway.Result{Content: text}, nil
	}}
	b := open(t, one("browser"), gateway.Options{}, p)
	first := b.call(t.Context(), gateway.Call{Tool: "s__click", OnWait: func(toolqueue.Waiting) { t.Error("the first waits") }})
	testkit.Wait(t, "the first call runs", func() bool { s, _ := b.queues.Status("browser", 0); return s.InUse > 0 })
	place := make(chan toolqueue.Waiting, 1)
	second := b.call(t.Context(), gateway.Call{Tool: "s__click", OnWait: func(w toolqueue.Waiting) { place <- w }})
	w := <-place
	testkit.Wait(t, "the second is the next", func() bool { return w.Position() == 1 })
	close(hold)
	for _, c := range []<-chan answer{first, second} {
		if a := <-c; a.err != nil {
			t.Error(a.err)
		}
	}
	if w.Position() != 0 {
		t.Errorf("position %d after the wait", w.Position())
	}
}

// TestCallLimit: a task's own limit has precedence over the tool's. An async tool without a
// limit has no bound on its run or wait.
func TestCallLimit(t *testing.T) {
	for name, c := range map[string]struct {
		tool  gateway.Tool
		limit time.Duration
		runs  time.Duration // until it is cancelled; 0: never
	}{
		"of the tool":                   {gateway.Tool{Timeout: time.Minute}, 0, time.Minute},
		"of the task, shorter":          {gateway.Tool{Timeout: time.Minute}, time.Second, time.Second},
		"of the task, longer":           {gateway.Tool{Timeout: time.Minute}, time.Hour, time.Hour},
		"default":                       {gateway.Tool{}, 0, gateway.DefaultTimeout},
		"async":                         {gateway.Tool{Async: true}, 0, 0},
		"async with a limit":            {gateway.Tool{Async: true, Timeout: time.Minute}, 0, time.Minute},
		"async with one of the task":    {gateway.Tool{Async: true}, time.Minute, time.Minute},
		"a command keeps it by itself":  {gateway.Tool{Kind: gateway.KindCommand, Timeout: time.Minute}, 0, 0},
		"a command, with one of a task": {gateway.Tool{Kind: gateway.KindCommand, Timeout: time.Minute}, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.tool.Name, c.tool.Server, c.tool.Queue, c.tool.Definition = "t", "s", "browser", json.RawMessage(`{}`)
				const never = 1000 * time.Hour
				var limit time.Duration
				p := &scripted{name: "s", tools: []gateway.Tool{c.tool}, onCall: func(ctx context.Context, call gateway.Call) (gateway.Result, error) {
					limit = call.Limit
					select {
					case <-ctx.Done():
						return gateway.Result{}, ctx.Err()
					case <-time.After(never):
						return gateway.Result{Content: text}, nil
					}
				}}
				b := open(t, one("browser"), gateway.Options{}, p)
				begin := time.Now()
				_, err := b.Call(t.Context(), gateway.Call{Tool: "t", Limit: c.limit})
				took := time.Since(begin)
				if c.runs == 0 && (err != nil || took != never) || c.runs > 0 && (took != c.runs || signalbox.CodeOf(err) != signalbox.CodeToolTimeout) {
					t.Errorf("%v after %s", err, took)
				}
				if c.tool.Kind == gateway.KindCommand {
					if want := max(c.limit, 0); want == 0 && limit != time.Minute || want > 0 && limit != want {
						t.Errorf("its provider got the limit %s", limit)
					}
				}
			})
		})
	}
}

func TestQueueTimeoutOnlyIgnoresToolTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, holder, background := tool("short", "browser"), tool("holder", "browser"), tool("background", "browser")
		short.Timeout, background.Timeout, background.Async = time.Second, time.Second, true
		p := &scripted{name: "s", tools: []gateway.Tool{short, holder, background}, onCall: func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
			if c.Tool == "holder" {
				time.Sleep(time.Minute)
			}
			return gateway.Result{Content: text}, nil
		}}
		b := open(t, one("browser"), gateway.Options{}, p)
		holds := b.call(t.Context(), gateway.Call{Tool: "holder"})
		synctest.Wait()
		hasty, patient, async := b.call(t.Context(), gateway.Call{Tool: "short"}), b.call(t.Context(), gateway.Call{Tool: "short", QueueTimeoutOnly: true}), b.call(t.Context(), gateway.Call{Tool: "background"})
		if a := <-hasty; signalbox.CodeOf(a.err) != signalbox.CodeToolQueueOut {
			t.Errorf("%v", a.err)
		}
		for _, c := range []<-chan answer{holds, patient, async} {
			if a := <-c; a.err != nil {
				t.Error(a.err)
			}
		}
	})
}

// TestRunEndPassesThrough: RunEnd and metadata are passed on. A run cancelled because its
// caller disconnected is not an answer to a waiting caller.
func TestRunEndPassesThrough(t *testing.T) {
	end := &gateway.RunEnd{Reason: signalbox.ReasonExitNonzero, Message: "m"}
	p := &scripted{name: "s", tools: []gateway.Tool{tool("t", "")}, onCall: func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		if string(c.Arguments) == `{"wait":1}` {
			<-ctx.Done()
			return gateway.Result{Content: text, IsError: true, Run: &gateway.RunEnd{Reason: signalbox.ReasonCancelled}}, nil
		}
		return gateway.Result{Content: text, IsError: true, Metadata: json.RawMessage(`{"agent":"a"}`), Run: end}, nil
	}}
	b := open(t, nil, gateway.Options{}, p)
	r, err := b.Call(t.Context(), gateway.Call{Tool: "t"})
	if err != nil || string(r.Metadata) != `{"agent":"a"}` || r.Run != end || !r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	for task, want := range map[string]bool{"": true, "queue-1": false} {
		ctx, cancel := context.WithCancel(t.Context())
		begun := make(chan struct{})
		done := b.call(ctx, gateway.Call{Tool: "t", Task: task, Arguments: json.RawMessage(`{"wait":1}`), OnStart: func(*gateway.Call) error { close(begun); return nil }})
		<-begun
		cancel()
		if a := <-done; errors.Is(a.err, context.Canceled) != want || !want && (a.Run == nil || a.Run.Reason != signalbox.ReasonCancelled) {
			t.Errorf("of task %q: %+v", task, a)
		}
	}
}

func TestUnkillableProcessHoldsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lives atomic.Bool
		lives.Store(true)
		p := &scripted{name: "s", tools: []gateway.Tool{tool("t", "browser")}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) {
			r := gateway.Result{Content: text}
			if lives.Load() {
				r.IsError, r.Run = true, &gateway.RunEnd{Reason: signalbox.ReasonRunTimeout, Alive: func() []int {
					if lives.Load() {
						return []int{4711}
					}
					return nil
				}}
			}
			return r, nil
		}}
		b := open(t, one("browser"), gateway.Options{}, p)
		if r, err := b.Call(t.Context(), gateway.Call{Tool: "t"}); err != nil || !r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		next := b.call(t.Context(), gateway.Call{Tool: "t"})
		time.Sleep(time.Minute)
		if b.depth("browser") != 1 {
			t.Error("the slot was given to another")
		}
		if lines := b.log.lines(`msg="processes of a tool cannot be killed: its slot stays taken until they are dead"`); len(lines) > 1 || !strings.Contains(b.log.buf.String(), "4711") {
			t.Errorf("%q", b.log.buf.String())
		}
		lives.Store(false)
		if a := <-next; a.err != nil || a.IsError {
			t.Errorf("%+v", a)
		}
		b.free(t, "browser")
		lives.Store(true)
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "t"}); err != nil {
			t.Fatal(err)
		}
	}) // and Close does not wait for it
}
