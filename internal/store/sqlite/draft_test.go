package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// row returns a delta with one new task, and the task.
func row(b *Backend, number int64) (*verbs.Delta, *signalbox.Task) {
	t := newSubmission().Task
	t.Seq, t.Rev, t.Place, t.EnqueuedAt, t.HasEnv = b.totals.Seq+1, 1, b.totals.Place+1, t.CreatedAt, true
	d := &verbs.Delta{Writer: "w", Number: number, From: b.totals.Counters, To: b.totals.Counters}
	d.To.Moment, d.To.Seq, d.To.Place = d.From.Moment+1, t.Seq, t.Place
	d.Tasks = []verbs.TaskChange{{After: &t}}
	d.Requests = []verbs.RequestRow{{Seq: t.Seq, Request: signalbox.Request{Prompt: "do it", SealedEnv: []byte("sealed")}}}
	return d, &t
}

func openRows(t *testing.T) *Backend {
	t.Helper()
	b, err := openBackend(context.Background(), Options{Path: filepath.Join(t.TempDir(), "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A row that is drafted and then changed in the same batch is stored with its last contents, and is not
// visible before.
func TestDraftedRowIsWrittenInItsLastState(t *testing.T) {
	b, ctx := openRows(t), context.Background()
	d, drafted := row(b, 1)
	b.Draft(d)
	if got, err := b.Task(ctx, drafted.ID); err != nil || got != nil {
		t.Errorf("a draft is seen: %v (%v)", got, err)
	}
	became := *drafted
	became.State, became.Rev, became.EndedAt = signalbox.Cancelled, 2, drafted.CreatedAt.Add(time.Second)
	d.Tasks[0] = verbs.TaskChange{Drafted: drafted, After: &became}
	d.Requests = nil
	if err := b.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	w, err := b.Whole(ctx, drafted.ID)
	if err != nil || w.Task == nil || w.Request == nil {
		t.Fatalf("%+v (%v)", w, err)
	}
	if w.Task.State != signalbox.Cancelled || w.Task.Rev != 2 || w.Request.Prompt != "do it" || len(w.Request.SealedEnv) != 0 {
		t.Errorf("stored %+v, asked for %+v", w.Task, w.Request)
	}
	if n := b.totals.counts().Pending; n != 0 {
		t.Errorf("%d tasks wait, want none", n)
	}
}

func TestUndraftLeavesNothing(t *testing.T) {
	b, ctx := openRows(t), context.Background()
	d, first := row(b, 1)
	b.Draft(d)
	b.Undraft()
	b.Undraft()
	d, second := row(b, 2)
	b.Draft(d)
	d.Tasks[0].Drafted, d.Requests = second, nil
	if err := b.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Task(ctx, first.ID); err != nil || got != nil {
		t.Errorf("it is there: %v (%v)", got, err)
	}
	if got, err := b.Task(ctx, second.ID); err != nil || got == nil {
		t.Errorf("the next one is not there (%v)", err)
	}
}

// An error of a draft is returned by its commit, and does not affect the next batch.
func TestFailedDraftFailsItsCommit(t *testing.T) {
	b, ctx := openRows(t), context.Background()
	d, first := row(b, 1)
	if err := b.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	d, second := row(b, 2)
	second.ID = first.ID
	b.Draft(d)
	d.Tasks[0].Drafted, d.Requests = second, nil
	if err := b.Commit(ctx, d); err != verbs.ErrTaken { //nolint:errorlint // never wrapped
		t.Fatalf("got %v, want %v", err, verbs.ErrTaken)
	}
	d, third := row(b, 3)
	if err := b.Commit(ctx, d); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Task(ctx, third.ID); err != nil || got == nil || got.Seq != third.Seq {
		t.Errorf("stored %v (%v)", got, err)
	}
}
