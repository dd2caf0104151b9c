package landing_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/landing"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

var coder = signalbox.Agent{Name: "coder", Kind: "fake", URL: "http://127.0.0.1:1", Slots: 1, Fencing: true, Source: signalbox.AgentFromConfig}

// fixture is a director with the agent coder, whose runs a test plays.
type fixture struct {
	*testing.T
	*engine.Engine
	store  store.Store
	driver *landing.Driver
	mu     sync.Mutex
	now    time.Time
	plain  bool // the agent does not support landing
}

func (f *fixture) Agents() []engine.LiveAgent {
	return []engine.LiveAgent{{Agent: coder, Up: true, Landing: !f.plain, IsolatedSlots: 4}}
}

func (f *fixture) LiveAgent(name string) (engine.LiveAgent, bool) {
	return f.Agents()[0], name == coder.Name
}

func (f *fixture) time() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) passes(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func newFixture(t *testing.T, wrap func(store.Store) store.Store) *fixture {
	t.Helper()
	sealer, err := seal.Load(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, store: memory.New(memory.Options{}), now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	t.Cleanup(func() { _ = f.store.Close() })
	f.Engine = engine.New(f.store, engine.Options{Sealer: sealer, Now: f.time})
	f.SetLive(f)
	written := f.store
	if wrap != nil {
		written = wrap(f.store)
	}
	f.driver = landing.New(written, f.Engine, 2, slog.New(slog.DiscardHandler))
	if _, err := f.PutAgent(t.Context(), coder, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) step() {
	f.Helper()
	f.must(f.driver.Step(f.Context()))
}

// work completes a task that changed something in a worktree.
func (f *fixture) work(wish *signalbox.LandWish) signalbox.Task {
	f.Helper()
	by := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "u1", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	r, err := f.Submit(f.Context(), engine.NewTask{Prompt: "add it", Agent: "coder", Landing: wish, By: by})
	f.must(err)
	f.turn(r.Task.ID, signalbox.ReasonCompleted)
	return f.task(r.Task.ID)
}

// turn runs the task with that id, which is the agent's next, in the conversation s.
func (f *fixture) turn(id string, reason signalbox.Reason) {
	f.Helper()
	c, found, err := f.Claim(f.Context(), coder, 0)
	f.must(err)
	if !found || c.Task.ID != id {
		f.Fatalf("claimed %+v, not %s", c.Task, id)
	}
	f.ends(c.Task, engine.Outcome{Reason: reason, SessionID: "s", Result: &signalbox.Result{
		Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1},
	}})
}

func (f *fixture) ends(t signalbox.Task, o engine.Outcome) {
	f.Helper()
	t, err := f.Accept(f.Context(), t, "run-"+t.ID, o.SessionID)
	f.must(err)
	_, err = f.Finish(f.Context(), t, o)
	f.must(err)
}

// lands ends the next landing task; errType "" is success.
func (f *fixture) lands(errType string) engine.Claimed {
	f.Helper()
	f.step()
	c, found, err := f.ClaimBypass(f.Context(), coder, 4, 0)
	f.must(err)
	if !found || c.Request.Land == nil || c.Task.Mode != signalbox.ModeLand {
		f.Fatalf("no landing task was claimed: %+v", c)
	}
	o := engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Landed: &signalbox.Landed{Onto: "main", Commit: hash}}}
	if errType != "" {
		o = engine.Outcome{Reason: signalbox.ReasonAgentError, Message: "a.go is changed by both", Result: &signalbox.Result{ErrorType: errType, Output: "<<<<<<< in a.go"}}
	}
	f.ends(c.Task, o)
	f.step()
	return c
}

func (f *fixture) task(id string) signalbox.Task {
	f.Helper()
	t, err := f.Read().Task(f.Context(), id)
	f.must(err)
	return t
}

func (f *fixture) is(id string, want signalbox.LandingState) *signalbox.Landing {
	f.Helper()
	l := f.task(id).Landing
	if l == nil || l.State != want {
		f.Fatalf("the landing is %+v, not %s", l, want)
	}
	return l
}

func TestWorkThatIsWantedOnABranchLands(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(&signalbox.LandWish{Onto: "main", Method: "squash"}).ID
	f.is(id, signalbox.LandingQueued)
	c := f.lands("")
	if got, want := *c.Request.Land, (signalbox.Land{LandWish: signalbox.LandWish{Onto: "main", Method: "squash"}, Task: id, SessionID: "s", Title: "add it"}); got != want {
		t.Errorf("landed %+v", got)
	}
	if c.Task.Owner != "user:u1" {
		t.Errorf("the landing task belongs to %q", c.Task.Owner)
	}
	if l := f.is(id, signalbox.LandingLanded); l.Commit != hash || l.LandTask != c.Task.ID {
		t.Errorf("%+v", l)
	}
	if _, err := f.Retry(t.Context(), id, engine.RetryEdit{}); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("what has landed is retried: %v", err)
	}
	if _, err := f.driver.Ask(t.Context(), id, signalbox.LandWish{}, "me"); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("what has landed is landed again: %v", err)
	}
	if open, err := f.Read().Landings(t.Context()); len(open) > 0 || err != nil {
		t.Errorf("open: %v, %v", open, err)
	}
}

func TestWorkThatConflictsGoesBackToItsConversation(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(nil).ID
	for range 2 { // requested twice is one
		_, err := f.driver.Ask(t.Context(), id, signalbox.LandWish{}, "me")
		f.must(err)
	}
	for range 2 {
		f.lands("conflict")
		f.step()
		l := f.is(id, signalbox.LandingReturned)
		r, err := f.Read().Request(t.Context(), l.Turn)
		f.must(err)
		for _, part := range []string{"a.go is changed by both", "<<<<<<< in a.go", "on main"} {
			if !strings.Contains(r.Prompt, part) {
				t.Errorf("the turn is not told %q: %s", part, r.Prompt)
			}
		}
		if turn := f.task(l.Turn); turn.SessionID != "s" || turn.Owner != "user:u1" {
			t.Errorf("the turn is %+v", turn)
		}
		f.turn(l.Turn, signalbox.ReasonCompleted)
		f.step()
		f.is(id, signalbox.LandingQueued)
	}
	f.lands("checks")
	if l := f.is(id, signalbox.LandingStands); l.Text != "a.go is changed by both" {
		t.Errorf("%+v", l)
	}
	_, err := f.driver.Ask(t.Context(), id, signalbox.LandWish{}, "me")
	f.must(err)
	f.lands("")
	f.is(id, signalbox.LandingLanded)
}

func TestATurnThatFailsLeavesTheLandingToAPerson(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	f.lands("conflict")
	f.step()
	f.turn(f.is(id, signalbox.LandingReturned).Turn, signalbox.ReasonAgentError)
	f.step()
	f.is(id, signalbox.LandingStands)
}

func TestARefusedLandingStands(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	f.lands("land_refused")
	f.is(id, signalbox.LandingStands)
	_, err := f.driver.Drop(t.Context(), id, "me")
	f.must(err)
	f.is(id, signalbox.LandingDropped)
}

func TestAnAgentThatLandsNothingIsAskedForNoLanding(t *testing.T) {
	f := newFixture(t, nil)
	f.plain = true
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	f.step()
	if l := f.is(id, signalbox.LandingStands); l.LandTask != "" || !strings.Contains(l.Text, "agent coder cannot land work") {
		t.Errorf("%+v", l)
	}
}

func TestALandingThatFailsIsTriedAgainLater(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	first := f.lands("start_error").Task.ID
	l := f.is(id, signalbox.LandingQueued)
	if f.step(); l.NotBefore.IsZero() || f.is(id, signalbox.LandingQueued).LandTask != first {
		t.Errorf("it is tried again at once: %+v", l)
	}
	for range signalbox.MaxLandingFailures - 1 {
		f.passes(time.Hour)
		if f.lands("start_error").Task.ID == first {
			t.Fatal("the task that failed was offered again")
		}
	}
	f.is(id, signalbox.LandingStands)
}

func TestALandingTaskThatIsCancelledDropsTheLanding(t *testing.T) {
	f := newFixture(t, nil)
	id := f.work(&signalbox.LandWish{Onto: "main"}).ID
	f.step()
	_, err := f.Cancel(t.Context(), f.is(id, signalbox.LandingActive).LandTask, "me")
	f.must(err)
	f.step()
	f.is(id, signalbox.LandingDropped)
}

// Nor is it returned if its task fails before it was stopped.
func TestALandingThatFailsWhileItIsDroppedIsDropped(t *testing.T) {
	for _, errType := range []string{"conflict", "land_refused", "land_failed"} {
		f := newFixture(t, nil)
		id := f.work(&signalbox.LandWish{Onto: "main"}).ID
		f.step()
		c, _, err := f.ClaimBypass(t.Context(), coder, 4, 0)
		f.must(err)
		lander, err := f.Accept(t.Context(), c.Task, "run", "")
		f.must(err)
		_, err = f.driver.Drop(t.Context(), id, "me")
		f.must(err)
		_, err = f.Finish(t.Context(), lander, engine.Outcome{Reason: signalbox.ReasonAgentError, Result: &signalbox.Result{ErrorType: errType}})
		f.must(err)
		f.step()
		f.is(id, signalbox.LandingDropped)
	}
}

func TestWhatCannotLandIsRefused(t *testing.T) {
	f := newFixture(t, nil)
	r, err := f.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "coder"})
	f.must(err)
	wants := func(what string, want signalbox.Code) {
		t.Helper()
		if _, err := f.driver.Ask(t.Context(), r.Task.ID, signalbox.LandWish{Onto: "main"}, "me"); signalbox.CodeOf(err) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	wants("a task that waits", signalbox.CodeConflict)
	c, _, err := f.Claim(t.Context(), coder, 0)
	f.must(err)
	f.ends(c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Changes: &signalbox.Changes{Workspace: "folder", FilesChanged: 1}}})
	wants("work of a folder", signalbox.CodeConflict)
	none := engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main"}}}
	for _, wish := range []*signalbox.LandWish{nil, {Onto: "main"}} {
		r, err = f.Submit(t.Context(), engine.NewTask{Prompt: "p", Agent: "coder", Landing: wish})
		f.must(err)
		c, _, err := f.Claim(t.Context(), coder, 0)
		f.must(err)
		f.ends(c.Task, none)
		if wish == nil {
			wants("a task that changed nothing", signalbox.CodeConflict)
		}
	}
	// An earlier attempt may have changed something.
	f.lands("land_refused")
	f.is(r.Task.ID, signalbox.LandingStands)
	wants("a task that was to land, and whose last attempt changed nothing", "")
	if _, err := f.driver.Ask(t.Context(), f.work(nil).ID, signalbox.LandWish{Onto: "--exec=x"}, "me"); signalbox.FieldOf(err) != "onto" {
		t.Errorf("an option as a branch: %v", err)
	}
	if _, err := f.driver.Drop(t.Context(), f.work(nil).ID, "me"); signalbox.CodeOf(err) != signalbox.CodeConflict {
		t.Errorf("a landing that nobody wants is dropped: %v", err)
	}
}

// A returned turn may spend the rest of the task's budget; without a rest there is no turn.
func TestATurnSpendsWhatTheTaskHasLeft(t *testing.T) {
	for spent, want := range map[int64]int64{30: 70, 100: 0} {
		f := newFixture(t, nil)
		by := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "u1", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
		r, err := f.Submit(t.Context(), engine.NewTask{Prompt: "add it", Agent: "coder", Landing: &signalbox.LandWish{Onto: "main"}, By: by, Budget: signalbox.Budget{Tokens: 100}})
		f.must(err)
		id := r.Task.ID
		c, _, err := f.Claim(t.Context(), coder, 0)
		f.must(err)
		f.ends(c.Task, engine.Outcome{Reason: signalbox.ReasonCompleted, SessionID: "s", Result: &signalbox.Result{
			InputTokens: spent, Changes: &signalbox.Changes{Workspace: "worktree", BaseBranch: "main", Commits: 1, FilesChanged: 1},
		}})
		f.lands("conflict")
		f.step()
		if want == 0 {
			if l := f.is(id, signalbox.LandingStands); l.Turn != "" || !strings.Contains(l.Text, "a.go is changed by both; its budget is used up (100 of 100 tokens)") {
				t.Errorf("%+v", l)
			}
			continue
		}
		if turn := f.task(f.is(id, signalbox.LandingReturned).Turn); turn.Budget.Tokens != want {
			t.Errorf("the turn may spend %+v", turn.Budget)
		}
	}
}
