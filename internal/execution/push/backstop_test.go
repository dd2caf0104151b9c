package push_test

import (
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/execution"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// Waiting tasks are counted once a tick for both transports, even while a pull agent waits for a task, and
// the count reaches that agent.
func TestTransportsShareQueueCounts(t *testing.T) {
	t.Parallel()
	s := &counted{Store: memory.New(memory.Options{ID: "rig"})}
	h := newFixture(t, on(s))
	h.opts.Backstop = &execution.Backstop{}
	h.agent(Options{Name: "a"})
	h.start()
	lanes := pull.New(h.engine, pull.Options{Options: h.opts.Options})
	if err := lanes.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lanes.Stop)
	h.put(signalbox.Agent{Name: "far", Kind: "demo", Slots: 1, Fencing: true, Source: signalbox.AgentPull, URL: signalbox.PullURL("instance-of-far")}, "")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = lanes.Claim(t.Context(), "far", api.PullClaim{Instance: "instance-of-far", Slots: 1}, time.Minute)
	}()
	h.await("it waits", func() bool { return h.live("far").Up })
	h.untilUp("a")
	began, rounds, counts := time.Now(), s.rounds.Load(), s.counts.Load()
	h.await("rounds", func() bool { return s.rounds.Load() >= rounds+50 })
	more := s.counts.Load() - counts
	if ticks := int64(time.Since(began) / h.opts.Tick); more > ticks+2 {
		t.Errorf("queues were counted %d times in %d ticks", more, ticks)
	}
	lanes.Drain()
	<-answered
}
