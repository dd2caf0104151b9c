package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/schedule"
	"github.com/signalbox-ai/signalbox/internal/schedule/embedded"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// fixture is an engine with a scheduler in a synctest bubble: it is midnight of 1 January 2000,
// UTC, and time advances when all goroutines are blocked.
type fixture struct {
	*testing.T
	store *memory.Store
	e     *engine.Engine
	s     *schedule.Scheduler
	coder signalbox.Agent
}

func newEngine(t *testing.T, st *memory.Store) *engine.Engine {
	t.Helper()
	sealer, err := seal.New(bytes.Repeat([]byte{5}, seal.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return engine.New(st, engine.Options{Sealer: sealer, MaxSize: 3, OnLost: signalbox.LostRequeue})
}

func withFixture(t *testing.T, f func(fx *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := &fixture{T: t, store: memory.New(memory.Options{})}
		fx.e = newEngine(t, fx.store)
		q := embedded.NewQueue(fx.e)
		var err error
		fx.s, err = schedule.New(embedded.NewStore(fx.e, nil), q, schedule.Options{Now: fx.e.Now, Check: q.Check})
		fx.must(err)
		fx.coder, err = fx.e.PutAgent(t.Context(), signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000"}, "")
		fx.must(err)
		done := make(chan error, 1)
		go func() { done <- fx.s.Run(context.Background()) }()
		synctest.Wait()
		f(fx)
		fx.s.Close()
		fx.must(<-done)
	})
}

func (fx *fixture) must(err error) {
	fx.Helper()
	if err != nil {
		fx.Fatal(err)
	}
}

func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (fx *fixture) add(name string, more ...func(*signalbox.Schedule)) signalbox.Schedule {
	fx.Helper()
	row := signalbox.Schedule{Name: name, Cron: "0 * * * *", Prompt: "look after it", Enabled: true, Agent: "coder"}
	for _, m := range more {
		m(&row)
	}
	row, err := fx.s.Add(fx.Context(), row, "kim")
	fx.must(err)
	return row
}

func (fx *fixture) get(id string) signalbox.Schedule {
	fx.Helper()
	row, err := fx.s.Get(fx.Context(), id)
	fx.must(err)
	return row
}

// work has the agent claim and accept its next task.
func (fx *fixture) work() signalbox.Task {
	fx.Helper()
	c, found, err := fx.e.Claim(fx.Context(), fx.coder, 0)
	fx.must(err)
	if !found {
		fx.Fatal("there is nothing to do")
	}
	t, err := fx.e.Accept(fx.Context(), c.Task, "task-1", "")
	fx.must(err)
	return t
}

func (fx *fixture) finish(t signalbox.Task) {
	fx.Helper()
	_, err := fx.e.Finish(fx.Context(), t, engine.Outcome{Reason: signalbox.ReasonCompleted})
	fx.must(err)
}

// TestSeedSchedulerQueueIntegration: a job that is triggered while the agent is
// busy is queued, not rejected, and dispatched when the agent is free.
func TestSeedSchedulerQueueIntegration(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		_, err := fx.e.Submit(fx.Context(), engine.NewTask{Prompt: "blocking task", Agent: "coder"})
		fx.must(err)
		blocking := fx.work()
		row := fx.add("test-job", func(s *signalbox.Schedule) {
			s.Model, s.Priority, s.OwnerEmail = "large", 2, "kim@example.com"
			s.Checking, s.Landing = signalbox.Checking{Checks: []signalbox.Check{{Name: "test", Run: "make"}}}, &signalbox.LandWish{Onto: "main"}
		})
		run, err := fx.s.Trigger(fx.Context(), "test-job", "kim")
		fx.must(err)
		if row = fx.get(row.ID); run.Status != signalbox.RunQueued || row.LastStatus != signalbox.RunQueued || row.LastQueueID != run.QueueID {
			t.Errorf("run %+v, row %+v", run, row)
		}
		fx.finish(blocking)
		task := fx.work()
		if task.ID != run.QueueID || task.Source != signalbox.SourceScheduler || task.SourceJob != "test-job" || task.Priority != 2 || task.Landing == nil || task.Landing.Onto != "main" {
			t.Errorf("task: %+v", task)
		}
		r, err := fx.e.Read().Request(fx.Context(), task.ID)
		fx.must(err)
		if r.Prompt != "look after it" || r.Model != "large" || len(r.Checking.Checks) != 1 || r.Checking.Checks[0].Run != "make" {
			t.Errorf("request: %+v", r)
		}
		counts, err := fx.e.Read().Counts(fx.Context())
		fx.must(err)
		if counts.Limits[signalbox.LimitWork] != 0 {
			t.Errorf("counts: %+v", counts)
		}
	})
}

func TestScheduleWithoutOnLostUsesDefault(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		fx.add("silent")
		_, err := fx.s.Trigger(fx.Context(), "silent", "kim")
		fx.must(err)
		if task := fx.work(); task.OnLost != signalbox.LostRequeue {
			t.Errorf("silent: on_lost is %s, want requeue", task.OnLost)
		} else {
			fx.finish(task)
		}
		fx.add("said", func(s *signalbox.Schedule) { s.OnLost = signalbox.LostFail })
		_, err = fx.s.Trigger(fx.Context(), "said", "kim")
		fx.must(err)
		if task := fx.work(); task.OnLost != signalbox.LostFail {
			t.Errorf("said: on_lost is %s, want fail", task.OnLost)
		}
	})
}

func TestHeldFiringIsSubmittedWhenPreviousTaskEnds(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		row := fx.add("job")
		advance(time.Hour)
		first := fx.work()
		advance(time.Hour)
		if got := fx.get(row.ID); got.LastStatus != signalbox.RunHeld {
			t.Errorf("row: %+v", got)
		}
		fx.finish(first)
		advance(time.Second)
		if got := fx.get(row.ID); got.LastStatus != signalbox.RunQueued || got.LastQueueID == first.ID {
			t.Errorf("row: %+v", got)
		}
	})
}

func TestOverlapCancelEndsPreviousTask(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		row := fx.add("job", func(s *signalbox.Schedule) { s.Overlap = signalbox.OverlapCancel })
		advance(time.Hour)
		waiting := fx.get(row.ID).LastQueueID
		advance(time.Hour + time.Second)
		before, err := fx.e.Read().Task(fx.Context(), waiting)
		fx.must(err)
		if got := fx.get(row.ID); before.State != signalbox.Cancelled || before.Message != "cancelled by schedule job" || got.LastStatus != signalbox.RunQueued || got.LastQueueID == waiting {
			t.Errorf("before: %+v\nrow: %+v", before, got)
		}
	})
}

func TestQueueFullErrorHasDepth(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		for range 3 {
			_, err := fx.e.Submit(fx.Context(), engine.NewTask{Prompt: "x"})
			fx.must(err)
		}
		row := fx.add("job")
		advance(time.Hour)
		if got := fx.get(row.ID); got.LastStatus != signalbox.SkippedQueueFull || got.LastError != "Agent queue full (3 waiting), skipping scheduled execution" {
			t.Errorf("row: %+v", got)
		}
	})
}

func wantRefused(t *testing.T, err error, code signalbox.Code, field string) {
	t.Helper()
	var e *signalbox.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Errorf("error %v (%s), want %s of field %q", err, signalbox.CodeOf(err), code, field)
	}
}

func TestAddRefusesWhatSubmitWouldRefuse(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		add := func(change func(*signalbox.Schedule)) error {
			row := signalbox.Schedule{Name: "job", Cron: "@daily", Prompt: "go", Agent: "coder"}
			change(&row)
			_, err := fx.s.Add(fx.Context(), row, "kim")
			return err
		}
		wantRefused(t, add(func(s *signalbox.Schedule) { s.Agent = "nobody" }), signalbox.CodeNotFound, "agent")
		wantRefused(t, add(func(s *signalbox.Schedule) { s.Owner = "user:kim" }), signalbox.CodeForbidden, "")
	})
}

func TestFiringUsesCurrentRightsOfOwner(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		kim := signalbox.User{ID: "kim", Email: "kim@example.com", Role: signalbox.RoleUser}
		fx.must(fx.store.PutUser(fx.Context(), kim))
		token := signalbox.Token{ID: "tok-1", Name: "ci", Kind: signalbox.PrincipalService, Principal: "ci", Agents: []string{"coder"}}
		fx.must(fx.store.PutToken(fx.Context(), token))
		own := func(owner string) func(*signalbox.Schedule) {
			return func(s *signalbox.Schedule) { s.Owner, s.Overlap = owner, signalbox.OverlapAllow }
		}
		user, service, static := fx.add("user", own("user:kim")), fx.add("service", own("service:ci")), fx.add("static", own("service:static"))
		advance(time.Hour)
		for id, owner := range map[string]string{user.ID: "user:kim", service.ID: "service:ci", static.ID: "service:static"} {
			task, err := fx.e.Read().Task(fx.Context(), fx.get(id).LastQueueID)
			fx.must(err)
			if task.Owner != owner {
				t.Errorf("task: %+v", task)
			}
			_, err = fx.e.Cancel(fx.Context(), task.ID, "kim")
			fx.must(err)
		}
		kim.Disabled = true
		fx.must(fx.store.PutUser(fx.Context(), kim))
		token.Agents = []string{"other"}
		fx.must(fx.store.PutToken(fx.Context(), token))
		advance(time.Hour)
		if got := fx.get(user.ID); got.LastStatus != signalbox.SkippedError || got.LastError == "" {
			t.Errorf("of a disabled user: %+v", got)
		}
		if got := fx.get(service.ID); got.LastStatus != signalbox.SkippedError {
			t.Errorf("of a token that is limited to another agent: %+v", got)
		}
		if got := fx.get(static.ID); got.LastStatus != signalbox.RunQueued {
			t.Errorf("of the token of the configuration: %+v", got)
		}
		token.Agents, token.RevokedAt = nil, time.Now()
		fx.must(fx.store.PutToken(fx.Context(), token))
		advance(time.Hour)
		if got := fx.get(service.ID); got.LastStatus != signalbox.SkippedError {
			t.Errorf("of a token that was revoked: %+v", got)
		}
	})
}

func TestAgentScheduleFiresIndependentlyOfItsExecutions(t *testing.T) {
	withFixture(t, func(fx *fixture) {
		fx.must(fx.store.PutToken(fx.Context(), signalbox.Token{ID: "tok-1", Name: "coder", Kind: signalbox.PrincipalAgent, Principal: "coder"}))
		fx.coder.Slots = 2
		for range 2 {
			_, err := fx.e.Submit(fx.Context(), engine.NewTask{Prompt: "x", Agent: "coder"})
			fx.must(err)
			fx.work()
		}
		row := fx.add("job", func(s *signalbox.Schedule) { s.Owner = "agent:coder" })
		advance(time.Hour)
		task, err := fx.e.Read().Task(fx.Context(), fx.get(row.ID).LastQueueID)
		fx.must(err)
		if task.Owner != "agent:coder" || task.Source != signalbox.SourceScheduler || task.ParentID != "" {
			t.Errorf("task: %+v", task)
		}
	})
}

func TestChangesIgnoresOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		mine, theirs := embedded.NewStore(newEngine(t, st), nil), embedded.NewStore(newEngine(t, st), nil)
		signs, stop := mine.Changes()
		defer stop()
		synctest.Wait()
		news := func() bool {
			t.Helper()
			advance(3 * time.Second)
			select {
			case <-signs:
				return true
			default:
				return false
			}
		}
		put := func(b *embedded.Store, s signalbox.Schedule) signalbox.Schedule {
			t.Helper()
			got, err := b.Put(t.Context(), s, nil, signalbox.Entry{At: time.Now(), Kind: signalbox.EventScheduleChanged, Schedule: s.Name, Message: "edited"})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		row := put(mine, signalbox.Schedule{ID: "sched-1", Name: "job"})
		if news() {
			t.Error("its own change is news")
		}
		stale := row
		row = put(theirs, row)
		if !news() {
			t.Error("the other's change is not seen")
		}
		if _, err := mine.Put(t.Context(), stale, nil, signalbox.Entry{At: time.Now(), Kind: signalbox.EventScheduleChanged, Schedule: "job"}); !errors.Is(err, schedule.ErrStale) {
			t.Errorf("written over the other's change: %v", err)
		}
		if news() {
			t.Error("nothing is news")
		}
		put(mine, row)
		for range 3000 {
			if err := st.Note(t.Context(), signalbox.Entry{At: time.Now(), Kind: signalbox.EventAgentUp}); err != nil {
				t.Fatal(err)
			}
		}
		if !news() {
			t.Error("more happened than is looked through, and that is no news")
		}
		if was, err := theirs.Delete(t.Context(), "sched-1", signalbox.Entry{At: time.Now(), Kind: signalbox.EventScheduleChanged, Message: "removed"}); !was || err != nil {
			t.Error(was, err)
		}
		if !news() {
			t.Error("the other's removal is not seen")
		}
		if was, err := mine.Delete(t.Context(), "sched-1", signalbox.Entry{At: time.Now(), Kind: signalbox.EventScheduleChanged}); was || err != nil || news() {
			t.Error(was, err)
		}
	})
}
