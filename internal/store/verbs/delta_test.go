package verbs_test

import (
	"context"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/memory"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// drafting is a memory.Backend with drafts. It checks that a commit names the drafted state of each row, and
// only asks for the rest.
type drafting struct {
	*memory.Backend
	t        testing.TB
	tasks    map[int64]*signalbox.Task
	requests map[int64]verbs.RequestRow
	results  map[int64]verbs.ResultRow
	fail     func() error // the error of a draft; nil: none
	err      error
	onDraft  func() // called at the beginning of a draft; may be nil

	drafts, undrafts, again int // calls, and rows that changed after they were drafted
}

func newDrafting(t testing.TB) *drafting {
	d := &drafting{Backend: memory.NewBackend(memory.Options{}), t: t}
	d.forget()
	return d
}

func (b *drafting) open(t *testing.T, o verbs.Options) *verbs.Store {
	t.Helper()
	s, err := verbs.New(ctx, b, verbs.Drafted(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (b *drafting) forget() {
	b.tasks, b.requests, b.results, b.err = map[int64]*signalbox.Task{}, map[int64]verbs.RequestRow{}, map[int64]verbs.ResultRow{}, nil
}

func (b *drafting) Draft(d *verbs.Delta) {
	b.drafts++
	if b.onDraft != nil {
		b.onDraft()
	}
	if b.fail != nil && b.err == nil {
		b.err = b.fail()
	}
	for _, c := range d.Tasks {
		if c.Drafted != nil || c.After == nil || b.tasks[c.After.Seq] != nil {
			b.t.Errorf("drafted twice: %+v", c)
			continue
		}
		b.tasks[c.After.Seq] = c.After
	}
	for _, r := range d.Requests {
		b.requests[r.Seq] = r
	}
	for _, r := range d.Results {
		b.results[r.Seq] = r
	}
}

func (b *drafting) Undraft() {
	b.undrafts++
	b.forget()
}

func (b *drafting) Load(ctx context.Context, w *verbs.Want) (*verbs.Loaded, error) {
	if len(b.tasks) > 0 {
		b.t.Error("a load while rows are drafted")
	}
	return b.Backend.Load(ctx, w)
}

func (b *drafting) Commit(ctx context.Context, d *verbs.Delta) error {
	defer b.forget()
	if b.err != nil {
		return b.err
	}
	whole, left := *d, len(b.tasks)
	whole.Tasks = nil
	for _, c := range d.Tasks {
		row := c.After
		if row == nil {
			row = c.Before
		}
		seq := row.Seq
		if c.Drafted != b.tasks[seq] {
			b.t.Errorf("task %d was drafted as %v, and the commit says %v", seq, b.tasks[seq], c.Drafted)
		}
		if c.Drafted != nil {
			left--
			if c.Drafted != c.After {
				b.again++
			}
		}
		whole.Tasks = append(whole.Tasks, verbs.TaskChange{Before: c.Before, After: c.After})
	}
	if left != 0 {
		b.t.Errorf("%d tasks were drafted that are not in the commit", left)
	}
	for _, r := range d.Requests {
		if _, ok := b.requests[r.Seq]; ok {
			b.t.Errorf("the request of task %d was drafted, and comes again", r.Seq)
		}
	}
	for _, r := range d.Results {
		delete(b.results, r.Seq)
	}
	whole.Requests, whole.Results = append([]verbs.RequestRow(nil), d.Requests...), append([]verbs.ResultRow(nil), d.Results...)
	for _, r := range b.requests {
		whole.Requests = append(whole.Requests, r)
	}
	for _, r := range b.results {
		whole.Results = append(whole.Results, r)
	}
	return b.Backend.Commit(ctx, &whole)
}

// The contract also holds for batches whose rows are drafted.
func TestContractDrafted(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newDrafting(t).open(t, verbs.Options{}) })
}

func TestCompareDrafted(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return newDrafting(t).open(t, verbs.Forgetful(verbs.Options{})) })
}

// A failed draft fails its batch, which is retried.
func TestCompareFailingDrafts(t *testing.T) {
	compare(t, func(t *testing.T) store.Store {
		b, calls := newDrafting(t), 0
		b.fail = func() error {
			if calls++; calls%3 == 0 {
				return verbs.ErrTaken
			}
			return nil
		}
		return b.open(t, verbs.Options{})
	})
}

// A task that another verb of its batch claims is drafted as submitted, and written as claimed.
func TestDraftedTaskIsClaimed(t *testing.T) {
	b := newDrafting(t)
	s, err := verbs.New(ctx, b, verbs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, s, submitAndClaim(t, s)) // so that all that they need is loaded
	claimed := make(chan store.Claimed, 1)
	b.onDraft = func() {
		if b.drafts != 1 {
			return
		}
		go func() {
			got, err := s.Claim(ctx, newClaim("a", 1))
			if err != nil {
				t.Error(err)
			}
			claimed <- got
		}()
		testkit.Wait(t, "the claim has come", func() bool { return verbs.Came(s) > 0 })
	}
	verbs.Expect(s, 2)
	sub := newSubmission()
	if _, err := s.Submit(ctx, sub); err != nil {
		t.Fatal(err)
	}
	if got := <-claimed; got.Task.ID != sub.Task.ID || got.Request.Prompt != sub.Request.Prompt {
		t.Errorf("claimed %+v", got)
	}
	if b.drafts == 0 || b.again != 1 || b.undrafts != 0 {
		t.Errorf("%d drafts, %d rows changed after, %d taken back: want one row that changed", b.drafts, b.again, b.undrafts)
	}
	if err := storetest.Invariants(ctx, s); err != nil {
		t.Error(err)
	}
}

func submitAndClaim(t *testing.T, s store.Store) signalbox.Task {
	t.Helper()
	if _, err := s.Submit(ctx, newSubmission()); err != nil {
		t.Fatal(err)
	}
	got, err := s.Claim(ctx, newClaim("a", 1))
	if err != nil || !got.Found {
		t.Fatalf("claimed %v (%v)", got.Found, err)
	}
	return got.Task
}

// The verb of a single caller is not drafted, since no other one will join.
func TestLoneCallerIsNotDrafted(t *testing.T) {
	b := newDrafting(t)
	s, err := verbs.New(ctx, b, verbs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		if _, err := s.Submit(ctx, newSubmission()); err != nil {
			t.Fatal(err)
		}
	}
	if b.drafts != 0 {
		t.Errorf("%d drafts, want none", b.drafts)
	}
}
