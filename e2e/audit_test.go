package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/client"
)

// Actions are recorded, and rows that are changed, removed or cut off behind
// the director's back are detected.
func TestAuditVerify(t *testing.T) {
	b := newBox(t)
	addr := freePort(t)
	director := b.director("--addr", addr)
	b.agent("coder", director.url)
	c := b.client(director.url)
	b.untilState(c, "coder", "idle")
	for range 3 {
		b.want(0, "release", "coder")
		b.want(0, "clear", "coder")
	}
	b.want(0, "pause", "--reason", "a look around")
	b.want(0, "resume")
	token := b.want(0, "tokens", "create", "a-script", "--agent", "coder")
	if strings.Contains(b.want(0, "audit", "--json").out, strings.TrimSpace(token.out)) {
		t.Error("the audit log has a secret in it")
	}
	head := parse[api.AuditHead](t, b.want(0, "audit", "head", "--json").out)
	if got := b.want(0, "audit", "verify"); !strings.Contains(got.out, fmt.Sprintf("%d rows verified, head %d %s", head.Seq, head.Seq, head.Hash)) {
		t.Errorf("audit verify: %s", got.out)
	}
	log, err := c.Audit(b.ctx(), client.AuditOptions{EventType: "agent_queue"})
	if err != nil || len(log.Rows) != 6 {
		t.Fatalf("%d rows of agent_queue, %v", len(log.Rows), err)
	}
	for i, row := range log.Rows {
		action, severity := "force_release", "warning"
		if i%2 == 1 {
			action, severity = "clear_queue", "info"
		}
		if row.Action != action || row.Severity != severity || row.AgentName != "coder" || row.Result != "success" {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	all, err := c.Audit(b.ctx(), client.AuditOptions{})
	if err != nil || len(all.Rows) < 5 || all.Rows[2].Seq != 3 {
		t.Fatalf("%+v (%v)", all.Rows, err)
	}
	director.stop()
	file := filepath.Join(b.data, "signalbox.db")
	whole := b.read(file)
	restore := func() {
		for _, end := range []string{"-wal", "-shm"} {
			if err := os.Remove(file + end); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		b.file(file, whole, 0o600)
	}
	for name, c := range map[string]struct {
		change string
		verify []string
		want   string
	}{
		"a row is changed":             {changeAudit("success", "refused", "", ""), nil, "row 3"},
		"a row is changed with a hash": {changeAudit("success", "refused", all.Rows[2].Hash, strings.Repeat("a", 64)), nil, "row 3"},
		"a row is taken out":           {`DELETE FROM docs WHERE kind = 'audit' AND sort = 4`, nil, "row 5"},
		"the first rows are taken out": {`DELETE FROM docs WHERE kind = 'audit' AND sort < 3`, nil, "row 3"},
		"the end is cut off":           {`DELETE FROM docs WHERE kind = 'audit' AND sort > 5`, []string{"--seq", fmt.Sprint(head.Seq), "--head", head.Hash}, "removed from the end"},
	} {
		restore()
		tamper(t, file, c.change)
		director := b.director("--addr", addr)
		got := b.want(1, append([]string{"audit", "verify"}, c.verify...)...)
		if !strings.Contains(got.err, c.want) {
			t.Errorf("%s: no %q in %q", name, c.want, got.err)
		}
		director.stop()
	}
	restore()
	b.director("--addr", addr)
	b.want(0, "audit", "verify", "--seq", fmt.Sprint(head.Seq), "--head", head.Hash)
}

// changeAudit changes two texts in the third row to others of the same
// length.
func changeAudit(was, is, wasToo, isToo string) string {
	return fmt.Sprintf(`UPDATE docs SET body = unhex(replace(replace(hex(body), hex('%s'), hex('%s')), hex('%s'), hex('%s'))) WHERE kind = 'audit' AND sort = 3`,
		was, is, wasToo, isToo)
}

// tamper changes the database from outside.
func tamper(t *testing.T, file, change string) {
	t.Helper()
	db, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := sqlitex.ExecuteScript(db, change+";", nil); err != nil {
		t.Fatal(err)
	}
	if db.Changes() == 0 {
		t.Fatalf("nothing was changed by %s", change)
	}
}
