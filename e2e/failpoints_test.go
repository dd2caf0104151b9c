package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
	"github.com/signalbox-ai/signalbox/internal/failpoint"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// TestFailpoints: director, agent and scheduler fail at each failpoint once, in
// the middle of their work, and usually crash there. No acknowledged task is
// lost or doubled, and everything ends. A failpoint that never fired fails the
// test. In a long run each action fires at each failpoint.
func TestFailpoints(t *testing.T) {
	if !soak.On() {
		failOnce(t, -1)
		return
	}
	for round := range 5 { // the maximum number of actions of a failpoint
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { failOnce(t, round) })
	}
}

// The scenario contains exactly the existing failpoints.
func TestScenarioNamesEveryFailpoint(t *testing.T) {
	var named []string
	for _, s := range (&failing{}).scenario() {
		named = append(named, s.points()...)
	}
	for _, p := range failpoint.Points() {
		if !slices.Contains(named, p) {
			t.Errorf("the scenario has no step for the failpoint %s", p)
		}
		if len(failpoint.Actions(p)) == 0 {
			t.Errorf("the failpoint %s can do nothing", p)
		}
	}
	for _, p := range named {
		if !slices.Contains(failpoint.Points(), p) {
			t.Errorf("the scenario names %s, which is not a failpoint", p)
		}
	}
}

func failOnce(t *testing.T, round int) {
	f := newFailing(t, rand.New(rand.NewPCG(seedOf(t), 5)), round)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	var steps sync.WaitGroup
	for name, s := range f.scenario() {
		steps.Go(func() { f.until(ctx, name, &s) })
	}
	steps.Wait()
	f.settle()
	fired := f.fired()
	counts := map[failpoint.Action]int{}
	for _, action := range fired {
		counts[action]++
	}
	f.check()
	t.Logf("%d of %d points fired in %s: %v; processes died %d times; %d tasks were acknowledged", len(fired), len(f.armed),
		time.Since(begun).Round(time.Second), counts, f.deaths, len(f.acked))
}

// settle lets everything end, without further failures.
func (f *failing) settle() {
	for _, id := range f.acked {
		f.end(f.c, id)
	}
	if !f.j.await(long, func(events []api.Event) bool {
		last := map[string]bool{}
		for _, e := range events {
			last[e.QueueID] = last[e.QueueID] || signalbox.State(e.State).Terminal()
		}
		return !slices.ContainsFunc(f.acked, func(id string) bool { return !last[id] })
	}) {
		f.t.Error("the journal does not record the end of each task")
	}
	close(f.over)
	f.kept.Wait()
}

// check: each acknowledged task was submitted once and ended once, and the agent
// never ran two tasks in one slot.
func (f *failing) check() {
	submits, ends := map[string]int{}, map[string]int{}
	for _, e := range f.j.all() {
		switch {
		case e.QueueID == "":
		case e.Kind == "submit":
			submits[e.QueueID]++
		case signalbox.State(e.State).Terminal():
			ends[e.QueueID]++
		}
	}
	for _, id := range f.acked {
		if submits[id] != 1 || ends[id] != 1 {
			f.t.Errorf("%s: %d submits, %d ends: %s", id, submits[id], ends[id], kinds(f.j.all(), id))
		}
	}
	lines := slices.DeleteFunc(executions(f.t, f.execLog()), func(l execLine) bool {
		return !slices.Contains(f.acked, l.QueueID) // isolated runs have slots of their own, which the log does not distinguish
	})
	for _, fault := range overlaps(lines, f.agent.died) {
		f.t.Error(fault)
	}
}

// submitted submits a task until it is acknowledged.
func (f *failing) submitted(ctx context.Context, req api.SubmitRequest) (string, error) {
	if req.Agent == "" {
		req.Agent = "demo" // the plain one ends nothing by itself
	}
	got, err := f.c.Submit(ctx, req, client.SubmitOptions{IdempotencyKey: client.NewIdempotencyKey()})
	if err == nil {
		f.ack(got.QueueID)
	}
	return got.QueueID, err
}

// running submits a task for the daemon and waits until it runs.
func (f *failing) running(ctx context.Context, text string) (string, error) {
	id, err := f.submitted(ctx, api.SubmitRequest{Prompt: text, Agent: "demo"})
	testkit.Within(long, func() bool {
		var t api.Task
		if err == nil {
			t, err = f.c.Task(ctx, id)
		}
		if signalbox.State(t.State).Terminal() {
			err = fmt.Errorf("it ended as %s: %s", t.State, t.Message)
		}
		return err != nil || t.State == "working"
	})
	return id, err
}

// scenario has all steps. They run concurrently.
func (f *failing) scenario() map[string]failStep {
	all := f.lives()
	for name, s := range f.rights() {
		all[name] = s
	}
	return all
}

// lives are the steps about tasks.
func (f *failing) lives() map[string]failStep {
	return map[string]failStep{
		"submit": {[]string{"store.Submit", "store.Claim", "store.Apply", "store.Wake", "store.Prune", "store.Note", "agent.offer", "agent.output", "agent.status", "agent.sessions", "answer.offer", "answer.output", "answer.status", "answer.sessions", "reply.submit"}, func(ctx context.Context, n int) error {
			id, err := f.submitted(ctx, api.SubmitRequest{Prompt: fmt.Sprint("sleep 20ms: short ", n)})
			if err == nil {
				_, err = f.c.Wait(ctx, id)
			}
			return err
		}},
		"read": {[]string{"reply.task", "reply.queue", "reply.history"}, func(ctx context.Context, n int) error {
			if page, err := f.c.History(ctx, client.HistoryOptions{}); err == nil && len(page.Tasks) > 0 {
				_, _ = f.c.Task(ctx, page.Tasks[0].QueueID) // only the failpoint matters
			}
			_, err := f.c.Queue(ctx, client.QueueOptions{})
			return err
		}},
		"long": {[]string{"store.Renew", "agent.task", "answer.task"}, func(ctx context.Context, n int) error {
			id, err := f.submitted(ctx, api.SubmitRequest{Prompt: fmt.Sprint("sleep 3s: long ", n)})
			if err == nil {
				_, err = f.c.Wait(ctx, id)
			}
			return err
		}},
		"cancel": {[]string{"agent.cancel", "answer.cancel", "reply.cancel"}, func(ctx context.Context, n int) error {
			id, err := f.running(ctx, fmt.Sprint("sleep 4s: to be cancelled ", n))
			if err == nil {
				_, err = f.c.Cancel(ctx, id)
			}
			return err
		}},
		"retry": {[]string{"reply.retry", "reply.submitTask"}, func(ctx context.Context, n int) error {
			got, err := f.c.SubmitTask(ctx, api.SubmitRequest{Prompt: fmt.Sprint("sleep 1ms: to be retried ", n), Agent: "demo"}, client.SubmitOptions{})
			if err != nil {
				return err
			}
			f.ack(got.QueueID)
			if _, err = f.c.Wait(ctx, got.QueueID); err == nil {
				got, err = f.c.Retry(ctx, got.QueueID, api.RetryRequest{}, client.SubmitOptions{})
			}
			if err == nil {
				f.ack(got.QueueID)
			}
			return err
		}},
		"pause": {[]string{"store.SetPause", "store.Resume", "reply.pause", "reply.resume"}, func(ctx context.Context, _ int) error {
			_, err := f.c.Pause(ctx, api.PauseRequest{Queue: "pool:nobody"})
			if err == nil {
				_, err = f.c.Resume(ctx, "pool:nobody")
			}
			return err
		}},
		"account": {[]string{"store.ChangeAccount"}, func(ctx context.Context, _ int) error {
			_, err := f.c.OpenAccount(ctx, "team") // if it stayed closed, it would block the other steps
			return err
		}},
		"chat": {[]string{"reply.chat", "reply.archiveSession", "store.PutSession"}, func(ctx context.Context, n int) error {
			got, err := f.c.Chat(ctx, "demo", api.ChatRequest{Message: fmt.Sprint("sleep 1ms: talk ", n)}, client.ChatOptions{})
			if err == nil {
				_, err = f.c.ArchiveSession(ctx, got.Response.SessionID)
			}
			return err
		}},
		"bypass": {[]string{"reply.bypass"}, func(ctx context.Context, n int) error {
			_, err := f.c.Bypass(ctx, "demo", api.BypassRequest{Message: fmt.Sprint("sleep 1ms: beside ", n)}, client.ChatOptions{})
			return err
		}},
		"release": {[]string{"store.KeepStale", "reply.releaseLane"}, func(ctx context.Context, n int) error {
			_, err := f.running(ctx, fmt.Sprint("sleep 4s: to be released ", n))
			if err == nil {
				_, err = f.c.ReleaseLane(ctx, "demo")
			}
			return err
		}},
		"clear": {[]string{"reply.clearLane"}, func(ctx context.Context, _ int) error {
			_, err := f.c.ClearLane(ctx, "demo")
			return err
		}},
	}
}

// rights are all other steps.
func (f *failing) rights() map[string]failStep {
	return map[string]failStep{
		"agents": {[]string{"store.PutAgent", "store.RemoveAgent", "reply.registerAgent", "reply.removeAgent", "reply.heartbeat"}, func(ctx context.Context, _ int) error {
			_, err := f.c.RegisterAgent(ctx, api.RegisterAgent{Name: "guest", Kind: "demo", URL: "http://127.0.0.1:9"})
			if err == nil {
				_, err = f.c.Heartbeat(ctx, "guest", api.Heartbeat{State: "idle"})
			}
			if gone := f.c.RemoveAgent(ctx, "guest"); err == nil {
				err = gone
			}
			return err
		}},
		"the agent's own words": {[]string{"home.registerAgent", "home.heartbeat"}, func(ctx context.Context, _ int) error {
			select { // it reports them by itself
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return nil
		}},
		"a standalone scheduler": {[]string{"home.submit"}, func(ctx context.Context, _ int) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.jobs+"/trigger/nightly", nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}},
		"schedules": {[]string{"store.PutSchedule", "store.DeleteSchedule", "reply.createSchedule", "reply.removeSchedule", "reply.triggerSchedule"}, func(ctx context.Context, n int) error {
			name := fmt.Sprint("job-", n)
			_, err := f.c.CreateSchedule(ctx, api.NewSchedule{Name: name, CronExpression: "0 3 * * *", Message: "sleep 1ms: scheduled", AgentName: "demo"})
			if err == nil {
				_, err = f.c.TriggerSchedule(ctx, name)
			}
			if gone := f.c.RemoveSchedule(ctx, name); err == nil {
				err = gone
			}
			return err
		}},
		"tools": {[]string{"tool.call", "reply.callTool", "reply.createToolTask"}, func(ctx context.Context, _ int) error {
			_, err := f.c.CallTool(ctx, "rest__fetch", api.ToolCall{Arguments: json.RawMessage("{}")}, client.ToolOptions{})
			if _, async := f.c.CreateToolTask(ctx, "rest__fetch", api.NewToolTask{Arguments: json.RawMessage("{}")}, client.ToolTaskOptions{}); err == nil {
				err = async
			}
			return err
		}},
		"tokens and users": {[]string{"store.PutToken", "store.PutUser", "store.DeleteUser", "store.AppendAudit", "reply.createToken", "reply.revokeToken", "reply.putUser", "reply.removeUser"}, func(ctx context.Context, n int) error {
			_, err := f.c.PutUser(ctx, "someone", api.PutUser{Role: "user", Password: "a long enough secret"})
			made, minted := f.c.CreateToken(ctx, api.NewToken{Name: fmt.Sprint("t-", n), Scopes: []string{"read"}})
			if minted == nil {
				minted = f.c.RevokeToken(ctx, made.ID)
			}
			gone := f.c.RemoveUser(ctx, "someone")
			for _, e := range []error{err, minted, gone} {
				if e != nil {
					return e
				}
			}
			return nil
		}},
	}
}
