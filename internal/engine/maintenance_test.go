package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/accounts"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestWakeMakesDueTasksReady(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 9)
	soon := b.submit(engine.NewTask{NotBefore: b.Now().Add(time.Minute)})
	b.submit(engine.NewTask{NotBefore: b.Now().Add(time.Hour), Kind: "demo"})
	queues, next, err := b.Wake(t.Context())
	if err != nil || len(queues) != 0 || !next.Equal(soon.NotBefore) {
		t.Errorf("%v, next %s, %v", queues, next, err)
	}
	if _, found := b.next(a); found {
		t.Error("a task was claimed before its time")
	}
	b.pass(time.Minute)
	queues, next, err = b.Wake(t.Context())
	if err != nil || len(queues) != 1 || queues[0] != "work" || next.Sub(b.Now()) != 59*time.Minute {
		t.Errorf("%v, next %s, %v", queues, next, err)
	}
	if got, _ := b.next(a); got.ID != soon.ID {
		t.Errorf("%+v", got)
	}
}

func TestTaskThatFailedToStartIsRetriedWithBackoff(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	var last time.Duration
	for attempt := 1; attempt <= 3; attempt++ {
		_, _, err := b.Wake(t.Context())
		b.must(err)
		got, err := b.Refuse(t.Context(), b.claim(a).Task, "connection refused")
		b.must(err)
		if got.Attempts != attempt {
			t.Errorf("attempt %d is counted as %d", attempt, got.Attempts)
		}
		if attempt == 3 {
			if got.State != signalbox.Failed || got.Reason != signalbox.ReasonDispatchFailed || !strings.Contains(got.Message, "connection refused") {
				t.Errorf("%+v", got)
			}
			break
		}
		delay := got.NotBefore.Sub(b.Now())
		if delay <= last/2 || delay > time.Minute {
			t.Errorf("attempt %d waits %s after %s", attempt, delay, last)
		}
		last = delay
		b.pass(delay)
	}
	if b.task(id).State != signalbox.Failed || b.slotsInUse() != 0 {
		t.Error("the slot leaked")
	}
}

func TestBusyGoesToTheBackAndCostsNothing(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	first, second := b.submit(engine.NewTask{}), b.submit(engine.NewTask{})
	for range 20 {
		c := b.claim(a).Task
		got, err := b.Busy(t.Context(), c, "agent busy")
		b.must(err)
		if got.Attempts != 0 || got.State != signalbox.Pending {
			t.Fatalf("%+v", got)
		}
		b.pass(time.Millisecond)
	}
	if got, _ := b.next(a); got.ID != first.ID { // an even number of rounds
		t.Errorf("%s is next, not %s before %s", got.ID, first.ID, second.ID)
	}
}

func TestClaimsWithoutAnAnswerAreBounded(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	id := b.submit(engine.NewTask{}).ID
	for range signalbox.MaxNoAnswers {
		_, err := b.Unsent(t.Context(), b.claim(a).Task, "")
		b.must(err)
	}
	if got := b.task(id); got.State != signalbox.Failed || got.Attempts != 0 {
		t.Errorf("a poison task continues: %+v", got)
	}
}

func TestOverdueTasksEnd(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	started := b.submit(engine.NewTask{WaitTimeout: time.Minute})
	b.work(a)
	late := b.submit(engine.NewTask{WaitTimeout: time.Minute})
	patient := b.submit(engine.NewTask{})
	n, err := b.EndOverdue(t.Context())
	if err != nil || n != 0 {
		t.Errorf("%d ended early, %v", n, err)
	}
	b.pass(time.Minute)
	n, err = b.EndOverdue(t.Context())
	if err != nil || n != 1 {
		t.Errorf("%d ended, %v", n, err)
	}
	if got := b.task(late.ID); got.State != signalbox.Timeout || got.Reason != signalbox.ReasonWaitTimeout || !strings.Contains(got.Message, "1m0s") {
		t.Errorf("%+v", got)
	}
	if b.task(started.ID).State != signalbox.Working || b.task(patient.ID).State != signalbox.Pending {
		t.Error("a task ended that had no reason to")
	}
}

func TestPauseAndResume(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 9)
	ctx := t.Context()
	b.submit(engine.NewTask{})
	b.submit(engine.NewTask{Agent: "coder"})
	b.must(b.Pause(ctx, "", "", "me", time.Time{}))
	if _, found := b.next(a); found {
		t.Error("claimed while all is paused")
	}
	b.must(b.Pause(ctx, "work", "", "me", b.Now().Add(time.Minute)))
	b.must(b.Resume(ctx, "", "me"))
	if got, found := b.next(a); !found || got.Queue != "agent:coder" {
		t.Errorf("%+v", got)
	}
	if _, found := b.next(a); found {
		t.Error("claimed from a paused queue")
	}
	b.must(b.ResumeDue(ctx))
	if pauses, err := b.Read().Pauses(ctx); err != nil || len(pauses) != 1 {
		t.Errorf("resumed early: %v, %v", pauses, err)
	}
	b.pass(time.Minute)
	b.must(b.ResumeDue(ctx))
	if got, found := b.next(a); !found || got.Queue != "work" {
		t.Errorf("%+v", got)
	}
	b.must(b.Resume(ctx, "work", "me")) // a queue that is not paused
	for queue, until := range map[string]time.Time{"nowhere": {}, "agent:a b": {}, "work": b.Now()} {
		wantCode(t, b.Pause(ctx, queue, "", "", until), signalbox.CodeValidation, "")
	}
	wantCode(t, b.Pause(ctx, "", "a\nb", "", time.Time{}), signalbox.CodeValidation, "reason")
	wantCode(t, b.Resume(ctx, "nowhere", ""), signalbox.CodeValidation, "queue")
}

// If the agent that holds a session is gone, its tasks end or move, as submitted; tasks that named the agent
// keep waiting.
func TestResolveStranded(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 9)
	for _, session := range []string{"s1", "s2"} {
		b.submit(engine.NewTask{SessionID: session})
		task := b.claim(a).Task
		got, err := b.Accept(t.Context(), task, "t", session)
		b.must(err)
		b.finish(got, signalbox.ReasonCompleted)
	}
	must := b.submit(engine.NewTask{SessionID: "s1"})
	may := b.submit(engine.NewTask{SessionID: "s2", Session: signalbox.SessionPrefer})
	named := b.submit(engine.NewTask{Agent: "coder"})
	if must.Queue != "agent:coder" || may.Queue != "agent:coder" {
		t.Fatalf("%s, %s", must.Queue, may.Queue)
	}
	b.must(b.ResolveStranded(t.Context(), "coder", 75*time.Second))
	if got := b.task(must.ID); got.State != signalbox.Failed || got.Reason != signalbox.ReasonDispatchFailed ||
		!strings.Contains(got.Message, "start coder again and retry") || !strings.Contains(got.Message, "1m15s") {
		t.Errorf("%+v", got)
	}
	if got := b.task(may.ID); got.State != signalbox.Pending || got.Queue != "work" {
		t.Errorf("%+v", got)
	}
	if got := b.task(named.ID); got.State != signalbox.Pending || got.Queue != "agent:coder" {
		t.Errorf("%+v", got)
	}
}

// A parked run continues only in its conversation: it does not move to another agent, and is not ended while
// its gate is closed.
func TestResolveStrandedSparesParkedTasks(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	park := func(session string, began bool) signalbox.Task {
		b.submit(engine.NewTask{SessionID: session, Session: signalbox.SessionPrefer})
		task, err := b.Accept(t.Context(), b.claim(a).Task, "t", session)
		b.must(err)
		parked, err := b.Finish(t.Context(), task, engine.Outcome{
			Reason: signalbox.ReasonAgentError, SessionID: session, Limit: &accounts.Limit{Kind: accounts.Overloaded, Text: "overloaded", Began: began},
		})
		b.must(err)
		if parked.State != signalbox.Parked || parked.Queue != "agent:coder" {
			t.Fatalf("%+v", parked)
		}
		return parked
	}
	parked, fresh, begun := park("s1", true), park("s2", false), park("s3", true)
	for _, id := range []string{fresh.ID, begun.ID} {
		_, err := b.Unpark(t.Context(), id, "me")
		b.must(err)
	}
	b.must(b.ResolveStranded(t.Context(), "coder", 75*time.Second))
	if got := b.task(parked.ID); got.State != signalbox.Parked || got.Queue != "agent:coder" {
		t.Errorf("parked: %+v", got)
	}
	if got := b.task(fresh.ID); got.State != signalbox.Pending || got.Queue != "work" {
		t.Errorf("had done nothing: %+v", got)
	}
	if got := b.task(begun.ID); got.State != signalbox.Failed || !strings.Contains(got.Message, "session s3 is held by agent coder") {
		t.Errorf("had begun: %+v", got)
	}
}

// The queue of a disconnected agent, however long, is read a page at a time, and only again when a session
// task has entered it.
func TestResolveStrandedReadsOnePage(t *testing.T) {
	s := &countingStore{Store: openStore(t)}
	b := newFixtureOver(t, s, func(o *engine.Options) { o.MaxSize = 1000 })
	a := b.agent("coder", "demo", 9)
	b.submit(engine.NewTask{SessionID: "s1"})
	got, err := b.Accept(t.Context(), b.claim(a).Task, "t", "s1")
	b.must(err)
	b.finish(got, signalbox.ReasonCompleted)
	for range 700 {
		b.submit(engine.NewTask{Agent: "coder"})
	}
	last := b.submit(engine.NewTask{SessionID: "s1"})
	strand := func(pages int64) {
		t.Helper()
		before := s.rows.Load()
		b.must(b.ResolveStranded(t.Context(), "coder", time.Hour))
		if got := s.rows.Load() - before; got != pages {
			t.Errorf("%d rows were read, want %d", got, pages)
		}
	}
	strand(500)
	strand(201)
	if got := b.task(last.ID); got.State != signalbox.Failed {
		t.Errorf("%+v", got)
	}
	strand(0)
	b.submit(engine.NewTask{Agent: "coder"}) // without a session
	strand(0)
	last = b.submit(engine.NewTask{SessionID: "s1"})
	strand(500)
	another := b.submit(engine.NewTask{SessionID: "s1"}) // during a scan
	strand(203)
	strand(500)
	strand(201)
	for _, id := range []string{last.ID, another.ID} {
		if got := b.task(id); got.State != signalbox.Failed {
			t.Errorf("%+v", got)
		}
	}
	strand(0)
}

func TestLoss(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	lose := func(task signalbox.Task, withhold bool) signalbox.Task {
		t.Helper()
		got, err := b.Lose(t.Context(), task, signalbox.ReasonLost, "silent for 10m", withhold, &signalbox.Result{Tail: "half"})
		b.must(err)
		return got
	}
	b.submit(engine.NewTask{})
	lost := lose(b.work(a), true)
	if lost.State != signalbox.Failed || lost.Reason != signalbox.ReasonLost || lost.Message != "silent for 10m" {
		t.Errorf("%+v", lost)
	}
	again := b.submit(engine.NewTask{OnLost: signalbox.LostRequeue})
	if _, found := b.next(a); found {
		t.Error("a withheld slot was offered")
	}
	slots, err := b.Read().Slots(t.Context())
	b.must(err)
	for range 2 { // freeing twice is a no-op
		freed, err := b.FreeSlot(t.Context(), slots[0])
		b.must(err)
		_ = freed
	}
	if got := lose(b.work(a), false); got.State != signalbox.Pending || got.Attempts != 1 || got.ID != again.ID {
		t.Errorf("%+v", got)
	}
	_, _, err = b.Wake(t.Context())
	b.must(err)
}

func TestRenewExtendsTheLease(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	b.submit(engine.NewTask{})
	task := b.work(a)
	b.pass(5 * time.Minute)
	b.must(b.Renew(t.Context(), []signalbox.Task{task}))
	b.must(b.Renew(t.Context(), nil))
	slots, err := b.Read().Slots(t.Context())
	b.must(err)
	if want := b.Now().Add(engine.DefaultExecutionTTL); !slots[0].Expires.Equal(want) {
		t.Errorf("the lease ends %s, want %s", slots[0].Expires, want)
	}
}

func TestPrune(t *testing.T) {
	b := newFixture(t)
	a := b.agent("coder", "demo", 1)
	old := b.submit(engine.NewTask{})
	b.run(a, time.Second)
	waiting := b.submit(engine.NewTask{})
	b.pass(23 * time.Hour)
	keep := engine.Retention{For: 24 * time.Hour}
	if did, err := b.Prune(t.Context(), keep); err != nil || did.Tasks != 0 || did.More {
		t.Errorf("%+v pruned within the retention, %v", did, err)
	}
	b.task(old.ID) // still readable
	b.pass(2 * time.Hour)
	if did, err := b.Prune(t.Context(), keep); err != nil || did.Tasks != 1 {
		t.Errorf("%+v pruned, %v", did, err)
	}
	_, err := b.Read().Task(t.Context(), old.ID)
	wantCode(t, err, signalbox.CodeNotFound, "")
	b.task(waiting.ID)
}

// ended lists the stored ended tasks, oldest first.
func (b *fixture) ended() (ids []string) {
	b.t.Helper()
	page, err := b.Read().History(b.t.Context(), store.HistoryQuery{Limit: 1000})
	b.must(err)
	for _, t := range slices.Backward(page.Tasks) {
		ids = append(ids, t.ID)
	}
	return ids
}

// flood submits and cancels tasks of that many bytes each.
func (b *fixture) flood(who signalbox.Principal, tasks, size int) (ids []string) {
	b.t.Helper()
	for range tasks {
		b.pass(time.Millisecond)
		t := b.submit(engine.NewTask{Prompt: strings.Repeat("x", size), By: who})
		_, err := b.Cancel(b.t.Context(), t.ID, "its caller")
		b.must(err)
		ids = append(ids, t.ID)
	}
	return ids
}

func (b *fixture) prune(keep engine.Retention) (did engine.Pruned) {
	b.t.Helper()
	for n := 0; ; n++ {
		step, err := b.Prune(b.t.Context(), keep)
		b.must(err)
		if n == 0 {
			did = step
		} else {
			did.Tasks += step.Tasks
		}
		if !step.More {
			return did
		}
	}
}

// A caller that may only submit cannot fill the store, and displaces no tasks but its own.
func TestEndedTasksOfACallerAreBounded(t *testing.T) {
	b := newFixture(t)
	ci := signalbox.Principal{Kind: signalbox.PrincipalService, ID: "ci", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	ann := signalbox.Principal{Kind: signalbox.PrincipalUser, ID: "ann", Scopes: []signalbox.Scope{signalbox.ScopeSubmit}}
	keep := engine.Retention{For: 24 * time.Hour, Bytes: 1 << 20, OwnerBytes: 100 << 10}
	annes := b.flood(ann, 40, 100)
	nobodys := b.flood(signalbox.Principal{}, 600, 10)
	flood := b.flood(ci, 150, 1000)
	annes = append(annes, b.flood(ann, 5, 100)...)
	did := b.prune(keep)
	kept, err := b.Read().Kept(t.Context())
	b.must(err)
	last := b.task(flood[149])
	one := last.Kept()
	if got := kept[ci.Key()]; got > keep.OwnerBytes || got <= keep.OwnerBytes-one || did.Tasks != 150-int(keep.OwnerBytes/one) {
		t.Errorf("%d bytes are kept of the caller, %d tasks went: each takes %d", got, did.Tasks, one)
	}
	if len(did.Owners) != 1 || did.Owners[ci.Key()] != 150*one-keep.OwnerBytes || did.Over != 0 {
		t.Errorf("it says %+v", did)
	}
	left := b.ended()
	for _, id := range slices.Concat(annes, nobodys, flood[did.Tasks:]) {
		if !slices.Contains(left, id) {
			t.Fatalf("task %s is gone", id)
		}
	}
	// This continues: new tasks displace old ones, and the search continues where it stopped.
	for range 3 {
		b.flood(ci, 20, 1000)
		if did := b.prune(keep); did.Tasks != 20 {
			t.Errorf("%d of 20 more went: %+v", did.Tasks, did)
		}
	}
	if got := len(b.ended()); got != len(left) {
		t.Errorf("%d tasks are left, want %d", got, len(left))
	}
	if did := b.prune(keep); did.Tasks != 0 || len(did.Owners) != 0 {
		t.Errorf("%+v went, and all was bounded", did)
	}
}

func TestEndedTasksAreBoundedInAll(t *testing.T) {
	b := newFixture(t)
	all := b.flood(signalbox.Principal{}, 1500, 10)
	first := b.task(all[0])
	one := first.Kept()
	did := b.prune(engine.Retention{For: 24 * time.Hour, Bytes: 100 * one, OwnerBytes: one})
	if did.Over != 1400*one || did.Tasks != 1400 {
		t.Errorf("%+v", did)
	}
	if left := b.ended(); !slices.Equal(left, all[1400:]) {
		t.Errorf("%d are left", len(left))
	}
	if did := b.prune(engine.Retention{For: 24 * time.Hour}); did.Tasks != 0 {
		t.Errorf("%+v went without a bound", did)
	}
}
