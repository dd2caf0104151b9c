package endpoint_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/gateway/endpoint"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// sink keeps what a server writes.
type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

// FuzzFrames: whatever a client writes to its pipe, each line of the answer is a
// JSON-RPC 2.0 message, every call releases its slot, and the server ends when
// the client ends.
func FuzzFrames(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, s := range []string{
		"", hello, hello + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n", hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__echo","arguments":{}}}` + "\n",
		hello + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__echo","arguments":[]}}` + "\n", hello + "[]\n", "{\n", hello + `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n",
		hello + `{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"x"}}` + "\n", hello + `{"jsonrpc":"1.0","id":2,"method":"ping"}` + "\n", "\xff\n", hello + `{"jsonrpc":"2.0","id":2,"method":"\ud800"}` + "\n",
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n",
	} {
		f.Add(s)
	}
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{toolqueue.Default: {Concurrent: 4}, "one": {Concurrent: 1}, "leased": {Concurrent: 1}}); err != nil {
		f.Fatal(err)
	}
	script := newScripted()
	gw, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{script}, Grace: -1})
	if err != nil {
		f.Fatal(err)
	}
	if err := gw.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = gw.Close() })
	over := make(chan struct{})
	f.Cleanup(func() { close(over) })
	go func() { // drains the channel
		for {
			select {
			case <-script.ended:
			case <-over:
				return
			}
		}
	}()
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 64<<10 {
			return
		}
		out, done := &sink{}, make(chan error, 1)
		go func() {
			done <- endpoint.ServeStdio(t.Context(), gw, gateway.Caller{Session: "fuzz"}, io.NopCloser(bytes.NewReader([]byte(s))), out, endpoint.Options{})
		}()
		select {
		case <-done: // the protocol allows it to end with an error
		case <-time.After(time.Minute):
			t.Fatalf("%q: the server did not end after its client", s)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m struct {
				Version string `json:"jsonrpc"`
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
				t.Fatalf("%q is answered with %q: %v", s, line, err)
			}
		}
	})
	for _, q := range gw.Queues() {
		if q.InUse != 0 {
			f.Errorf("%d calls hold slots of %s", q.InUse, q.Name)
		}
	}
}
