package live_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// BenchmarkRefreshOf1000IdleAgents measures the cost of a second of the stream: one refresh after
// 34 agents have sent a heartbeat.
func BenchmarkRefreshOf1000IdleAgents(b *testing.B) {
	box := apitest.New(&testing.T{}, func(o *apitest.Options) {})
	for n := range 1000 {
		a, err := box.Engine.PutAgent(b.Context(), signalbox.Agent{Name: fmt.Sprintf("agent-%04d", n), Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1, Source: signalbox.AgentRegistered}, "")
		if err != nil {
			b.Fatal(err)
		}
		box.Live.List = append(box.Live.List, engine.LiveAgent{Agent: a, Up: true})
	}
	index := map[string]int{}
	for i, a := range box.Live.List {
		index[a.Name] = i
	}
	box.Live.Index = index
	defer box.Server.Stop()
	now, next := time.Now(), 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		box.Live.Mu.Lock()
		for range 34 {
			box.Live.List[next%1000].LastHeard = now
			next++
		}
		box.Live.Mu.Unlock()
		if err := box.Server.Live().RefreshPolled(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
