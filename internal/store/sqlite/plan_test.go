package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func openTest(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "test.db")
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// mayScan are the statements that may read a whole table or index, and why.
var mayScan = map[stmtID]string{
	stSlotsAll:     "one row for each slot in use: as many as run at once",
	stInFlight:     "one row for each slot in use: as many as run at once",
	stSlotWithhold: "one row for each slot in use, where a row is set aside",
	stWithoutSlot:  "for a person who asks doctor: one row for each slot in use",
	stPending:      "read at open: what waits is counted, over an index that holds nothing else",
	stDamagedAll:   "one row for each damaged one",
}

var scans = regexp.MustCompile(`^SCAN `)

func TestEveryStatementUsesAnIndex(t *testing.T) {
	s := openTest(t, Options{})
	used := map[stmtID]bool{}
	for id, sql := range statements {
		if sql == "" {
			t.Errorf("statement %d is not there", id)
			continue
		}
		for _, step := range plan(t, s, sql) {
			if strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("sorts: %s\n\t%s", step, sql)
			}
			if !scans.MatchString(step) || step == "SCAN CONSTANT ROW" {
				continue
			}
			if mayScan[stmtID(id)] == "" {
				t.Errorf("scans: %s\n\t%s", step, sql)
			}
			used[stmtID(id)] = true
		}
	}
	for id := range mayScan {
		if !used[id] {
			t.Errorf("statement %d need not be allowed to scan: it does not", id)
		}
	}
}

func plan(t *testing.T, s *Store, sql string) (steps []string) {
	t.Helper()
	st, _, err := s.backend.writer.db.PrepareTransient("EXPLAIN QUERY PLAN " + sql)
	if err != nil {
		t.Fatalf("%v\n\t%s", err, sql)
	}
	defer st.Finalize()
	for {
		row, err := st.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !row {
			return steps
		}
		steps = append(steps, st.ColumnText(3))
	}
}

// The claim must not read more if more tasks wait: its plan names the index and all the columns that it seeks
// by.
func TestClaimSeeks(t *testing.T) {
	s := openTest(t, Options{})
	want := "SEARCH tasks USING INDEX tasks_line (queue=? AND ready=? AND (order_key,place)>(?,?))"
	if got := plan(t, s, statements[stHeads]); len(got) != 1 || got[0] != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// Statements are declared in one place only, so that the plans of all are checked.
func TestStatementsAreDeclaredInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "conn.go" {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), ".Prep") {
			t.Errorf("%s prepares a statement of its own: put it into statements.go", file)
		}
	}
}
