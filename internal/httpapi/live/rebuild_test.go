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
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/toolqueue"
)

// Whatever happens, what was made anew piece by piece is what a director shows that sees
// everything for the first time.
func TestLiveShowsWhatARebuildShows(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newHistory(t, seed).run() })
	}
}

// history is a random one.
type history struct {
	*apitest.Fixture
	apitest.Clock
	random *rand.Rand
	tools  *apitest.Tools
	names  []string
	flying []signalbox.Task
	anew   []*httpapi.Server // that have not looked yet
}

const historyLooks = 25

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{random: rand.New(rand.NewPCG(seed, 1)), tools: apitest.NewTools(), names: []string{"ant", "bee", "cat"}}
	h.Fixture = apitest.New(t, apitest.WithClock(&h.Clock), apitest.WithTools(h.tools), func(o *apitest.Options) { o.Engine.MaxSize = 1000 })
	for range historyLooks { // from the beginning: they see what is announced
		d, err := httpapi.New(httpapi.Config{Engine: h.Engine, Runs: h.Runs, Tools: h.tools})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Stop)
		h.anew = append(h.anew, d)
	}
	t.Cleanup(h.Server.Stop)
	return h
}

func (h *history) run() {
	for n, anew := range h.anew {
		for range 1 + h.random.IntN(12) {
			h.step()
		}
		if err := h.Server.Live().RefreshExactly(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		if err := anew.Live().RefreshExactly(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		h.compare(n, anew)
	}
}

func (h *history) compare(n int, anew *httpapi.Server) {
	h.T.Helper()
	got, want := h.Server.Live().Shown(), anew.Live().Shown()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			h.T.Errorf("look %d: %s is shown as\n%s\nwant\n%s", n, key, got[key], want[key])
		}
		delete(got, key)
	}
	for key, data := range got {
		h.T.Errorf("look %d: %s is still shown: %s", n, key, data)
	}
	totals, verdict := h.Server.Live().Figures()
	wantTotals, wantVerdict := anew.Live().Figures()
	for _, a := range [][]api.Attention{verdict.Attention, wantVerdict.Attention} {
		for i := range a { // which says when it was first seen
			a[i].Since = time.Time{}
		}
		slices.SortFunc(a, func(a, b api.Attention) int {
			return strings.Compare(a.Kind+a.Subject+a.TaskID, b.Kind+b.Subject+b.TaskID)
		})
	}
	if totals != wantTotals || !slices.Equal(verdict.Attention, wantVerdict.Attention) || verdict.OK != wantVerdict.OK {
		h.T.Errorf("look %d: %+v %+v\nwant %+v %+v", n, totals, verdict, wantTotals, wantVerdict)
	}
	if h.T.Failed() {
		h.T.FailNow()
	}
}

// one is any of a list.
func one[T any](h *history, list ...T) T { return list[h.random.IntN(len(list))] }

// step does something.
func (h *history) step() {
	ctx := h.T.Context()
	name := one(h, h.names...)
	switch h.random.IntN(16) {
	case 0, 1, 2:
		n := engine.NewTask{Prompt: "p", Agent: one(h, "", "", name), Source: signalbox.SourceAPI}
		if n.Agent == "" {
			n.Kind = one(h, "", "demo", "rare")
		}
		if h.random.IntN(5) == 0 {
			n.NotBefore = h.Now().Add(time.Duration(h.random.IntN(100)) * time.Second)
		}
		h.Engine.Submit(ctx, n) // refused where the agent is not known
	case 3, 4:
		if live, ok := h.Live.LiveAgent(name); ok {
			if c, found, err := h.Engine.Claim(ctx, live.Agent, 0); err == nil && found {
				h.flying = append(h.flying, c.Task)
			}
		}
	case 5, 6, 7:
		h.answer()
	case 8:
		h.cancelSome()
	case 9:
		if queue := one(h, "", "work", "agent:"+name, "pool:demo"); h.random.IntN(2) == 0 {
			h.Engine.Resume(ctx, queue, "a test")
		} else {
			h.Engine.Pause(ctx, queue, "why", "a test", one(h, time.Time{}, h.Now().Add(time.Minute)))
		}
	case 10, 11:
		if _, ok := h.Live.LiveAgent(name); ok {
			changeAgent(h.Fixture, name, h.change)
		}
	case 12:
		h.putOrRemove(name)
	case 13:
		h.useTools()
	case 14:
		h.Engine.ReleaseLane(ctx, name, "a test")
	case 15:
		h.Advance(time.Duration(one(h, 1, 7, 65, 700)) * time.Second)
	}
}

// answer is something that an agent says of its task.
func (h *history) answer() {
	if len(h.flying) == 0 {
		return
	}
	ctx, i := h.T.Context(), h.random.IntN(len(h.flying))
	t, err := h.flying[i], error(nil)
	left := true
	switch h.random.IntN(5) {
	case 0, 1:
		t, err = h.Engine.Accept(ctx, t, "x", "")
		left = err != nil
	case 2:
		h.Engine.Finish(ctx, t, engine.Outcome{Reason: one(h, signalbox.ReasonCompleted, signalbox.ReasonAgentError), Result: &signalbox.Result{}})
	case 3:
		h.Engine.Refuse(ctx, t, "not now")
	case 4:
		h.Engine.Lose(ctx, t, signalbox.ReasonLost, "it went silent", h.random.IntN(2) == 0, nil)
	}
	if left {
		h.flying = slices.Delete(h.flying, i, i+1)
	} else {
		h.flying[i] = t
	}
}

func (h *history) cancelSome() {
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

// change is what an agent may say of itself.
func (h *history) change(a *engine.LiveAgent) {
	switch h.random.IntN(7) {
	case 0:
		a.Up, a.Message = !a.Up, "connection refused"
	case 1:
		a.LastHeard = h.Now()
	case 2:
		a.LastProgress, a.Fencing = h.Now(), true
	case 3:
		a.Closed = one(h, nil, &engine.AgentClosed{Reason: "no disk", Failures: 3, Since: h.Now(), RetryAt: h.Now().Add(time.Minute)})
	case 4:
		a.Notes = nil
		if len(h.flying) > 0 {
			a.Notes = map[string]string{one(h, h.flying...).ID: "overloaded"}
		}
	case 5:
		a.Slots = 1 + h.random.IntN(3)
	case 6:
		a.Held = !a.Held
	}
}

// putOrRemove has an agent come, change or go.
func (h *history) putOrRemove(name string) {
	if h.random.IntN(4) == 0 {
		if h.Engine.RemoveAgent(h.T.Context(), name, "a test") == nil {
			h.Live.Remove(name)
		}
		return
	}
	a, err := h.Engine.PutAgent(h.T.Context(), signalbox.Agent{
		Name: name, Kind: "demo", URL: "http://127.0.0.1:9000", Slots: 1 + h.random.IntN(2), Version: one(h, "1", "2"), Source: one(h, signalbox.AgentRegistered, signalbox.AgentFromConfig),
	}, "")
	if err != nil {
		h.T.Fatal(err)
	}
	h.Live.Set(engine.LiveAgent{Agent: a, Up: true, LastHeard: h.Now()})
}

// useTools has calls of tools begin and end.
func (h *history) useTools() {
	queues := []toolqueue.Status{{Name: "default", Concurrent: 2}}
	if h.random.IntN(3) > 0 {
		queues = append(queues, toolqueue.Status{Name: "browser", Concurrent: 1})
	}
	for i := range queues {
		for n := range min(len(h.flying), h.random.IntN(3)) {
			t, q := one(h, h.flying...), &queues[i]
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
