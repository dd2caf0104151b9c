package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// BenchmarkCall measures the gateway without frontend and provider.
func BenchmarkCall(b *testing.B) {
	queues := toolqueue.New(toolqueue.Hooks{})
	if err := queues.Configure(map[string]toolqueue.Config{"default": {Concurrent: 64}}); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Queues: queues, Providers: []gateway.Provider{&scripted{name: "s", tools: []gateway.Tool{tool("s__x", "default")}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	ctx, call := b.Context(), gateway.Call{Tool: "s__x", Arguments: json.RawMessage(`{"text":"hello"}`), Progress: func(gateway.Progress) {}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Call(ctx, call); err != nil {
			b.Fatal(err)
		}
	}
}
