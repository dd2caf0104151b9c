//go:build failpoints

package hook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/signalbox-ai/signalbox/internal/execution/push"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// points are the failpoints of this process.
var points = func() *failpoint.Set {
	s, err := failpoint.FromEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	http.DefaultTransport = s.Transport(http.DefaultTransport, failpoint.ToDirector) // for all clients of a director
	return s
}()

// Store adds failpoints to a store.
func Store(s store.Store) store.Store { return points.Store(s) }

// Transport returns the transport to agents, with failpoints.
func Transport() http.RoundTripper {
	return points.Transport(push.NewTransport(), failpoint.ToAgent)
}

// Director adds failpoints to the listener of a director.
func Director(l net.Listener) net.Listener { return points.Listener(l, failpoint.OfDirector) }

// Agent adds failpoints to the listener of an agent.
func Agent(l net.Listener) net.Listener { return points.Listener(l, failpoint.OfAgent) }

// Tools adds failpoints to the calls of tools.
func Tools(all []gateway.Provider) []gateway.Provider {
	for i, p := range all {
		all[i] = provider{p}
	}
	return all
}

// provider has failpoints around its calls.
type provider struct{ gateway.Provider }

// Call implements gateway.Provider.
func (t provider) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	if points.Hit("tool.call.before") != "" {
		return gateway.Result{}, errors.New("failpoint: the tool was not reached")
	}
	r, err := t.Provider.Call(ctx, c)
	points.Hit("tool.call.after")
	return r, err
}

// Check implements gateway.Checker.
func (t provider) Check(c gateway.Call) error {
	if p, ok := t.Provider.(gateway.Checker); ok {
		return p.Check(c)
	}
	return nil
}
