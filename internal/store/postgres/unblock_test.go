package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/internal/chaos"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// shortTimeouts opens a backend with a short timeout for the lock.
func shortTimeouts(t *testing.T, address string) *Backend {
	t.Helper()
	g, err := Open(t.Context(), Options{URL: address, limit: timeouts{idleTimeout, 700 * time.Millisecond, 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g.(*Backend)
}

// A process is paused, or cut off, while it sends a commit: the server has taken the lock, and waits for the
// rest for ever.
func TestIncidentProcessPausedInCommitLosesLock(t *testing.T) {
	address := testserver.Postgres(t)
	for what, take := range map[string]func(p *process) error{
		"lock":   func(p *process) error { p.lock(); return nil },
		"commit": func(p *process) error { d := p.delta(); p.submit(d, 1); return p.try(d) },
		"asked":  func(p *process) error { _, err := p.Committed(t.Context(), "none", 1); return err },
	} {
		through, url := newProxy(t, address)
		one, two := newProcess(t, openTest(t, url), "one"), newProcess(t, shortTimeouts(t, address), "two "+what)
		d := one.delta()
		lost := one.submit(d, 500)
		happened := through.Strike(chaos.KeepHalf, ofBatch)
		stuck := make(chan error, 1)
		go func() { stuck <- one.try(d) }()
		<-happened
		stoodStill(t, two)
		began := time.Now()
		if err := take(two); err != nil && !errors.Is(err, verbs.ErrMoved) {
			t.Fatalf("%s: %v", what, err)
		}
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("%s: after %s: nothing was in the way", what, took)
		}
		two.Unlock(t.Context())
		if err := <-stuck; !errors.Is(err, verbs.ErrUnknown) {
			t.Errorf("%s: the paused process got %v, want ErrUnknown", what, err)
		}
		if stored, err := one.Committed(t.Context(), "one", d.Number); err != nil || stored || known(t, two.Backend, lost[0].ID) {
			t.Errorf("%s: its commit is stored: %t (%v)", what, stored, err)
		}
		two.load(verbs.Want{})
		d = two.delta()
		two.submit(d, 1)
		two.commit(d)
	}
}

// stoodStill waits until a session has the lock and waits for its client.
func stoodStill(t *testing.T, p *process) {
	t.Helper()
	conn, err := p.params.dial(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for {
		got, err := query(t.Context(), conn, `SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid)
			WHERE l.relation = 'meta'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted AND a.wait_event = 'ClientRead'`)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != "0" {
			return
		}
	}
}

// Any other holder of the lock keeps it, and is named in the error: a person with psql, or a process that
// works.
func TestUnblockKeepsOtherSessions(t *testing.T) {
	address := testserver.Postgres(t)
	p := newProcess(t, shortTimeouts(t, address), "one")
	for what, name := range map[string]string{"another program": "psql", "one that has only begun": "signalbox"} {
		conn, err := p.params.dial(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		said := "SET application_name = '" + name + "'; BEGIN; SELECT FROM meta FOR UPDATE"
		if _, err := conn.Exec(t.Context(), said).ReadAll(); err != nil {
			t.Fatal(err)
		}
		if name == "signalbox" {
			p.params.limit.still = time.Minute
		}
		if _, err := p.Lock(t.Context(), &verbs.Want{Writer: "one"}); err == nil {
			t.Errorf("%s lost the lock", what)
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK").ReadAll(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = conn.Close(t.Context())
		p.params.limit.still = 300 * time.Millisecond
	}
	p.lock()
	p.Unlock(t.Context())
}
