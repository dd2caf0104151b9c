package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// TestProviderFailuresReleaseSlot: whatever the provider does, the caller gets a useful error
// and the slot is released.
func TestProviderFailuresReleaseSlot(t *testing.T) {
	big := json.RawMessage(`["` + strings.Repeat("x", gateway.MaxAnswer) + `"]`)
	for name, c := range map[string]struct {
		answer  func(ctx context.Context) (gateway.Result, error)
		code    signalbox.Code
		outcome string
		says    string
	}{
		"ok": {func(context.Context) (gateway.Result, error) { return gateway.Result{Content: text}, nil }, "", gateway.OutcomeOK, ""},
		"isError": {func(context.Context) (gateway.Result, error) {
			return gateway.Result{Content: text, IsError: true}, nil
		}, "", gateway.OutcomeError, ""},
		"panic":       {func(context.Context) (gateway.Result, error) { panic("inner secret") }, signalbox.CodeToolFailed, "tool_failed", "fault of Signalbox"},
		"plain error": {func(context.Context) (gateway.Result, error) { return gateway.Result{}, errors.New("EOF") }, signalbox.CodeToolFailed, "tool_failed", "server s"},
		"own error": {func(context.Context) (gateway.Result, error) {
			return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolDown, "the server is away")
		}, signalbox.CodeToolDown, "tool_down", "the server is away"},
		"too large": {func(context.Context) (gateway.Result, error) { return gateway.Result{Content: big}, nil }, signalbox.CodeTooLarge, "too_large", "16777216"},
		"never": {func(ctx context.Context) (gateway.Result, error) {
			<-ctx.Done()
			return gateway.Result{}, ctx.Err()
		}, signalbox.CodeToolTimeout, "tool_timeout", "within 1m"},
		"an error of its own at the timeout": {func(ctx context.Context) (gateway.Result, error) {
			<-ctx.Done()
			return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolDown, "connection closed")
		}, signalbox.CodeToolTimeout, "tool_timeout", "within 1m"},
		"an answer at the last moment": {func(ctx context.Context) (gateway.Result, error) {
			<-ctx.Done()
			return gateway.Result{Content: text}, nil
		}, "", gateway.OutcomeOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				click := tool("s__click", "browser")
				click.Timeout = time.Minute
				p := &scripted{name: "s", tools: []gateway.Tool{click}, onCall: func(ctx context.Context, _ gateway.Call) (gateway.Result, error) { return c.answer(ctx) }}
				var ended []gateway.Ended
				b := open(t, one("browser"), gateway.Options{Ended: func(e gateway.Ended) { ended = append(ended, e) }}, p)
				for range 3 {
					_, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"})
					if signalbox.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
						t.Errorf("code %q: %v", signalbox.CodeOf(err), err)
					}
					if err != nil && strings.Contains(err.Error(), "inner secret") {
						t.Errorf("a panic is reported to the caller: %v", err)
					}
				}
				b.free(t, "browser")
				if len(ended) != 3 || ended[0].Outcome != c.outcome || ended[0].Server != "s" || ended[0].Waited != 0 {
					t.Errorf("told %+v", ended)
				}
			})
		})
	}
}

func TestUpstreamJSONRPCErrorIsPassedThrough(t *testing.T) {
	want := &gateway.ProtocolError{Code: -32602, Message: "no such page", Data: json.RawMessage(`{"n":12345678901234567890}`)}
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) {
		return gateway.Result{}, want
	}}
	var ended gateway.Ended
	b := open(t, one("browser"), gateway.Options{Ended: func(e gateway.Ended) { ended = e }}, p)
	_, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"})
	var got *gateway.ProtocolError
	if !errors.As(err, &got) || got != want || ended.Outcome != gateway.OutcomeProtocol {
		t.Errorf("%v, outcome %s", err, ended.Outcome)
	}
}

// TestInvalidUTF8IsReplaced: one bad byte of an upstream would make the whole message
// unreadable to clients.
func TestInvalidUTF8IsReplaced(t *testing.T) {
	bad, good := json.RawMessage("[{\"type\":\"text\",\"text\":\"a\xffb\"}]"), "[{\"type\":\"text\",\"text\":\"a\uFFFDb\"}]"
	click := tool("s__click", "browser")
	click.Definition = json.RawMessage("{\"name\":\"s__click\",\"description\":\"\xff\"}")
	p := &scripted{name: "s", tools: []gateway.Tool{click}, onCall: func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		if len(c.Arguments) > 0 {
			return gateway.Result{}, &gateway.ProtocolError{Code: 1, Message: "no", Data: bad}
		}
		return gateway.Result{Content: bad, Structured: bad, Meta: bad}, nil
	}}
	b := open(t, one("browser"), gateway.Options{}, p)
	if r, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"}); err != nil || string(r.Content) != good || string(r.Structured) != good || string(r.Meta) != good {
		t.Errorf("%s, %v", r.Content, err)
	}
	var said *gateway.ProtocolError
	if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", Arguments: json.RawMessage(`{"a":1}`)}); !errors.As(err, &said) || string(said.Data) != good {
		t.Errorf("%q", said.Data)
	}
	if d := string(b.Tools()[0].Definition); d != "{\"name\":\"s__click\",\"description\":\"\uFFFD\"}" {
		t.Errorf("%q", d)
	}
}

func TestCallerCancelEndsCall(t *testing.T) {
	p, _, _ := holder("s", tool("s__click", "browser"))
	var ended atomic.Value
	b := open(t, one("browser"), gateway.Options{Ended: func(e gateway.Ended) { ended.Store(e.Outcome) }}, p)
	begun := make(chan struct{})
	inner := p.onCall
	p.onCall = func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		close(begun)
		return inner(ctx, c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := b.call(ctx, gateway.Call{Tool: "s__click"})
	<-begun
	cancel()
	if a := <-done; !errors.Is(a.err, context.Canceled) {
		t.Error(a.err)
	}
	if ended.Load() != gateway.OutcomeCancelled {
		t.Errorf("outcome %v", ended.Load())
	}
	b.free(t, "browser")
}

func TestArgumentsMustBeObject(t *testing.T) {
	var seen string
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(_ context.Context, c gateway.Call) (gateway.Result, error) {
		seen = string(c.Arguments)
		return gateway.Result{}, nil
	}}
	b := open(t, one("browser"), gateway.Options{}, p)
	for in, want := range map[string]string{"": "", "null": "", " null ": "", `{}`: `{}`, ` {"n":12345678901234567890}`: ` {"n":12345678901234567890}`} {
		seen = "not called"
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", Arguments: json.RawMessage(in)}); err != nil || seen != want {
			t.Errorf("%q arrives as %q, %v", in, seen, err)
		}
	}
	for in, kind := range map[string]string{`[1]`: "an array", `"a"`: "a string", `1`: "a number", `true`: "a boolean", `{"a"`: "not JSON", `{} {}`: "not JSON", `nonsense`: "not JSON", "{\"a\":\"\xff\"}": "UTF-8"} {
		_, err := b.Call(t.Context(), gateway.Call{Tool: "s__click", Arguments: json.RawMessage(in)})
		if code(t, err) != signalbox.CodeValidation || !strings.Contains(err.Error(), kind) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestUnknownToolSuggestsNames(t *testing.T) {
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__Click", "browser")}}
	away := &scripted{name: "away", state: gateway.Server{State: gateway.StateFailed, Error: "exit status 1"}}
	described := &scripted{name: "shop", state: gateway.Server{Kind: gateway.KindOpenAPI, State: gateway.StateStarting}}
	var ended []gateway.Ended
	b := open(t, one("browser"), gateway.Options{Ended: func(e gateway.Ended) { ended = append(ended, e) }}, p, away, described)
	for name, want := range map[string]struct {
		code signalbox.Code
		says string
	}{
		"s__click":                 {signalbox.CodeNotFound, `did you mean "s__Click"?`},
		"Click":                    {signalbox.CodeNotFound, `did you mean "s__Click"?`},
		"s__other":                 {signalbox.CodeNotFound, "signalbox tools"},
		"":                         {signalbox.CodeNotFound, "signalbox tools"},
		"away__x":                  {signalbox.CodeToolDown, "failed (exit status 1)"},
		"rest__shop_list":          {signalbox.CodeToolDown, "its server shop is starting"},
		strings.Repeat("x", 1<<20): {signalbox.CodeNotFound, "xxx..."},
	} {
		_, err := b.Call(t.Context(), gateway.Call{Tool: name})
		if code(t, err) != want.code || !strings.Contains(err.Error(), want.says) || len(err.Error()) > 300 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	for _, e := range ended {
		if e.Server != "" || e.Tool != "" {
			t.Errorf("a name given by the caller is counted: %+v", e)
		}
	}
}

// TestThousandsOfCallersShareFourSlots: never more than four run, and every call
// ends.
func TestThousandsOfCallersShareFourSlots(t *testing.T) {
	var now, most, done atomic.Int64
	p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(context.Context, gateway.Call) (gateway.Result, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		return gateway.Result{Content: text}, nil
	}}
	b := open(t, map[string]toolqueue.Config{"browser": {Concurrent: 4}}, gateway.Options{}, p)
	hold, err := takeAll(t, b, 4)
	if err != nil {
		t.Fatal(err)
	}
	callers := soak.Pick(2_000, 10_000)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			ctx := t.Context()
			if i%10 == 0 { // some give up
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i%100)*time.Millisecond)
				defer cancel()
			}
			if _, err := b.Call(ctx, gateway.Call{Tool: "s__click", Progress: func(gateway.Progress) {}}); err == nil {
				done.Add(1)
			} else if i%10 != 0 {
				t.Error(err)
			}
		})
	}
	testkit.Wait(t, "half of them wait", func() bool { return b.depth("browser") >= callers/2 })
	for _, p := range hold {
		p.Release()
	}
	group.Wait()
	if most.Load() > 4 || done.Load() < int64(callers*9/10) {
		t.Errorf("%d at once, %d answered", most.Load(), done.Load())
	}
	b.free(t, "browser")
}

// takeAll takes all slots of the queue browser.
func takeAll(t *testing.T, b *fixture, n int) (out []toolqueue.Permit, err error) {
	for range n {
		p, e := b.queues.Acquire(t.Context(), "browser", toolqueue.Who{})
		out, err = append(out, p), errors.Join(err, e)
	}
	return out, err
}

// TestNoSlotIsLost runs calls with random outcomes concurrently.
func TestNoSlotIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		concurrent := rapid.IntRange(1, 3).Draw(rt, "concurrent")
		fates := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 25).Draw(rt, "fates")
		checkNoSlotLost(t, rt, concurrent, fates, rapid.Bool().Draw(rt, "lease"))
	})
}

func checkNoSlotLost(t *testing.T, rt *rapid.T, concurrent int, fates []int, lease bool) {
	var now atomic.Int64
	hurried := tool("s__click", "browser")
	hurried.Timeout = 5 * time.Millisecond
	p := &scripted{name: "s", tools: []gateway.Tool{hurried}, onCall: func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
		if n := now.Add(1); n > int64(concurrent) {
			rt.Errorf("%d at once", n)
		}
		defer now.Add(-1)
		return randomCall(ctx, string(c.Meta))
	}}
	config := toolqueue.Config{Concurrent: concurrent, MaxWaiters: 20}
	if lease {
		config.Lease = toolqueue.Lease{Idle: 2 * time.Millisecond, MaxHold: 10 * time.Millisecond}
	}
	b := open(t, map[string]toolqueue.Config{"browser": config}, gateway.Options{}, p)
	var group sync.WaitGroup
	for i, fate := range fates {
		group.Go(func() {
			ctx := t.Context()
			if fate == 6 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(1+i)*time.Millisecond)
				defer cancel()
			}
			caller := gateway.Caller{Session: []string{"a", "b", ""}[i%3]}
			_, _ = b.Call(ctx, gateway.Call{Tool: "s__click", Meta: json.RawMessage([]byte{byte('0' + fate)}), Caller: caller, Progress: func(gateway.Progress) {}})
		})
	}
	group.Wait()
	testkit.Wait(rt, "no slot in use, no call waiting: leases expire", func() bool {
		s, _ := b.queues.Status("browser", 0)
		return s.InUse == 0 && s.Depth == 0
	})
	if err := b.Close(); err != nil {
		rt.Fatal(err)
	}
}

func randomCall(ctx context.Context, fate string) (gateway.Result, error) {
	switch fate {
	case "0":
		return gateway.Result{Content: text}, nil
	case "1":
		panic("a provider's fault")
	case "2":
		return gateway.Result{}, errors.New("failed")
	case "3":
		time.Sleep(time.Millisecond)
		return gateway.Result{IsError: true}, nil
	}
	<-ctx.Done()
	return gateway.Result{}, ctx.Err()
}
