package pull_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

const secretValue = "sk-verysecretvalue"

func quotesSecret() *api.AgentTaskStatus {
	return &api.AgentTaskStatus{State: "failed", Error: &api.AgentError{Type: "agent_error", Message: "401 for key " + secretValue}}
}

// voidRun runs a task with a secret in its env, which is released before it ends; between may restart the
// director. It returns what is stored of the late report.
func voidRun(t *testing.T, between func(*fixture) *fixture) string {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"API_KEY": secretValue}})
	run := a.begins()
	a.accepts(run)
	_, err := h.engine.ReleaseLane(t.Context(), "far", "anna")
	h.must(err)
	h = between(h)
	a.h = h
	f := quotesSecret()
	f.TaskID = "task-of-" + id
	_, err = a.report(id, api.PullReport{Fence: run.Fence, Finished: f})
	refusedWith(t, err, signalbox.CodeStaleFence)
	stales, err := h.store.Stales(t.Context(), id)
	h.must(err)
	if len(stales) != 1 {
		t.Fatalf("%d words of void runs are kept", len(stales))
	}
	return stales[0].Message
}

// TestLateReportIsMasked: regression: a report after the task had ended and its env was erased was stored in
// clear.
func TestLateReportIsMasked(t *testing.T) {
	if got := voidRun(t, func(h *fixture) *fixture { return h }); got != "401 for key ***" {
		t.Errorf("it is kept as %q", got)
	}
}

// TestUnmaskableLateReportIsWithheld: a director that never knew the env cannot know what to hide.
func TestUnmaskableLateReportIsWithheld(t *testing.T) {
	got := voidRun(t, func(h *fixture) *fixture { return newFixtureOver(t, h.store, noTick) })
	if strings.Contains(got, secretValue) || !strings.Contains(got, "withheld: the task had an env") {
		t.Errorf("it is kept as %q", got)
	}
}

// noRequests is a store that fails to read requests.
type noRequests struct{ store.Store }

func (noRequests) Request(context.Context, string) (signalbox.Request, error) {
	return signalbox.Request{}, signalbox.Errorf(signalbox.CodeStoreFailed, "%v", errors.New("no such page"))
}

// TestLateReportIsWithheldIfStoreFails: after an error the report must not be stored in clear.
func TestLateReportIsWithheldIfStoreFails(t *testing.T) {
	s := memory.New(memory.Options{ID: "rig"})
	h := newFixtureOver(t, s, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"API_KEY": secretValue}})
	run := a.begins()
	a.accepts(run)
	a.h = newFixtureOver(t, noRequests{s}, noTick) // a director that did not offer it
	f := quotesSecret()
	f.TaskID = "task-of-" + id
	_, err := a.report(id, api.PullReport{Fence: run.Fence, Finished: f})
	h.must(err)
	got, err := s.Task(t.Context(), id)
	h.must(err)
	if got.State != signalbox.Failed || strings.Contains(got.Message, secretValue) || !strings.Contains(got.Message, "withheld") {
		t.Errorf("it is %s: %q", got.State, got.Message)
	}
}

// TestTroubleOfRunOfferedByOtherDirector: the problem is withheld until the task's env is known here, and
// then shown with the values masked.
func TestTroubleOfRunOfferedByOtherDirector(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"API_KEY": secretValue}})
	run := a.begins()
	a.accepts(run)
	h = newFixtureOver(t, h.store, noTick)
	a.h = h
	note := "401 for key " + secretValue
	told := func(want string) {
		t.Helper()
		if live, _ := h.lanes.LiveAgent("far"); !strings.HasPrefix(live.Notes[id], want) || strings.Contains(live.Notes[id], secretValue) {
			t.Errorf("%q is told, want %q", live.Notes[id], want)
		}
	}
	_, err := a.report(id, api.PullReport{Fence: run.Fence, Note: note, Output: &api.PullOutput{Text: "x", Next: 1}})
	h.must(err)
	told("withheld: the task had an env")
	a.c.Runs[0].Note = note
	a.claim(0)
	told("401 for key ***")
}

// readRequests counts reads of requests.
type readRequests struct {
	store.Store
	n atomic.Int64
}

func (s *readRequests) Request(ctx context.Context, id string) (signalbox.Request, error) {
	s.n.Add(1)
	return s.Store.Request(ctx, id)
}

// TestMaskIsReadOnce: regression: an unknown run was read, with its prompt, for each late report.
func TestMaskIsReadOnce(t *testing.T) {
	h := newFixture(t, noTick)
	a := h.agent("far", 1)
	id := h.submit(engine.NewTask{Env: map[string]string{"API_KEY": secretValue}})
	run := a.begins()
	a.accepts(run)
	_, err := h.engine.ReleaseLane(t.Context(), "far", "anna")
	h.must(err)
	s := &readRequests{Store: h.store}
	a.h = newFixtureOver(t, s, noTick)
	for range 3 {
		_, err := a.report(id, api.PullReport{Fence: run.Fence, Finished: quotesSecret()})
		refusedWith(t, err, signalbox.CodeStaleFence)
	}
	if n := s.n.Load(); n != 1 {
		t.Errorf("it was read %d times", n)
	}
}
