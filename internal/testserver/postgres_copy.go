package testserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/signalbox-ai/signalbox/internal/testkit"
)

// Copy copies the data folder of a server, which it stops and restarts for
// that, like a cold backup. putBack replaces the folder by the copy: what was
// stored since is lost, and the server does not know that.
func (s *PostgresServer) Copy() (putBack func() error, err error) {
	kept := s.Data + ".kept"
	if err := s.cold(func() error { return s.copyFolder(s.Data, kept) }); err != nil {
		return nil, err
	}
	return func() error {
		return s.cold(func() error { return errors.Join(os.RemoveAll(s.Data), s.copyFolder(kept, s.Data)) })
	}, nil
}

// cold runs f while the server is stopped.
func (s *PostgresServer) cold(f func() error) error {
	if err := s.Stop("fast"); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.Start()
}

func (s *PostgresServer) copyFolder(from, to string) error { return s.tool("/bin/cp", "-a", from, to) }

// tool runs a program to its end, as the user that runs the server.
func (s *PostgresServer) tool(bin string, args ...string) error {
	cmd := asPostgres(bin, args...)
	cmd.Dir = s.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(bin), err, out)
	}
	return nil
}

// Reload changes settings of a running server that need no restart.
func (s *PostgresServer) Reload(settings map[string]string) error {
	all := maps.Clone(s.options.Settings)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, settings)
	s.options.Settings = all
	if err := s.configure(); err != nil {
		return err
	}
	return send(s.Pid(), syscall.SIGHUP)
}

// NewStandby starts a standby, to which the server streams its writes. It is
// removed with the test.
func (s *PostgresServer) NewStandby(tb TB, name string) *PostgresServer {
	tb.Helper()
	standby, err := s.startStandby(name)
	if err != nil {
		tb.Fatalf("start a standby of PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := standby.remove(); err != nil {
			tb.Errorf("stop the standby of PostgreSQL: %v", err)
		}
	})
	return standby
}

func (s *PostgresServer) startStandby(name string) (_ *PostgresServer, err error) {
	folder, err := newFolder(s.options.Folder, "signalbox-pg-")
	if err != nil {
		return nil, err
	}
	b := &PostgresServer{folder: folder.path, Data: filepath.Join(folder.path, "data"), Socket: folder.path, process: &process{folder: folder}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.remove())
		}
	}()
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=%s", s.Port, PostgresUser, name)
	b.options.Settings = map[string]string{"primary_conninfo": from, "hot_standby": "on"}
	bin, err := postgresBinary("pg_basebackup")
	if err != nil {
		return nil, err
	}
	if err := b.tool(bin, "--pgdata", b.Data, "--dbname", from, "--wal-method", "stream", "--checkpoint", "fast", "--no-sync"); err != nil {
		return nil, err
	}
	signal := filepath.Join(b.Data, "standby.signal")
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), give(signal)); err != nil {
		return nil, err
	}
	if b.Port, err = folder.reservePort(); err != nil {
		return nil, err
	}
	if err := b.Start(); err != nil {
		return nil, err
	}
	return b, s.Await("the standby streams", "SELECT count(*)::text FROM pg_stat_replication WHERE state = 'streaming' AND application_name = '"+name+"'", "1")
}

// Follow makes a standby follow its primary, or stop following it.
func (s *PostgresServer) Follow(primary *PostgresServer, name string, on bool) error {
	from, streams := "", "0"
	if on {
		from, streams = fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=%s", primary.Port, PostgresUser, name), "1"
	}
	if err := s.Reload(map[string]string{"primary_conninfo": from}); err != nil {
		return err
	}
	return primary.Await("the standby follows, or does not", "SELECT count(*)::text FROM pg_stat_replication WHERE application_name = '"+name+"'", streams)
}

// CaughtUp waits until the standby of that name has everything that the server
// wrote.
func (s *PostgresServer) CaughtUp(name string) error {
	at, err := s.Query("postgres", "SELECT pg_current_wal_flush_lsn()::text")
	if err != nil {
		return err
	}
	return s.Await("the standby has all", "SELECT (count(*) = 1)::text FROM pg_stat_replication WHERE application_name = '"+name+"' AND replay_lsn >= '"+at[0]+"'", "true")
}

// Promote makes a standby the primary, and returns when it accepts writes.
func (s *PostgresServer) Promote() error {
	_, err := s.Query("postgres", "SELECT pg_promote(true, 60)::text")
	if err != nil {
		return err
	}
	return s.Await("it takes writes", "SELECT pg_is_in_recovery()::text", "false")
}

// Await repeats a query until it has the wanted answer.
func (s *PostgresServer) Await(what, sql, want string) error {
	var got []string
	var err error
	if !testkit.Within(time.Minute, func() bool {
		got, err = s.Query("postgres", sql)
		return err == nil && len(got) == 1 && got[0] == want
	}) {
		return fmt.Errorf("%s: not yet, at port %d: %q (%w)", what, s.Port, strings.Join(got, ", "), err)
	}
	return nil
}
