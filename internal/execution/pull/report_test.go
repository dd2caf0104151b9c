package pull_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/execution/pull"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// A cancel reaches an agent that waits for a task at once.
func TestCancelReachesAgentAtOnce(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 2)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	waits := a.claiming(long)
	h.parked(1)
	_, err := h.engine.Cancel(t.Context(), id, "anna")
	h.must(err)
	got := <-waits
	if len(got.Stop) != 1 || got.Stop[0] != (api.PullStop{QueueID: id, Fence: run.Fence}) {
		t.Fatalf("%+v", got)
	}
	a.c.Runs[0].Stopping = true
	if got := a.claim(0); len(got.Stop) != 0 {
		t.Errorf("told again: %+v", got)
	}
	_, err = a.report(id, api.PullReport{Fence: run.Fence, Finished: &api.AgentTaskStatus{
		TaskID: "task-of-" + id, State: "cancelled", Error: &api.AgentError{Type: "cancelled", Message: "stopped"},
	}})
	h.must(err)
	if row := h.task(id); row.State != signalbox.Cancelled {
		t.Errorf("%+v", row)
	}
}

// A cancel before the agent's accept takes effect with the accept, or when the agent reports that the task
// never reached it.
func TestCancelWhileDispatching(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 2)
	accepted, missed := h.submit(engine.NewTask{}), h.submit(engine.NewTask{})
	run := a.begins()
	lost := a.claim(0).Task
	for _, id := range []string{accepted, missed} {
		_, err := h.engine.Cancel(t.Context(), id, "anna")
		h.must(err)
	}
	got, err := a.report(accepted, api.PullReport{Fence: run.Fence, Accepted: &api.PullAccepted{TaskID: "task-1"}})
	h.must(err)
	if got.Stop == nil || got.Stop.QueueID != accepted {
		t.Errorf("%+v", got)
	}
	if answer := a.claim(0); len(answer.Ask) != 1 || answer.Ask[0].QueueID != missed || answer.Task != nil {
		t.Errorf("%+v", answer)
	}
	_, err = a.report(missed, api.PullReport{Fence: lost.Fence, Unknown: true})
	h.must(err)
	if row := h.task(missed); row.State != signalbox.Cancelled {
		t.Errorf("%+v", row)
	}
}

// A released run is void: it is stopped, and its final report is kept aside.
func TestReleasedRunIsStoppedAndKept(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	waits := a.claiming(long)
	testkit.Wait(h.t, "it waits", func() bool { return h.lanes.Waiting("far") })
	_, err := h.engine.ReleaseLane(t.Context(), "far", "anna")
	h.must(err)
	got := <-waits
	if len(got.Stop) != 1 || !got.Stop[0].Void || got.Stop[0].QueueID != id {
		t.Fatalf("%+v", got)
	}
	for range 2 {
		_, err = a.report(id, completed(run, "too late"))
		refusedWith(t, err, signalbox.CodeStaleFence)
	}
	stales, err := h.store.Stales(t.Context(), id)
	h.must(err)
	if len(stales) != 1 || stales[0].Result.Output != "too late" || stales[0].Agent != "far" || stales[0].Fence != run.Fence {
		t.Errorf("%+v", stales)
	}
	if row := h.task(id); row.Reason != signalbox.ReasonReleased {
		t.Errorf("%+v", row)
	}
}

// A report with an old fence changes nothing, even if another agent has the task now.
func TestStaleFence(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("one", 1)
	id := h.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	old := a.begins()
	a.accepts(old)
	_, err := h.engine.Lose(t.Context(), h.task(id), signalbox.ReasonLost, "gone", false, nil)
	h.must(err)
	b := h.agent("two", 1)
	testkit.Wait(h.t, "it is given to another", func() bool {
		_, _, err := h.engine.Wake(t.Context())
		h.must(err)
		h.pass(time.Second) // the backoff
		got := b.claim(0)
		if got.Task != nil {
			b.accepts(got.Task)
		}
		return got.Task != nil
	})
	for _, rep := range []api.PullReport{
		{Accepted: &api.PullAccepted{TaskID: "task-1"}}, {Output: &api.PullOutput{Text: "x", Next: 1}}, {Unknown: true}, completed(old, "old"),
	} {
		rep.Fence = old.Fence
		_, err := a.report(id, rep)
		refusedWith(t, err, signalbox.CodeStaleFence)
	}
	if row := h.task(id); row.State != signalbox.Working || row.Agent != "two" {
		t.Errorf("%+v", row)
	}
	stales, err := h.store.Stales(t.Context(), id)
	h.must(err)
	if len(stales) != 1 || stales[0].Agent != "one" {
		t.Errorf("%+v", stales)
	}
}

// A report on a task that was never given to the agent is refused.
func TestReportOfOtherAgentIsRefused(t *testing.T) {
	h := newFixture(t, noTick)
	a, b := h.agent("one", 1), h.agent("two", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	for _, fence := range []int64{0, run.Fence, run.Fence + 1} {
		rep := completed(run, "mine")
		rep.Fence = fence
		_, err := b.report(id, rep)
		refusedWith(t, err, signalbox.CodeNotFound)
	}
	rep := completed(run, "")
	rep.Fence++
	_, err := a.report(id, rep) // nor with a fence that was never given
	refusedWith(t, err, signalbox.CodeNotFound)
	if row := h.task(id); row.State != signalbox.Working {
		t.Errorf("%+v", row)
	}
}

// A refusal of a pull agent means the same as that of an agent that is called.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		no       api.PullRefused
		state    signalbox.State
		attempts int
	}{
		"busy":         {api.PullRefused{Status: 409, Error: "agent_busy", BusyWith: "task-9"}, signalbox.Pending, 0},
		"stale fence":  {api.PullRefused{Status: 409, Error: "stale_fence", HighestFence: 77}, signalbox.Pending, 0},
		"broken":       {api.PullRefused{Status: 500, Error: "internal_error", Message: "it broke"}, signalbox.Pending, 1},
		"full disk":    {api.PullRefused{Status: 500, Error: "storage_error", Message: "no space"}, signalbox.Pending, 0},
		"wrong token":  {api.PullRefused{Status: 401, Error: "unauthorized", Message: "which one?"}, signalbox.Pending, 0},
		"wrong prompt": {api.PullRefused{Status: 400, Error: "validation_error", Message: "bad model"}, signalbox.Failed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t, noTick)
			a := h.agent("far", 1)
			id := h.submit(engine.NewTask{})
			run := a.begins()
			a.c.Runs = nil
			for range 2 { // the second time it is void, and the agent drops it
				_, err := a.report(id, api.PullReport{Fence: run.Fence, Refused: &c.no})
				if code := signalbox.CodeOf(err); code != "" && code != signalbox.CodeStaleFence {
					t.Fatal(err)
				}
			}
			row := h.task(id)
			if row.State != c.state || row.Attempts != c.attempts {
				t.Errorf("%+v", row)
			}
			if c.no.HighestFence > 0 {
				if got := a.begins(); got.Fence <= 77 {
					t.Errorf("fence %d", got.Fence)
				}
			}
		})
	}
}

// An agent that said busy, and reports that something holds its slot, is offered nothing until the slot is
// free.
func TestHeldSlots(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	h.submit(engine.NewTask{})
	a.c.Held = 1
	if got := a.claim(0); got.Task != nil {
		t.Errorf("%+v", got)
	}
	if live, _ := h.lanes.LiveAgent("far"); !live.Held || !live.Up {
		t.Errorf("%+v", live)
	}
	a.c.Held = 0
	a.begins()
}

// The log of a run is assembled in order from what each director received, and the result has its end.
func TestOutputOverTwoDirectors(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	a.accepts(run)
	prints := func(l *pull.Lanes, seq int64, text string) api.PullReported {
		t.Helper()
		got, err := l.Report(t.Context(), "far", id, api.PullReport{Instance: a.c.Instance, Fence: run.Fence, Output: &api.PullOutput{Seq: seq, Text: text, Next: seq + int64(len(text))}})
		h.must(err)
		return got
	}
	other := newFixtureOver(t, h.store, noTick)
	if got := prints(h.lanes, 0, "abc"); got.Next != 3 {
		t.Errorf("%+v", got)
	}
	if got := prints(h.lanes, 0, "abc"); got.Next != 3 {
		t.Errorf("twice: %+v", got)
	}
	if got := prints(other.lanes, 3, "def"); got.Next != 0 {
		t.Errorf("%+v: it does not have what lies before", got)
	}
	if got := prints(other.lanes, 0, "abcdef"); got.Next != 6 {
		t.Errorf("%+v", got)
	}
	out, ok := other.lanes.Output(t.Context(), id, 2, 0)
	if !ok || out.Text != "cdef" || out.Next != 6 {
		t.Errorf("%+v, %v", out, ok)
	}
	end := completed(run, "done")
	end.Instance, end.Output = a.c.Instance, &api.PullOutput{Seq: 6, Text: "ghi", Next: 9}
	got, err := h.lanes.Report(t.Context(), "far", id, end) // the first has 3 bytes
	h.must(err)
	if !got.Again || got.Next != 3 || h.task(id).State != signalbox.Working {
		t.Fatalf("%+v", got)
	}
	end.Output = &api.PullOutput{Seq: 2, Text: "cdefghi", Next: 9, Truncated: true}
	_, err = h.lanes.Report(t.Context(), "far", id, end)
	h.must(err)
	res, err := h.store.Result(t.Context(), id)
	h.must(err)
	if res.Tail != "cdefghi" || res.TailSeq != 2 || !res.Truncated {
		t.Errorf("%+v", res)
	}
}

// Messages of an agent do not show the values of the task's env.
func TestReportHidesSecrets(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"KEY": "secret-value"}})
	run := a.begins()
	_, err := a.report(id, api.PullReport{Fence: run.Fence, Finished: &api.AgentTaskStatus{
		TaskID: "task-1", State: "failed", Error: &api.AgentError{Type: "start_error", Message: "cannot use secret-value here"},
	}})
	h.must(err)
	if row := h.task(id); strings.Contains(row.Message, "secret-value") || !strings.Contains(row.Message, "***") {
		t.Errorf("%q", row.Message)
	}
}

// The problem of a run is reported with the next report or claim, without values of the task's env.
func TestTroubleOfPulledRun(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"KEY": "secret-value"}})
	run := a.begins()
	a.accepts(run)
	notes := func(want string) {
		t.Helper()
		live, _ := h.lanes.LiveAgent("far")
		if live.Notes[id] != want {
			t.Errorf("%q, want %q", live.Notes, want)
		}
	}
	notes("")
	_, err := a.report(id, api.PullReport{Fence: run.Fence, Note: "401 for secret-value", Output: &api.PullOutput{Text: "x", Next: 1}})
	h.must(err)
	notes("401 for ***")
	a.c.Runs[0].Note = "529 now"
	a.claim(0)
	notes("529 now")
	_, err = a.report(id, api.PullReport{Fence: run.Fence, Output: &api.PullOutput{Seq: 1, Text: "y", Next: 2}})
	h.must(err)
	notes("")
}

func TestInvalidReports(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{})
	run := a.begins()
	for name, rep := range map[string]api.PullReport{
		"nothing":      {},
		"two":          {Unknown: true, Accepted: &api.PullAccepted{TaskID: "t"}},
		"no id":        {Accepted: &api.PullAccepted{}},
		"long id":      {Accepted: &api.PullAccepted{TaskID: strings.Repeat("t", 257)}},
		"not over":     {Finished: &api.AgentTaskStatus{State: "working"}},
		"backwards":    {Output: &api.PullOutput{Seq: 4, Next: 2}},
		"no refusal":   {Refused: &api.PullRefused{Status: 200}},
		"before zero":  {Output: &api.PullOutput{Seq: -1, Next: 2}},
		"no text":      {Output: &api.PullOutput{Next: 1}},
		"far":          {Output: &api.PullOutput{Text: "x", Next: 1 << 40}},
		"far, garbled": {Output: &api.PullOutput{Text: "x\uFFFD", Next: 1 << 40}},
		"beyond":       {Output: &api.PullOutput{Seq: math.MaxInt64 - 1, Text: "x", Next: math.MaxInt64, Truncated: true}},
		"more text":    {Output: &api.PullOutput{Text: "xyz", Next: 1}},
		"much text":    {Output: &api.PullOutput{Text: "\uFFFDxyz", Next: 1}},
		"end, far":     {Finished: &api.AgentTaskStatus{State: "completed"}, Output: &api.PullOutput{Text: "x", Next: 1 << 40}},
		"fence":        {Unknown: true, Fence: -run.Fence - 1},
		"stale":        {Refused: &api.PullRefused{Status: 409, Error: "stale_fence", HighestFence: -1}},
	} {
		rep.Fence += run.Fence
		_, err := a.report(id, rep)
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]api.PullClaim{
		"no slots": {}, "many": {Slots: signalbox.MaxAgentSlots + 1}, "held": {Slots: 1, Held: -1},
		"fence": {Slots: 1, HighestFence: -1}, "run": {Slots: 1, Runs: []api.PullRun{{QueueID: id, Fence: -1}}},
	} {
		c.Instance = a.c.Instance
		_, err := h.lanes.Claim(t.Context(), "far", c, 0)
		if signalbox.CodeOf(err) != signalbox.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := h.task(id); row.State != signalbox.Dispatching {
		t.Errorf("%+v", row)
	}
	// A replacement character stands for one or more bytes.
	for seq, piece := range []api.PullOutput{{Seq: 0, Text: "\uFFFD", Next: 1}, {Seq: 1, Text: "\uFFFDab", Next: 99}} {
		got, err := a.report(id, api.PullReport{Fence: run.Fence, Output: &piece})
		if err != nil || got.Next != piece.Next {
			t.Errorf("%d: %+v (%v)", seq, got, err)
		}
	}
}
