package stores_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/storetest"
	"github.com/signalbox-ai/signalbox/internal/store/storetest/stores"
	"github.com/signalbox-ai/signalbox/internal/testkit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Two processes concurrently submit the same tasks and claim them for the same agents: each key makes one
// task, each task is claimed once, and no agent runs two.
func TestProcessesTogetherKeepTheInvariants(t *testing.T) {
	for _, kind := range stores.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := stores.OpenTwice(t, kind)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			processes := []store.Store{s, s}
			if several, ok := s.(storetest.Several); ok {
				processes = []store.Store{several.Process(0), several.Process(1)}
			}
			r := &rush{T: t, tasks: 60}
			r.run(processes)
			for _, p := range processes {
				r.check(p)
			}
		})
	}
}

// rush is what all workers do concurrently, and what must hold.
type rush struct {
	*testing.T
	tasks   int
	ended   atomic.Int64
	running [3]atomic.Int64 // by agent
	fences  sync.Map        // fence: the task that it was given for
	ids     sync.Map        // by key: its only id
}

func (r *rush) run(processes []store.Store) {
	var all sync.WaitGroup
	for n, p := range processes {
		for worker := range 3 {
			all.Go(func() { r.submit(p, n, worker) })
			all.Go(func() { r.work(p, worker) })
			all.Go(func() { r.call(p, n, worker) })
		}
	}
	all.Wait()
}

// submit stores all tasks; each worker starts with another one.
func (r *rush) submit(s store.Store, process, worker int) {
	for n := range r.tasks {
		n = (n + worker*r.tasks/3) % r.tasks
		key := fmt.Sprintf("key-%d", n)
		got, err := s.Submit(context.Background(), store.Submission{
			Task: signalbox.Task{
				ID: fmt.Sprintf("queue-%d-%d-%d", n, process, worker), State: signalbox.Pending, Queue: signalbox.QueueWork,
				Limit: signalbox.LimitWork, MaxAttempts: 3, IdempotencyKey: key, IdempotencyHash: "h", CreatedAt: noon,
			},
			Request: signalbox.Request{Prompt: key}, Now: noon,
		})
		if err != nil {
			r.Errorf("submit of %s: %v", key, err)
			return
		}
		if id, known := r.ids.LoadOrStore(key, got.Task.ID); known && id != got.Task.ID {
			r.Errorf("%s made the tasks %v and %s", key, id, got.Task.ID)
		}
	}
}

// work claims tasks for an agent with one slot until all have ended.
func (r *rush) work(s store.Store, agent int) {
	name := fmt.Sprintf("agent-%d", agent)
	for end := time.Now().Add(time.Minute); r.ended.Load() < int64(r.tasks) && !r.Failed(); {
		if time.Now().After(end) {
			r.Errorf("%d of %d tasks have ended after a minute", r.ended.Load(), r.tasks)
			return
		}
		var got store.Claimed
		var err error
		testkit.Within(time.Minute, func() bool {
			got, err = s.Claim(context.Background(), store.ClaimRequest{
				Agent: name, Slots: 1, Queues: []string{signalbox.QueueWork}, Now: noon, Expires: noon.Add(time.Hour),
			})
			return err != nil || got.Found || r.ended.Load() >= int64(r.tasks) || r.Failed()
		})
		if err != nil {
			r.Errorf("claim: %v", err)
			return
		}
		if !got.Found {
			continue
		}
		if n := r.running[agent].Add(1); n != 1 {
			r.Errorf("%s runs %d tasks at once", name, n)
		}
		if other, twice := r.fences.LoadOrStore(got.Task.Fence, got.Task.ID); twice {
			r.Errorf("fence %d was given for %v and for %s", got.Task.Fence, other, got.Task.ID)
		}
		r.finish(s, agent, got.Task)
	}
}

func (r *rush) finish(s store.Store, agent int, t signalbox.Task) {
	for _, ev := range []signalbox.Event{{Kind: signalbox.EventAccept, TaskID: "t"}, {Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted}} {
		ev.Now, ev.Fence = noon, t.Fence
		c, err := signalbox.Next(t, ev)
		if err == nil {
			if ev.Kind == signalbox.EventFinish {
				r.running[agent].Add(-1)
			}
			t, err = s.Apply(context.Background(), c, noon)
		}
		if err != nil {
			r.Errorf("%s of %s: %v", ev.Kind, t.ID, err)
			return
		}
	}
	r.ended.Add(1)
}

// call sometimes holds one of two slots of a tool queue, and sends heartbeats.
func (r *rush) call(s store.Store, process, worker int) {
	me := store.Director{ID: fmt.Sprintf("director-%d", process), Run: "run", StartedAt: noon, Expires: noon.Add(time.Hour)}
	for n := range 10 {
		id := fmt.Sprintf("call-%d-%d-%d", process, worker, n)
		step := store.TicketStep{Queue: "q", Concurrent: 2, Enter: []store.Ticket{{Queue: "q", ID: id}}, Now: noon, Expires: noon.Add(time.Hour)}
		list, err := s.Tickets(context.Background(), step)
		if err != nil {
			r.Errorf("tickets: %v", err)
			return
		}
		holders := 0
		for _, x := range list.Tickets {
			if x.Fence > 0 {
				holders++
			}
		}
		if holders > 2 {
			r.Errorf("%d calls hold two slots", holders)
		}
		step.Enter, step.Leave = nil, []string{id}
		if _, err := s.Tickets(context.Background(), step); err != nil {
			r.Errorf("tickets: %v", err)
			return
		}
		if _, err := s.Beat(context.Background(), store.Beat{Director: me, Take: []string{"agent-0"}, Now: noon}); err != nil {
			r.Errorf("beat: %v", err)
			return
		}
	}
}

// check checks what is left.
func (r *rush) check(s store.Store) {
	ctx := context.Background()
	if err := storetest.Invariants(ctx, s); err != nil {
		r.Error(err)
	}
	page, err := s.History(ctx, store.HistoryQuery{Limit: 1000})
	if err != nil || len(page.Tasks) != r.tasks {
		r.Errorf("%d tasks have ended (%v), want %d", len(page.Tasks), err, r.tasks)
	}
	for i := range page.Tasks {
		if k := &page.Tasks[i]; k.State != signalbox.Completed || k.Claims != 1 {
			r.Errorf("task %s is %s after %d claims", k.ID, k.State, k.Claims)
		}
	}
	if left, err := s.Tickets(ctx, store.TicketStep{Queue: "q"}); err != nil || len(left.Tickets) != 0 {
		r.Errorf("tickets %v are left (%v)", left, err)
	}
	if held, err := s.Holders(ctx); err != nil || len(held) != 1 {
		r.Errorf("held are %v (%v), want one agent", held, err)
	}
}

// Two processes claim tasks for six agents of one account, which is closed until a time and then tried: both
// notice that, one claim at a time is let through, and all are once the provider has answered. A second limit
// closes it for both.
func TestProcessesTogetherTryAnAccountOneClaimAtATime(t *testing.T) {
	for _, kind := range stores.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := stores.OpenTwice(t, kind)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			processes := []store.Store{s, s}
			if several, ok := s.(storetest.Several); ok {
				processes = []store.Store{several.Process(0), several.Process(1)}
			}
			(&login{rush: rush{T: t, tasks: 40}}).run(processes)
			if err := storetest.Invariants(context.Background(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// login is the account that all agents spend.
type login struct {
	rush
	answered atomic.Bool
	claims   atomic.Int64 // in progress
}

func (l *login) run(processes []store.Store) {
	ctx, due := context.Background(), noon.Add(time.Minute)
	for n := range l.tasks {
		_, err := processes[n%2].Submit(ctx, store.Submission{
			Task:    signalbox.Task{ID: fmt.Sprint("queue-", n), State: signalbox.Pending, Queue: signalbox.QueueWork, Limit: signalbox.LimitWork, CreatedAt: noon},
			Request: signalbox.Request{Prompt: "p"}, Now: noon,
		})
		if err != nil {
			l.Fatal(err)
		}
	}
	l.change(processes[0], signalbox.AccountEvent{Kind: signalbox.AccountLimit, Until: due})
	for _, p := range processes {
		if got, err := p.Claim(ctx, l.offer("agent-0")); err != nil || !got.Held || got.Found {
			l.Fatalf("a claim at a closed account: %+v, %v", got, err)
		}
	}
	var changed atomic.Int64
	var all sync.WaitGroup
	for n, p := range processes {
		all.Go(func() {
			if l.change(p, signalbox.AccountEvent{Kind: signalbox.AccountDue, Now: due}) {
				changed.Add(1)
			}
		})
		for worker := range 3 {
			all.Go(func() { l.work(p, fmt.Sprintf("agent-%d-%d", n, worker)) })
		}
	}
	all.Wait()
	if n := changed.Load(); n != 1 {
		l.Errorf("%d processes found that its time is over, want one", n)
	}
}

// offer is a claim after the claims of an opened account are no longer spread.
func (l *login) offer(agent string) store.ClaimRequest {
	now := noon.Add(time.Hour)
	return store.ClaimRequest{Agent: agent, Slots: 1, Queues: []string{signalbox.QueueWork}, Account: "max", Now: now, Expires: now.Add(time.Hour)}
}

func (l *login) change(s store.Store, ev signalbox.AccountEvent) bool {
	ev.Account = "max"
	if ev.Now.IsZero() {
		ev.Now = noon
	}
	c, err := s.ChangeAccount(context.Background(), ev)
	if err != nil {
		l.Error(err)
	}
	return c.Changed
}

// work claims tasks until all have ended. Halfway through, the provider answers.
func (l *login) work(s store.Store, agent string) {
	for !l.Failed() && l.ended.Load() < int64(l.tasks) {
		var got store.Claimed
		var err error
		if !testkit.Within(time.Minute, func() bool {
			got, err = s.Claim(context.Background(), l.offer(agent))
			return err != nil || got.Found || l.ended.Load() >= int64(l.tasks) || l.Failed()
		}) || err != nil {
			l.Errorf("agent %s: %d of %d tasks have ended, and a claim says %+v, %v", agent, l.ended.Load(), l.tasks, got, err)
			return
		}
		if !got.Found {
			return
		}
		if n := l.claims.Add(1); n > 1 && !l.answered.Load() {
			l.Errorf("%d claims are under way at an account that is being tried", n)
		}
		ev := signalbox.Event{Kind: signalbox.EventFinish, Reason: signalbox.ReasonCompleted, Now: noon, Fence: got.Task.Fence}
		if l.ended.Load() >= int64(l.tasks/2) {
			l.answered.Store(true)
			ev.Account = &signalbox.AccountEvent{Kind: signalbox.AccountAnswered, Account: "max", Now: noon}
		}
		c, err := signalbox.Next(got.Task, ev)
		l.claims.Add(-1) // before the slot is free
		if err == nil {
			_, err = s.Apply(context.Background(), c, noon)
		}
		if err != nil {
			l.Error(err)
		}
		l.ended.Add(1)
	}
}
