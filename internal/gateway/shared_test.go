package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/tickets"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// unreachableStore is a ticket store that can be unreachable.
type unreachableStore struct {
	store.Store
	unreachable atomic.Bool
}

func (a *unreachableStore) Tickets(ctx context.Context, s store.TicketStep) (store.ToolLine, error) {
	if a.unreachable.Load() {
		return store.ToolLine{}, errors.New("connection refused")
	}
	return a.Store.Tickets(ctx, s)
}

// openShared makes a gateway whose queue browser has one slot, shared by all gateways over a
// store.
func openShared(t *testing.T, s tickets.Store, p gateway.Provider) *gateway.Gateway {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	queues := toolqueue.New(gateway.Hooks(log))
	if err := queues.Share(toolqueue.Sharing{Backend: tickets.New(s, time.Now), Owner: "d1"}); err != nil {
		t.Fatal(err)
	}
	if err := queues.Configure(map[string]toolqueue.Config{"browser": {Concurrent: 1, Shared: true}}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{p}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Close(), queues.Close(context.Background())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

func TestSharedQueueBoundsAllGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		p, letGo, most := holder("s", tool("s__click", "browser"))
		a, b := openShared(t, s, p), openShared(t, s, p)
		done := make(chan error, 2)
		for _, g := range []*gateway.Gateway{a, b} {
			go func() {
				_, err := g.Call(t.Context(), gateway.Call{Tool: "s__click"})
				done <- err
			}()
		}
		for range 2 {
			time.Sleep(time.Minute)
			letGo <- struct{}{}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if most.Load() != 1 {
			t.Fatalf("%d at once", most.Load())
		}
	})
}

// TestCallEndsWhenSharedSlotIsLost: another director's call may already be
// running.
func TestCallEndsWhenSharedSlotIsLost(t *testing.T) {
	for name, task := range map[string]string{"a call": "", "a task": "queue-1"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &unreachableStore{Store: memory.New(memory.Options{})}
				p := &scripted{name: "s", tools: []gateway.Tool{tool("s__click", "browser")}, onCall: func(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
					<-ctx.Done()
					if task == "" {
						return gateway.Result{}, ctx.Err()
					}
					return gateway.Result{Run: &gateway.RunEnd{Reason: signalbox.ReasonCancelled}}, nil // as commands do
				}}
				g := openShared(t, s, p)
				done := make(chan error, 1)
				go func() {
					_, err := g.Call(t.Context(), gateway.Call{Tool: "s__click", Task: task})
					done <- err
				}()
				time.Sleep(time.Minute)
				s.unreachable.Store(true)
				began := time.Now()
				err := <-done
				if code(t, err) != signalbox.CodeToolFailed || !strings.Contains(err.Error(), "may have had an effect") || !strings.Contains(err.Error(), `"browser"`) {
					t.Fatal(err)
				}
				if took := time.Since(began); took > toolqueue.DefaultTicketLease {
					t.Fatalf("ended after %s", took)
				}
				_, err = g.Call(t.Context(), gateway.Call{Tool: "s__click"})
				if code(t, err) != signalbox.CodeStoreFailed {
					t.Fatal(err)
				}
				s.unreachable.Store(false)
			})
		})
	}
}
