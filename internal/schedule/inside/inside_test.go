package inside_test

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
	"github.com/signalbox-ai/signalbox/internal/schedule/inside"
	"github.com/signalbox-ai/signalbox/internal/seal"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
)

// world is an engine with a scheduler, within a synctest bubble: it is midnight
// of 1 January 2000, UTC, and time passes when nobody has anything to do.
type world struct {
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

func within(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: memory.New(memory.Options{})}
		w.e = newEngine(t, w.store)
		q := inside.NewQueue(w.e)
		var err error
		w.s, err = schedule.New(inside.NewBook(w.e, nil), q, schedule.Options{Now: w.e.Now, Check: q.Check})
		w.must(err)
		w.coder, err = w.e.PutAgent(t.Context(), signalbox.Agent{Name: "coder", Kind: "demo", URL: "http://127.0.0.1:9000"}, "")
		w.must(err)
		done := make(chan error, 1)
		go func() { done <- w.s.Run(context.Background()) }()
		synctest.Wait()
		f(w)
		w.s.Close()
		w.must(<-done)
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) add(name string, more ...func(*signalbox.Schedule)) signalbox.Schedule {
	w.Helper()
	row := signalbox.Schedule{Name: name, Cron: "0 * * * *", Prompt: "look after it", Enabled: true, Agent: "coder"}
	for _, m := range more {
		m(&row)
	}
	row, err := w.s.Add(w.Context(), row, "kim")
	w.must(err)
	return row
}

func (w *world) get(id string) signalbox.Schedule {
	w.Helper()
	row, err := w.s.Get(w.Context(), id)
	w.must(err)
	return row
}

// work lets the agent take its next task.
func (w *world) work() signalbox.Task {
	w.Helper()
	c, found, err := w.e.Claim(w.Context(), w.coder, 0)
	w.must(err)
	if !found {
		w.Fatal("there is nothing to do")
	}
	t, err := w.e.Accept(w.Context(), c.Task, "task-1", "")
	w.must(err)
	return t
}

func (w *world) finish(t signalbox.Task) {
	w.Helper()
	_, err := w.e.Finish(w.Context(), t, engine.Outcome{Reason: signalbox.ReasonCompleted})
	w.must(err)
}

// TestSeedSchedulerQueueIntegration: a job that is triggered while the agent is
// busy is queued, not rejected, and dispatched when the agent is free.
func TestSeedSchedulerQueueIntegration(t *testing.T) {
	within(t, func(w *world) {
		_, err := w.e.Submit(w.Context(), engine.NewTask{Prompt: "blocking task", Agent: "coder"})
		w.must(err)
		blocking := w.work()
		row := w.add("test-job", func(s *signalbox.Schedule) { s.Model, s.Priority, s.OwnerEmail = "large", 2, "kim@example.com" })
		run, err := w.s.Trigger(w.Context(), "test-job", "kim")
		w.must(err)
		if row = w.get(row.ID); run.Status != signalbox.RunQueued || row.LastStatus != signalbox.RunQueued || row.LastQueueID != run.QueueID {
			t.Errorf("run %+v, row %+v", run, row)
		}
		w.finish(blocking)
		task := w.work()
		if task.ID != run.QueueID || task.Source != signalbox.SourceScheduler || task.SourceJob != "test-job" || task.Priority != 2 {
			t.Errorf("task: %+v", task)
		}
		r, err := w.e.Read().Request(w.Context(), task.ID)
		w.must(err)
		if r.Prompt != "look after it" || r.Model != "large" {
			t.Errorf("request: %+v", r)
		}
		counts, err := w.e.Read().Counts(w.Context())
		w.must(err)
		if counts.Limits[signalbox.LimitWork] != 0 {
			t.Errorf("counts: %+v", counts)
		}
	})
}

// TestTaskOfAScheduleThatSaysNothingOfLoss has the on_lost of the director.
func TestTaskOfAScheduleThatSaysNothingOfLoss(t *testing.T) {
	within(t, func(w *world) {
		w.add("silent")
		_, err := w.s.Trigger(w.Context(), "silent", "kim")
		w.must(err)
		if task := w.work(); task.OnLost != signalbox.LostRequeue {
			t.Errorf("silent: on_lost is %s, want requeue", task.OnLost)
		} else {
			w.finish(task)
		}
		w.add("said", func(s *signalbox.Schedule) { s.OnLost = signalbox.LostFail })
		_, err = w.s.Trigger(w.Context(), "said", "kim")
		w.must(err)
		if task := w.work(); task.OnLost != signalbox.LostFail {
			t.Errorf("said: on_lost is %s, want fail", task.OnLost)
		}
	})
}

func TestHeldFiringsGoOnWhenTheTaskBeforeEnds(t *testing.T) {
	within(t, func(w *world) {
		row := w.add("job")
		pass(time.Hour)
		first := w.work()
		pass(time.Hour)
		if got := w.get(row.ID); got.LastStatus != signalbox.RunHeld {
			t.Errorf("row: %+v", got)
		}
		w.finish(first)
		pass(time.Second)
		if got := w.get(row.ID); got.LastStatus != signalbox.RunQueued || got.LastQueueID == first.ID {
			t.Errorf("row: %+v", got)
		}
	})
}

func TestCancelPreviousEndsTheTaskBefore(t *testing.T) {
	within(t, func(w *world) {
		row := w.add("job", func(s *signalbox.Schedule) { s.Overlap = signalbox.OverlapCancel })
		pass(time.Hour)
		waiting := w.get(row.ID).LastQueueID
		pass(time.Hour + time.Second)
		before, err := w.e.Read().Task(w.Context(), waiting)
		w.must(err)
		if got := w.get(row.ID); before.State != signalbox.Cancelled || before.Message != "cancelled by schedule job" || got.LastStatus != signalbox.RunQueued || got.LastQueueID == waiting {
			t.Errorf("before: %+v\nrow: %+v", before, got)
		}
	})
}

func TestAFullQueueSaysHowManyWait(t *testing.T) {
	within(t, func(w *world) {
		for range 3 {
			_, err := w.e.Submit(w.Context(), engine.NewTask{Prompt: "x"})
			w.must(err)
		}
		row := w.add("job")
		pass(time.Hour)
		if got := w.get(row.ID); got.LastStatus != signalbox.SkippedQueueFull || got.LastError != "Agent queue full (3 waiting), skipping scheduled execution" {
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

func TestWhatTheQueueWouldRefuseIsRefusedAtOnce(t *testing.T) {
	within(t, func(w *world) {
		add := func(change func(*signalbox.Schedule)) error {
			row := signalbox.Schedule{Name: "job", Cron: "@daily", Prompt: "go", Agent: "coder"}
			change(&row)
			_, err := w.s.Add(w.Context(), row, "kim")
			return err
		}
		wantRefused(t, add(func(s *signalbox.Schedule) { s.Agent = "nobody" }), signalbox.CodeNotFound, "agent")
		wantRefused(t, add(func(s *signalbox.Schedule) { s.Owner = "user:kim" }), signalbox.CodeForbidden, "")
	})
}

// TestTheOwnersRightsAreThoseOfNow: what the owner may no longer do, the
// schedule does no longer.
func TestTheOwnersRightsAreThoseOfNow(t *testing.T) {
	within(t, func(w *world) {
		kim := signalbox.User{ID: "kim", Email: "kim@example.com", Role: signalbox.RoleUser}
		w.must(w.store.PutUser(w.Context(), kim))
		token := signalbox.Token{ID: "tok-1", Name: "ci", Kind: signalbox.PrincipalService, Principal: "ci", Agents: []string{"coder"}}
		w.must(w.store.PutToken(w.Context(), token))
		own := func(owner string) func(*signalbox.Schedule) {
			return func(s *signalbox.Schedule) { s.Owner, s.Overlap = owner, signalbox.OverlapAllow }
		}
		user, service, static := w.add("user", own("user:kim")), w.add("service", own("service:ci")), w.add("static", own("service:static"))
		pass(time.Hour)
		for id, owner := range map[string]string{user.ID: "user:kim", service.ID: "service:ci", static.ID: "service:static"} {
			task, err := w.e.Read().Task(w.Context(), w.get(id).LastQueueID)
			w.must(err)
			if task.Owner != owner {
				t.Errorf("task: %+v", task)
			}
			_, err = w.e.Cancel(w.Context(), task.ID, "kim")
			w.must(err)
		}
		kim.Disabled = true
		w.must(w.store.PutUser(w.Context(), kim))
		token.Agents = []string{"other"}
		w.must(w.store.PutToken(w.Context(), token))
		pass(time.Hour)
		if got := w.get(user.ID); got.LastStatus != signalbox.SkippedError || got.LastError == "" {
			t.Errorf("of a disabled user: %+v", got)
		}
		if got := w.get(service.ID); got.LastStatus != signalbox.SkippedError {
			t.Errorf("of a token that is limited to another agent: %+v", got)
		}
		if got := w.get(static.ID); got.LastStatus != signalbox.RunQueued {
			t.Errorf("of the token of the configuration: %+v", got)
		}
		token.Agents, token.RevokedAt = nil, time.Now()
		w.must(w.store.PutToken(w.Context(), token))
		pass(time.Hour)
		if got := w.get(service.ID); got.LastStatus != signalbox.SkippedError {
			t.Errorf("of a token that was revoked: %+v", got)
		}
	})
}

// TestAnAgentsScheduleIsNoCallOfItsExecutions: it fires whatever the agent does
// at that time, and belongs to the agent.
func TestAnAgentsScheduleIsNoCallOfItsExecutions(t *testing.T) {
	within(t, func(w *world) {
		w.must(w.store.PutToken(w.Context(), signalbox.Token{ID: "tok-1", Name: "coder", Kind: signalbox.PrincipalAgent, Principal: "coder"}))
		w.coder.Slots = 2
		for range 2 {
			_, err := w.e.Submit(w.Context(), engine.NewTask{Prompt: "x", Agent: "coder"})
			w.must(err)
			w.work()
		}
		row := w.add("job", func(s *signalbox.Schedule) { s.Owner = "agent:coder" })
		pass(time.Hour)
		task, err := w.e.Read().Task(w.Context(), w.get(row.ID).LastQueueID)
		w.must(err)
		if task.Owner != "agent:coder" || task.Source != signalbox.SourceScheduler || task.ParentID != "" {
			t.Errorf("task: %+v", task)
		}
	})
}

// TestChangesAreThoseOfOtherDirectors: what a director changed itself is no news
// to it.
func TestChangesAreThoseOfOtherDirectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{})
		mine, theirs := inside.NewBook(newEngine(t, st), nil), inside.NewBook(newEngine(t, st), nil)
		signs, stop := mine.Changes()
		defer stop()
		synctest.Wait()
		news := func() bool {
			t.Helper()
			pass(3 * time.Second)
			select {
			case <-signs:
				return true
			default:
				return false
			}
		}
		put := func(b *inside.Book, s signalbox.Schedule) signalbox.Schedule {
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
