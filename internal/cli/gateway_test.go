package cli_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/gateway"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// tools is a gateway whose tools answer as their names say. With trouble set, a server
// has failed and calls wait.
type tools struct{ trouble atomic.Bool }

func (*tools) OnCall(func()) {}

func (t *tools) SetQueue(queue string, _ func(*toolqueue.Config)) (before toolqueue.Config, err error) {
	for _, q := range t.Queues() {
		if q.Name == queue {
			return toolqueue.Config{Concurrent: q.Concurrent, Rate: q.Rate}, nil
		}
	}
	return before, toolqueue.ErrUnknown
}

func (t *tools) OpenQueue(queue string) (closed int, err error) {
	for _, q := range t.Queues() {
		if q.Name == queue {
			_, closed = q.Closed()
			return closed, nil
		}
	}
	return 0, toolqueue.ErrUnknown
}

func (*tools) Tools() []gateway.Tool {
	definition := func(name, text string) json.RawMessage {
		data, _ := json.Marshal(map[string]any{"name": name, "description": text, "inputSchema": map[string]any{}})
		return data
	}
	return []gateway.Tool{
		{Name: "browser__open", Kind: "mcp", Server: "browser", Queue: "browser", Timeout: 5 * time.Minute, Definition: definition("browser__open", "Opens a page.\nThen waits for it.")},
		{Name: "rest__weather", Kind: "rest", Server: "rest", Queue: "default", Timeout: 20 * time.Second, Definition: definition("rest__weather", "The weather of a place, as the station nearest to it measured it last")},
		{Name: "report", Kind: "command", Server: "commands", Async: true, Definition: definition("report", "Makes the report of a month")},
	}
}

func (t *tools) Tool(name string) (gateway.Tool, bool) {
	all := t.Tools()
	at := slices.IndexFunc(all, func(t gateway.Tool) bool { return t.Name == name })
	if at < 0 {
		return gateway.Tool{}, false
	}
	return all[at], true
}

func (t *tools) Servers() []gateway.Server {
	if !t.trouble.Load() {
		return nil
	}
	since := noon.Add(-90 * time.Second)
	return []gateway.Server{
		{Name: "browser", Kind: "mcp", State: "failed", Error: "it ended with status 1", Restarts: 3, Tools: 1, Since: since},
		{Name: "rest", Kind: "rest", State: "ready", Tools: 1, Since: since},
	}
}

func (t *tools) Queues() []toolqueue.Status {
	if !t.trouble.Load() {
		return nil
	}
	return []toolqueue.Status{
		{
			Name: "browser", Concurrent: 2, InUse: 2, Depth: 7,
			Holders: []toolqueue.Holder{{Agent: "coder", Session: "named:ada:a1b2c3d4", Tool: "browser__open"}, {Session: "named:ada:ffff0000", Leased: true, Idle: true}},
			Waiters: []toolqueue.Waiter{{Position: 1, Since: noon.Add(-90 * time.Second)}},
		},
		{Name: "default", Concurrent: 64},
		{Name: "search", Concurrent: 4, InUse: 1, Shared: true, Holders: []toolqueue.Holder{{Agent: "coder", Tool: "rest__weather", Owner: "d2"}}},
	}
}

func (*tools) Call(ctx context.Context, c gateway.Call) (gateway.Result, error) {
	text := func(s string) json.RawMessage {
		return json.RawMessage(`[{"type":"text","text":"` + s + `"}]`)
	}
	switch c.Tool {
	case "echo":
		return gateway.Result{Content: json.RawMessage(`[{"type":"text","text":"hello\n"},{"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]`)}, nil
	case "structured":
		return gateway.Result{Content: json.RawMessage("[]"), Structured: json.RawMessage(`{"n":12345678901234567890}`)}, nil
	case "waits":
		c.Progress(gateway.Progress{Message: "queued, position 2", Position: 2})
		c.Progress(gateway.Progress{Message: "queued, position 2", Position: 2})
		c.Progress(gateway.Progress{Progress: 1, Total: 3, Message: "loading"})
		return gateway.Result{Content: text("done")}, nil
	case "fails":
		return gateway.Result{Content: text("no such page"), IsError: true}, nil
	case "hangs":
		<-ctx.Done()
		return gateway.Result{}, ctx.Err()
	}
	return gateway.Result{}, signalbox.Errorf(signalbox.Code(c.Tool), "it is as it is") // the name is an error
}

// toolTasks are tool tasks whose ids the director records.
type toolTasks struct {
	*apitest.ToolTasks
	d *director
}

func (t *toolTasks) Submit(ctx context.Context, c gateway.TaskCall) (gateway.ToolTask, error) {
	got, err := t.ToolTasks.Submit(ctx, c)
	if err == nil && !got.Replayed {
		t.d.submitted(got.Task.ID)
	}
	return got, err
}

// answerTool sets what a completed task of a tool answers.
func (d *director) answerTool(id, text string) {
	content := []map[string]string{{"type": "text", "text": text}}
	if t, err := d.Store.Task(context.Background(), id); err == nil && t.Tool == "echo" {
		content = append(content, map[string]string{"type": "text", "text": "stderr:\na warning\n"})
	}
	data, _ := json.Marshal(content)
	d.tasks.Mu.Lock()
	defer d.tasks.Mu.Unlock()
	d.tasks.Results[id] = gateway.Result{Content: data}
}

// plans is a scheduler whose schedules submit their tasks when they are triggered by hand.
// The firing of the schedule named held waits until its executions are listed.
type plans struct {
	*apitest.Schedules
	d *director
}

func (p *plans) Trigger(ctx context.Context, ref, by string) (signalbox.ScheduleRun, error) {
	s, err := p.Get(ctx, ref)
	if err != nil {
		return signalbox.ScheduleRun{}, err
	}
	p.TriggerResult = signalbox.ScheduleRun{}
	if s.Name != "held" {
		p.TriggerResult = signalbox.ScheduleRun{Status: signalbox.RunQueued, QueueID: p.d.submit(engine.NewTask{Prompt: s.Prompt, Source: signalbox.SourceScheduler})}
	}
	return p.Schedules.Trigger(ctx, ref, by)
}

func (p *plans) Runs(ctx context.Context, id string, limit int) ([]signalbox.ScheduleRun, error) {
	for i := range p.RunsOf[id] {
		if r := &p.RunsOf[id][i]; r.Status == signalbox.RunHeld {
			r.Status, r.QueueID = signalbox.RunQueued, p.d.submit(engine.NewTask{Prompt: p.ByID[id].Prompt, Source: signalbox.SourceScheduler})
		}
	}
	return p.Schedules.Runs(ctx, id, limit)
}

// addSchedule adds a schedule whose last run ended as given; disabled and overdue are
// states of the schedule itself. The task of an earlier run is the newest task.
func (d *director) addSchedule(name, last string) {
	at := noon.Add(-22 * time.Hour)
	s := signalbox.Schedule{
		ID: "sched-" + name, Name: name, Cron: "30 14 * * *", Timezone: "Europe/Berlin", Enabled: last != "disabled", Source: signalbox.ScheduleFromConfig, Owner: "user:ada",
		Prompt: "Tidy up\nand more", Agent: "coder", Overlap: "skip", Missed: "all", MissedWindow: 2 * time.Hour, OnFull: "retry", LastRun: at, LastStatus: signalbox.RunStatus(last),
	}
	runs := []signalbox.ScheduleRun{
		{ID: "2", ScheduleID: s.ID, Nominal: at, Trigger: "cron", Status: signalbox.SkippedQueueFull, Error: "Agent queue full (50 waiting), skipping scheduled execution"},
		{ID: "1", ScheduleID: s.ID, Nominal: at.Add(-24 * time.Hour), Trigger: "missed", Status: signalbox.RunQueued, Missed: 2},
	}
	if len(d.ids) > 0 {
		runs[1].QueueID = d.id(len(d.ids))
	}
	switch last {
	case "disabled":
		s.LastStatus = signalbox.RunQueued
	case "overdue":
		s.LastStatus, s.Cursor = signalbox.RunQueued, noon.Add(-5*time.Minute)
	case "skipped_queue_full":
		s.LastError = runs[0].Error
	}
	d.plans.ByID[s.ID], d.plans.RunsOf[s.ID] = s, runs
}
