package live_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
)

// watcher is a client of the live stream: it applies the events that it reads.
type watcher struct {
	*apitest.Stream
	epoch    string
	revision int64
	agents   map[string]api.LiveAgent
	queues   map[string]api.LiveQueue
	tasks    map[string]api.LiveTask
	accounts map[string]api.Account
	totals   api.Totals
	health   api.Verdict
	last     apitest.Event // the last one read
	live     api.Live      // the last one that is not a beat, decoded
}

func watchLive(b *apitest.Fixture, edits ...apitest.Edit) *watcher {
	b.T.Helper()
	return &watcher{
		Stream: b.OpenStream("/api/live", edits...), agents: map[string]api.LiveAgent{}, queues: map[string]api.LiveQueue{}, tasks: map[string]api.LiveTask{}, accounts: map[string]api.Account{},
	}
}

// read reads and applies the next event, and returns its name.
func (s *watcher) read() string {
	s.T.Helper()
	s.last = s.Next()
	if s.last.Name == "beat" {
		var beat api.Beat
		if err := json.Unmarshal([]byte(s.last.Data), &beat); err != nil || beat.Epoch == "" || beat.At.IsZero() || s.last.ID != "" {
			s.T.Fatalf("%+v, %v", s.last, err)
		}
		return "beat"
	}
	s.live = api.Live{}
	if err := json.Unmarshal([]byte(s.last.Data), &s.live); err != nil {
		s.T.Fatalf("%+v: %v", s.last, err)
	}
	if want := fmt.Sprintf("%s.%d", s.live.Epoch, s.live.Revision); s.last.ID != want {
		s.T.Fatalf("id %q, want %q", s.last.ID, want)
	}
	if s.last.Name != "change" {
		clear(s.agents)
		clear(s.queues)
		clear(s.tasks)
		clear(s.accounts)
	}
	s.apply(s.live)
	return s.last.Name
}

func (s *watcher) apply(l api.Live) {
	s.epoch, s.revision = l.Epoch, l.Revision
	for _, a := range l.Agents {
		s.agents[a.Name] = a
	}
	for _, q := range l.Queues {
		s.queues[q.Name] = q
	}
	for _, a := range l.Accounts {
		s.accounts[a.Name] = a
	}
	for _, t := range l.Tasks {
		s.tasks[t.QueueID] = t
	}
	for _, key := range l.Gone {
		kind, name, _ := strings.Cut(key, ":")
		switch kind {
		case "agent":
			delete(s.agents, name)
		case "queue":
			delete(s.queues, name)
		case "account":
			delete(s.accounts, name)
		case "task":
			delete(s.tasks, name)
		}
	}
	if l.Totals != nil {
		s.totals = *l.Totals
	}
	if l.Health != nil {
		s.health = *l.Health
	}
}

// until reads events until a condition holds.
func (s *watcher) until(what string, holds func() bool) {
	s.T.Helper()
	for end := time.Now().Add(time.Minute); !holds(); s.read() {
		if time.Now().After(end) {
			s.T.Fatalf("timed out waiting until %s; the last event is %+v", what, s.last)
		}
	}
}

func TestLiveBeginsWithASnapshot(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	first := b.Submit(`{"prompt":"first","agent":"coder"}`).QueueID
	b.Run(a)
	second := b.Submit(`{"prompt":"second","agent":"coder"}`).QueueID
	third := b.Submit(`{"prompt":"third"}`).QueueID
	s := watchLive(b)
	if got := s.read(); got != "snapshot" || s.revision < 1 || s.live.At.IsZero() || s.live.Health == nil || s.live.Totals == nil || s.live.Pauses == nil {
		t.Fatalf("%s %+v", got, s.last)
	}
	lane := s.agents["coder"]
	if lane.Face != "running" || len(lane.Current) != 1 || lane.Current[0].QueueID != first || lane.Current[0].State != "working" || lane.Current[0].PromptPreview != "first" ||
		len(lane.Line) != 1 || lane.Line[0].QueueID != second || lane.Line[0].Position != 1 || lane.Waiting != 1 || lane.InUse != 1 {
		t.Errorf("%+v", lane)
	}
	if q := s.queues["work"]; q.Waiting != 1 || len(q.Line) != 1 || q.Line[0].QueueID != third {
		t.Errorf("%+v", q)
	}
	if len(s.tasks) != 1 || s.tasks[first].Agent != "coder" {
		t.Errorf("%+v", s.tasks)
	}
	if tt := s.totals; tt.Pending != 2 || tt.Running != 1 || tt.Slots != 1 || tt.MaxSize != 50 || tt.Agents != 1 || tt.AgentsUp != 1 {
		t.Errorf("%+v", tt)
	}
	if !s.health.OK || s.health.Text == "" || s.health.Attention == nil {
		t.Errorf("%+v", s.health)
	}
	if len(s.live.Pressure) != 1 || s.live.Pressure[0].Running != 1 || s.live.Pressure[0].Pending != 2 {
		t.Errorf("%+v", s.live.Pressure)
	}
}

func TestLiveSendsChanges(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	s := watchLive(b)
	s.read()
	id := b.Submit(`{"prompt":"p","agent":"coder"}`).QueueID
	s.until("it waits", func() bool { return len(s.agents["coder"].Line) == 1 })
	if s.tasks[id].State != "pending" || s.totals.Pending != 1 {
		t.Errorf("%+v %+v", s.tasks[id], s.totals)
	}
	task := b.Run(a)
	s.until("it runs", func() bool { return s.tasks[id].State == "working" })
	if lane := s.agents["coder"]; lane.Face != "running" || len(lane.Line) != 0 || len(lane.Current) != 1 || s.totals.Running != 1 || s.totals.Pending != 0 {
		t.Errorf("%+v %+v", lane, s.totals)
	}
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{})
	s.until("it has ended", func() bool { return s.tasks[id].State == "completed" })
	if lane := s.agents["coder"]; lane.Face != "idle" || lane.IdleAt == nil || len(lane.Current) != 0 || s.totals.Done24h != 1 || s.totals.Failed24h != 0 {
		t.Errorf("%+v %+v", lane, s.totals)
	}
	if e := s.tasks[id]; e.EndedAt == nil || e.Reason != "completed" || e.Message == "" {
		t.Errorf("%+v", e)
	}
	b.Engine.RemoveAgent(t.Context(), "coder", "a test")
}

// LastHeard is kept up to date for agents that run a task. Heartbeats of an idle agent change
// nothing; when it goes down, LastHeard is the time of the last one.
func TestHeartbeatsOfIdleAgentsChangeNothing(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c))
	t.Cleanup(b.Server.Stop)
	b.AddAgent("idle", 1)
	a := b.AddAgent("coder", 1)
	b.Submit(`{"prompt":"p","agent":"coder"}`)
	b.Run(a)
	lastHeard := func(name string) time.Time {
		t.Helper()
		if err := b.Server.Live().RefreshPolled(t.Context()); err != nil {
			t.Fatal(err)
		}
		var shown api.LiveAgent
		if err := json.Unmarshal([]byte(b.Server.Live().Entities()["agent:"+name]), &shown); err != nil || shown.LastHeard == nil {
			t.Fatalf("%+v, %v", shown, err)
		}
		return *shown.LastHeard
	}
	b.Live.HeardAt(c.Now())
	first := lastHeard("idle")
	c.Advance(30 * time.Second)
	b.Live.HeardAt(c.Now())
	if got := lastHeard("idle"); !got.Equal(first) {
		t.Errorf("the idle agent was last heard at %s, want %s", got, first)
	}
	if got, want := lastHeard("coder"), c.Now().Truncate(time.Second); !got.Equal(want) {
		t.Errorf("the agent that runs a task was last heard at %s, want %s", got, want)
	}
	changeAgent(b, "idle", func(a *engine.LiveAgent) { a.Up = false })
	if got, want := lastHeard("idle"), c.Now().Truncate(time.Second); !got.Equal(want) {
		t.Errorf("the agent that is down was last heard at %s, want %s", got, want)
	}
}
