package verbs_test

import (
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// The contract also holds if each batch is prepared while the previous one is in flight.
func TestContractPipelined(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newServer(t).open(t, verbs.Pipelined(verbs.Options{})) })
}

func TestComparePipelined(t *testing.T) {
	compare(t, func(t *testing.T) store.Store {
		return newServer(t).open(t, verbs.Pipelined(verbs.Forgetful(verbs.Options{})))
	})
}

// One process with many callers, over a server that sometimes fails.
func TestManyCallersPipelined(t *testing.T) {
	for name, o := range map[string]verbs.Options{"": {}, ", forgetful": verbs.Forgetful(verbs.Options{})} {
		open := func(t *testing.T, srv *server) []*verbs.Shared {
			s := srv.open(t, verbs.Pipelined(o))
			return []*verbs.Shared{s, s, s}
		}
		t.Run("no faults"+name, func(t *testing.T) { several(t, open, nil) })
		t.Run("faults"+name, func(t *testing.T) { several(t, open, nowAndThen) })
	}
}

// submitted is the result of a submit.
type submitted struct {
	got store.Submitted
	err error
}

// While a batch is in flight the verbs of the next one run, and no caller is answered before its own batch is
// stored. A batch based on a failed one is retried.
func TestNextBatchIsPreparedDuringCommit(t *testing.T) {
	for name, fate := range map[string]fault{
		"works": works, "moved": moved, "stored without an answer": unknownStored, "lost": unknownLost, "away": away, "refused": refuses,
	} {
		t.Run(name, func(t *testing.T) { twoInFlight(t, fate) })
	}
}

func twoInFlight(t *testing.T, fate fault) {
	srv := newServer(t)
	s := srv.open(t, verbs.Pipelined(verbs.Options{}))
	mustSubmit(t, s) // loads the counters
	left, fates := make(chan struct{}), make(chan fault)
	var once sync.Once
	srv.setFault(func(call string, _ *verbs.Delta) (f fault) {
		if call == "commit" {
			once.Do(func() {
				left <- struct{}{}
				f = <-fates
			})
		}
		return f
	})
	first, second := make(chan submitted, 1), make(chan submitted, 1)
	submits := func(to chan submitted, ran func()) {
		got, err := verbs.SubmitSaying(ctx, s, newSubmission(), ran)
		to <- submitted{got, err}
	}
	go submits(first, func() {})
	<-left
	ran := make(chan struct{}, 10)
	go submits(second, func() { ran <- struct{}{} })
	select {
	case <-ran:
	case <-time.After(patient):
		t.Fatal("no batch is made ready while one is in flight")
	}
	select {
	case a := <-first:
		t.Fatalf("answered before it is stored: %+v", a)
	case b := <-second:
		t.Fatalf("answered before the one it stands on: %+v", b)
	default:
	}
	fates <- fate
	a, b := <-first, <-second
	want := 3
	if fate == refuses {
		want = 2
		wantCode(t, a.err, signalbox.CodeStoreFailed)
	} else if a.err != nil || a.got.Task.Seq != 2 {
		t.Errorf("the first: %+v", a)
	}
	if b.err != nil || b.got.Task.Seq != int64(want) || b.got.Task.Place != int64(want) {
		t.Errorf("the second: %+v, want the number %d", b, want)
	}
	if n := pending(t, s); n != want {
		t.Errorf("%d tasks wait, want %d", n, want)
	}
	if err := storetest.Invariants(ctx, s); err != nil {
		t.Error(err)
	}
}
