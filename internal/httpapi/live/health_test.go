package live_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// currentVerdict refreshes the view and returns the verdict of GET /status.
func currentVerdict(b *apitest.Fixture) api.Verdict {
	b.T.Helper()
	b.RefreshLive()
	var s api.Status
	b.Do("GET", "/status", "").Want(b.T, 200, &s)
	if s.Health == nil {
		b.T.Fatal("no verdict")
	}
	return *s.Health
}

// wantAttention fails unless the verdict has exactly one item, which is as given. The
// parts are substrings of its text or cure.
func wantAttention(b *apitest.Fixture, kind, level, subject string, parts ...string) api.Attention {
	b.T.Helper()
	v := currentVerdict(b)
	if v.OK || len(v.Attention) != 1 {
		b.T.Fatalf("%+v", v)
	}
	a := v.Attention[0]
	if a.Kind != kind || a.Level != level || a.Subject != subject || a.Cure == "" || a.Since.IsZero() || v.Text != a.Subject+" "+a.Text+"." {
		b.T.Errorf("%+v", v)
	}
	for _, part := range parts {
		if !strings.Contains(a.Text+"\n"+a.Cure, part) {
			b.T.Errorf("want %q in %+v", part, a)
		}
	}
	return a
}

// wantNote fails unless nothing needs a person, and the verdict has exactly one note,
// which is as given. The parts are substrings of its text or cure.
func wantNote(b *apitest.Fixture, kind, subject string, parts ...string) {
	b.T.Helper()
	v := currentVerdict(b)
	if !v.OK || len(v.Attention) != 0 || len(v.Notes) != 1 || v.Notes[0].Kind != kind || v.Notes[0].Level != "info" || v.Notes[0].Subject != subject {
		b.T.Fatalf("%+v", v)
	}
	for _, part := range parts {
		if !strings.Contains(v.Notes[0].Text+"\n"+v.Notes[0].Cure, part) {
			b.T.Errorf("want %q in %+v", part, v.Notes[0])
		}
	}
}

// wantHealthy fails if anything needs a person.
func wantHealthy(b *apitest.Fixture) {
	b.T.Helper()
	if v := currentVerdict(b); !v.OK || len(v.Attention) != 0 || v.Text == "" {
		b.T.Fatalf("%+v", v)
	}
}

// wantFace fails unless a new reader sees the agent with that face, and with the
// parts in its face_text. It returns the agent.
func wantFace(b *apitest.Fixture, name, want string, parts ...string) api.LiveAgent {
	b.T.Helper()
	b.RefreshLive()
	s := watchLive(b)
	defer s.Close()
	s.read()
	a := s.agents[name]
	if a.Face != want {
		b.T.Errorf("face %q (%s), want %q", a.Face, a.FaceText, want)
	}
	for _, part := range parts {
		if !strings.Contains(a.FaceText, part) {
			b.T.Errorf("want %q in %q", part, a.FaceText)
		}
	}
	return a
}

// changeAgent changes an agent of the fake dispatcher, which announces it.
func changeAgent(b *apitest.Fixture, name string, change func(*engine.LiveAgent)) {
	b.T.Helper()
	a, ok := b.Live.LiveAgent(name)
	if !ok {
		b.T.Fatalf("no agent %s", name)
	}
	change(&a)
	b.Live.Set(a)
}

func TestHealthOfAgents(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	if v := currentVerdict(b); !v.OK || !strings.Contains(v.Text, "no agent is connected") {
		t.Errorf("%+v", v)
	}
	b.Submit(`{"prompt":"p"}`)
	if v := currentVerdict(b); !v.OK || v.Text != "No agent is connected yet, and 1 task waits." {
		t.Errorf("%+v", v)
	}
	b.FinishTask(b.Run(b.AddAgent("coder", 1)), signalbox.ReasonCompleted, signalbox.Result{})
	a := b.AddAgent("coder", 1)
	wantHealthy(b)
	wantFace(b, "coder", "idle")

	// A registered agent that is down is not a finding until a task depends on it.
	heard := c.Now()
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Up, l.LastHeard, l.Message = false, heard, "connection refused" })
	c.Advance(25 * time.Second)
	wantHealthy(b)
	wantFace(b, "coder", "down", "connection refused")
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	if at := wantAttention(b, "agent_down", "error", "coder", "not been heard from for 20 s", "1 task waits for it alone", "signalbox clear coder"); !at.Since.Equal(heard) {
		t.Errorf("%+v", at)
	}
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Up = true })
	b.Run(a)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Up = false })
	if at := wantAttention(b, "agent_silent", "error", "coder", "holds "+id, "signalbox release coder"); at.TaskID != id {
		t.Errorf("%+v", at)
	}

	// It is up again, but sends nothing while it runs a task; then it sends heartbeats, but prints
	// nothing.
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Up, l.Fencing, l.Message = true, true, "" })
	wantAttention(b, "agent_silent", "error", "coder", "works and has not been heard from for 20 s")
	wantFace(b, "coder", "stuck", "not heard from for 20 s")
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard = c.Now() })
	wantHealthy(b)
	wantFace(b, "coder", "running")
	c.Advance(11 * time.Minute)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard = c.Now() })
	wantAttention(b, "stuck", "warning", "coder", "printed nothing for 11 min in "+id, "signalbox logs "+id)
	wantFace(b, "coder", "stuck", "not got on for 11 min")
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastProgress = c.Now() })
	if agent := wantFace(b, "coder", "running"); agent.Current[0].LastProgress == nil {
		t.Errorf("%+v", agent.Current)
	}

	// It does not confirm a cancel.
	if _, err := b.Engine.Cancel(t.Context(), id, "a test"); err != nil {
		t.Fatal(err)
	}
	wantHealthy(b)
	asked := c.Now()
	c.Advance(12 * time.Second)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard = c.Now() })
	if at := wantAttention(b, "cancel_unconfirmed", "warning", "coder", id+" for 10 s", "signalbox release coder"); !at.Since.Equal(asked) {
		t.Errorf("%+v", at)
	}
	if agent := wantFace(b, "coder", "cancelling", id); agent.Current[0].CancelledAt == nil || !agent.Current[0].CancelledAt.Equal(asked) {
		t.Errorf("%+v", agent.Current)
	}
}

// The note of a run, with which an agent reports a problem, is in every answer that
// shows the run.
func TestNoteOfARunIsShownEverywhere(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	b.Run(a)
	wantHealthy(b)
	const note = "the model's API answers 529 (overloaded)"
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Notes = map[string]string{id: note} })
	if at := wantAttention(b, "run_trouble", "warning", "coder", "cannot go on with "+id+": "+note, "signalbox cancel "+id); at.TaskID != id {
		t.Errorf("%+v", at)
	}
	if agent := wantFace(b, "coder", "running"); agent.Current[0].Note != note || agent.Running[0].Note != note {
		t.Errorf("%+v", agent)
	}
	var task api.Task
	b.Do("GET", "/api/queue/"+id, "").Want(t, 200, &task)
	var why api.Why
	b.Do("GET", "/api/queue/"+id+"/why", "").Want(t, 200, &why)
	var agents api.Agents
	b.Do("GET", "/api/agents", "").Want(t, 200, &agents)
	if task.Note != note || !strings.HasSuffix(why.Summary, "The agent says: "+note+".") || agents.Agents[0].Running[0].Note != note {
		t.Errorf("%q %q %+v", task.Note, why.Summary, agents)
	}
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Notes = nil })
	wantHealthy(b)
}

func TestHealthOfAConfiguredAgentThatIsDown(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	a.Source = signalbox.AgentFromConfig
	if _, err := b.Engine.PutAgent(t.Context(), a, ""); err != nil {
		t.Fatal(err)
	}
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Up, l.Source = false, a.Source })
	wantAttention(b, "agent_down", "warning", "coder", "was never heard from", "start it again")
}

func TestHealthOfAWithheldSlot(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	task := b.Run(a)
	if _, err := b.Engine.Lose(t.Context(), task, signalbox.ReasonLost, "it went silent", true, nil); err != nil {
		t.Fatal(err)
	}
	v := currentVerdict(b)
	if len(v.Attention) != 2 || v.Attention[0].Kind != "tasks_failed" || v.Attention[0].TaskID != id || v.Attention[1].Kind != "withheld" || v.Attention[1].TaskID != id ||
		!strings.HasSuffix(v.Text, "; and 1 more.") || !strings.Contains(v.Attention[1].Text+v.Attention[1].Cure, "may still run "+id+", which is lost here: its slot is not given to another") ||
		!strings.Contains(v.Attention[1].Cure, "signalbox release coder") {
		t.Errorf("%+v", v)
	}
	wantFace(b, "coder", "withheld")
	var lane api.Lane
	if b.Do("GET", "/api/agents/coder/queue", "").Want(t, 200, &lane); !lane.IsBusy || lane.CurrentExecution == nil || lane.CurrentExecution.ID != id || lane.CurrentExecution.Status != "running" {
		t.Errorf("the lane of an agent that may still run a lost task: %+v", lane)
	}
}

func TestHealthOfAnAgentWithoutRoom(t *testing.T) {
	b := apitest.New(t).Serve()
	b.AddAgent("coder", 1)
	const why = "no room for worktrees: they take 2 GiB"
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Full, l.Held, l.Message = why, true, why })
	wantAttention(b, "agent_full", "warning", "coder", "takes no tasks: "+why, "signalbox workspaces discard NAME")
	wantFace(b, "coder", "withheld")
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Full, l.Held, l.Message = "", false, "" })
	wantHealthy(b)
}

func TestHealthOfQueues(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c), func(o *apitest.Options) { o.Engine.MaxSize = 2 }).Serve()
	b.Submit(`{"prompt":"p","kind":"claude"}`)
	wantHealthy(b) // an agent may just be starting
	c.Advance(10 * time.Second)
	wantAttention(b, "no_agent", "error", "Queue pool:claude", "has 1 task and no agent that is connected")
	a := b.AddAgent("coder", 1)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.Kind = "claude" })
	wantHealthy(b)
	b.Submit(`{"prompt":"p"}`)
	wantAttention(b, "queue_full", "error", "The queue", "is full: 2 of 2 tasks wait")
	b.Run(a)
	wantHealthy(b)

	b.Do("POST", "/api/queue/pause", `{"queue":"agent:coder","reason":"new disk"}`).Want(t, 200, nil)
	wantNote(b, "paused", "coder", "is paused by a local caller: new disk", "signalbox resume agent:coder")
	wantFace(b, "coder", "draining", "new disk")
	b.Do("POST", "/api/queue/resume", `{"queue":"agent:coder"}`).Want(t, 200, nil)
	b.Do("POST", "/api/queue/pause", `{"seconds":60}`).Want(t, 200, nil)
	wantHealthy(b) // the pause ends automatically
	b.Do("POST", "/api/queue/pause", `{}`).Want(t, 200, nil)
	wantNote(b, "paused", "Every queue", "is paused", "signalbox resume")
}

func TestHealthOfTools(t *testing.T) {
	tools := apitest.NewTools()
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c), apitest.WithTools(tools)).Serve()
	wantAttention(b, "tool_down", "warning", "search", "connection refused")
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	b.Run(a)
	tools.Mu.Lock()
	tools.Statuses = apitest.QueueStates()[:1]
	tools.Statuses[0].Waiters[0].Since, tools.Statuses[0].Waiters[0].Execution = c.Now(), id
	tools.Mu.Unlock()
	if agent := wantFace(b, "coder", "waiting for capacity", "waits for browser, of which 1 of 1 are in use"); agent.Current[0].Call == nil || !agent.Current[0].Call.Waiting || agent.Current[0].Call.Tool != "browser__open" {
		t.Errorf("%+v", agent.Current)
	}
	c.Advance(time.Minute)
	wantAttention(b, "tool_down", "warning", "search", "connection refused")
	if notes := currentVerdict(b).Notes; len(notes) != 1 || notes[0].Kind != "capacity_full" || notes[0].Level != "info" || notes[0].Subject != "browser" ||
		!strings.Contains(notes[0].Text, "(1 of 1 in use), and 2 calls wait, the first for 1 min") {
		t.Errorf("%+v", notes)
	}
}

func TestHealthOfSchedules(t *testing.T) {
	var c apitest.Clock
	var schedules *apitest.Schedules
	b := apitest.New(t, apitest.WithClock(&c), apitest.WithSchedules(&schedules)).Serve()
	schedules.Now = c.Now
	hourly := signalbox.Schedule{ID: "sched-1", Name: "hourly", Cron: "@hourly", Enabled: true, Cursor: c.Now(), LastStatus: signalbox.SkippedError, LastError: "the agent is gone", LastRun: c.Now()}
	late := signalbox.Schedule{ID: "sched-2", Name: "late", Cron: "@hourly", Enabled: true, Cursor: c.Now().Add(-3 * time.Hour)}
	off := signalbox.Schedule{ID: "sched-3", Name: "off", Cron: "@hourly", Cursor: c.Now().Add(-3 * time.Hour), LastStatus: signalbox.SkippedError}
	schedules.ByID = map[string]signalbox.Schedule{hourly.ID: hourly, late.ID: late, off.ID: off}
	v := currentVerdict(b)
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

// One task of an agent is stuck although another one prints.
func TestHealthOfOneStuckTaskOfTwo(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	a := b.AddAgent("coder", 2)
	stuck, printing := b.Submit(`{"prompt":"stuck"}`).QueueID, b.Submit(`{"prompt":"printing"}`).QueueID
	b.Run(a)
	b.Run(a)
	c.Advance(20 * time.Minute)
	changeAgent(b, "coder", func(l *engine.LiveAgent) {
		l.LastHeard, l.LastProgress, l.Fencing = c.Now(), c.Now(), true
		l.Progress = map[string]time.Time{stuck: {}, printing: c.Now()}
	})
	if at := wantAttention(b, "stuck", "warning", "coder", "20 min in "+stuck); at.TaskID != stuck {
		t.Errorf("%+v", at)
	}
}

// A task that waits for a tool is not stuck; another one of the same agent is.
func TestHealthOfATaskThatWaitsForATool(t *testing.T) {
	var c apitest.Clock
	tools := apitest.NewTools()
	b := apitest.New(t, apitest.WithClock(&c), apitest.WithTools(tools)).Serve()
	a := b.AddAgent("coder", 2)
	silent, waiting := b.Submit(`{"prompt":"silent"}`).QueueID, b.Submit(`{"prompt":"waiting"}`).QueueID
	b.Run(a)
	b.Run(a)
	c.Advance(20 * time.Minute)
	changeAgent(b, "coder", func(l *engine.LiveAgent) { l.LastHeard, l.Fencing = c.Now(), true })
	tools.Mu.Lock()
	tools.Statuses = apitest.QueueStates()[:1]
	tools.Statuses[0].Waiters[0].Since, tools.Statuses[0].Waiters[0].Execution = c.Now(), waiting
	tools.Mu.Unlock()
	var stuck []string
	for _, at := range currentVerdict(b).Attention {
		if at.Kind == "stuck" {
			stuck = append(stuck, at.TaskID)
		}
	}
	if !slices.Equal(stuck, []string{silent}) {
		t.Errorf("stuck: %q", stuck)
	}
}
