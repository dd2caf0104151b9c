package agentd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd/runner"
)

// claim is what the agent says of itself when it asks.
func (p *puller) claim() api.PullClaim {
	d := p.d
	c := api.PullClaim{Instance: p.instance, Slots: d.cfg.Slots, IsolatedSlots: d.cfg.IsolatedSlots, Steps: d.cfg.Runner.LLM.Steps.Told()}
	d.mu.Lock()
	c.HighestFence, c.Director = d.highest, d.serving
	var live []*run
	for lane, r := range d.lanes {
		if r.record().Director != d.serving || r.lingers() { // another director's, or it cannot be killed
			if !lane.Isolated {
				c.Held++
			}
			continue
		}
		live = append(live, r)
	}
	d.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	named := map[*run]bool{}
	for _, r := range live {
		named[r] = true
		c.Runs = append(c.Runs, r.pulled())
	}
	for r := range p.hands {
		if !named[r] {
			c.Runs = append(c.Runs, r.pulled())
		}
	}
	for a := range p.answered {
		c.Runs = append(c.Runs, api.PullRun{QueueID: a.QueueID, Fence: a.Fence, Ended: true})
	}
	return c
}

// pulled is the run as a claim names it.
func (r *run) pulled() api.PullRun {
	rec := r.record()
	ran := time.Since(*rec.StartedAt)
	silent := ran
	if _, last := r.log.progress(); !last.IsZero() {
		silent = min(ran, time.Since(last))
	}
	return api.PullRun{
		QueueID: rec.QueueID, Fence: rec.Fence, Slot: rec.Slot, Isolated: rec.Isolated, Ended: rec.terminal(), Stopping: r.stopReason() != nil,
		RanMS: max(0, ran.Milliseconds()), SilentMS: max(0, silent.Milliseconds()),
		Note: r.trouble(),
	}
}

// instance is what tells the agent from others that go by its name, and stays
// the same as long as the data folder does.
func (d *disk) instance() (string, error) {
	path := filepath.Join(d.dir, "instance")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := runner.NewUUID()
	return id, writeDurable(path, []byte(id+"\n"))
}
