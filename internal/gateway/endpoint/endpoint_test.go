package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// inEachEra runs a test with clients of every era.
func inEachEra(t *testing.T, f func(t *testing.T, version string)) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) { f(t, version) })
	}
}

func TestListToolsPages(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{}, func(s *scripted) {
			for i := range 1200 {
				s.add(fmt.Sprintf("s__t%04d", i), "default", nil)
			}
		})
		c := r.connect(version)
		seen, pages := map[string]bool{}, 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			list, err := c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range list.Tools {
				seen[tool.Name] = true
			}
			cursor = list.NextCursor
		}
		if len(seen) != 1203 || pages != 3 {
			t.Errorf("%d tools in %d pages", len(seen), pages)
		}
		_, err := c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "€"})
		wantCode(t, err, jsonrpc.CodeInvalidParams)
	})
}

func wantCode(t *testing.T, err error, code int64) *jsonrpc.Error {
	t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want the JSON-RPC error %d", err, code)
	}
	return e
}

func TestToolChangeIsNotified(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{})
		c := r.connect(version)
		// The client's stream may not be open yet; then it sees the next change.
		testkit.Wait(t, "the client is notified", func() bool {
			r.script.offer(r.script.Tools()[:1])
			r.script.offer(append(r.script.Tools(), gateway.Tool{Name: "s__new", Server: "s", Kind: gateway.KindMCP, Queue: "default", Definition: json.RawMessage(`{"name":"s__new","inputSchema":{"type":"object"}}`)}))
			select {
			case <-c.changed:
				return true
			case <-time.After(100 * time.Millisecond): // changes in quick succession share one notification
				return false
			}
		})
		list, err := c.ListTools(t.Context(), nil)
		if err != nil || list.Tools[len(list.Tools)-1].Name != "s__new" {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestProtocolErrors(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{}, func(s *scripted) {
			s.add("s__broken", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
				return gateway.Result{}, &gateway.ProtocolError{Code: -32042, Message: "not <now>", Data: json.RawMessage(`{"n":12345678901234567890}`)}
			})
			s.add("s__down", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
				return gateway.Result{}, signalbox.Errorf(signalbox.CodeToolDown, "the server is away")
			})
			s.add("s__bug", "default", func(context.Context, gateway.Call) (gateway.Result, error) {
				return gateway.Result{}, signalbox.Errorf(signalbox.CodeInternal, "secret 42")
			})
		})
		c := r.connect(version)
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__nothing"})
		wantCode(t, err, jsonrpc.CodeInvalidParams)
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__echo", Arguments: []int{1}})
		wantCode(t, err, jsonrpc.CodeInvalidParams)
		_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__broken"})
		if e := wantCode(t, err, -32042); e.Message != "not <now>" || string(e.Data) != `{"n":12345678901234567890}` {
			t.Errorf("%+v %s", e, e.Data)
		}
		for tool, says := range map[string]string{"s__down": "tool_down: the server is away", "s__bug": "internal: something went wrong"} {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
			if err != nil || !res.IsError || !strings.HasPrefix(res.Content[0].(*mcp.TextContent).Text, says) {
				t.Errorf("%s: %+v, %v", tool, res, err)
			}
		}
	})
}

func TestWaitingCallGetsProgress(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{}, func(s *scripted) {
			s.add("s__steps", "one", func(ctx context.Context, c gateway.Call) (gateway.Result, error) {
				for _, p := range []float64{1, 2, 2, 3} { // one of them does not increase, as the rule requires
					c.Progress(gateway.Progress{Progress: p, Total: 3, Message: "step"})
				}
				return s.hold(ctx, c)
			})
		})
		holder, waiter := r.connect(version), r.connect(version)
		held := holder.call(t.Context(), "s__hold", nil)
		testkit.Receive(t, "the call runs", r.script.came)
		done := waiter.call(t.Context(), "s__steps", mcp.Meta{"progressToken": "t-1"})
		first := testkit.Receive(t, "its place", waiter.progress)
		if first.Message != "queued, position 1" || first.ProgressToken != "t-1" {
			t.Errorf("%+v", first)
		}
		r.script.goOn <- struct{}{}
		if err := testkit.Receive(t, "the first ends", held); err != nil {
			t.Error(err)
		}
		testkit.Receive(t, "the second runs", r.script.came)
		r.script.goOn <- struct{}{}
		if err := testkit.Receive(t, "the second ends", done); err != nil {
			t.Error(err)
		}
		last, steps := first.Progress, 0
		for steps < 4 {
			p := testkit.Receive(t, "progress", waiter.progress)
			if p.Progress <= last {
				t.Errorf("progress %v after %v", p.Progress, last)
			}
			last = p.Progress
			if p.Message == "step" {
				if steps++; steps == 1 && p.Progress != 1 {
					t.Errorf("the upstream's first step came as %v", p.Progress)
				}
			}
		}
		if len(holder.progress) > 0 {
			t.Error("a client that did not ask is notified")
		}
	})
}

// A caller that cancels its call or disconnects leaves the queue at once and
// takes no slot. If the call is running, its provider cancels it.
func TestDisconnectedCallerLeavesQueue(t *testing.T) {
	ways := map[string]func(c *client, cancel func()){
		"by cancelling":      func(_ *client, cancel func()) { cancel() },
		"by its connections": func(c *client, _ func()) { c.cut() },
	}
	inEachEra(t, func(t *testing.T, version string) {
		for name, leave := range ways {
			t.Run(name, func(t *testing.T) {
				r := newFixture(t, endpoint.Options{})
				holder, waiter, last := r.connect(version), r.connect(version), r.connect(version)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				holding := holder.call(ctx, "s__hold", nil)
				testkit.Receive(t, "the call runs", r.script.came)
				waitCtx, cancelWait := context.WithCancel(t.Context())
				defer cancelWait()
				waiting := waiter.call(waitCtx, "s__hold", nil)
				testkit.Wait(t, "one waits", func() bool { return r.queue("one").Depth == 1 })
				behind := last.call(t.Context(), "s__hold", nil)
				testkit.Wait(t, "two wait", func() bool { return r.queue("one").Depth == 2 })
				leave(waiter, cancelWait)
				testkit.Wait(t, "it has left the queue", func() bool { return r.queue("one").Depth == 1 })
				if err := testkit.Receive(t, "its call ends", waiting); err == nil {
					t.Error("the cancelled call succeeded")
				}
				leave(holder, cancel)
				testkit.Receive(t, "its provider is told", r.script.gone)
				<-holding
				testkit.Receive(t, "the one behind runs", r.script.came)
				r.script.goOn <- struct{}{}
				if err := testkit.Receive(t, "the one behind ends", behind); err != nil {
					t.Error(err)
				}
				if q := r.queue("one"); q.InUse != 0 || q.Depth != 0 {
					t.Errorf("%+v", q)
				}
			})
		}
	})
}

func TestEndOfSessionReleasesLease(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	one, two := r.connect("2025-06-18"), r.connect("2025-06-18")
	if _, err := one.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__leased"}); err != nil {
		t.Fatal(err)
	}
	waiting := two.call(t.Context(), "s__leased", nil)
	testkit.Wait(t, "the other session waits", func() bool { return r.queue("leased").Depth == 1 })
	if _, err := one.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__leased"}); err != nil {
		t.Fatal(err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the other's turn", waiting); err != nil {
		t.Error(err)
	}
	if ended := testkit.Receive(t, "the provider is told", r.script.ended); !strings.HasPrefix(ended, "mcp:") {
		t.Error(ended)
	}
}

// A session that ends while its call runs does not wait for the call.
func TestEndOfSessionCancelsCalls(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	c := r.connect("2025-11-25")
	id := c.ID()
	done := c.call(t.Context(), "s__hold", nil)
	testkit.Receive(t, "the call runs", r.script.came)
	if got := r.send("DELETE", "", "Mcp-Session-Id", id); got.status != 204 {
		t.Errorf("%+v", got)
	}
	testkit.Receive(t, "the call is cancelled", r.script.gone)
	if err := testkit.Receive(t, "its client is told", done); err == nil {
		t.Error("the call succeeded")
	}
	if got := r.send("POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", id); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

func TestTwentySessionsShareOneTool(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		var now, most atomic.Int64
		r := newFixture(t, endpoint.Options{}, func(s *scripted) {
			s.add("s__two", "two", func(context.Context, gateway.Call) (gateway.Result, error) {
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				now.Add(-1)
				return gateway.Result{Content: json.RawMessage(`[]`)}, nil
			})
		})
		var group sync.WaitGroup
		for range 20 {
			c := r.connect(version)
			group.Go(func() {
				for range 5 {
					if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__two"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if most.Load() > 2 {
			t.Errorf("%d at once", most.Load())
		}
	})
}

// Close ends running requests and starts no new ones.
func TestCloseEndsRequestsAndSessions(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{})
		c := r.connect(version)
		done := c.call(t.Context(), "s__hold", nil)
		testkit.Receive(t, "the call runs", r.script.came)
		if err := r.endpoint.Close(); err != nil {
			t.Error(err)
		}
		testkit.Receive(t, "the call is cancelled", r.script.gone)
		if err := testkit.Receive(t, "its client is told", done); err == nil {
			t.Error("the call succeeded")
		}
		if got := r.send("POST", "{}"); got.status != 503 {
			t.Errorf("%+v", got)
		}
	})
}
