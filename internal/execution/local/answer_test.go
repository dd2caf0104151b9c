package local_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/internal/gateway"
)

// A JSON-RPC error of a tool's server is stored unchanged, over a restart, too: a client gets the same error
// from the task as from a call.
func TestJSONRPCErrorIsStored(t *testing.T) {
	h := newFixtureOver(t, openStore(t), async("tool"), async("plain"))
	want := &gateway.ProtocolError{Code: -32042, Message: "not <now>", Data: json.RawMessage(`{"n":12345678901234567890}`)}
	h.play("tool", func(context.Context, gateway.Call) (gateway.Result, error) { return gateway.Result{}, want })
	h.play("plain", func(context.Context, gateway.Call) (gateway.Result, error) {
		return gateway.Result{}, &gateway.ProtocolError{Code: 7, Message: "no"}
	})
	x := h.open()
	id, plain := h.submit(x, "tool"), h.submit(x, "plain")
	h.end(x, id)
	h.end(x, plain)
	x.Stop()
	x = h.open()
	v := h.end(x, id)
	if d := cmp.Diff(want, v.Error); d != "" || v.Result != nil {
		t.Errorf("%+v %s", v.Result, d)
	}
	if v.Task.Message != "the tool's server answered with the error -32042: not <now>" {
		t.Error(v.Task.Message)
	}
	if v = h.end(x, plain); v.Error == nil || v.Error.Code != 7 || v.Error.Data != nil {
		t.Errorf("%+v", v.Error)
	}
}
