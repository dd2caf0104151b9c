package endpoint_test

import (
	"context"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// stdio serves one client over pipes. hangUp closes the client's side.
func (r *fixture) stdio(version string, more ...endpoint.Options) (c *client, hangUp func(), served <-chan error) {
	r.t.Helper()
	var o endpoint.Options
	if len(more) > 0 {
		o = more[0]
	}
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(r.t.Context())
	go func() {
		ended <- endpoint.ServeStdio(ctx, r.gateway, gateway.Caller{Session: "stdio:1", Agent: "coder"}, serverIn, serverOut, o)
		serverOut.Close()
	}()
	c = &client{progress: make(chan *mcp.ProgressNotificationParams, 100), cut: stop}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) { c.progress <- p.Params },
	})
	session, err := sdk.Connect(r.t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		r.t.Fatal(err)
	}
	c.ClientSession = session
	r.t.Cleanup(func() { clientOut.Close(); session.Close(); stop() })
	return c, func() { clientOut.Close() }, ended
}

func TestStdioServesOneClient(t *testing.T) {
	inEachEra(t, func(t *testing.T, version string) {
		r := newFixture(t, endpoint.Options{})
		c, hangUp, served := r.stdio(version)
		if list, err := c.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		holding := c.call(t.Context(), "s__hold", nil)
		if call := testkit.Receive(t, "the call runs", r.script.came); call.Caller.Agent != "coder" || call.Caller.Session != "stdio:1" {
			t.Errorf("%+v", call.Caller)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := c.call(ctx, "s__hold", mcp.Meta{"progressToken": "p"})
		if p := testkit.Receive(t, "its place", c.progress); p.Message != "queued, position 1" {
			t.Errorf("%+v", p)
		}
		cancel()
		if err := testkit.Receive(t, "the call is given up", waiting); err == nil {
			t.Error("a cancelled call succeeded")
		}
		testkit.Wait(t, "it has left the queue", func() bool { return r.queue("one").Depth == 0 })
		_ = c.call(t.Context(), "s__hold", nil)
		testkit.Wait(t, "another waits", func() bool { return r.queue("one").Depth == 1 })
		hangUp()
		testkit.Receive(t, "the client's end ends its calls", r.script.gone)
		if err := testkit.Receive(t, "it is served no more", served); err != nil {
			t.Error(err)
		}
		if err := testkit.Receive(t, "the call that ran ends", holding); err == nil {
			t.Error("the call succeeded")
		}
		if q := r.queue("one"); q.Depth != 0 || q.InUse != 0 {
			t.Errorf("%+v", q)
		}
		if ended := testkit.Receive(t, "the session ends", r.script.ended); ended != "stdio:1" {
			t.Error(ended)
		}
	})
}

func TestStdioEndsWithContext(t *testing.T) {
	r := newFixture(t, endpoint.Options{})
	c, _, served := r.stdio("2025-11-25")
	done := c.call(t.Context(), "s__hold", nil)
	testkit.Receive(t, "the call runs", r.script.came)
	c.cut()
	if err := testkit.Receive(t, "it is served no more", served); err != nil {
		t.Error(err)
	}
	testkit.Receive(t, "the call is cancelled", r.script.gone)
	if err := testkit.Receive(t, "the call ends", done); err == nil {
		t.Error("the call succeeded")
	}
}
