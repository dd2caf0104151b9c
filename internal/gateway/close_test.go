package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// openWithoutCleanup is open without the Close at the end of the test.
func openWithoutCleanup(t *testing.T, o gateway.Options, providers ...gateway.Provider) *gateway.Gateway {
	t.Helper()
	o.Queues, o.Providers = toolqueue.New(toolqueue.Hooks{}), providers
	if err := o.Queues.Configure(one("browser")); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestCloseLetsRunningCallsEnd: waiting calls are refused, the running one completes, and only
// then the providers are closed.
func TestCloseLetsRunningCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, letGo, _ := holder("s", tool("s__click", "browser"))
		closed := make(chan struct{})
		p.onClose = func() error { close(closed); return nil }
		b := &fixture{Gateway: openWithoutCleanup(t, gateway.Options{}, p)}
		running := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		waiting := b.call(t.Context(), gateway.Call{Tool: "s__click", Progress: func(gateway.Progress) {}})
		synctest.Wait()
		done := make(chan error)
		go func() { done <- b.Close() }()
		if a := <-waiting; code(t, a.err) != signalbox.CodeUnavailable {
			t.Error(a.err)
		}
		if _, err := b.Call(t.Context(), gateway.Call{Tool: "s__click"}); code(t, err) != signalbox.CodeUnavailable {
			t.Error(err)
		}
		time.Sleep(gateway.DefaultGrace / 2)
		select {
		case <-closed:
			t.Error("the provider was closed under a call")
		default:
		}
		letGo <- struct{}{}
		if a := <-running; a.err != nil {
			t.Error(a.err)
		}
		<-closed
		if err := errors.Join(<-done, b.Close()); err != nil {
			t.Error(err)
		}
		if err := b.Start(t.Context()); err == nil {
			t.Error("started after Close")
		}
	})
}

func TestCloseCancelsCallsAfterGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := holder("s", tool("s__click", "browser"))
		b := &fixture{Gateway: openWithoutCleanup(t, gateway.Options{Grace: time.Second}, p)}
		running := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		begin := time.Now()
		if err := b.Close(); err != nil || time.Since(begin) != time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if a := <-running; code(t, a.err) != signalbox.CodeUnavailable {
			t.Error(a.err)
		}
	})
}

// TestCloseIsBounded: Close returns although a provider and a call do not
// end.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")},
			onCall:  func(context.Context, gateway.Call) (gateway.Result, error) { <-stuck; return gateway.Result{}, nil },
			onClose: func() error { <-stuck; return nil }}
		other := &scripted{name: "other", onClose: func() error { return errors.New("exit status 1") }}
		b := &fixture{Gateway: openWithoutCleanup(t, gateway.Options{Grace: -1}, p, other)}
		running := b.call(t.Context(), gateway.Call{Tool: "s__click"})
		synctest.Wait()
		begin := time.Now()
		err := b.Close()
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		for _, want := range []string{"calls did not end", "server s did not end", "server other: exit status 1"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it does not say %q: %v", want, err)
			}
		}
		close(stuck)
		<-running
	})
}

// TestProviderContextEndsWithClose: background work of providers outlives the context of Start
// and ends after the calls.
func TestProviderContextEndsWithClose(t *testing.T) {
	p := &started{scripted: scripted{name: "s"}}
	ctx, cancel := context.WithCancel(t.Context())
	queues := toolqueue.New(toolqueue.Hooks{})
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{p}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(ctx); err == nil || !strings.Contains(err.Error(), "server s: no such program") {
		t.Errorf("Start: %v", err)
	}
	cancel()
	if p.ctx.Err() != nil {
		t.Error("it ended with the context of Start")
	}
	if err := g.Close(); err != nil || p.ctx.Err() == nil {
		t.Errorf("Close: %v, the background: %v", err, p.ctx.Err())
	}
}

type started struct {
	scripted
	ctx context.Context
}

func (s *started) Start(ctx context.Context, _ func()) error {
	s.ctx = ctx
	return errors.New("no such program")
}
