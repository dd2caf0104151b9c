package push_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	. "github.com/signalbox-ai/signalbox/internal/execution/push/agenttest"
)

const shop = "0123456789abcdef"

func resources(h *fixture, eo *engine.Options) {
	eo.Resources = map[string]signalbox.Resource{
		"db":   {Capacity: 1},
		"port": {Capacity: 3, Values: []string{"3001", "3002", "3003"}, Env: "PORT"},
	}
}

// untilInFolder waits until the agents have reported their folder.
func (h *fixture) untilInFolder(agents ...string) {
	h.t.Helper()
	for _, name := range agents {
		h.untilUp(name)
		h.await(name+" has told of its folder", func() bool { return h.live(name).Folder != "" })
	}
}

// running waits until one of these agents runs a task, and returns both. No other run may be in flight.
func (h *fixture) running(agents ...*Agent) (*Agent, Execution) {
	h.t.Helper()
	var at *Agent
	var run Execution
	h.await("a run", func() bool {
		for _, a := range agents {
			for _, e := range a.Executions() {
				if e.End == 0 {
					at, run = a, e
					return true
				}
			}
		}
		return false
	})
	h.untilState(run.QueueID, signalbox.Working)
	flying, err := h.store.InFlight(h.t.Context())
	if err != nil || len(flying) != 1 {
		h.t.Fatalf("in flight are %v (%v), want %s alone", flying, err, run.QueueID)
	}
	return at, run
}

// One run at a time works in a folder, of whichever agent; when it has ended the next one starts.
func TestOneRunAtATimeWorksInAFolder(t *testing.T) {
	h := newFixture(t, noTick)
	a, b := h.agent(Options{Name: "a", Folder: shop, Slots: 2}), h.agent(Options{Name: "b", Folder: shop})
	h.start()
	h.untilInFolder("a", "b")
	ids := []string{h.submit(engine.NewTask{Agent: "b"})}
	for range 5 {
		ids = append(ids, h.submit(engine.NewTask{}))
	}
	for range ids {
		at, run := h.running(a, b)
		at.Finish(run.QueueID, End{})
		h.ends(run.QueueID, signalbox.ReasonCompleted)
	}
	if n := started(a, b); n != len(ids) {
		t.Errorf("%d runs were started for %d tasks", n, len(ids))
	}
}

func TestWhyNamesWhoWorksInTheFolder(t *testing.T) {
	h := newFixture(t)
	a := h.agent(Options{Name: "a", Folder: shop})
	h.agent(Options{Name: "b", Folder: shop})
	h.start()
	h.untilInFolder("a", "b")
	first := h.submit(engine.NewTask{Agent: "a"})
	a.AwaitStart(1)
	w, err := h.engine.Why(t.Context(), h.submit(engine.NewTask{Agent: "b"}))
	if want := "It waits: a works in /src/shop: " + first + "."; err != nil || w.Summary != want {
		t.Errorf("why says %q (%v), want %q", w.Summary, err, want)
	}
}

// A task that woke agents of a folder goes to an agent elsewhere while the folder is in use.
func TestAgentsElsewhereTakeWhatWaitsForAFolder(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent(Options{Name: "a", Folder: shop})
	for _, name := range []string{"b", "c", "d"} {
		h.agent(Options{Name: name, Folder: shop})
	}
	h.agent(Options{Name: "other", Folder: "fedcba9876543210", Auto: true})
	h.start()
	h.untilInFolder("a", "b", "c", "d", "other")
	h.submit(engine.NewTask{Agent: "a"})
	a.AwaitStart(1)
	for range 10 {
		h.ends(h.submit(engine.NewTask{}), signalbox.ReasonCompleted)
	}
}

// What an agent of one director holds makes another director's agent wait until it is given back.
func TestAFolderIsSharedByDirectors(t *testing.T) {
	s := newFixturePair(t, noTick)
	a, b := s.agent(Options{Name: "a", Folder: shop}), s.agent(Options{Name: "b", Folder: shop})
	s.goOver(s.a, s.b, "b")
	s.b.untilInFolder("b")
	for range 3 {
		first, second := s.a.submit(engine.NewTask{Agent: "a"}), s.b.submit(engine.NewTask{Agent: "b"})
		for range 2 {
			at, run := s.a.running(a, b)
			at.Finish(run.QueueID, End{})
			s.a.ends(run.QueueID, signalbox.ReasonCompleted)
		}
		s.a.ends(first, signalbox.ReasonCompleted)
		s.a.ends(second, signalbox.ReasonCompleted)
	}
}

// A run is told what it holds, even by a director that takes it over.
func TestARunIsToldWhatItHolds(t *testing.T) {
	h := newFixture(t, resources)
	a := h.agent(Options{Name: "a", Slots: 3})
	h.start()
	h.untilUp("a")
	needs := map[string]int{"db": 1, "port": 2}
	want := []api.AgentHold{
		{Resource: "db", N: 1, Env: "SIGNALBOX_RESOURCE_DB"}, {Resource: "port", N: 2, Values: []string{"3001", "3002"}, Env: "PORT"},
	}
	first := h.submit(engine.NewTask{Needs: needs})
	if run := a.AwaitStart(1); !reflect.DeepEqual(run.Holds, want) {
		t.Errorf("the run was told that it holds %+v, want %+v", run.Holds, want)
	}
	second := h.submit(engine.NewTask{Needs: map[string]int{"port": 2}})
	w, err := h.engine.Why(t.Context(), second)
	if want := "It waits: It needs 2 of port, and 1 of 3 is free."; err != nil || w.Summary != want {
		t.Errorf("why says %q (%v), want %q", w.Summary, err, want)
	}
	a.Script(Offer, Hang()) // the claim is not published before the director is gone
	a.Finish(first, End{})
	h.until(second, "claimed", func(t signalbox.Task) bool { return t.State == signalbox.Dispatching })
	a.AwaitRequest(Offer, 2)
	h.restart()
	h.untilState(second, signalbox.Working)
	if run := a.AwaitStart(2); run.QueueID != second || len(run.Holds) != 1 || !slices.Equal(run.Holds[0].Values, []string{"3001", "3002"}) {
		t.Errorf("the run of %s was told that it holds %+v", run.QueueID, run.Holds)
	}
}

func TestNeedsAreChecked(t *testing.T) {
	h := newFixture(t, resources)
	for name, needs := range map[string]map[string]int{
		`there is no resource "gpu": the director's configuration lists db, port`: {"gpu": 1},
		"needs.db is 2: want 1 to 1":       {"db": 2},
		"needs.port is 0":                  {"port": 0},
		"needs.port is -1":                 {"port": -1},
		`there is no resource "land:a:b"`:  {"land:a:b": 1},
		`there is no resource "folder:ab"`: {"folder:ab": 1},
	} {
		_, err := h.engine.Submit(t.Context(), engine.NewTask{Prompt: "x", Needs: needs})
		if signalbox.CodeOf(err) != signalbox.CodeValidation || signalbox.FieldOf(err) != "needs" || !strings.Contains(err.Error(), name) {
			t.Errorf("needs %v: %v, want %q", needs, err, name)
		}
	}
}
