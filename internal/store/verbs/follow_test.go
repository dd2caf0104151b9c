package verbs_test

import (
	"errors"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// inTurn is a set of stores over one server that are used in turn.
type inTurn struct {
	store.Shared
	all []*verbs.Shared
}

func (p *inTurn) Process(n int) store.Store { return p.all[n%len(p.all)] }

func (p *inTurn) Close() error {
	var errs []error
	for _, s := range p.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// openThree opens a server from three processes.
func openThree(t *testing.T, srv *server, o verbs.Options) store.Store {
	p := &inTurn{}
	for range 3 {
		s, err := verbs.NewShared(ctx, srv.connect(), o)
		if err != nil {
			t.Fatal(err)
		}
		p.all = append(p.all, s)
	}
	p.Shared = p.all[0]
	return p
}

// What a process knows and follows matches what the others did.
func TestCompareProcessesInTurn(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return openThree(t, newServer(t), verbs.Options{}) })
}

// Missing logs do no harm.
func TestCompareProcessesWithLostLogs(t *testing.T) {
	compare(t, func(t *testing.T) store.Store {
		srv := newServer(t)
		n := 0
		srv.setFault(func(call string, d *verbs.Delta) fault {
			if call == "commit" {
				if n++; n%3 == 0 {
					d.Log = nil
				}
			}
			return works
		})
		return openThree(t, srv, verbs.Options{})
	})
}

func TestCompareProcessesWithoutMemory(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return openThree(t, newServer(t), verbs.Forgetful(verbs.Options{})) })
}

// With other writers a batch takes two exchanges, and unchanged rows are not read again.
func TestSharedBatchIsTwoExchanges(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})
	for range 3 {
		for _, s := range []*verbs.Shared{a, b} {
			mustSubmit(t, s)
			finish(t, s, mustClaim(t, s, "a"))
		}
	}
	mustSubmit(t, b)
	srv.called("")
	mustSubmit(t, a)
	for _, s := range []*verbs.Shared{b, a, b} {
		got, err := s.Claim(ctx, newClaim("a", 10))
		if err != nil {
			t.Fatal(err)
		}
		if got.Found {
			finish(t, s, got.Task)
		}
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if n := srv.calls["lock"]; n != 6 {
		t.Errorf("%d locks for 6 batches", n)
	}
	// The request of a task is read once, by the process that did not submit it.
	if n := srv.calls["load"]; n > 1 {
		t.Errorf("%d loads of what was known", n)
	}
}

// What can be foreseen is loaded with the lock: new keys are looked up, and heads of queues are read if only
// the claimed ones were known. Small requests of new tasks are in the logs of others.
func TestLockLoadsWhatTheBatchNeeds(t *testing.T) {
	srv := newServer(t)
	a, b := srv.open(t, verbs.Narrow(verbs.Options{})), srv.open(t, verbs.Narrow(verbs.Options{}))
	var want []string
	for range 40 {
		want = append(want, mustSubmit(t, a).ID)
	}
	for n := range 12 {
		srv.called("")
		got, err := []*verbs.Shared{b, a}[n%2].Claim(ctx, newClaim("a", 20))
		if err != nil || got.Task.ID != want[n] {
			t.Fatalf("claim %d: %+v (%v), want %s", n+1, got.Task.ID, err, want[n])
		}
		if n > 4 { // both follow, and have noticed that the other continues
			wantCalls(t, srv, 1)
		}
	}
	sub := newSubmission()
	sub.Task.IdempotencyKey = "k"
	if _, err := a.Submit(ctx, sub); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, srv, 0)
	sub = newSubmission()
	sub.Task.IdempotencyKey = "k"
	if got, err := b.Submit(ctx, sub); err != nil || !got.Replayed {
		t.Fatalf("%+v (%v), want the answer to the first", got, err)
	}
	wantCalls(t, srv, 0)
}

// wantCalls wants a batch to have taken the lock once, followed by at most that many loads. It resets the
// counts.
func wantCalls(t *testing.T, srv *server, loads int) {
	t.Helper()
	srv.mu.Lock()
	locks, n := srv.calls["lock"], srv.calls["load"]
	srv.mu.Unlock()
	if locks != 1 || n > loads {
		t.Errorf("%d locks and %d loads behind, want 1 and %d at most", locks, n, loads)
	}
	srv.called("")
}
