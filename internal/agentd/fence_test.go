package agentd_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/agentd"
)

func fenced(queueID string, fence int64, prompt string) api.AgentTask {
	return api.AgentTask{Prompt: prompt, QueueID: queueID, Fence: fence, Director: "store-1"}
}

// executions reads the execution log and fails the test if two executions in
// one slot overlap.
func executions(t *testing.T, cfg agentd.Config) []string {
	t.Helper()
	f, err := os.Open(cfg.ExecLog)
	if os.IsNotExist(err) {
		return nil // each run was voided before it started
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []string
	open := map[int]string{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var l struct {
			QueueID string `json:"queue_id"`
			TaskID  string `json:"task_id"`
			Event   string `json:"event"`
			Slot    int    `json:"slot"`
		}
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		events = append(events, l.Event+" "+l.QueueID)
		if l.Event == "end" {
			delete(open, l.Slot)
		} else if other, ok := open[l.Slot]; ok {
			t.Errorf("%s started in slot %d while %s ran", l.TaskID, l.Slot, other)
		} else {
			open[l.Slot] = l.TaskID
		}
	}
	return events
}

func TestSameFenceIsOneExecution(t *testing.T) {
	a := start(t, config(t, "demo"))
	task := fenced("queue-a", 5, "sleep 50ms")
	var wg sync.WaitGroup
	answers := make([]api.AgentTaskAccepted, 8)
	for i := range answers {
		wg.Go(func() { answers[i] = a.submit(task) })
	}
	wg.Wait()
	a.end("queue-a")
	again := a.submit(task) // also after its end
	for _, got := range answers {
		if d := cmp.Diff(again, got); d != "" {
			t.Error(d)
		}
	}
	a.stop()
	b := start(t, a.cfg) // and after a restart
	if d := cmp.Diff(again, b.submit(task)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"start queue-a", "end queue-a"}, executions(t, a.cfg)); d != "" {
		t.Error(d)
	}
}

func TestLowerFenceIsStale(t *testing.T) {
	a := start(t, config(t, "demo"))
	a.submit(fenced("queue-a", 7, "sleep 1ms"))
	a.end("queue-a")
	for range 2 {
		for _, task := range []api.AgentTask{fenced("queue-b", 6, "x"), fenced("queue-a", 6, "x"), fenced("queue-b", 7, "x")} {
			if ref := a.refused(task, 409, "stale_fence"); ref.HighestFence != 7 {
				t.Errorf("highest fence %d, want 7", ref.HighestFence)
			}
		}
		if s := a.daemon.Status(); s.HighestFence != 7 || s.Director != "store-1" {
			t.Errorf("status reports fence %d of %q", s.HighestFence, s.Director)
		}
		a.stop()
		a = start(t, a.cfg) // the same after a restart
	}
	if code := a.do("GET", "/task/queue-b", nil, nil); code != 404 {
		t.Errorf("a refused task is known: %d", code)
	}
	// Fences of another director are counted separately.
	a.submit(api.AgentTask{Prompt: "sleep 1ms", QueueID: "queue-c", Fence: 1, Director: "store-2"})
	a.end("queue-c")
}

func TestHigherFenceVoidsTheOldRun(t *testing.T) {
	a := start(t, command(t, "stubborn"))
	old := a.submit(fenced("queue-a", 1, "x"))
	a.says(old.TaskID, "hanging")
	acc := a.submit(fenced("queue-b", 2, "x"))
	gone(t, old.TaskID) // before the answer
	wantError(t, a.get(old.TaskID), "failed", "stale_fence", "fence 2")
	if cur := a.daemon.Status().CurrentTask; cur == nil || cur.QueueID != "queue-b" {
		t.Errorf("current task is %+v", cur)
	}
	a.says(acc.TaskID, "hanging")
	a.do("POST", "/task/queue-b/cancel", nil, nil)
	want := []string{"start queue-a", "end queue-a", "start queue-b", "end queue-b"}
	if d := cmp.Diff(want, executions(t, a.cfg)); d != "" {
		t.Error(d)
	}
}

// A new attempt of the same task after the director lost contact with the
// first.
func TestHigherFenceOfTheSameTask(t *testing.T) {
	a := start(t, config(t, "demo"))
	first := a.submit(fenced("queue-a", 1, "sleep 1m"))
	second := a.submit(fenced("queue-a", 2, "sleep 10ms"))
	if first.TaskID == second.TaskID {
		t.Error("one run for two attempts")
	}
	if s := a.end("queue-a"); s.Fence != 2 || s.State != "completed" {
		t.Errorf("queue_id leads to %+v", s)
	}
	wantError(t, a.end(first.TaskID), "failed", "stale_fence", "fence 2")
}

func TestManyRisingFences(t *testing.T) {
	a := start(t, config(t, "demo"))
	var wg sync.WaitGroup
	for i := int64(1); i <= 20; i++ {
		wg.Go(func() {
			var raw json.RawMessage
			if code := a.do("POST", "/task", fenced("queue-"+itoa(i), i, "sleep 1m"), &raw); code != 201 && code != 409 {
				t.Errorf("fence %d: %d %s", i, code, raw)
			}
		})
	}
	wg.Wait()
	if cur := a.daemon.Status().CurrentTasks; len(cur) != 1 || cur[0].Fence != 20 {
		t.Errorf("runs %+v, want fence 20 alone", cur)
	}
	a.do("POST", "/task/queue-20/cancel", nil, nil)
	executions(t, a.cfg)
}

func TestBusy(t *testing.T) {
	a := start(t, config(t, "demo"))
	acc := a.submit(fenced("queue-a", 5, "sleep 1m in line"))
	for _, task := range []api.AgentTask{
		{Prompt: "x"},
		{Prompt: "x", QueueID: "queue-b"},
		{Prompt: "x", QueueID: "queue-b", Fence: 9, Director: "another"},
	} {
		ref := a.refused(task, 409, "agent_busy")
		if c := ref.CurrentTask; c == nil || c.ID != acc.TaskID || c.QueueID != "queue-a" || c.PromptPreview != "sleep 1m in line" {
			t.Errorf("current task is %+v", c)
		}
	}
	if s := a.get("queue-a"); s.State != "working" {
		t.Errorf("the run is %s", s.State)
	}
}

func TestSlotsAndIsolatedRunsAreIndependent(t *testing.T) {
	cfg := config(t, "demo")
	cfg.Slots, cfg.IsolatedSlots = 2, 1
	a := start(t, cfg)
	for slot := range 2 {
		task := fenced("queue-"+itoa(int64(slot)), int64(10-slot), "sleep 1m")
		task.Slot = slot
		a.submit(task)
	}
	isolated := api.AgentTask{Prompt: "sleep 1m", Isolated: true}
	a.submit(isolated)
	a.refused(isolated, 409, "agent_busy")
	a.refused(api.AgentTask{Prompt: "x"}, 409, "agent_busy")
	a.refused(api.AgentTask{Prompt: "x", Slot: 2}, 400, "validation_error")
	if n := len(a.daemon.Status().CurrentTasks); n != 3 {
		t.Errorf("%d tasks run, want 3", n)
	}
}

// A fence survives the removal of its run's record.
func TestFenceSurvivesTheHistory(t *testing.T) {
	a := start(t, config(t, "demo"))
	task := fenced("queue-high", 1000, "sleep 1us")
	a.submit(task)
	a.end("queue-high")
	for range 101 {
		acc := a.submit(api.AgentTask{Prompt: "sleep 1us"})
		a.end(acc.TaskID)
	}
	var h api.AgentHistory
	a.do("GET", "/history?limit=7&page=2", nil, &h)
	if h.Total != 100 || h.TotalPages != 15 || len(h.Entries) != 7 || h.Page != 2 || h.Limit != 7 {
		t.Errorf("history %d of %d in %d pages", len(h.Entries), h.Total, h.TotalPages)
	}
	if code := a.do("GET", "/task/queue-high", nil, nil); code != 404 {
		t.Errorf("the oldest is still there: %d", code)
	}
	a.stop()
	for _, sub := range []string{"runs", "records"} {
		if left, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, sub)); len(left) < 100 || len(left) >= 120 {
			t.Errorf("%d in %s, want 100 and less than a batch", len(left), sub)
		}
	}
	b := start(t, a.cfg) // New leaves no batch unfinished
	for _, sub := range []string{"runs", "records"} {
		if left, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, sub)); len(left) != 100 {
			t.Errorf("%d in %s after a restart", len(left), sub)
		}
	}
	b.do("GET", "/history", nil, &h)
	if h.Total != 100 || h.Entries[0].State != "completed" {
		t.Errorf("after a restart %d runs, the newest %+v", h.Total, h.Entries[0])
	}
	b.refused(fenced("queue-low", 999, "x"), 409, "stale_fence")
	b.refused(fenced("queue-other", 1000, "x"), 409, "stale_fence")
}

func TestAnswerIsFast(t *testing.T) {
	a := start(t, command(t, "hang"))
	began := time.Now()
	acc := a.submit(api.AgentTask{Prompt: "x"})
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("201 took %v", d)
	}
	a.do("POST", "/task/"+acc.TaskID+"/cancel", nil, nil)
}
