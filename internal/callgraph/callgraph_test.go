package callgraph_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/signalbox-ai/signalbox/internal/callgraph"
)

// graph is a graph built by hand.
type graph struct {
	servers map[string][]string
	slots   map[string]int
	runs    []callgraph.Run
	calls   map[string][]callgraph.Call
}

func (g *graph) Servers(queue string) []string            { return g.servers[queue] }
func (g *graph) Slots(agent string) (int, bool)           { n, known := g.slots[agent]; return n, known }
func (g *graph) Calls(r string) ([]callgraph.Call, error) { return g.calls[r], nil }

func (g *graph) Holders(agent string) (list []callgraph.Run) {
	for _, r := range g.runs {
		if r.Agent == agent {
			list = append(list, r)
		}
	}
	return list
}

func (g *graph) Turns(session string) (list []callgraph.Run) {
	for _, r := range g.runs {
		if session != "" && r.Session == session {
			list = append(list, r)
		}
	}
	return list
}

// walk implements the definition of stuck literally: it tries every path, which
// takes factorial time.
type walk struct {
	*graph
	caller string
	met    map[string]bool
}

func (w *walk) line(c callgraph.Call) bool {
	agents := w.Servers(c.Queue)
	for _, a := range agents {
		if !w.agent(a, c.Session) {
			return false
		}
	}
	return len(agents) > 0
}

func (w *walk) agent(name, session string) bool {
	holders := w.Holders(name)
	for _, h := range holders {
		if session != "" && h.Session == session && w.run(h.ID) {
			return true
		}
	}
	if slots, known := w.Slots(name); !known || len(holders) < slots || len(holders) == 0 {
		return false
	}
	for _, h := range holders {
		if !w.run(h.ID) {
			return false
		}
	}
	return true
}

func (w *walk) run(id string) bool {
	if id == w.caller || w.met[id] {
		return true
	}
	w.met[id] = true
	defer delete(w.met, id)
	for _, c := range w.calls[id] {
		if c.Agent != "" && w.run(c.ID) || c.Agent == "" && w.line(c) {
			return true
		}
	}
	return false
}

// TestCycleMatchesTheDefinition compares the result with the definition on
// small graphs of all shapes.
func TestCycleMatchesTheDefinition(t *testing.T) {
	cycles, free := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		agents := rapid.IntRange(1, 4).Draw(t, "agents")
		g := &graph{servers: map[string][]string{}, slots: map[string]int{}, calls: map[string][]callgraph.Call{}}
		sessions := []string{"", "", "s", "r"}
		for i := range agents {
			name := fmt.Sprint("a", i)
			g.servers["agent:"+name] = []string{name}
			if rapid.IntRange(0, 3).Draw(t, "serves") > 0 {
				g.servers["work"] = append(g.servers["work"], name)
			}
			holds := rapid.IntRange(0, 2).Draw(t, "holds")
			if rapid.IntRange(0, 7).Draw(t, "known") > 0 {
				g.slots[name] = max(1, holds+rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "free"))
			}
			for j := range holds {
				g.runs = append(g.runs, callgraph.Run{ID: fmt.Sprint(name, "-", j), Agent: name, Session: rapid.SampledFrom(sessions).Draw(t, "session")})
			}
		}
		lines := []string{"work"}
		for i := range agents {
			lines = append(lines, fmt.Sprint("agent:a", i))
		}
		wait := func() callgraph.Call {
			return callgraph.Call{ID: "w", Queue: rapid.SampledFrom(lines).Draw(t, "queue"), Session: rapid.SampledFrom(sessions).Draw(t, "of")}
		}
		for _, r := range g.runs {
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				c := wait()
				if rapid.IntRange(0, 3).Draw(t, "begun") == 0 {
					of := rapid.SampledFrom(g.runs).Draw(t, "run")
					c = callgraph.Call{ID: of.ID, Agent: of.Agent, Session: of.Session}
				}
				g.calls[r.ID] = append(g.calls[r.ID], c)
			}
		}
		caller := "elsewhere"
		if len(g.runs) > 0 {
			caller = rapid.SampledFrom(g.runs).Draw(t, "caller").ID
		}
		call := wait()
		path, err := callgraph.FindCycle(g, caller, call)
		if err != nil {
			t.Fatal(err)
		}
		want := (&walk{g, caller, map[string]bool{}}).line(call)
		if (path != nil) != want {
			t.Fatalf("the path is %v; stuck by the definition: %v\n%+v\ncaller %s calls %+v", path, want, g, caller, call)
		}
		if want {
			cycles++
		} else {
			free++
		}
	})
	if cycles == 0 || free == 0 {
		t.Errorf("%d graphs have a cycle, %d have none", cycles, free)
	}
}

// A cycle among other executions also blocks a caller that waits for it. It
// may be reached in two ways: through the turns of a conversation and through
// the slots of its agent.
func TestCycleAmongOthers(t *testing.T) {
	r := []callgraph.Run{{ID: "r0", Agent: "a", Session: "s"}, {ID: "r1", Agent: "a", Session: "s"}}
	g := &graph{
		servers: map[string][]string{"agent:a": {"a"}}, slots: map[string]int{"a": 2}, runs: r,
		calls: map[string][]callgraph.Call{
			"r0": {{ID: "r1", Agent: "a", Session: "s"}},
			"r1": {{ID: "r0", Agent: "a", Session: "s"}},
		},
	}
	path, err := callgraph.FindCycle(g, "elsewhere", callgraph.Call{ID: "w", Queue: "agent:a", Session: "s"})
	if err != nil || len(path) == 0 {
		t.Errorf("the path is %v: %v", path, err)
	}
}

// crowd is n agents with one slot each. All wait for all, except for the last
// one, which is the caller.
func crowd(n int) *graph {
	g := &graph{servers: map[string][]string{}, slots: map[string]int{}, calls: map[string][]callgraph.Call{}}
	for i := range n {
		name := fmt.Sprint("a", i)
		g.servers["work"] = append(g.servers["work"], name)
		g.slots[name] = 1
		g.runs = append(g.runs, callgraph.Run{ID: "run-" + name, Agent: name})
		if i < n-1 {
			g.calls["run-"+name] = []callgraph.Call{{ID: "call-" + name, Queue: "work"}}
		}
	}
	return g
}

// indexed finds the holders of an agent without a scan.
type indexed struct {
	*graph
	at map[string][]callgraph.Run
}

func (g indexed) Holders(agent string) []callgraph.Run { return g.at[agent] }

func index(g *graph) indexed {
	x := indexed{g, map[string][]callgraph.Run{}}
	for _, r := range g.runs {
		x.at[r.Agent] = append(x.at[r.Agent], r)
	}
	return x
}

func TestCircleTakesLinearTime(t *testing.T) {
	const agents = 100_000
	g := index(crowd(agents))
	begun := time.Now()
	path, err := callgraph.FindCycle(g, fmt.Sprint("run-a", agents-1), callgraph.Call{Queue: "work"})
	took := time.Since(begun)
	if err != nil || len(path) != 1 {
		t.Fatalf("the path is %v: %v", path, err)
	}
	if took > 10*time.Second { // in quadratic time it takes minutes
		t.Errorf("%d agents took %s", agents, took)
	}
}

func BenchmarkCircle(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint("agents=", n), func(b *testing.B) {
			g := index(crowd(n))
			for b.Loop() {
				if path, err := callgraph.FindCycle(g, fmt.Sprint("run-a", n-1), callgraph.Call{Queue: "work"}); path == nil || err != nil {
					b.Fatal(path, err)
				}
			}
		})
	}
}
