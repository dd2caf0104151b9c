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

// held is a provider whose one tool answers when it is let go on.
type held struct{ goOn chan struct{} }

func (h held) Name() string                        { return "held" }
func (h held) Start(context.Context, func()) error { return nil }
func (h held) EndSession(string)                   {}
func (h held) Server() gateway.Server              { return gateway.Server{Name: "held", State: gateway.StateReady} }
func (h held) Close() error                        { return nil }
func (h held) Tools() []gateway.Tool {
	return []gateway.Tool{{Name: "held__open", Server: "held", Queue: "pages", Definition: json.RawMessage(`{}`)}}
}

func (h held) Call(ctx context.Context, _ gateway.Call) (gateway.Result, error) {
	select {
	case <-h.goOn:
		return gateway.Result{}, nil
	case <-ctx.Done():
		return gateway.Result{}, ctx.Err()
	}
}

// Tool calls that begin, wait or end while nothing else happens are seen as soon as
// any other change is.
func TestLiveToolCallsAreSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := toolqueue.New(toolqueue.Hooks{})
		if err := queues.Configure(map[string]toolqueue.Config{"pages": {Concurrent: 1}}); err != nil {
			t.Fatal(err)
		}
		h := held{goOn: make(chan struct{})}
		g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{h}})
		if err != nil {
			t.Fatal(err)
		}
		b := apitest.New(t, func(o *apitest.Options) { o.Config.Tools = g })
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		apitest.WriteString(t, c, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var got arrivals
		read := make(chan struct{})
		go func() {
			got.read(c)
			close(read)
		}()
		calls := make(chan error, 2)
		call := func() {
			_, err := g.Call(t.Context(), gateway.Call{Tool: "held__open"})
			calls <- err
		}
		var at []time.Time
		for _, step := range []func(){
			func() { go call() },            // begins
			func() { go call() },            // waits
			func() { h.goOn <- struct{}{} }, // the second one begins
			func() { h.goOn <- struct{}{} }, // and ends
		} {
			time.Sleep(3*time.Second + 500*time.Millisecond) // between two looks
			at = append(at, time.Now())
			step()
		}
		time.Sleep(2 * time.Second)
		stop()
		<-read
		for range 2 {
			if err := <-calls; err != nil {
				t.Error(err)
			}
		}
		for i, when := range at {
			soon := false
			for n, name := range got.names {
				soon = soon || name == "change" && !got.at[n].Before(when) && got.at[n].Sub(when) <= live.RefreshEvery
			}
			if !soon {
				t.Errorf("step %d at %v: %v %v", i, when, got.names, got.at)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}
