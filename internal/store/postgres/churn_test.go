package postgres

import (
	"strconv"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// If tasks come, run, end and are pruned, tables and indexes stay as large as after the first rounds. Vacuum
// runs as autovacuum would.
func TestTablesDoNotBloat(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"autovacuum": "off"}})
	p := newProcess(t, openTest(t, s.URL("postgres")), "one")
	var settled int64
	for n := range 10 {
		p.round(t, soak.Pick(300, 1000))
		if err := s.Exec("postgres", "VACUUM"); err != nil {
			t.Fatal(err)
		}
		got, err := s.Query("postgres", `SELECT sum(pg_total_relation_size(c.oid))::bigint::text FROM pg_class c
			JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'signalbox' AND c.relkind = 'r'`)
		if err != nil {
			t.Fatal(err)
		}
		size, err := strconv.ParseInt(got[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n == 2:
			settled = size
		case n > 2 && size > settled*5/4:
			t.Fatalf("round %d: %d bytes, after the third it was %d", n+1, size, settled)
		}
	}
	if l := p.load(verbs.Want{Queues: []string{"work"}}); l.Queues[0].Waiting != 0 {
		t.Errorf("%d wait", l.Queues[0].Waiting)
	}
}

// The changes of a task during its life are written within its page, without index updates.
func TestTaskUpdatesAreHOT(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"autovacuum": "off"}})
	g, err := Open(t.Context(), Options{URL: s.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, g.(*Backend), "one")
	for range 5 {
		p.round(t, 500)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	// The server updates its statistics when a session ends.
	if err := s.Await("the store's sessions have ended", `SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'signalbox'`, "0"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Query("postgres", `SELECT (100 * n_tup_hot_upd / greatest(n_tup_upd, 1))::text FROM pg_stat_user_tables WHERE relname = 'tasks'`)
	if err != nil {
		t.Fatal(err)
	}
	if percent, err := strconv.Atoi(got[0]); err != nil || percent < 60 {
		t.Errorf("%s %% of the updates stay in their page (%v)", got[0], err)
	}
}

// round takes n tasks through their life, in batches of 100, and deletes them.
func (p *process) round(t *testing.T, n int) {
	t.Helper()
	for range n / 100 {
		d := p.delta()
		tasks := p.submit(d, 100)
		p.commit(d)
		var running, ended []*signalbox.Task
		d = p.delta()
		for i, task := range tasks {
			running = append(running, p.claim(d, task, i))
		}
		p.commit(d)
		d = p.delta()
		for _, task := range running {
			ended = append(ended, p.finish(d, task))
		}
		p.commit(d)
		d = p.delta()
		for _, task := range ended {
			d.Tasks = append(d.Tasks, verbs.TaskChange{Before: task})
		}
		d.Cut = d.From.Entry
		p.commit(d)
	}
}
