package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// What a second of the live stream costs with 1,000 idle agents, of which a thirtieth
// beats in it.
func BenchmarkLiveSecondOf1000IdleAgents(b *testing.B) {
	box := newBox(&testing.T{}, func(o *options) {})
	for n := range 1000 {
		a, err := box.engine.PutAgent(b.Context(), signalbox.Agent{Name: fmt.Sprintf("agent-%04d", n), Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1, Source: signalbox.AgentRegistered}, "")
		if err != nil {
			b.Fatal(err)
		}
		box.live.agents = append(box.live.agents, engine.LiveAgent{Agent: a, Up: true})
	}
	index := map[string]int{}
	for i, a := range box.live.agents {
		index[a.Name] = i
	}
	box.live.index = index
	defer box.dir.Stop()
	now, next := time.Now(), 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		box.live.mu.Lock()
		for range 34 {
			box.live.agents[next%1000].LastHeard = now
			next++
		}
		box.live.mu.Unlock()
		if err := box.dir.LookAfterASecond(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
