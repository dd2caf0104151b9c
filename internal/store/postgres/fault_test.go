package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/chaos"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// known reports whether a task is stored, as seen by another process.
func known(t *testing.T, g *Backend, id string) bool {
	t.Helper()
	task, err := g.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task != nil
}

// The answer to a commit is lost, before the server gets the batch or after it was stored. The outcome is
// queried, and the answer is right.
func TestIncidentUnknownCommitOutcomeIsQueried(t *testing.T) {
	address := testserver.Postgres(t)
	plain := openTest(t, address)
	for struck, want := range map[chaos.Fault]bool{chaos.DropBefore: false, chaos.DropAfter: true} {
		for _, locked := range []bool{false, true} {
			through, url := newProxy(t, address)
			p := newProcess(t, openTest(t, url), "one")
			if locked {
				p.lock()
			}
			d := p.delta()
			task := p.submit(d, 1)[0]
			happened := through.Strike(struck, ofBatch)
			if err := p.try(d); !errors.Is(err, verbs.ErrUnknown) {
				t.Fatalf("%s, locked %t: got %v, want ErrUnknown", struck, locked, err)
			}
			<-happened
			stored, err := p.Committed(t.Context(), "one", d.Number)
			if err != nil || stored != want {
				t.Errorf("%s, locked %t: stored is %t (%v), want %t", struck, locked, stored, err, want)
			}
			if known(t, plain, task.ID) != want {
				t.Errorf("%s, locked %t: the task does not agree", struck, locked)
			}
			p.load(verbs.Want{})
			d = p.delta() // and it continues
			p.submit(d, 1)
			p.commit(d)
		}
	}
}

func (p *process) lock() {
	p.Helper()
	l, err := p.Lock(context.Background(), &verbs.Want{Writer: p.name})
	if err != nil {
		p.Fatal(err)
	}
	p.at, p.number = l.Counters, l.Number
}

// A batch that is still in flight when its outcome is queried must not be stored after the answer was no.
func TestIncidentCommitThatArrivesLateIsRefused(t *testing.T) {
	address := testserver.Postgres(t)
	through, url := newProxy(t, address)
	plain := openTest(t, address)
	p := newProcess(t, openTest(t, url), "one")
	d := p.delta()
	task := p.submit(d, 1)[0]
	happened := through.Strike(chaos.KeepBack, ofBatch)
	if err := p.try(d); !errors.Is(err, verbs.ErrUnknown) {
		t.Fatalf("got %v, want ErrUnknown", err)
	}
	<-happened
	if stored, err := p.Committed(t.Context(), "one", d.Number); err != nil || stored {
		t.Fatalf("stored is %t (%v)", stored, err)
	}
	through.Release()
	if known(t, plain, task.ID) {
		t.Error("it was stored after all")
	}
}

func TestOlderMomentIsRefused(t *testing.T) {
	address := testserver.Postgres(t)
	one, two := newProcess(t, openTest(t, address), "one"), newProcess(t, openTest(t, address), "two")
	d, e := one.delta(), two.delta()
	one.submit(d, 1)
	lost := two.submit(e, 2)
	one.commit(d)
	if err := two.try(e); !errors.Is(err, verbs.ErrMoved) {
		t.Fatalf("got %v, want ErrMoved", err)
	}
	if known(t, one.Backend, lost[1].ID) {
		t.Error("a part of the batch is stored")
	}
	two.lock()
	e = two.delta()
	two.submit(e, 1)
	two.commit(e)
}

func TestLockExcludesOthers(t *testing.T) {
	address := testserver.Postgres(t)
	one, two := newProcess(t, openTest(t, address), "one"), newProcess(t, openTest(t, address), "two")
	one.lock()
	waited := make(chan error, 1)
	go func() {
		_, err := two.Lock(context.Background(), &verbs.Want{Writer: "two"})
		waited <- err
	}()
	d := one.delta()
	one.submit(d, 1)
	one.commit(d)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	two.Unlock(t.Context())
	one.lock()
	one.Unlock(t.Context())
	one.Unlock(t.Context()) // no effect
	two.lock()
	if two.at.Moment != one.at.Moment {
		t.Errorf("moment %d, want %d", two.at.Moment, one.at.Moment)
	}
}

// A process that is paused with the lock loses the lock, and its write is refused.
func TestIncidentSuspendedProcessLosesTheLock(t *testing.T) {
	address := testserver.Postgres(t)
	g, err := Open(t.Context(), Options{URL: address, limit: timeouts{200 * time.Millisecond, lockTimeout, stillTimeout}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	one, two := newProcess(t, g.(*Backend), "one"), newProcess(t, openTest(t, address), "two")
	one.lock()
	d := one.delta()
	lost := one.submit(d, 1)[0]
	two.lock() // once the server has ended the other one's session
	e := two.delta()
	e.To.Seq, e.To.Place = 10, 10
	two.submit(e, 1)
	two.commit(e)
	if err := one.try(d); !errors.Is(err, verbs.ErrMoved) {
		t.Errorf("got %v, want ErrMoved", err)
	}
	if known(t, two.Backend, lost.ID) {
		t.Error("its batch is stored")
	}
	one.load(verbs.Want{})
	d = one.delta()
	one.submit(d, 1)
	one.commit(d)
}

func TestDuplicateIDsAndKeysAreDistinguishedFromFaults(t *testing.T) {
	p := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	d := p.delta()
	first := p.submit(d, 1, func(t *signalbox.Task) { t.IdempotencyKey = "k\x00" })[0]
	p.commit(d)
	for what, change := range map[string]func(t *signalbox.Task){
		"id": func(t *signalbox.Task) { t.ID = first.ID }, "key": func(t *signalbox.Task) { t.IdempotencyKey = "k\x00" },
	} {
		d = p.delta()
		p.submit(d, 1, change)
		if err := p.try(d); !errors.Is(err, verbs.ErrTaken) {
			t.Errorf("%s: got %v, want ErrTaken", what, err)
		}
	}
	d = p.delta()
	p.submit(d, 1)
	p.commit(d)
}

func TestChangesOfOthersAreSignalled(t *testing.T) {
	address := testserver.Postgres(t)
	one, two := newProcess(t, openTest(t, address), "one"), newProcess(t, openTest(t, address), "two")
	heard := func(g *Backend) bool {
		select {
		case <-g.Changed():
			return true
		case <-time.After(time.Minute):
			return false
		}
	}
	write := func(p *process) {
		p.load(verbs.Want{})
		d := p.delta()
		p.submit(d, 1)
		p.commit(d)
	}
	if !heard(one.Backend) || !heard(two.Backend) {
		t.Fatal("nobody listens")
	}
	for range 2 { // each notices that the other one writes, and sends notifications from then on
		write(one)
		write(two)
	}
	if !heard(one.Backend) || !heard(two.Backend) {
		t.Error("a batch was not heard of")
	}
}

func TestLoneProcessSendsNoNotifications(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"log_statement": "all"}})
	p := newProcess(t, openTest(t, s.URL("postgres")), "one")
	for range 3 {
		d := p.delta()
		p.submit(d, 1)
		p.commit(d)
	}
	if said := s.Log(); !contains(said, "UPDATE meta") || contains(said, "execute "+name(stNotify)) {
		t.Error("it sends notifications although it is alone")
	}
}

func TestContextEndDuringCommitIsUnknownOutcome(t *testing.T) {
	address := testserver.Postgres(t)
	p, other := newProcess(t, openTest(t, address), "one"), newProcess(t, openTest(t, address), "two")
	other.lock() // so that the commit waits
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d := p.delta()
	p.submit(d, 1)
	if err := p.Commit(ctx, d); !errors.Is(err, verbs.ErrUnknown) {
		t.Fatalf("got %v, want ErrUnknown", err)
	}
	other.Unlock(t.Context())
	if stored, err := p.Committed(t.Context(), "one", d.Number); err != nil {
		t.Errorf("stored is %t (%v)", stored, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	p.load(verbs.Want{})
	if err := p.Commit(gone, p.delta()); signalbox.CodeOf(err) != signalbox.CodeUnavailable {
		t.Errorf("got %v", err)
	}
}
