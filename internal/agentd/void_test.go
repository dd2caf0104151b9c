package agentd_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-ai/signalbox/api"
)

// voids makes the agent promise that it will refuse a claim of the director of
// fenced.
func (a *agent) voids(queueID string, fence int64) {
	a.t.Helper()
	var got api.AgentVoided
	code := a.do("POST", "/task/"+queueID+"/void", api.AgentVoid{Fence: fence, Director: "store-1"}, &got)
	if d := cmp.Diff(api.AgentVoided{QueueID: queueID, Fence: fence, Status: "void"}, got); code != http.StatusOK || d != "" {
		a.t.Errorf("%d %s", code, d)
	}
}

func TestVoidClaimIsRefused(t *testing.T) {
	cfg := config(t, "demo")
	cfg.Slots = 2
	a := start(t, cfg)
	for range 2 { // a repetition has the same answer
		a.voids("queue-a", 7)
	}
	for range 2 {
		for _, task := range []api.AgentTask{fenced("queue-a", 7, "x"), fenced("queue-b", 7, "x"), fenced("queue-a", 6, "x")} {
			if ref := a.refused(task, 409, "stale_fence"); ref.HighestFence != 7 {
				t.Errorf("highest fence %d, want 7", ref.HighestFence)
			}
		}
		if s := a.daemon.Status(); s.HighestFence != 7 || s.Director != "store-1" || s.State != "idle" {
			t.Errorf("status is %+v", s)
		}
		if code := a.do("GET", "/task/queue-a", nil, nil); code != 404 {
			t.Errorf("a task that was never sent is known: %d", code)
		}
		a.stop()
		a = start(t, a.cfg) // the same after a restart
	}
	a.submit(fenced("queue-a", 8, "sleep 1ms"))
	a.end("queue-a")
	// Other slots and other directors have fences of their own.
	other := fenced("queue-b", 1, "sleep 1ms")
	other.Slot = 1
	a.submit(other)
	a.end("queue-b")
	a.submit(api.AgentTask{Prompt: "sleep 1ms", QueueID: "queue-c", Fence: 1, Director: "store-2"})
	a.end("queue-c")
}

func TestVoidSurvivesKill(t *testing.T) {
	a, cmd := process(t, config(t, "demo"))
	a.voids("queue-a", 3)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	start(t, a.cfg).refused(fenced("queue-a", 3, "x"), 409, "stale_fence")
}

// A ledger of 256 entries takes any number of promises.
func TestManyVoidClaims(t *testing.T) {
	a := start(t, config(t, "demo"))
	for i := range int64(300) {
		a.voids("queue-"+itoa(i), i+1)
	}
	a.submit(fenced("queue-a", 301, "sleep 1ms"))
	a.end("queue-a")
	a.stop()
	b := start(t, a.cfg)
	b.voids("queue-b", 302)
	b.refused(fenced("queue-b", 302, "x"), 409, "stale_fence")
}

// A claim that has arrived is not void: its director is told to ask.
func TestVoidOfReceivedClaimIsRefused(t *testing.T) {
	a := start(t, config(t, "demo"))
	acc := a.submit(fenced("queue-a", 5, "sleep 1m"))
	var ref api.AgentRefusal
	path := "/task/queue-a/void"
	v := api.AgentVoid{Fence: 5, Director: "store-1"}
	if code := a.do("POST", path, v, &ref); code != 409 || ref.Error != "task_in_progress" || ref.CurrentTask == nil || ref.CurrentTask.ID != acc.TaskID {
		t.Errorf("%d %+v", code, ref)
	}
	a.voids("queue-a", 4) // for an earlier claim: that of the run is still valid
	if s := a.get("queue-a"); s.State != "working" {
		t.Errorf("the run is %s", s.State)
	}
	if got := a.submit(fenced("queue-a", 5, "sleep 1m")); got.TaskID != acc.TaskID {
		t.Errorf("the same claim is another run: %+v", got)
	}
	a.do("POST", "/task/queue-a/cancel", nil, nil)
	a.end("queue-a")
	if code := a.do("POST", path, v, &ref); code != 409 || ref.Error != "already_completed" || ref.FinalState != "cancelled" {
		t.Errorf("%d %+v", code, ref)
	}
}

// Of a concurrent void and offer exactly one succeeds.
func TestVoidRacesWithOffer(t *testing.T) {
	a := start(t, config(t, "demo"))
	for i := range int64(20) {
		id := "queue-" + itoa(i)
		var voided int
		var beside sync.WaitGroup
		beside.Go(func() {
			voided = a.do("POST", "/task/"+id+"/void", api.AgentVoid{Fence: i + 1, Director: "store-1"}, nil)
		})
		offered := a.do("POST", "/task", fenced(id, i+1, "sleep 1us"), nil)
		beside.Wait()
		if (offered != 201 || voided != 409) && (offered != 409 || voided != 200) {
			t.Errorf("the offer was answered %d, and the promise %d", offered, voided)
		}
		if offered == 201 {
			a.end(id)
		}
	}
}

func TestBadVoids(t *testing.T) {
	a := start(t, config(t, "demo"))
	for name, c := range map[string]struct {
		id   string
		body any
		want string
	}{
		"nothing":       {"queue-a", map[string]any{}, "fence is required"},
		"negative":      {"queue-a", api.AgentVoid{Fence: -1}, "fence is required"},
		"no such slot":  {"queue-a", api.AgentVoid{Fence: 1, Slot: 1}, "slot is 1"},
		"below all":     {"queue-a", api.AgentVoid{Fence: 1, Slot: -1}, "slot is -1"},
		"isolated":      {"queue-a", api.AgentVoid{Fence: 1, Slot: 99, Isolated: true}, "slot is 99"},
		"unknown field": {"queue-a", map[string]any{"fence": 1, "all": true}, "all"},
		"wrong type":    {"queue-a", map[string]any{"fence": "1"}, "fence"},
		"odd id":        {"%20", api.AgentVoid{Fence: 1}, "queue_id"},
		"long id":       {strings.Repeat("q", 201), api.AgentVoid{Fence: 1}, "queue_id"},
		"long director": {"queue-a", api.AgentVoid{Fence: 1, Director: strings.Repeat("d", 201)}, "director"},
	} {
		var ref api.AgentRefusal
		if code := a.do("POST", "/task/"+c.id+"/void", c.body, &ref); code != 400 || ref.Error != "validation_error" || !strings.Contains(ref.Message, c.want) {
			t.Errorf("%s: %d %+v", name, code, ref)
		}
	}
	if s := a.daemon.Status(); s.HighestFence != 0 {
		t.Errorf("a refused promise counts: %+v", s)
	}
	if code := a.do("GET", "/task/queue-a/void", nil, nil); code != 405 {
		t.Errorf("GET: %d", code)
	}
}
