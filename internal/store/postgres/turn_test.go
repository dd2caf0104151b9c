package postgres

import (
	"testing"

	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// A process that waits for the lock must not keep dead rows from being vacuumed: with several directors one
// is waiting at any time, and the pages would fill with dead rows.
func TestLockWaitersDoNotBlockVacuum(t *testing.T) {
	address := testserver.Postgres(t)
	one, two := newProcess(t, openTest(t, address), "one"), newProcess(t, openTest(t, address), "two")
	two.lock() // the first use looks up the table, which takes a snapshot
	two.Unlock(t.Context())
	one.lock()
	got := make(chan error, 1)
	go func() {
		_, err := two.Lock(t.Context(), &verbs.Want{Writer: "two"})
		got <- err
	}()
	conn, err := one.params.dial(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for waits := false; !waits; {
		rows, err := query(t.Context(), conn, `SELECT count(*) FILTER (WHERE a.backend_xmin IS NULL AND a.backend_xid IS NULL) || ' of ' || count(*)
			FROM pg_stat_activity a JOIN pg_locks l USING (pid) WHERE NOT l.granted AND l.relation = 'turn'::regclass`)
		if err != nil {
			t.Fatal(err)
		}
		switch rows[0] {
		case "0 of 0": // not there yet
		case "1 of 1":
			waits = true
		default:
			t.Fatalf("%s who wait have no snapshot", rows[0])
		}
	}
	one.Unlock(t.Context())
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	two.Unlock(t.Context())
}
