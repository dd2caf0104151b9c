package agentd

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/soak"
)

// afterCut is a daemon over what a power cut leaves of the folder: only the
// files that were synced.
func afterCut(t *testing.T, d *Daemon, synced ...string) *Daemon {
	t.Helper()
	root := t.TempDir()
	d.maintainMu.Lock() // a point in time, not the middle of a checkpoint
	for _, name := range append(synced, "ledger", "fences.json") {
		b, err := os.ReadFile(filepath.Join(d.cfg.DataDir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d.maintainMu.Unlock()
	return open(t, Config{Kind: "demo", DataDir: root, WorkDir: d.cfg.WorkDir, Home: d.cfg.Home, Slots: d.cfg.Slots})
}

func open(t *testing.T, cfg Config) *Daemon {
	t.Helper()
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func demo(t *testing.T, slots int) *Daemon {
	t.Helper()
	root := t.TempDir()
	return open(t, Config{Kind: "demo", DataDir: root + "/data", WorkDir: root, Home: root, Slots: slots})
}

func claim(slot int, queueID string, fence int64, prompt string) api.AgentTask {
	return api.AgentTask{Prompt: prompt, QueueID: queueID, Fence: fence, Slot: slot, Director: "store-1"}
}

func accept(t *testing.T, d *Daemon, task api.AgentTask) string {
	t.Helper()
	acc, err := d.Accept(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return acc.TaskID
}

// once fails the test unless the claim leads to the same run as before and
// that run has ended.
func once(t *testing.T, d *Daemon, task api.AgentTask, taskID, state string) {
	t.Helper()
	if got := accept(t, d, task); got != taskID {
		t.Errorf("%s with fence %d became another run", task.QueueID, task.Fence)
	}
	if rec := d.find(task.QueueID).record(); rec.State != state || (state == stateFailed && rec.Error.Type != "interrupted") {
		t.Errorf("%s is %s, error %+v, want %s", task.QueueID, rec.State, rec.Error, state)
	}
}

func isStale(t *testing.T, d *Daemon, task api.AgentTask) {
	t.Helper()
	_, err := d.Accept(t.Context(), task)
	if ref, ok := err.(*refusal); !ok || ref.body.Error != "stale_fence" {
		t.Errorf("%s with fence %d in slot %d: %v, want stale_fence", task.QueueID, task.Fence, task.Slot, err)
	}
}

// Whenever the power fails after the 201, the claim was executed once. The
// state of the record file decides only how the run is reported.
func TestPowerCutAtEachStep(t *testing.T) {
	d := demo(t, 1)
	long := claim(0, "queue-long", 3, "sleep 1m")
	id := accept(t, d, long)
	running := afterCut(t, d)
	once(t, running, long, id, stateFailed)
	isStale(t, running, claim(0, "queue-low", 2, "x"))
	isStale(t, running, claim(0, "queue-same", 3, "x"))
	once(t, afterCut(t, running), long, id, stateFailed) // and again
	next := claim(0, "queue-next", 4, "sleep 0s")
	id = accept(t, d, next)
	<-d.find("queue-next").done
	file := "records/" + id + ".json"
	whole, err := os.ReadFile(filepath.Join(d.cfg.DataDir, file))
	if err != nil {
		t.Fatal(err)
	}
	once(t, afterCut(t, d), next, id, stateFailed) // without the record
	once(t, afterCut(t, d, file), next, id, stateCompleted)
	for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		if err := os.Truncate(filepath.Join(d.cfg.DataDir, file), int64(n)); err != nil {
			t.Fatal(err)
		}
		after := afterCut(t, d, file)
		once(t, after, next, id, stateFailed)
		if bad, _ := filepath.Glob(filepath.Join(after.cfg.DataDir, "records", "*.corrupt")); len(bad) > 0 {
			t.Errorf("cut at %d: %v", n, bad)
		}
	}
}

// The ledger wraps repeatedly, and at every point what is synced is enough: no
// fence decreases, no claim runs twice, no forgotten run reappears, and a run
// that outlasts its ledger entry is still known.
func TestPowerCutAfterLedgerWraps(t *testing.T) {
	d := demo(t, 2)
	long := claim(1, "queue-long", 5, "sleep 1h")
	longID := accept(t, d, long)
	for i := int64(1); i <= 2*ledgerSlots+50; i++ {
		task := claim(0, fmt.Sprintf("queue-%d", i), i, "sleep 0s")
		id := accept(t, d, task)
		<-d.find(task.QueueID).done
		if i%soak.Pick[int64](97, 61) != 0 { // all parts of the ledger, in both turns
			continue
		}
		after := afterCut(t, d, "records/"+longID+".json")
		once(t, after, task, id, stateFailed)
		once(t, after, long, longID, stateFailed)
		isStale(t, after, claim(0, "queue-late", i-1, "x"))
		isStale(t, after, claim(1, "queue-late", 4, "x"))
		for _, r := range after.ended {
			if f := r.record().Fence; r.record().Slot == 0 && f <= i-historySize-forgetBatch {
				t.Errorf("after %d runs number %d came back", i, f)
			}
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The fence of a quiet lane is in fences.json before its ledger entry is
// overwritten. If fences cannot be stored, the agent takes only as many tasks
// as the ledger has room for.
func TestLedgerIsFullWhileFencesCannotBeStored(t *testing.T) {
	d := demo(t, 2)
	accept(t, d, claim(1, "queue-quiet", 9, "sleep 0s"))
	<-d.find("queue-quiet").done
	block := filepath.Join(d.cfg.DataDir, "fences.json")
	if err := os.MkdirAll(filepath.Join(block, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	took := int64(0)
	for {
		took++
		task := claim(0, fmt.Sprintf("queue-%d", took), took, "sleep 0s")
		if _, err := d.Accept(t.Context(), task); err != nil {
			if ref, ok := err.(*refusal); !ok || ref.body.Error != "storage_error" {
				t.Fatal(err)
			}
			break
		}
		<-d.find(task.QueueID).done
		if took > ledgerSlots {
			t.Fatal("needed entries were overwritten")
		}
	}
	if err := os.RemoveAll(block); err != nil {
		t.Fatal(err)
	}
	isStale(t, afterCut(t, d), claim(1, "queue-late", 8, "x"))
	accept(t, d, claim(0, "queue-again", took+1, "sleep 0s")) // the disk works again
	isStale(t, afterCut(t, d), claim(1, "queue-late", 8, "x"))
}
