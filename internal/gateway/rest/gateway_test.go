package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	signalbox "github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/toolconf"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// A call with invalid arguments takes no slot, and a call whose caller
// disconnects releases its slot.
func TestThroughTheGateway(t *testing.T) {
	asked := make(chan struct{})
	url, _ := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		ok(w, r)
	})
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"default": {Concurrent: 1}}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{mustNew(t, toolconf.RestTool{
		Name: "t", URL: url + "/${parameters.what}", Parameters: []byte(`{"type":"object","required":["what"]}`),
	})}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	hung := make(chan error)
	ask := func(ctx context.Context, args string) (gateway.Result, error) {
		return g.Call(ctx, gateway.Call{Tool: "rest__t", Arguments: json.RawMessage(args)})
	}
	going, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		_, err := ask(going, `{"what":"hang"}`)
		hung <- err
	}()
	<-asked
	_, err = ask(t.Context(), `{"what":".."}`)
	wantCode(t, err, signalbox.CodeValidation)
	if q := g.Queues()[0]; q.InUse != 1 || q.Depth != 0 {
		t.Errorf("%+v", q)
	}
	leave()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r, err := ask(t.Context(), `{"what":"x"}`)
	if err != nil || string(r.Structured) != `{"ok":true}` {
		t.Errorf("%s, %v", r.Structured, err)
	}
}
