package live_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/live"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// blockingProvider is a provider with one tool, whose calls return after a value is
// sent to release.
type blockingProvider struct{ release chan struct{} }

func (p blockingProvider) Name() string                        { return "held" }
func (p blockingProvider) Start(context.Context, func()) error { return nil }
func (p blockingProvider) EndSession(string)                   {}
func (p blockingProvider) Server() gateway.Server {
	return gateway.Server{Name: "held", State: gateway.StateReady}
}
func (p blockingProvider) Close() error { return nil }
func (p blockingProvider) Tools() []gateway.Tool {
	return []gateway.Tool{{Name: "held__open", Server: "held", Queue: "pages", Definition: json.RawMessage(`{}`)}}
}

func (p blockingProvider) Call(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
	select {
	case <-p.release:
		return gateway.Result{}, nil
	case <-ctx.Done():
		return gateway.Result{}, ctx.Err()
	}
}

// A tool call that starts, waits or ends while nothing else happens is sent as a change within
// refreshEvery.
func TestToolCallsAreChangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := toolqueue.New(toolqueue.Hooks{})
		if err := queues.Configure(map[string]toolqueue.Config{"pages": {Concurrent: 1}}); err != nil {
			t.Fatal(err)
		}
		provider := blockingProvider{release: make(chan struct{})}
		g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{provider}})
		if err != nil {
			t.Fatal(err)
		}
		b := apitest.New(t, func(o *apitest.Options) { o.Config.Tools = g })
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		apitest.WriteString(t, c, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var got eventTimes
		done := make(chan struct{})
		go func() {
			got.read(c)
			close(done)
		}()
		calls := make(chan error, 2)
		call := func() {
			_, err := g.Call(t.Context(), gateway.Call{Tool: "held__open"})
			calls <- err
		}
		var at []time.Time
		for _, step := range []func(){
			func() { go call() },                      // begins
			func() { go call() },                      // waits
			func() { provider.release <- struct{}{} }, // the first one ends, the second begins
			func() { provider.release <- struct{}{} }, // the second one ends
		} {
			time.Sleep(3*time.Second + 500*time.Millisecond) // not at the time of a regular refresh
			at = append(at, time.Now())
			step()
		}
		time.Sleep(2 * time.Second)
		stop()
		<-done
		for range 2 {
			if err := <-calls; err != nil {
				t.Error(err)
			}
		}
		for i, when := range at {
			inTime := false
			for n, name := range got.names {
				inTime = inTime || name == "change" && !got.at[n].Before(when) && got.at[n].Sub(when) <= live.RefreshEvery
			}
			if !inTime {
				t.Errorf("step %d at %v made no change in time: %v %v", i, when, got.names, got.at)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}
