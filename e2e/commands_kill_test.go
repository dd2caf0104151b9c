package e2e_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// A cancelled run ends only when none of its processes is alive: no children,
// none in sessions of their own whose parents are gone, none that ignore
// SIGTERM. SIGNALBOX_SOAK=1 tests 1,000 of them, with each method of enforcing
// limits.
func TestNothingSurvivesACancel(t *testing.T) {
	t.Run("control groups", func(t *testing.T) { cancelTest(t, autoLimits) })
	t.Run("rlimits", func(t *testing.T) { cancelTest(t, rlimits) })
}

func cancelTest(t *testing.T, limits string) {
	const side = 20
	kills := soak.Pick(60, 1000)
	b := newCommandBox(t, limits, object{"family": object{"command": "family"}}, fmt.Sprintf("max_concurrent: %d", side))
	b.start()
	members, hidden := 3, ""
	if b.grouped() {
		members, hidden = 4, " hidden"
	}
	work := make(chan int, kills)
	for n := range kills {
		work <- n
	}
	close(work)
	var group sync.WaitGroup
	for range side {
		group.Go(func() {
			for n := range work {
				how := "plain"
				if n%10 == 0 {
					how = "deaf"
				}
				b.cancelled(b.call("family", fmt.Sprintf(`{"how": %q}`, how+hidden)), members)
			}
		})
	}
	group.Wait()
	if n := len(b.lives()); n != kills*members {
		t.Errorf("%d processes noted themselves, want %d", n, kills*members)
	}
	if left := b.survivors(""); len(left) > 0 {
		t.Errorf("%d of %d live: %v", len(left), kills*members, left)
	}
	b.noSlotTaken()
}

// cancelled waits until all processes of a run exist, cancels it, and checks
// which are alive at the moment it is reported as ended.
func (b *commandBox) cancelled(id string, members int) {
	b.t.Helper()
	b.until("all of "+id+" are there", func() bool {
		n := 0
		for _, l := range b.lives() {
			if l.task == id {
				n++
			}
		}
		return n == members
	})
	if _, err := b.c.CancelToolTask(b.ctx(), id); err != nil {
		b.t.Errorf("%s: %v", id, err)
		return
	}
	task := b.ended(id)
	if left := b.survivors(id); len(left) > 0 {
		b.t.Errorf("%s is %s, and %v live", id, task.Status, left)
	}
	if task.Status != "cancelled" || task.Reason != "cancelled" {
		b.t.Errorf("%s is %s (%s): %s", id, task.Status, task.Reason, task.Message)
	}
}

// noSlotTaken waits until no slot of the executor is in use.
func (b *commandBox) noSlotTaken() {
	b.t.Helper()
	b.until("no slot is in use", func() bool {
		all, err := b.c.AgentsAndExecutors(b.ctx())
		if err != nil {
			b.t.Fatal(err)
		}
		return !slices.ContainsFunc(all.Executors, func(a api.Agent) bool { return a.InUse > 0 })
	})
}
