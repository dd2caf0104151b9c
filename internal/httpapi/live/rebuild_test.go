package live_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// After random operations, a view that was refreshed many times has the same entities, totals and
// findings as a new one.
func TestRefreshesEqualARebuild(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newHistory(t, seed).run() })
	}
}

// history runs random operations on a director.
type history struct {
	*apitest.Fixture
	apitest.Clock
	random   *rand.Rand
	tools    *apitest.Tools
	agents   []string
	inFlight []signalbox.Task  // as the agents know them
	fresh    []*httpapi.Server // over the same engine, not refreshed yet
}

const historyRefreshes = 25

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{random: rand.New(rand.NewPCG(seed, 1)), tools: apitest.NewTools(), agents: []string{"ant", "bee", "cat"}}
	h.Fixture = apitest.New(t, apitest.WithClock(&h.Clock), apitest.WithTools(h.tools), func(o *apitest.Options) { o.Engine.MaxSize = 1000 })
	for range historyRefreshes { // now, so that they observe all operations
		d, err := httpapi.New(httpapi.Config{Engine: h.Engine, Runs: h.Runs, Tools: h.tools})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Stop)
		h.fresh = append(h.fresh, d)
	}
	t.Cleanup(h.Server.Stop)
	return h
}

func (h *history) run() {
	for n, fresh := range h.fresh {
		for range 1 + h.random.IntN(12) {
			h.step()
		}
		if err := h.Server.Live().RefreshUnpolled(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		if err := fresh.Live().RefreshUnpolled(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		h.compare(n, fresh)
	}
}

// compare compares the view of the director with that of a fresh one, at refresh n.
func (h *history) compare(n int, fresh *httpapi.Server) {
	h.T.Helper()
	got, want := h.Server.Live().Entities(), fresh.Live().Entities()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			h.T.Errorf("refresh %d: %s is\n%s\nwant\n%s", n, key, got[key], want[key])
		}
		delete(got, key)
	}
	for key, data := range got {
		h.T.Errorf("refresh %d: %s is still there: %s", n, key, data)
	}
	totals, verdict := h.Server.Live().TotalsAndVerdict()
	wantTotals, wantVerdict := fresh.Live().TotalsAndVerdict()
	for _, a := range [][]api.Attention{verdict.Attention, wantVerdict.Attention} {
		for i := range a { // for some kinds it is when the view first found it
			a[i].Since = time.Time{}
		}
		slices.SortFunc(a, func(a, b api.Attention) int {
			return strings.Compare(a.Kind+a.Subject+a.TaskID, b.Kind+b.Subject+b.TaskID)
		})
	}
	if totals != wantTotals || !slices.Equal(verdict.Attention, wantVerdict.Attention) || verdict.OK != wantVerdict.OK {
		h.T.Errorf("refresh %d: %+v %+v\nwant %+v %+v", n, totals, verdict, wantTotals, wantVerdict)
	}
	if h.T.Failed() {
		h.T.FailNow()
	}
}

// pick returns a random element of a list.
func pick[T any](h *history, list ...T) T { return list[h.random.IntN(len(list))] }

// step runs a random operation.
func (h *history) step() {
	ctx := h.T.Context()
	name := pick(h, h.agents...)
	switch h.random.IntN(20) {
	case 0, 1, 2:
		n := engine.NewTask{Prompt: "p", Agent: pick(h, "", "", name), Source: signalbox.SourceAPI}
		if h.random.IntN(2) == 0 {
			n.Source, n.SourceJob = signalbox.SourceScheduler, pick(h, "nightly", "hourly")
		}
		if n.Agent == "" {
			n.Kind = pick(h, "", "demo", "rare")
		}
		if h.random.IntN(5) == 0 {
			n.NotBefore = h.Now().Add(time.Duration(h.random.IntN(100)) * time.Second)
		}
		h.Engine.Submit(ctx, n) // refused if the agent is not known
	case 3, 4:
		if live, ok := h.Live.LiveAgent(name); ok {
			if c, found, err := h.Engine.Claim(ctx, live.Agent, 0); err == nil && found {
				h.inFlight = append(h.inFlight, c.Task)
			}
		}
	case 5, 6, 7:
		h.reply()
	case 8:
		h.cancelOne()
	case 9:
		if queue := pick(h, "", "work", "agent:"+name, "pool:demo"); h.random.IntN(2) == 0 {
			h.Engine.Resume(ctx, queue, "a test")
		} else {
			h.Engine.Pause(ctx, queue, "why", "a test", pick(h, time.Time{}, h.Now().Add(time.Minute)))
		}
	case 10, 11:
		if _, ok := h.Live.LiveAgent(name); ok {
			changeAgent(h.Fixture, name, h.changeStatus)
		}
	case 12:
		h.putOrRemove(name)
	case 13:
		h.useTools()
	case 14:
		h.Engine.ReleaseLane(ctx, name, "a test")
	case 15:
		h.Advance(time.Duration(pick(h, 1, 7, 65, 700)) * time.Second)
	case 16, 17:
		h.useAccounts(name)
	case 18:
		if err := h.Engine.OpenGates(ctx); err != nil {
			h.T.Fatal(err)
		}
	case 19:
		if ended, err := h.Engine.Read().History(ctx, store.HistoryQuery{Limit: 5}); err != nil {
			h.T.Fatal(err)
		} else if len(ended.Tasks) > 0 {
			h.Engine.Retry(ctx, pick(h, ended.Tasks...).ID, engine.RetryEdit{Source: signalbox.SourceAPI})
		}
	}
}

// reply has an agent accept, end, refuse or lose one of its tasks.
func (h *history) reply() {
	if len(h.inFlight) == 0 {
		return
	}
	ctx, i := h.T.Context(), h.random.IntN(len(h.inFlight))
	t, err := h.inFlight[i], error(nil)
	done := true // it is no longer in flight
	switch h.random.IntN(6) {
	case 5:
		h.Engine.Finish(ctx, t, engine.Outcome{
			Reason: signalbox.ReasonAgentError, SessionID: pick(h, "", "talk-"+t.Agent), Account: accounts.News{Name: pick(h, "max", "pro")},
			Limit: &accounts.Limit{Kind: pick(h, accounts.Usage, accounts.Overloaded, accounts.Refused), ResetsAt: h.Now().Add(2 * time.Minute), Source: "event", Text: "used up"},
		})
	case 0, 1:
		t, err = h.Engine.Accept(ctx, t, "x", "")
		done = err != nil
	case 2:
		h.Engine.Finish(ctx, t, engine.Outcome{Reason: pick(h, signalbox.ReasonCompleted, signalbox.ReasonAgentError), Message: pick(h, "no disk", "no net"), Result: &signalbox.Result{}})
	case 3:
		h.Engine.Refuse(ctx, t, "not now")
	case 4:
		h.Engine.Lose(ctx, t, signalbox.ReasonLost, "it went silent", h.random.IntN(2) == 0, nil)
	}
	if done {
		h.inFlight = slices.Delete(h.inFlight, i, i+1)
	} else {
		h.inFlight[i] = t
	}
}

// useAccounts lets an agent report its account, or a person open or close one.
func (h *history) useAccounts(agent string) {
	ctx, name := h.T.Context(), pick(h, "max", "pro")
	switch h.random.IntN(3) {
	case 0:
		if _, ok := h.Live.LiveAgent(agent); ok {
			changeAgent(h.Fixture, agent, func(a *engine.LiveAgent) { a.Account = name })
		}
		windows := []signalbox.AccountWindow{{Name: "five_hour", UsedPercent: float64(h.random.IntN(100))}}
		if err := h.Engine.ReportAccount(ctx, agent, accounts.News{Name: name, Windows: windows, AnsweredAt: h.Now()}); err != nil {
			h.T.Fatal(err)
		}
	case 1:
		h.Engine.SetAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountOpened, Account: name, Source: "ann"}) // the account may be unknown
	case 2:
		h.Engine.SetAccount(ctx, signalbox.AccountEvent{Kind: signalbox.AccountClosedByPerson, Account: name, Source: "ann", Until: pick(h, time.Time{}, h.Now().Add(time.Minute))})
	}
}

// cancelOne cancels a task that waits or is in flight.
func (h *history) cancelOne() {
	tasks, err := h.Engine.Read().InFlight(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	waiting, err := h.Engine.Read().Snapshot(h.T.Context(), 3)
	if err != nil {
		h.T.Fatal(err)
	}
	for _, head := range waiting.Heads {
		tasks = append(tasks, head...)
	}
	if len(tasks) > 0 {
		h.Engine.Cancel(h.T.Context(), tasks[h.random.IntN(len(tasks))].ID, "a test")
	}
}

// changeStatus changes what the dispatcher knows of an agent.
func (h *history) changeStatus(a *engine.LiveAgent) {
	switch h.random.IntN(7) {
	case 0:
		a.Up, a.Message = !a.Up, "connection refused"
	case 1:
		a.LastHeard = h.Now()
	case 2:
		a.LastProgress, a.Fencing = h.Now(), true
	case 3:
		a.Closed = pick(h, nil, &signalbox.ClosedGate{Gate: signalbox.Gate{Kind: signalbox.GateAgent, Name: a.Name, Text: "no disk", Until: h.Now().Add(time.Minute)}, Failures: 3, Since: h.Now()})
	case 4:
		a.Notes = nil
		if len(h.inFlight) > 0 {
			a.Notes = map[string]string{pick(h, h.inFlight...).ID: "overloaded"}
		}
	case 5:
		a.Slots = 1 + h.random.IntN(3)
	case 6:
		a.Held = !a.Held
	}
}

// putOrRemove adds, changes or removes an agent.
func (h *history) putOrRemove(name string) {
	if h.random.IntN(4) == 0 {
		if h.Engine.RemoveAgent(h.T.Context(), name, "a test") == nil {
			h.Live.Remove(name)
		}
		return
	}
	a, err := h.Engine.PutAgent(h.T.Context(), signalbox.Agent{
		Name: name, Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1 + h.random.IntN(2), Version: pick(h, "1", "2"), Source: pick(h, signalbox.AgentRegistered, signalbox.AgentFromConfig),
	}, "")
	if err != nil {
		h.T.Fatal(err)
	}
	h.Live.Set(engine.LiveAgent{Agent: a, Up: true, LastHeard: h.Now()})
}

// useTools replaces the tool queues and the calls in them.
func (h *history) useTools() {
	queues := []toolqueue.Status{{Name: "default", Concurrent: 2}}
	if h.random.IntN(3) > 0 {
		queues = append(queues, toolqueue.Status{Name: "browser", Concurrent: 1})
	}
	for i := range queues {
		for n := range min(len(h.inFlight), h.random.IntN(3)) {
			t, q := pick(h, h.inFlight...), &queues[i]
			if n == 0 {
				q.InUse, q.Holders = 1, []toolqueue.Holder{{Session: "s", Agent: t.Agent, Tool: "a", Execution: t.ID, Since: h.Now()}}
			} else {
				q.Depth, q.Waiters = 1, []toolqueue.Waiter{{Session: "s", Agent: t.Agent, Tool: "b", Execution: t.ID, Since: h.Now(), Position: 1}}
			}
		}
	}
	h.tools.Mu.Lock()
	defer h.tools.Mu.Unlock()
	h.tools.Statuses = queues
}
