//go:build unix

package testserver_test

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/signalbox-ai/signalbox/internal/testserver"
)

func TestDatabasesAreApart(t *testing.T) {
	one, two := testserver.Postgres(t), testserver.Postgres(t)
	if one == two {
		t.Fatalf("both are %s", one)
	}
}

func TestServerComesBackWithWhatItHad(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{})
	if err := s.Exec("postgres", "CREATE TABLE x(a text)"); err != nil {
		t.Fatal(err)
	}
	crash := map[string]func() error{
		"fast":      func() error { return s.Stop("fast") },
		"immediate": func() error { return s.Stop("immediate") },
		"kill":      s.Kill,
	}
	for how, stop := range crash {
		if err := s.Exec("postgres", "INSERT INTO x VALUES('"+how+"')"); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Query("postgres", "SELECT a FROM x WHERE a = '"+how+"'"); err != nil || len(got) != 1 {
			t.Errorf("after %s: %q (%v)", how, got, err)
		}
	}
	if got, err := s.Query("postgres", "SELECT current_setting('fsync') || current_setting('synchronous_commit')"); err != nil || got[0] != "onon" {
		t.Errorf("fsync and synchronous_commit are %q (%v)", got, err)
	}
}

func TestServerGoesWithItsTest(t *testing.T) {
	var data string
	var pid int
	t.Run("inner", func(t *testing.T) {
		s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"work_mem": "1MB"}})
		data, pid = s.Data, s.Pid()
		if got, err := s.Query("postgres", "SHOW work_mem"); err != nil || got[0] != "1MB" {
			t.Errorf("work_mem is %q (%v)", got, err)
		}
	})
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder is there: %v", err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the server lives")
	}
}

func TestInvalidSettingIsNamed(t *testing.T) {
	tb := &recorder{TB: t}
	tb.catch(func() {
		testserver.NewPostgres(tb, testserver.PostgresOptions{Settings: map[string]string{"work_mem": "much"}})
	})
	if !strings.Contains(tb.said, "work_mem") {
		t.Errorf("said %q", tb.said)
	}
}

// A returned schema is lent again, with its tables and migrations but without
// rows. Schemas that are still lent are left alone.
func TestSchemasAreEmptiedAndLentAgain(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{})
	schemas := &testserver.Schemas{Server: s, Database: "postgres", Keep: "migrations"}
	one, two := schemas.Borrow(), schemas.Borrow()
	if one.URL == two.URL {
		t.Fatalf("%s is handed out twice", one.URL)
	}
	names := map[testserver.Schema]string{}
	for _, lent := range []testserver.Schema{one, two} {
		u, err := url.Parse(lent.URL)
		if err != nil {
			t.Fatal(err)
		}
		name := u.Query().Get("schema")
		names[lent] = name
		err = s.Exec("postgres", "CREATE SCHEMA "+name, "CREATE TABLE "+name+".migrations AS SELECT 3 AS version", `CREATE TABLE `+name+`."Odd one" AS SELECT 1 AS n`)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Return(); err != nil {
		t.Fatal(err)
	}
	if again := schemas.Borrow(); again.URL != one.URL {
		t.Errorf("%s is lent, want %s again", again.URL, one.URL)
	}
	rows := `SELECT version FROM %[1]s.migrations UNION ALL SELECT 10 * n FROM %[1]s."Odd one" ORDER BY 1`
	for lent, want := range map[testserver.Schema][]string{one: {"3"}, two: {"3", "10"}} {
		if got, err := s.Query("postgres", fmt.Sprintf(rows, names[lent])); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v (%v)", names[lent], got, want, err)
		}
	}
}
