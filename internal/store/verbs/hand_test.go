package verbs_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

func newHandingServer(t testing.TB) *server {
	srv := newServer(t)
	srv.hands = true
	return srv
}

// Several processes, each of which continues from a batch that is not stored yet.
func TestSeveralProcessesHandingOver(t *testing.T) {
	for name, o := range map[string]verbs.Options{"": {}, ", forgetful": verbs.Forgetful(verbs.Options{})} {
		open := func(t *testing.T, srv *server) (stores []*verbs.Shared) {
			srv.hands = true
			for range processes {
				stores = append(stores, srv.open(t, o))
			}
			return stores
		}
		t.Run("no faults"+name, func(t *testing.T) { several(t, open, nil) })
		t.Run("faults"+name, func(t *testing.T) { several(t, open, nowAndThen) })
	}
}

func TestContractHandingOver(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newHandingServer(t).open(t, verbs.Options{}) })
}

func TestCompareProcessesHandingOver(t *testing.T) {
	compare(t, func(t *testing.T) store.Store { return openThree(t, newHandingServer(t), verbs.Options{}) })
}

// Two processes prepare batches in turn, each based on the other's batch that is being stored, which
// sometimes fails. The server compares each batch with its state: the previous rows and the counts.
func TestTwoProcessesInLockstep(t *testing.T) {
	srv := newHandingServer(t)
	var followed atomic.Int64
	next := make(chan struct{}, 1)
	srv.onHanded = func() {
		followed.Add(1)
		select {
		case next <- struct{}{}:
		default:
		}
	}
	stores := []*verbs.Shared{srv.open(t, verbs.Options{}), srv.open(t, verbs.Options{})}
	srv.setFault(func(call string, d *verbs.Delta) fault {
		if call != "commit" {
			return works
		}
		select { // the other one has usually come meanwhile
		case <-next:
		case <-time.After(time.Millisecond):
		}
		if n := d.Number % 16; n < 4 {
			return []fault{moved, unknownStored, unknownLost, away}[n]
		}
		return works
	})
	cycles, err := strconv.Atoi(soak.Pick("100", "1700"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n, s := range stores {
		all.Go(func() { lockstep(t, s, fmt.Sprint("agent-", n), cycles) })
	}
	all.Wait()
	srv.setFault(nil)
	if err := storetest.Invariants(ctx, stores[0]); err != nil {
		t.Error(err)
	}
	if n := pending(t, stores[1]); n != 0 || followed.Load() == 0 {
		t.Errorf("%d tasks wait, and %d batches were based on a handed-on one", n, followed.Load())
	}
}

func lockstep(t *testing.T, s *verbs.Shared, agent string, cycles int) {
	for range cycles {
		sub := newSubmission()
		sub.Request.Prompt = sub.Task.ID
		if _, err := s.Submit(ctx, sub); err != nil {
			t.Error(err)
			return
		}
		c := newClaim(agent, 1)
		c.Queues = []string{signalbox.QueueWork}
		got, err := s.Claim(ctx, c)
		if err != nil || !got.Found || got.Request.Prompt != got.Task.ID {
			t.Errorf("claimed %+v (%v)", got, err)
			return
		}
		if _, err := happen(s, got.Task, signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}); err != nil {
			t.Error(err)
			return
		}
	}
}

// handing is two processes that know of each other, and one commit of the first that has handed on the lock
// and waits for its outcome.
type handing struct {
	*testing.T
	srv   *server
	a, b  *verbs.Shared
	fates chan fault
	// handed is signalled when a batch was handed to the next process.
	handed chan struct{}
}

func newHanding(t *testing.T) *handing {
	srv := newHandingServer(t)
	h := &handing{T: t, srv: srv, a: srv.open(t, verbs.Options{}), b: srv.open(t, verbs.Options{}), fates: make(chan fault), handed: make(chan struct{}, 100)}
	srv.onHanded = func() { h.handed <- struct{}{} }
	t.Cleanup(func() { close(h.fates) }) // so that the stores can be closed if the test ends early
	for range 3 {
		mustSubmit(t, h.a)
		mustSubmit(t, h.b)
	}
	return h
}

// hold stops the next commit, and returns a channel that is signalled when it has stopped.
func (h *handing) hold() <-chan struct{} {
	left := make(chan struct{})
	var once sync.Once
	h.srv.setFault(func(call string, _ *verbs.Delta) (f fault) {
		if call == "commit" {
			once.Do(func() {
				close(left)
				f = <-h.fates
			})
		}
		return f
	})
	return left
}

func (h *handing) submit(s *verbs.Shared, sub store.Submission, ran func()) <-chan submitted {
	to := make(chan submitted, 1)
	go func() {
		got, err := verbs.SubmitSaying(ctx, s, sub, ran)
		to <- submitted{got, err}
	}()
	return to
}

// claim makes the second process claim a task of a queue.
func (h *handing) claim(queue string) store.Claimed {
	c := newClaim("a", 100)
	c.Queues = []string{queue}
	got, err := h.b.Claim(ctx, c)
	if err != nil {
		h.Error(err)
	}
	return got
}

// claimAll claims all waiting tasks: from then on the second process knows all tasks that are added.
func (h *handing) claimAll() {
	for h.claim(signalbox.QueueWork).Found {
	}
}

func (h *handing) wait(what string, sign <-chan struct{}) {
	h.Helper()
	select {
	case <-sign:
	case <-time.After(patient):
		h.Fatal(what)
	}
}

// While a process stores its batch the verbs of the next one run, and no caller is answered before its own
// batch is stored. A batch based on one that is not stored is retried.
func TestNextProcessRunsVerbsDuringCommit(t *testing.T) {
	for name, fate := range map[string]fault{
		"works": works, "moved": moved, "stored without an answer": unknownStored, "lost": unknownLost, "away": away, "refused": refuses,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHanding(t)
			left := h.hold()
			first := h.submit(h.a, newSubmission(), func() {})
			h.wait("the first batch is not sent", left)
			ran := make(chan struct{}, 10)
			second := h.submit(h.b, newSubmission(), func() { ran <- struct{}{} })
			h.wait("no verb runs while a batch of another process is stored", ran)
			select {
			case a := <-first:
				t.Fatalf("answered before it is stored: %+v", a)
			case b := <-second:
				t.Fatalf("answered before the one it stands on: %+v", b)
			default:
			}
			h.fates <- fate
			a, b := <-first, <-second
			want := 8
			if fate == refuses {
				want = 7
				wantCode(t, a.err, signalbox.CodeStoreFailed)
			} else if a.err != nil {
				t.Errorf("the first: %+v", a)
			}
			if b.err != nil || (fate == works || fate == unknownStored) && (a.got.Task.Seq != 7 || b.got.Task.Seq != 8) {
				t.Errorf("the first: %+v, the second: %+v", a, b)
			}
			if n := pending(t, h.a); n != want {
				t.Errorf("%d tasks wait, want %d", n, want)
			}
			if err := storetest.Invariants(ctx, h.b); err != nil {
				t.Error(err)
			}
		})
	}
}

// If a process dies after it handed its batch on, the next process is not affected, and nothing of the batch
// is stored: not even the cached request of a task whose number another one gets.
func TestIncidentNewTaskHasNoPromptOfUnstoredTask(t *testing.T) {
	h := newHanding(t)
	mustSubmit(t, h.a)
	mustSubmit(t, h.a)
	h.claimAll()
	if h.claim("other").Found {
		t.Fatal("a task waits in a queue that has none")
	}
	left := h.hold()
	sub := newSubmission()
	sub.Request.Prompt = "what never came to be"
	dead := h.submit(h.a, sub, func() {})
	h.wait("the batch is not sent", left)
	found := make(chan bool)
	go func() { found <- h.claim("other").Found }()
	h.wait("the next process follows no batch that is being stored", h.handed)
	h.fates <- refuses
	if d := <-dead; d.err == nil {
		t.Error("a batch is acknowledged that was not stored")
	}
	if <-found {
		t.Error("a task was claimed of a queue that has none")
	}
	sub = newSubmission()
	sub.Request.Prompt = strings.Repeat("long ", 1000) // too long for a log
	if got, err := h.a.Submit(ctx, sub); err != nil || got.Task.Seq != 9 {
		t.Fatalf("%+v (%v), want the number 9, which the task had that was lost", got, err)
	}
	if got := h.claim(signalbox.QueueWork); got.Task.Seq != 9 || got.Request.Prompt != sub.Request.Prompt {
		t.Errorf("task %d is to %.30q", got.Task.Seq, got.Request.Prompt)
	}
}

// A result without a write is not returned before the batch that it is based on is stored.
func TestNothingIsAnsweredFromUnstoredBatch(t *testing.T) {
	for name, fate := range map[string]fault{"works": works, "refused": refuses} {
		t.Run(name, func(t *testing.T) {
			h := newHanding(t)
			h.claimAll()
			left := h.hold()
			sub := newSubmission()
			first := h.submit(h.a, sub, func() {})
			h.wait("the batch is not sent", left)
			again := newSubmission()
			again.Task.ID = sub.Task.ID
			ran := make(chan struct{}, 10)
			second := h.submit(h.b, again, func() { ran <- struct{}{} })
			h.wait("no verb runs while a batch of another process is stored", ran)
			select {
			case b := <-second:
				t.Fatalf("answered from a batch that is not stored: %+v", b)
			default:
			}
			h.fates <- fate
			<-first
			if b := <-second; fate == works {
				wantCode(t, b.err, signalbox.CodeConflict)
			} else if b.err != nil {
				t.Errorf("refused for a task that was never stored: %v", b.err)
			}
		})
	}
}
