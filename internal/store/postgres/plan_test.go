package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/soak"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// mayScan are the statements whose plan may read a whole table or index, and why.
var mayScan = map[stmtID]string{
	stInFlight:     "one row for each slot in use: as many as run at once",
	stStates:       "likewise",
	stSlots:        "likewise",
	stCounts:       "one row for each queue and limit",
	stCountSweep:   "likewise",
	stWaitingAll:   "likewise; of each line the first rows",
	stHeadsAll:     "likewise",
	stOldest:       "the first row of an index",
	stIDsNewest:    "the last rows of an index",
	stCut:          "the first rows of an index",
	stJournalRange: "the first row and the last",
}

// Each statement is planned once: its plan must use an index, with many rows as with none.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	full := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	fill(t, full)
	goByIndexes(t, full)
}

// A process that starts with empty tables keeps the plans that the server made then.
func TestEveryStatementUsesAnIndexOnEmptyTables(t *testing.T) {
	p := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	p.round(t, 100)
	vacuum(t, p)
	goByIndexes(t, p)
}

func vacuum(t *testing.T, p *process) {
	t.Helper()
	if _, err := p.writer.session.conn.Exec(t.Context(), "VACUUM ANALYZE").ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func goByIndexes(t *testing.T, p *process) {
	t.Helper()
	for id, sql := range statements {
		if !strings.HasPrefix(sql, "SELECT") && !strings.HasPrefix(sql, "WITH") && !strings.HasPrefix(sql, "UPDATE") && !strings.HasPrefix(sql, "DELETE") {
			continue
		}
		steps := plan(t, p, stmtID(id))
		for n, step := range steps {
			if fault := faultOf(step, steps[n+1:]); fault != "" && (mayScan[stmtID(id)] == "" || fault == "joins") {
				t.Errorf("%s: %s: %s", sql, fault, step)
			}
		}
	}
}

// faultOf describes what is wrong with a step of a plan; next are the steps after it.
func faultOf(step string, next []string) string {
	what := strings.TrimLeft(step, " ->")
	switch {
	case strings.HasPrefix(what, "Hash Join"), strings.HasPrefix(what, "Merge Join"), strings.HasPrefix(what, "Bitmap"):
		return "joins"
	case strings.HasPrefix(what, "Seq Scan"):
		return "scans"
	case strings.HasPrefix(what, "Index Scan"), strings.HasPrefix(what, "Index Only Scan"):
		if len(next) == 0 || !strings.Contains(next[0], "Index Cond") {
			return "reads all of an index"
		}
	}
	return ""
}

// The head of a queue is sought by all columns of an index, in its order.
func TestClaimSeeks(t *testing.T) {
	p := newProcess(t, openTest(t, testserver.Postgres(t)), "one")
	steps := plan(t, p, stHeads)
	for _, want := range []string{
		"Index Scan using line_pkey on line l", "Index Cond: ((queue = w.queue) AND (ready = true) AND (ROW(order_key, place) > ROW(w.order_key, w.place)))",
	} {
		if !slices.ContainsFunc(steps, func(step string) bool { return strings.Contains(step, want) }) {
			t.Errorf("the plan has no %q:\n%s", want, strings.Join(steps, "\n"))
		}
	}
}

// plan is the plan of a statement, in a session of its kind.
func plan(t *testing.T, p *process, id stmtID) []string {
	t.Helper()
	s := p.writer.session
	if s.statements[id] == nil {
		var err error
		if s, err = p.readers.get(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { p.readers.idle <- s }()
		if !s.open() {
			if s, err = p.session(t.Context(), p.params.limits(true)); err != nil {
				t.Fatal(err)
			}
		}
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(s.statements[id].ParamOIDs)), ",")
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	results, err := s.conn.Exec(t.Context(), "EXPLAIN EXECUTE "+name(id)+nulls).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", statements[id], err)
	}
	var steps []string
	for _, row := range results[0].Rows {
		steps = append(steps, string(row[0]))
	}
	return steps
}

// fill stores waiting tasks, most of them not ready.
func fill(t *testing.T, p *process) {
	t.Helper()
	batch := soak.Pick(1000, 5000)
	for n := range 20 {
		d := p.delta()
		p.submit(d, batch, func(task *signalbox.Task) {
			task.Ready = n == 19
			task.SessionID = fmt.Sprintf("s-%d", task.Seq/1000)
			task.ParentID = fmt.Sprintf("queue-%d", task.Seq/5)
		})
		p.commit(d)
	}
	vacuum(t, p)
	if l := p.load(verbs.Want{Lines: []verbs.LineWant{{Queue: "work", N: 3}}}); len(l.Lines[0]) != 3 || l.Lines[0][0].Seq != int64(19*batch)+1 {
		t.Fatalf("the head of the line is %+v", l.Lines[0])
	}
}
