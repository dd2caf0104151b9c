//go:build !race

// The race detector of Go 1.26 crashes (in its own runtime) on a synctest bubble with so many goroutines and
// timers, so these tests run without it.

package push_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// A thousand idle agents that send heartbeats get no requests, and cost almost no CPU time. The test's time
// is simulated, its work is real.
func TestBubbleThousandIdleAgentsForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, minutes = 1000, 10
		h, agents := idlers(t, n)
		time.Sleep(10 * time.Second)
		every := h.d.HeartbeatInterval()
		if every != 30*time.Second {
			t.Fatalf("%d agents beat every %s, want 30s", n, every)
		}
		round := func() {
			for i := range n {
				if !h.d.Heartbeat(nth(i), api.Heartbeat{State: "idle"}) {
					t.Fatalf("the heartbeat of %s was refused", nth(i))
				}
				time.Sleep(every / n)
			}
		}
		round() // the first round settles the intervals
		asked, used, begun := agents.requests.Load(), cpu(t), time.Now()
		for range int(minutes * time.Minute / every) {
			round()
		}
		took, share := time.Since(begun), cpu(t)-used
		if got := agents.requests.Load() - asked; got != 0 {
			t.Errorf("agents that beat were asked %d times", got)
		}
		if share > took/50 {
			t.Errorf("it used %s of processor time in %s, more than 2 %% of a core", share, took)
		}
		t.Logf("%d idle agents for %s: %s of processor time, %.3f %% of a core", n, took, share, 100*share.Seconds()/took.Seconds())
		for i := 0; i < n; i += 97 {
			if !h.live(nth(i)).Up {
				t.Fatalf("%s is down", nth(i))
			}
		}
	})
}

// An idle agent that stops sending heartbeats is probed, and found to be gone.
func TestBubbleAgentWithoutHeartbeatsIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, agents := idlers(t, 1)
		time.Sleep(time.Second)
		asked := agents.requests.Load()
		time.Sleep(13 * time.Second) // 10 s to the heartbeat, and 5 s of patience
		if got := agents.requests.Load() - asked; got != 0 {
			t.Errorf("it was asked %d times before it was late", got)
		}
		time.Sleep(3 * time.Second)
		if got := agents.requests.Load() - asked; got == 0 {
			t.Error("it is late and was not asked")
		}
	})
}
