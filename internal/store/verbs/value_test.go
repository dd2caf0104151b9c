package verbs_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// A value that the backend refuses does not affect other verbs of its batch.
func TestRefusedValueFailsOnlyItsVerb(t *testing.T) {
	for name, o := range map[string]verbs.Options{"": {}, "pipelined": verbs.Pipelined(verbs.Options{})} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			s := srv.open(t, o)
			mustSubmit(t, s) // loads the counters
			block, blocked := make(chan struct{}), make(chan struct{})
			var once sync.Once
			srv.setFault(func(call string, d *verbs.Delta) fault {
				if call == "commit" {
					once.Do(func() { close(blocked); <-block })
					for i := range d.Tasks {
						if d.Tasks[i].After.Preview == "refused" {
							return refusesValue
						}
					}
				}
				return works
			})
			errs := make([]error, 7)
			var all sync.WaitGroup
			var ran atomic.Int64
			submit := func(n int) {
				sub := newSubmission()
				if n == 3 {
					sub.Task.Preview = "refused"
				}
				_, errs[n] = verbs.SubmitSaying(ctx, s, sub, func() { ran.Add(1) })
			}
			all.Go(func() { submit(0) })
			<-blocked // the others share a batch: they wait for this one, or run while it is in flight
			ran.Store(0)
			for n := 1; n < len(errs); n++ {
				all.Go(func() { submit(n) })
			}
			testkit.Wait(t, "the others have come", func() bool { return verbs.Came(s.Store)+int(ran.Load()) >= len(errs)-1 })
			close(block)
			all.Wait()
			for n, err := range errs {
				if want := map[bool]signalbox.Code{true: signalbox.CodeStoreFailed}[n == 3]; signalbox.CodeOf(err) != want {
					t.Errorf("verb %d: %v", n, err)
				}
			}
			if n := pending(t, s); n != len(errs) {
				t.Errorf("%d tasks wait, want %d", n, len(errs))
			}
			if last := mustSubmit(t, s); last.Seq != int64(len(errs))+1 {
				t.Errorf("the next task has the number %d: the refused one left a gap", last.Seq)
			}
		})
	}
}

var errRefusesValue = &signalbox.Error{
	Code: signalbox.CodeStoreFailed, Message: "nothing was stored: a value is too large", Err: fmt.Errorf("too large: %w", verbs.ErrValue),
}
