package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/identity"
)

// noon is the current time in all tests.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// director is a real director over a store in memory with one agent, coder, behind a
// proxy that records requests, answers some itself and loses replies. A test moves a
// task along by hand, or the task's prompt says how it runs (see play).
type director struct {
	*apitest.Fixture
	t     *testing.T
	URL   string
	proxy *proxy
	clock *apitest.Clock
	tasks *apitest.ToolTasks
	plans *apitest.Schedules
	tools *tools
	slots int    // of coder
	alone bool   // it is a gateway without a queue, where no events show that a client waits
	token string // that the command line sends; "": none

	mu  sync.Mutex
	ids []string // of all tasks, in the order of submission
}

// newDirector starts a director; change is applied to its options.
func newDirector(t *testing.T, change ...func(*apitest.Options)) *director {
	d := &director{t: t, proxy: newProxy(), tools: &tools{}}
	d.proxy.seen = d.seen
	d.reset(change...)
	d.proxy.start(t)
	d.URL = d.proxy.URL
	return d
}

// reset replaces the director by one with an empty store, at the same address.
func (d *director) reset(change ...func(*apitest.Options)) {
	d.clock, d.slots, d.token = &apitest.Clock{}, 2, ""
	fixed := apitest.WithClock(d.clock)
	d.clock.Advance(noon.Sub(d.clock.Now()))
	random := func(o *apitest.Options) {
		o.Engine.Random, o.Config.Version, o.Config.Terminal = &countedBytes{}, "1.2.3", true
	}
	d.tasks = apitest.NewToolTasks()
	with := func(o *apitest.Options) {
		o.Config.Tools, o.Config.ToolTasks = d.tools, &toolTasks{d.tasks, d}
		apitest.WithSchedules(&d.plans)(o)
		o.Config.Schedules = &plans{d.plans, d}
	}
	d.ids = nil
	d.Fixture = apitest.New(d.t, append([]func(*apitest.Options){fixed, random, with}, change...)...)
	d.tasks.Store, d.tasks.Engine = d.Store, d.Engine
	d.Engine.SetLive(&busyAgents{d.Live, d.Engine})
	d.Engine.Observe(func(a *engine.Applied) {
		if a.Kind == signalbox.EventSubmit {
			d.submitted(a.Task.ID)
		}
		if a.Task.State == signalbox.Cancelling {
			d.proxy.endNewest()
		}
	})
	d.addAgent("coder")
	d.AddExecutor()
	d.proxy.serve(d.Server.Handler())
}

// addAgent adds an agent that is up; coder gets d.slots slots.
func (d *director) addAgent(name string) signalbox.Agent {
	a := signalbox.Agent{Name: name, Kind: "claude", URL: "http://127.0.0.1:9000", Slots: 1, Source: signalbox.AgentRegistered}
	if name == "coder" {
		a.Slots = d.slots
	}
	was, _ := d.Live.LiveAgent(name)
	a, err := d.Engine.PutAgent(context.Background(), a, "")
	d.check(err)
	a.Account = was.Account
	d.Live.Set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	return a
}

func (d *director) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Error(err)
	}
}

// submitted notes the id of a task.
func (d *director) submitted(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = append(d.ids, id)
}

// id is the id of the n-th task.
func (d *director) id(n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[n-1]
}

// seed submits tasks.
func (d *director) seed(prompts ...string) {
	for _, p := range prompts {
		d.submit(engine.NewTask{Prompt: p})
	}
}

func (d *director) submit(n engine.NewTask) string {
	d.t.Helper()
	n.Source = cmp.Or(n.Source, signalbox.SourceCLI)
	got, err := d.Engine.Submit(context.Background(), n)
	d.check(err)
	return got.Task.ID
}

// task reads the n-th task.
func (d *director) task(n int) signalbox.Task {
	d.t.Helper()
	t, err := d.Store.Task(context.Background(), d.id(n))
	d.check(err)
	return t
}

// agentOf returns the agent that runs a task: coder, unless the task names another.
func agentOf(t signalbox.Task) string {
	if name, only := strings.CutPrefix(t.Queue, "agent:"); only {
		return name
	}
	return "coder"
}

// claim has the agent of a task claim it, whatever its place in line.
func (d *director) claim(id string) signalbox.Task {
	d.t.Helper()
	ctx := context.Background()
	t, err := d.Store.Task(ctx, id)
	d.check(err)
	a := d.addAgent(agentOf(t))
	if t.Mode == signalbox.ModeTool {
		a = d.AddExecutor()
	}
	a.Slots = 100 // so that the tasks ahead of it can be claimed and put back
	d.clock.Advance(time.Second)
	var others []signalbox.Task
	next := func() (engine.Claimed, bool, error) { return d.Engine.Claim(ctx, a, 0) }
	if t.Mode == signalbox.ModeBypass {
		next = func() (engine.Claimed, bool, error) { return d.Engine.ClaimBypass(ctx, a, 2, 0) }
	}
	for {
		c, found, err := next()
		if err != nil || !found {
			d.t.Errorf("%s cannot be claimed: %v", id, err)
			return c.Task
		}
		if c.Task.ID == id {
			t = c.Task
			break
		}
		others = append(others, c.Task)
	}
	for _, other := range others {
		_, err := d.Engine.PutBack(ctx, other, "")
		d.check(err)
	}
	d.Runs.Print(id, "")
	return t
}

// accept has the agent of a claimed task start to run it.
func (d *director) accept(t signalbox.Task) signalbox.Task {
	d.t.Helper()
	d.clock.Advance(time.Second)
	t, err := d.Engine.Accept(context.Background(), t, "task-1", t.SessionID)
	d.check(err)
	return t
}

// work has the n-th task claimed and started.
func (d *director) work(n int) signalbox.Task { return d.accept(d.claim(d.id(n))) }

// end ends a task in flight that has printed output and answers with it. A chat has
// printed more.
func (d *director) end(t signalbox.Task, reason signalbox.Reason, message, output string) {
	d.t.Helper()
	d.clock.Advance(time.Second)
	result := &signalbox.Result{Output: output, Tail: output, DurationSeconds: 1}
	if output != "" {
		result.Tail += "\n"
	}
	if t.Mode == signalbox.ModeChat || t.Mode == signalbox.ModeBypass {
		result.Tail = "thinking\n" + result.Tail
	}
	_, err := d.Engine.Finish(context.Background(), t, engine.Outcome{Reason: reason, Message: message, Result: result})
	d.check(err)
	d.Runs.End(t.ID)
}

// complete ends the n-th task with an answer.
func (d *director) complete(n int, output string) {
	d.t.Helper()
	t := d.task(n)
	if t.State == signalbox.Pending {
		t = d.work(n)
	}
	d.end(t, signalbox.ReasonCompleted, "completed", output)
}

// spend ends a task whose agent reports costs.
func (d *director) spend(n int, usd float64) {
	d.t.Helper()
	d.FinishTask(d.work(n), signalbox.ReasonCompleted, signalbox.Result{
		Output: "done", InputTokens: 1000, OutputTokens: 50, CostUSD: usd, DurationSeconds: 90, Model: "opus",
	})
}

// changePatch is the patch that change reports for a task.
const changePatch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+\x1b[2Jtwo\ndiff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n"

// change ends a task that changed files in its repository.
func (d *director) change(n, kept int) {
	d.t.Helper()
	kept = min(kept, len(changePatch))
	d.FinishTask(d.work(n), signalbox.ReasonCompleted, signalbox.Result{Output: "done", Changes: &signalbox.Changes{
		Workspace: "worktree", Dir: "/work", Branch: "signalbox/1", Head: strings.Repeat("a", 40), Commits: 1, FilesChanged: 4, Insertions: 1, Deletions: 1,
		Files: []signalbox.ChangedFile{
			{Path: "a", Status: signalbox.FileModified, Insertions: 1, Deletions: 1}, {Path: "c", From: "b", Status: signalbox.FileRenamed}, {Path: "d\x1b[2J", Status: signalbox.FileAdded, Binary: true},
		},
		Patch: changePatch[:kept], PatchBytes: int64(len(changePatch)),
	}})
}

// judge ends a task whose work did not pass its checks.
func (d *director) judge(n int) {
	d.t.Helper()
	one := 1
	d.FinishTask(d.work(n), signalbox.ReasonChecks, signalbox.Result{Output: "done", Checked: &signalbox.Checked{
		State: signalbox.CheckFailed, Rounds: 3, Results: []signalbox.CheckResult{
			{Name: "test", State: signalbox.CheckFailed, ExitCode: &one, Output: "FAIL\n"}, {Name: "lint", State: signalbox.CheckPassed},
		},
	}})
}

// finish ends a working task in the way that the first word of its prompt, or its
// tool's name, says.
func (d *director) finish(t signalbox.Task) {
	ctx := context.Background()
	word, rest := d.words(t)
	switch word {
	case "echo", "queued":
		if t.Mode == signalbox.ModeTool {
			d.answerTool(t.ID, rest)
		}
		d.end(t, signalbox.ReasonCompleted, "completed", rest)
	case "failed":
		d.end(t, signalbox.ReasonExitNonzero, "the command ended with code 2", rest)
	case "timeout":
		d.end(t, signalbox.ReasonRunTimeout, "ran longer than its timeout", "")
	case "limit":
		d.ReportAccount(t.Agent, nil)
		d.Park(t, time.Hour)
	case "cancelled":
		t, err := d.Engine.Cancel(ctx, t.ID, "somebody")
		d.check(err)
		d.end(t, signalbox.ReasonCancelled, "cancelled", "")
	case "lost":
		_, err := d.Engine.Lose(ctx, t, signalbox.ReasonLost, "its agent went silent", false, nil)
		d.check(err)
	}
}

// goOn opens the account that a task is parked at, and completes the task.
func (d *director) goOn(id string) {
	ctx := context.Background()
	_, err := d.Engine.ChangeAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: "coder"})
	d.check(err)
	d.check(d.Engine.OpenGates(ctx))
	d.end(d.accept(d.claim(id)), signalbox.ReasonCompleted, "completed", "went on")
}

// words returns the first word of a task's prompt, and the rest. For a tool task the
// word is the tool's name.
func (d *director) words(t signalbox.Task) (word, rest string) {
	if t.Mode == signalbox.ModeTool {
		return t.Tool, "from the tool"
	}
	c, err := d.Engine.Load(context.Background(), t.ID)
	d.check(err)
	word, rest, _ = strings.Cut(c.Request.Prompt, " ")
	return word, rest
}

// play runs a task in the way that the first word of its prompt says: echo completes with
// the rest as the answer; failed, cancelled, timeout and lost end that way; limit is
// parked, and goes on when a client has read that; hang runs for ever; a task with another
// word stays pending.
func (d *director) play(id string) {
	t, err := d.Store.Task(context.Background(), id)
	d.check(err)
	if word, _ := d.words(t); t.State == signalbox.Pending && slices.Contains(playable, word) {
		d.finish(d.accept(d.claim(id)))
	}
}

var playable = []string{"echo", "failed", "cancelled", "timeout", "lost", "limit", "hang"}

// seen moves tasks along when a client sees them. A task that a client waits for goes on
// after the client has subscribed to its events and then read it, so that the client sees
// every state. On the live stream coder goes down and the agent other is removed; then the
// stream ends, and reconnects are refused.
func (d *director) seen(route string, r *http.Request, written []byte) {
	switch {
	case route == "wait" && d.alone:
		d.play(r.PathValue("id"))
	case route == "task" && bytes.Contains(written, []byte(`"state":"parked"`)) && bytes.Contains(written, []byte(`"prompt":"limit"`)):
		d.goOn(r.PathValue("id"))
	case route == "task" && r.URL.Query().Get("wait") == "" && d.proxy.once(r.PathValue("id")):
		d.play(r.PathValue("id"))
	case route == "events":
		d.proxy.subscribed(r.URL.Query().Get("queue_id"))
	case route == "live" && bytes.Contains(written, []byte("event: snapshot")):
		d.Live.Remove("other")
		_ = d.Engine.RemoveAgent(context.Background(), "other", "somebody")
		a, _ := d.Live.LiveAgent("coder")
		a.Up, a.Message = false, "connection refused"
		d.Live.Set(a)
	case route == "live" && bytes.Contains(written, []byte("connection refused")):
		d.proxy.refuse("live", 403, api.Error{Error: "forbidden", Message: "that was all"})
		d.proxy.endNewest()
	case route == "chat", route == "bypass":
		var told struct {
			api.ChatPosition
			Execution api.ExecutionRef
		}
		name, data, ok := strings.Cut(string(written), "\ndata: ")
		if ok && json.Unmarshal([]byte(data), &told) == nil {
			d.chatted(strings.TrimPrefix(name, "event: "), cmp.Or(told.ID, told.Execution.ID), told.Position)
		}
	}
}

// chatted moves a chat along after its caller got an event. In addition to the words of
// play, queued completes when the tasks ahead of it have completed, late times out, and a
// chat with any other word stays in line.
func (d *director) chatted(event, id string, position int) {
	if event != "accepted" && event != "position" && event != "started" {
		return
	}
	t, err := d.Store.Task(context.Background(), id)
	d.check(err)
	word, _ := d.words(t)
	switch {
	case event == "started":
		d.finish(t)
	case word == "queued" && position > 0:
		d.moveUp()
	case word == "late":
		d.clock.Advance(2 * time.Minute)
		_, err := d.Engine.EndOverdue(context.Background())
		d.check(err)
	case event == "accepted" && slices.Contains(playable, word):
		d.accept(d.claim(id))
	}
}

// close makes the director require a token. Programs that start later send one.
func (d *director) close() {
	d.t.Helper()
	d.token = d.AddToken(identity.NewToken{Name: "admin", Scopes: []signalbox.Scope{signalbox.ScopeAdmin}})
}

// ran has coder complete a task for each run time. Wait times are estimated from these.
func (d *director) ran(times ...time.Duration) {
	for _, took := range times {
		d.submit(engine.NewTask{Prompt: "echo", Agent: "coder"})
		t := d.work(len(d.ids))
		d.clock.Advance(took - time.Second)
		d.end(t, signalbox.ReasonCompleted, "", "")
	}
}

// occupy fills the only slot of coder, and has another task wait for it.
func (d *director) occupy() {
	d.slots = 1
	d.addAgent("coder")
	d.submit(engine.NewTask{Prompt: "first", Agent: "coder"})
	d.work(len(d.ids))
	d.submit(engine.NewTask{Prompt: "second", Agent: "coder"})
}

// moveUp ends the running task, and starts the next one in line.
func (d *director) moveUp() {
	running, err := d.Store.InFlight(context.Background())
	d.check(err)
	for _, t := range running {
		d.end(t, signalbox.ReasonCompleted, "", "")
	}
	d.clock.Advance(time.Second)
	d.accept(d.Claim(d.addAgent("coder")))
}

// busyAgents are the live agents, with as many slots in use as the store says.
type busyAgents struct {
	*apitest.Live
	engine *engine.Engine
}

func (b *busyAgents) Agents() []engine.LiveAgent {
	all := b.Live.Agents()
	slots, _ := b.engine.Read().Slots(context.Background())
	for i := range all {
		for _, s := range slots {
			if s.Agent == all[i].Name {
				all[i].InUse++
			}
		}
	}
	return all
}

func (b *busyAgents) LiveAgent(name string) (engine.LiveAgent, bool) {
	for _, a := range b.Agents() {
		if a.Name == name {
			return a, true
		}
	}
	return engine.LiveAgent{}, false
}

// countedBytes is a source of random bytes. The n-th read for an id ends with n, so that
// the id ends with the two digits of n and a zero.
type countedBytes struct {
	mu   sync.Mutex
	read map[int]int
}

func (c *countedBytes) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil {
		c.read = map[int]int{}
	}
	c.read[len(b)]++
	n := c.read[len(b)]
	clear(b)
	switch {
	case len(b) == 10: // for an id
		b[8], b[9] = byte(n/10), byte(n%10)<<3
	case len(b) > 10: // for a token, whose first ten bytes are its id
		b[9] = byte(n)
	}
	return len(b), nil
}

// withRoom limits how many tasks may wait.
func withRoom(n int) func(*apitest.Options) {
	return func(o *apitest.Options) { o.Engine.MaxSize = n }
}

// pause pauses queues.
func (d *director) pause(queues ...string) {
	d.t.Helper()
	for _, q := range queues {
		d.check(d.Engine.Pause(context.Background(), q, "", "somebody", time.Time{}))
	}
}

// pauses lists the paused queues.
func (d *director) pauses() string {
	list, err := d.Store.Pauses(context.Background())
	d.check(err)
	var queues []string
	for _, p := range list {
		queues = append(queues, strconv.Quote(p.Queue))
	}
	return strings.Join(queues, " ")
}
