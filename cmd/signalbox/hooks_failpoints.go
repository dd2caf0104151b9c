//go:build failpoints

package main

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

// points are those of this process.
var points = func() *failpoint.Set {
	s, err := failpoint.FromEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	http.DefaultTransport = s.Transport(http.DefaultTransport, failpoint.ToDirector) // of all clients of a director
	return s
}()

func hookStore(s store.Store) store.Store { return points.Store(s) }

func hookTransport() http.RoundTripper {
	return points.Transport(push.NewTransport(), failpoint.ToAgent)
}

func hookDirector(l net.Listener) net.Listener { return points.Listener(l, failpoint.OfDirector) }

func hookAgent(l net.Listener) net.Listener { return points.Listener(l, failpoint.OfAgent) }

func hookTools(all []gateway.Provider) []gateway.Provider {
	for i, p := range all {
		all[i] = tooled{p}
	}
	return all
}

// tooled is a provider with points around its calls.
type tooled struct{ gateway.Provider }

// Call implements gateway.Provider.
func (t tooled) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	if points.Hit("tool.call.before") != "" {
		return gateway.Result{}, errors.New("failpoint: the tool was not reached")
	}
	r, err := t.Provider.Call(ctx, c)
	points.Hit("tool.call.after")
	return r, err
}

// Check implements gateway.Checker.
func (t tooled) Check(c gateway.Call) error {
	if p, ok := t.Provider.(gateway.Checker); ok {
		return p.Check(c)
	}
	return nil
}
