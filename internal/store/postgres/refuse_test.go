package postgres

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// A role with fewer connections than a director needs is refused at start, with what to raise: otherwise it
// would fail as soon as it is busy.
func TestRoleWithTooFewConnectionsIsRefused(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{})
	if err := s.Exec("postgres", "CREATE ROLE few LOGIN PASSWORD 'hunter2!' CONNECTION LIMIT 1", "CREATE DATABASE tasks OWNER few"); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("postgres://few:%s@127.0.0.1:%d/tasks?sslmode=disable", password, s.Port)
	refused(t, address, signalbox.CodeStoreFailed, "ALTER ROLE few CONNECTION LIMIT 11")
	if err := s.Exec("postgres", "ALTER ROLE few CONNECTION LIMIT 6"); err != nil {
		t.Fatal(err)
	}
	refused(t, address, signalbox.CodeStoreFailed, "ALTER ROLE few CONNECTION LIMIT 11", "pool_max_conns=3")
	openTest(t, address+"&pool_max_conns=3")
	if err := s.Exec("postgres", "ALTER ROLE few CONNECTION LIMIT -1", "ALTER DATABASE tasks CONNECTION LIMIT 9"); err != nil {
		t.Fatal(err)
	}
	refused(t, address, signalbox.CodeStoreFailed, "ALTER DATABASE tasks CONNECTION LIMIT 11", "pool_max_conns=6")
}

// A schema with tables of another program is left alone, and the error asks for another name.
func TestSchemaOfOtherProgramIsLeftAlone(t *testing.T) {
	database := testserver.Postgres(t)
	g := openTest(t, database+"&schema=ours")
	conn := dialTest(t, g)
	n := 0
	for what, sql := range map[string]string{
		"migrations of another kind": "CREATE TABLE migrations(id int, name text)",
		"migrations by name":         "CREATE TABLE migrations(version text); INSERT INTO migrations VALUES('20260101_init')",
		"migrations by date":         "CREATE TABLE migrations(version bigint); INSERT INTO migrations VALUES(20260101120000)",
		"no migration yet":           "CREATE TABLE migrations(version int)",
		"tables of the same name":    "CREATE TABLE tasks(id int)",
	} {
		n++
		schema := fmt.Sprint("foreign_", n)
		if _, err := query(t.Context(), conn, "CREATE SCHEMA "+schema+"; SET search_path = "+schema+"; "+sql); err != nil {
			t.Fatal(err)
		}
		refused(t, database+"&schema="+schema, signalbox.CodeStoreFailed, "schema "+schema, "?schema=NAME")
		if got, err := query(t.Context(), conn, "SELECT count(*) FROM pg_tables WHERE schemaname = '"+schema+"'"); err != nil || got[0] != "1" {
			t.Errorf("%s: %v tables are there (%v)", what, got, err)
		}
	}
}

// An old server is refused by the version that it reports first: it may not know the settings asked for.
func TestOldServerIsRefusedByItsGreeting(t *testing.T) {
	for version, said := range map[string]string{"9.6.24": "is version 9.6.24", "13.16 (Debian 13.16-1)": "is version 13.16"} {
		refused(t, oldServer(t, version), signalbox.CodeStoreFailed, said, "14 or newer")
	}
}

// oldServer accepts every login, and refuses every statement.
func oldServer(t *testing.T, version string) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serveOld(c, version)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "postgres://old@" + l.Addr().String() + "/tasks?sslmode=disable"
}

func serveOld(c net.Conn, version string) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: version})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		said, err := b.Receive()
		if err != nil {
			return
		}
		if _, bye := said.(*pgproto3.Terminate); bye {
			return
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "42704", Message: "unrecognized configuration parameter"})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

func dialTest(t *testing.T, g *Backend) *pgconn.PgConn {
	t.Helper()
	conn, err := g.params.dial(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
