package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// handing is a process that has handed on a batch, which the server does not store yet, since a table is
// locked.
type handing struct {
	*testing.T
	address  string
	one, two *process
	blocker  *pgconn.PgConn
	batch    *verbs.Delta
	made     []*signalbox.Task
	answer   chan error
}

func newHanding(t *testing.T) *handing {
	address := testserver.Postgres(t)
	h := &handing{T: t, address: address, one: newProcess(t, openTest(t, address), "one"), answer: make(chan error, 1)}
	d := h.one.delta()
	h.one.submit(d, 1)
	h.one.commit(d)
	h.two = newProcess(t, openTest(t, address), "two")
	var err error
	if h.blocker, err = h.one.params.dial(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.blocker.Close(context.Background()) })
	h.two.lock() // its connections prepare statements on the table that is locked later
	h.two.Unlock(t.Context())
	h.one.lock()
	h.do("BEGIN; LOCK TABLE counts IN SHARE MODE")
	h.batch = h.one.delta()
	h.made = h.one.submit(h.batch, 1)
	h.batch.Log = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(h.batch.From.Moment)), uint64(h.batch.To.Moment))
	go func() { h.answer <- h.one.Commit(context.Background(), h.batch) }()
	return h
}

func (h *handing) do(sql string) {
	h.Helper()
	if _, err := h.blocker.Exec(h.Context(), sql).ReadAll(); err != nil {
		h.Fatal(err)
	}
}

// follow takes the turn, and wants it to come with the handed-on batch.
func (h *handing) follow() *verbs.Handed {
	h.Helper()
	l, err := h.two.Lock(h.Context(), &verbs.Want{Writer: "two", Since: h.batch.From.Moment})
	if err != nil {
		h.Fatal(err)
	}
	if l.Moment != h.batch.From.Moment || l.Handed == nil || l.Handed.BatchID != (verbs.BatchID{Writer: "one", Number: h.batch.Number}) ||
		string(l.Handed.Log) != string(h.batch.Log) {
		h.Fatalf("at the moment %d with %+v, want %d and the batch that is about to be stored", l.Moment, l.Handed, h.batch.From.Moment)
	}
	return l.Handed
}

// end lets the batch be stored, or makes it fail, and returns the result of its writer.
func (h *handing) end(stored bool) error {
	h.Helper()
	if !stored {
		h.do(fmt.Sprintf("SELECT pg_terminate_backend(%d, 5000)", h.one.writer.session.conn.PID()))
	}
	h.do("ROLLBACK")
	return <-h.answer
}

// upon returns a batch based on the handed-on one.
func (h *handing) upon(b *verbs.Handed) *verbs.Delta {
	h.two.at, h.two.queued = h.batch.To, 2
	d := h.two.delta()
	d.Parent = &b.BatchID
	h.two.submit(d, 1)
	return d
}

// The next process has the turn before a batch is stored. Its own batch, based on that one, is stored only if
// that one is.
func TestBatchIsHandedOnBeforeItIsStored(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			h := newHanding(t)
			d := h.upon(h.follow())
			second := make(chan error, 1)
			go func() { second <- h.two.Commit(context.Background(), d) }()
			select {
			case err := <-second:
				t.Fatalf("the batch that stands on another was answered first: %v", err)
			case err := <-h.answer:
				t.Fatalf("answered though it cannot be stored: %v", err)
			default:
			}
			err := h.end(stored)
			if stored && err != nil {
				t.Errorf("the first: %v", err)
			}
			if !stored && !errors.Is(err, verbs.ErrUnknown) {
				t.Errorf("the first: %v, want ErrUnknown", err)
			}
			if err := <-second; stored && err != nil || !stored && !errors.Is(err, verbs.ErrMoved) {
				t.Errorf("the second: %v", err)
			}
			if known(t, h.two.Backend, h.made[0].ID) != stored || known(t, h.two.Backend, d.Tasks[0].After.ID) != stored {
				t.Error("one of the batches is stored and the other not")
			}
		})
	}
}

// A batch is identified by its writer and number: a moment alone could be equal by chance.
func TestBatchIsStoredOnlyAfterItsPredecessor(t *testing.T) {
	p := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	for range 2 {
		d := p.delta()
		p.submit(d, 1)
		p.commit(d)
	}
	for _, upon := range []verbs.BatchID{{Writer: "nobody", Number: 2}, {Writer: "one", Number: 1}, {Writer: "one", Number: 3}, {Writer: "one", Number: 2}} {
		d := p.delta()
		d.Parent = &upon
		err := p.try(d)
		if want := upon.Writer == "one" && upon.Number == 2; want != (err == nil) || !want && !errors.Is(err, verbs.ErrMoved) {
			t.Errorf("upon %+v: %v", upon, err)
		}
	}
}

// If a process needs more than it was handed, it waits until the batch is stored, and learns if it is not.
func TestReadAfterHandOverWaitsForCommit(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			h := newHanding(t)
			b := h.follow()
			loaded := make(chan error, 1)
			var l *verbs.Loaded
			go func() {
				var err error
				l, err = h.two.Load(context.Background(), &verbs.Want{Writer: "two", Parent: &b.BatchID, Tasks: []string{h.made[0].ID}})
				loaded <- err
			}()
			_ = h.end(stored)
			err := <-loaded
			if stored && (err != nil || l.Moment != h.batch.To.Moment || l.Tasks[0] == nil) {
				t.Errorf("read %+v (%v)", l, err)
			}
			if !stored && !errors.Is(err, verbs.ErrMoved) {
				t.Errorf("read %+v (%v), want ErrMoved", l, err)
			}
			h.two.Unlock(t.Context())
		})
	}
}

// A process that does not know the previous state waits, too; and the handed-on batch of a dead process is
// ignored.
func TestProcessWithoutMomentGetsNoHandOver(t *testing.T) {
	h := newHanding(t)
	got := make(chan *verbs.Loaded, 1)
	go func() {
		l, err := h.two.Lock(context.Background(), &verbs.Want{Writer: "two"})
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	_ = h.end(false)
	l := <-got
	if l == nil || l.Handed != nil || l.Moment != h.batch.From.Moment {
		t.Fatalf("loaded %+v", l)
	}
	h.two.at = l.Counters
	d := h.two.delta()
	d.To.Moment += 5
	h.two.submit(d, 1)
	d.Log = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(d.From.Moment)), uint64(d.To.Moment))
	h.two.commit(d)
	three := newProcess(t, openTest(t, h.address), "three")
	l = three.load(verbs.Want{Since: d.From.Moment})
	if len(l.Logs) != 1 || string(l.Logs[0]) != string(d.Log) || l.Handed != nil {
		t.Errorf("%d logs and %+v, want the one that was stored", len(l.Logs), l.Handed)
	}
}
