package httpapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// verdict is what GET /status says of this moment.
func (b *box) verdict() api.Verdict {
	b.t.Helper()
	b.look()
	var s api.Status
	b.do("GET", "/status", "").want(b.t, 200, &s)
	if s.Health == nil {
		b.t.Fatal("no verdict")
	}
	return *s.Health
}

// needs fails unless exactly that needs a person.
func (b *box) needs(kind, level, subject string, parts ...string) api.Attention {
	b.t.Helper()
	v := b.verdict()
	if v.OK || len(v.Attention) != 1 {
		b.t.Fatalf("%+v", v)
	}
	a := v.Attention[0]
	if a.Kind != kind || a.Level != level || a.Subject != subject || a.Cure == "" || a.Since.IsZero() || v.Text != a.Subject+" "+a.Text+"." {
		b.t.Errorf("%+v", v)
	}
	for _, part := range parts {
		if !strings.Contains(a.Text+"\n"+a.Cure, part) {
			b.t.Errorf("want %q in %+v", part, a)
		}
	}
	return a
}

func (b *box) well() {
	b.t.Helper()
	if v := b.verdict(); !v.OK || len(v.Attention) != 0 || v.Text == "" {
		b.t.Fatalf("%+v", v)
	}
}

// face is the agent's lane as the stream shows it.
func (b *box) face(name, want string, parts ...string) api.LiveAgent {
	b.t.Helper()
	b.look()
	s := b.watch()
	defer s.close()
	s.read()
	a := s.agents[name]
	if a.Face != want {
		b.t.Errorf("its face is %q (%s), want %q", a.Face, a.FaceText, want)
	}
	for _, part := range parts {
		if !strings.Contains(a.FaceText, part) {
			b.t.Errorf("want %q in %q", part, a.FaceText)
		}
	}
	return a
}

// told changes what the dispatcher sees of an agent.
func (b *box) told(name string, change func(*engine.LiveAgent)) {
	b.t.Helper()
	a, ok := b.live.LiveAgent(name)
	if !ok {
		b.t.Fatalf("no agent %s", name)
	}
	change(&a)
	b.live.set(a)
}

func TestHealthOfAgents(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c)).serve()
	if v := b.verdict(); !v.OK || !strings.Contains(v.Text, "no agent is connected") {
		t.Errorf("%+v", v)
	}
	b.submit(`{"prompt":"p"}`)
	if v := b.verdict(); !v.OK || v.Text != "No agent is connected yet, and 1 task waits." {
		t.Errorf("%+v", v)
	}
	b.finish(b.work(b.agent("coder", 1)), signalbox.ReasonCompleted, signalbox.Result{})
	a := b.agent("coder", 1)
	b.well()
	b.face("coder", "idle")

	// One that came by itself and is gone is nobody's business, until something
	// hangs on it.
	heard := c.now()
	b.told("coder", func(l *engine.LiveAgent) { l.Up, l.LastHeard, l.Message = false, heard, "connection refused" })
	c.pass(25 * time.Second)
	b.well()
	b.face("coder", "down", "connection refused")
	id := b.submit(`{"prompt":"p","agent":"coder"}`).QueueID
	if at := b.needs("agent_down", "error", "coder", "not been heard from for 20 s", "1 task waits for it alone", "signalbox clear coder"); !at.Since.Equal(heard) {
		t.Errorf("%+v", at)
	}
	b.told("coder", func(l *engine.LiveAgent) { l.Up = true })
	b.work(a)
	b.told("coder", func(l *engine.LiveAgent) { l.Up = false })
	if at := b.needs("agent_silent", "error", "coder", "holds "+id, "signalbox release coder"); at.TaskID != id {
		t.Errorf("%+v", at)
	}

	// It is there again, answers nothing while it works, then answers and gets
	// on with nothing.
	b.told("coder", func(l *engine.LiveAgent) { l.Up, l.Fencing, l.Message = true, true, "" })
	b.needs("agent_silent", "error", "coder", "works and has not been heard from for 20 s")
	b.face("coder", "stuck", "not heard from for 20 s")
	b.told("coder", func(l *engine.LiveAgent) { l.LastHeard = c.now() })
	b.well()
	b.face("coder", "running")
	c.pass(11 * time.Minute)
	b.told("coder", func(l *engine.LiveAgent) { l.LastHeard = c.now() })
	b.needs("stuck", "warning", "coder", "printed nothing for 11 min in "+id, "signalbox logs "+id)
	b.face("coder", "stuck", "not got on for 11 min")
	b.told("coder", func(l *engine.LiveAgent) { l.LastProgress = c.now() })
	if lane := b.face("coder", "running"); lane.Current[0].LastProgress == nil {
		t.Errorf("%+v", lane.Current)
	}

	// A cancel that it does not confirm.
	if _, err := b.engine.Cancel(t.Context(), id, "a test"); err != nil {
		t.Fatal(err)
	}
	b.well()
	asked := c.now()
	c.pass(12 * time.Second)
	b.told("coder", func(l *engine.LiveAgent) { l.LastHeard = c.now() })
	if at := b.needs("cancel_unconfirmed", "warning", "coder", id+" for 10 s", "signalbox release coder"); !at.Since.Equal(asked) {
		t.Errorf("%+v", at)
	}
	if lane := b.face("coder", "cancelling", id); lane.Current[0].CancelledAt == nil || !lane.Current[0].CancelledAt.Equal(asked) {
		t.Errorf("%+v", lane.Current)
	}
}

// What an agent says keeps a run from going on is told wherever one looks.
func TestTroubleOfARunIsTold(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	id := b.submit(`{"prompt":"p"}`).QueueID
	b.work(a)
	b.well()
	const note = "the model's API answers 529 (overloaded)"
	b.told("coder", func(l *engine.LiveAgent) { l.Notes = map[string]string{id: note} })
	if at := b.needs("run_trouble", "warning", "coder", "cannot go on with "+id+": "+note, "signalbox cancel "+id); at.TaskID != id {
		t.Errorf("%+v", at)
	}
	if lane := b.face("coder", "running"); lane.Current[0].Note != note || lane.Running[0].Note != note {
		t.Errorf("%+v", lane)
	}
	var task api.Task
	b.do("GET", "/api/queue/"+id, "").want(t, 200, &task)
	var why api.Why
	b.do("GET", "/api/queue/"+id+"/why", "").want(t, 200, &why)
	var agents api.Agents
	b.do("GET", "/api/agents", "").want(t, 200, &agents)
	if task.Note != note || !strings.HasSuffix(why.Summary, "The agent says: "+note+".") || agents.Agents[0].Running[0].Note != note {
		t.Errorf("%q %q %+v", task.Note, why.Summary, agents)
	}
	b.told("coder", func(l *engine.LiveAgent) { l.Notes = nil })
	b.well()
}

func TestHealthOfAConfiguredAgentThatIsGone(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	a.Source = signalbox.AgentFromConfig
	if _, err := b.engine.PutAgent(t.Context(), a, ""); err != nil {
		t.Fatal(err)
	}
	b.told("coder", func(l *engine.LiveAgent) { l.Up, l.Source = false, a.Source })
	b.needs("agent_down", "warning", "coder", "was never heard from", "start it again")
}

func TestHealthOfASlotThatIsWithheld(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	id := b.submit(`{"prompt":"p"}`).QueueID
	task := b.work(a)
	if _, err := b.engine.Lose(t.Context(), task, signalbox.ReasonLost, "it went silent", true, nil); err != nil {
		t.Fatal(err)
	}
	if at := b.needs("withheld", "warning", "coder", "may still run "+id, "signalbox release coder"); at.TaskID != id {
		t.Errorf("%+v", at)
	}
	b.face("coder", "withheld")
	var lane api.Lane
	if b.do("GET", "/api/agents/coder/queue", "").want(t, 200, &lane); !lane.IsBusy || lane.CurrentExecution == nil || lane.CurrentExecution.ID != id || lane.CurrentExecution.Status != "running" {
		t.Errorf("the lane of an agent that may still run what was lost: %+v", lane)
	}
}

func TestHealthOfQueues(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c), func(o *options) { o.engine.MaxSize = 2 }).serve()
	b.submit(`{"prompt":"p","kind":"claude"}`)
	b.well() // an agent may just be starting
	c.pass(10 * time.Second)
	b.needs("no_agent", "error", "Queue pool:claude", "has 1 task and no agent that is connected")
	a := b.agent("coder", 1)
	b.told("coder", func(l *engine.LiveAgent) { l.Kind = "claude" })
	b.well()
	b.submit(`{"prompt":"p"}`)
	b.needs("queue_full", "error", "The queue", "is full: 2 of 2 tasks wait")
	b.work(a)
	b.well()

	b.do("POST", "/api/queue/pause", `{"queue":"agent:coder","reason":"new disk"}`).want(t, 200, nil)
	b.needs("paused", "warning", "coder", "is paused by a local caller: new disk", "signalbox resume agent:coder")
	b.face("coder", "draining", "new disk")
	b.do("POST", "/api/queue/resume", `{"queue":"agent:coder"}`).want(t, 200, nil)
	b.do("POST", "/api/queue/pause", `{"seconds":60}`).want(t, 200, nil)
	b.well() // it ends by itself
	b.do("POST", "/api/queue/pause", `{}`).want(t, 200, nil)
	b.needs("paused", "warning", "Every queue", "signalbox resume")
}

func TestHealthOfTools(t *testing.T) {
	tools := newFakeTools()
	var c clock
	b := newBox(t, fixed(&c), withTools(tools)).serve()
	b.needs("tool_down", "warning", "search", "connection refused")
	a := b.agent("coder", 1)
	id := b.submit(`{"prompt":"p"}`).QueueID
	b.work(a)
	tools.mu.Lock()
	tools.queues = queueStates()[:1]
	tools.queues[0].Waiters[0].Since, tools.queues[0].Waiters[0].Execution = c.now(), id
	tools.mu.Unlock()
	if lane := b.face("coder", "waiting for capacity", "waits for browser, of which 1 of 1 are in use"); lane.Current[0].Call == nil || !lane.Current[0].Call.Waiting || lane.Current[0].Call.Tool != "browser__open" {
		t.Errorf("%+v", lane.Current)
	}
	c.pass(time.Minute)
	v := b.verdict()
	if len(v.Attention) != 2 || v.Attention[0].Kind != "capacity_full" || v.Attention[0].Subject != "browser" || !strings.Contains(v.Attention[0].Text, "(1 of 1 in use), and 2 calls wait, the first for 1 min") ||
		!strings.HasSuffix(v.Text, "; and 1 more.") {
		t.Errorf("%+v", v)
	}
}

func TestHealthOfSchedules(t *testing.T) {
	var c clock
	var plans *fakeSchedules
	b := newBox(t, fixed(&c), withSchedules(&plans)).serve()
	plans.now = c.now
	hourly := signalbox.Schedule{ID: "sched-1", Name: "hourly", Cron: "@hourly", Enabled: true, Cursor: c.now(), LastStatus: signalbox.SkippedError, LastError: "the agent is gone", LastRun: c.now()}
	late := signalbox.Schedule{ID: "sched-2", Name: "late", Cron: "@hourly", Enabled: true, Cursor: c.now().Add(-3 * time.Hour)}
	off := signalbox.Schedule{ID: "sched-3", Name: "off", Cron: "@hourly", Cursor: c.now().Add(-3 * time.Hour), LastStatus: signalbox.SkippedError}
	plans.rows = map[string]signalbox.Schedule{hourly.ID: hourly, late.ID: late, off.ID: off}
	v := b.verdict()
	if len(v.Attention) != 2 {
		t.Fatalf("%+v", v)
	}
	if a := v.Attention[0]; a.Kind != "schedule_overdue" || a.Level != "error" || a.Subject != "late" || !strings.Contains(a.Text, "3 h ago") || a.Cure == "" {
		t.Errorf("%+v", a)
	}
	if a := v.Attention[1]; a.Kind != "schedule_failing" || a.Level != "warning" || a.Subject != "hourly" || !strings.Contains(a.Text, "skipped_error") || !strings.Contains(a.Text, "the agent is gone") {
		t.Errorf("%+v", a)
	}
}

// Of several tasks of an agent one is stuck, though the other prints.
func TestHealthOfOneOfSeveralTasks(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c)).serve()
	a := b.agent("coder", 2)
	still, prints := b.submit(`{"prompt":"still"}`).QueueID, b.submit(`{"prompt":"prints"}`).QueueID
	b.work(a)
	b.work(a)
	c.pass(20 * time.Minute)
	b.told("coder", func(l *engine.LiveAgent) {
		l.LastHeard, l.LastProgress, l.Fencing = c.now(), c.now(), true
		l.Progress = map[string]time.Time{still: {}, prints: c.now()}
	})
	if at := b.needs("stuck", "warning", "coder", "20 min in "+still); at.TaskID != still {
		t.Errorf("%+v", at)
	}
}

// Of several tasks of an agent one is stuck; the other waits for a tool, which
// is no fault of the agent.
func TestHealthOfATaskThatWaitsForATool(t *testing.T) {
	var c clock
	tools := newFakeTools()
	b := newBox(t, fixed(&c), withTools(tools)).serve()
	a := b.agent("coder", 2)
	still, waits := b.submit(`{"prompt":"still"}`).QueueID, b.submit(`{"prompt":"waits"}`).QueueID
	b.work(a)
	b.work(a)
	c.pass(20 * time.Minute)
	b.told("coder", func(l *engine.LiveAgent) { l.LastHeard, l.Fencing = c.now(), true })
	tools.mu.Lock()
	tools.queues = queueStates()[:1]
	tools.queues[0].Waiters[0].Since, tools.queues[0].Waiters[0].Execution = c.now(), waits
	tools.mu.Unlock()
	var stuck []string
	for _, at := range b.verdict().Attention {
		if at.Kind == "stuck" {
			stuck = append(stuck, at.TaskID)
		}
	}
	if !slices.Equal(stuck, []string{still}) {
		t.Errorf("stuck: %q", stuck)
	}
}
