//go:build unix

package testserver_test

import (
	"os"
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

func TestSettingThatIsWrongIsNamed(t *testing.T) {
	tb := &recorder{TB: t}
	tb.catch(func() {
		testserver.NewPostgres(tb, testserver.PostgresOptions{Settings: map[string]string{"work_mem": "much"}})
	})
	if !strings.Contains(tb.said, "work_mem") {
		t.Errorf("said %q", tb.said)
	}
}
