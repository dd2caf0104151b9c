package storetest

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// start is the time at which every case begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a store under test with a clock, and with short forms of its verbs, which fail the test on an
// unexpected error.
type fixture struct {
	*testing.T
	store.Store
	ctx context.Context
	now time.Time
	n   int // tasks submitted
}

// newFixture checks the invariants and closes the store at the end of the test, unless the case has set Store
// to nil.
func newFixture(t *testing.T, s store.Store) *fixture {
	b := &fixture{T: t, Store: s, ctx: context.Background(), now: start}
	t.Cleanup(func() {
		if b.Store == nil {
			return
		}
		if err := Invariants(b.ctx, b.Store); err != nil {
			t.Errorf("after the case: %v", err)
		}
		if err := b.Store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// must fails the test on an error.
func (b *fixture) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// refused wants an error with a code.
func (b *fixture) refused(err error, code signalbox.Code) {
	b.Helper()
	if signalbox.CodeOf(err) != code {
		b.Fatalf("got error %v with code %q, want code %q", err, signalbox.CodeOf(err), code)
	}
}

// same wants two values to be equal; nil and an empty list are.
func (b *fixture) same(what string, got, want any) {
	b.Helper()
	if d := diff(want, got); d != "" {
		b.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// diff describes the difference of two values, "" if they are equal. The descriptive comparison is slow, so
// it is only used for values that differ.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// pass moves the clock, backwards if d is negative.
func (b *fixture) pass(d time.Duration) { b.now = b.now.Add(d) }

// option changes a submission.
type option func(*store.Submission)

func id(n int) string { return fmt.Sprintf("queue-%026d", n) }

// submission returns a submission for the queue "work".
func (b *fixture) submission(options ...option) store.Submission {
	b.n++
	s := store.Submission{
		Task: signalbox.Task{
			ID: id(b.n), State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork,
			MaxAttempts: 3, SessionMode: signalbox.SessionRequire, OnLost: signalbox.LostFail,
			Source: signalbox.SourceAPI, Preview: fmt.Sprintf("task %d", b.n), CreatedAt: b.now,
		},
		Request: signalbox.Request{Prompt: fmt.Sprintf("do task %d", b.n)},
		Now:     b.now,
	}
	s.Task.RequestSize = s.Request.Size()
	for _, o := range options {
		o(&s)
	}
	return s
}

// submit stores a task.
func (b *fixture) submit(options ...option) signalbox.Task {
	b.Helper()
	got, err := b.Submit(b.ctx, b.submission(options...))
	b.must(err)
	return got.Task
}

// submits stores n tasks with the same options.
func (b *fixture) submits(n int, options ...option) []signalbox.Task {
	b.Helper()
	var list []signalbox.Task
	for range n {
		list = append(list, b.submit(options...))
	}
	return list
}

func inQueue(queue string) option { return func(s *store.Submission) { s.Task.Queue = queue } }
func inSession(session string) option {
	return func(s *store.Submission) { s.Task.SessionID = session }
}
func notBefore(at time.Time) option { return func(s *store.Submission) { s.Task.NotBefore = at } }
func waitUntil(at time.Time) option { return func(s *store.Submission) { s.Task.WaitUntil = at } }
func capped(limit string, n int) option {
	return func(s *store.Submission) { s.Task.Limit, s.Cap = limit, n }
}
func keyed(key, hash string) option {
	return func(s *store.Submission) { s.Task.IdempotencyKey, s.Task.IdempotencyHash = key, hash }
}
func followSession(s *store.Submission) { s.FollowSession = true }
func onLostRequeue(s *store.Submission) { s.Task.OnLost = signalbox.LostRequeue }

// prioritised sets a priority; each step of it is worth a minute of waiting.
func prioritised(p int) option {
	return func(s *store.Submission) {
		s.Task.Priority, s.Task.Bias = p, time.Duration(p)*time.Minute
	}
}

func withEnv(sealed string) option {
	return func(s *store.Submission) { s.Task.HasEnv, s.Request.SealedEnv = true, []byte(sealed) }
}

// offer is the claim of an agent with one slot that serves its own queue and "work".
func (b *fixture) offer(agent string) store.ClaimRequest {
	return store.ClaimRequest{
		Agent: agent, AgentURL: "http://" + agent, Slots: 1, Queues: []string{signalbox.AgentQueue(agent), signalbox.QueueWork},
		Expires: b.now.Add(10 * time.Minute), Now: b.now,
	}
}

// offerSlots is offer for an agent with several slots.
func (b *fixture) offerSlots(agent string, slots int) store.ClaimRequest {
	c := b.offer(agent)
	c.Slots = slots
	return c
}

// claim wants the agent to get a task.
func (b *fixture) claim(agent string) signalbox.Task {
	b.Helper()
	return b.claimed(b.offer(agent))
}

func (b *fixture) claimed(c store.ClaimRequest) signalbox.Task {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	if !got.Found {
		b.Fatalf("agent %s found no task", c.Agent)
	}
	return got.Task
}

// noClaim wants a claim to find nothing.
func (b *fixture) noClaim(c store.ClaimRequest) {
	b.Helper()
	got, err := b.Claim(b.ctx, c)
	b.must(err)
	if got.Found {
		b.Fatalf("agent %s got %s, want nothing", c.Agent, got.Task.ID)
	}
}

// claimID wants the agent to get a certain task.
func (b *fixture) claimID(agent string, want string) signalbox.Task {
	b.Helper()
	t := b.claim(agent)
	b.same("claimed task of "+agent, t.ID, want)
	return t
}

// change makes the change of an event without storing it. The fence is the task's, unless the event has one.
func (b *fixture) change(t signalbox.Task, ev signalbox.Event) signalbox.Change {
	b.Helper()
	ev.Now = b.now
	if ev.Fence == 0 {
		ev.Fence = t.Fence
	}
	c, err := signalbox.Next(t, ev)
	b.must(err)
	return c
}

// happen applies an event to the current row of a task.
func (b *fixture) happen(id string, ev signalbox.Event) signalbox.Task {
	b.Helper()
	t, err := b.Apply(b.ctx, b.change(b.task(id), ev), b.now)
	b.must(err)
	return t
}

func (b *fixture) accept(id string) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventAccept, TaskID: "task-" + id})
}

func (b *fixture) finish(id string) signalbox.Task {
	b.Helper()
	return b.happen(id, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted})
}

// run claims the best task for an agent, accepts and finishes it.
func (b *fixture) run(agent string) signalbox.Task {
	b.Helper()
	t := b.claim(agent)
	b.accept(t.ID)
	return b.finish(t.ID)
}

func (b *fixture) task(id string) signalbox.Task {
	b.Helper()
	t, err := b.Task(b.ctx, id)
	b.must(err)
	return t
}

// ready wants exactly these waiting tasks to be ready, in that order.
func (b *fixture) ready(want ...string) {
	b.Helper()
	list, err := b.Waiting(b.ctx, "", store.Cursor{}, 1000)
	b.must(err)
	var got []string
	for _, t := range list {
		if t.Ready {
			got = append(got, t.ID)
		}
	}
	b.same("ready tasks", got, want)
}

func (b *fixture) slots() []signalbox.Slot {
	b.Helper()
	list, err := b.Slots(b.ctx)
	b.must(err)
	return list
}

func (b *fixture) journal() []signalbox.Entry {
	b.Helper()
	list, err := b.Journal(b.ctx, 0, 100_000)
	b.must(err)
	return list
}

func ids(list []signalbox.Task) []string {
	var names []string
	for i := range list {
		names = append(names, list[i].ID)
	}
	return names
}
