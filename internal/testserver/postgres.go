package testserver

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresUser owns the databases of a test server and is a superuser. It
// needs no password; roles made by a test need theirs over TCP.
const PostgresUser = "signalbox"

// PostgresOptions are the settings of a server.
type PostgresOptions struct {
	// Settings are lines of postgresql.conf in addition to those of every test
	// server: fsync and synchronous_commit are on.
	Settings map[string]string
	// Files are stored in the data folder, by name: a certificate, for example.
	Files map[string][]byte
	// Folder is the parent of the data folder, instead of the system's folder for
	// temporary files; a small disk, for example.
	Folder string
}

// PostgresServer is a PostgreSQL server.
type PostgresServer struct {
	Port int
	// Data is the data folder, Socket the folder of its Unix socket.
	Data, Socket string

	folder  string
	options PostgresOptions
	process *process
	made    atomic.Int64 // number of databases
}

var (
	sharedPostgres     *PostgresServer
	sharedPostgresErr  error
	sharedPostgresOnce sync.Once
)

// Postgres returns the URL of a new, empty database on a server that all tests
// of the process share. The database is removed with the test, the server with
// the process.
func Postgres(tb TB) string {
	tb.Helper()
	sharedPostgresOnce.Do(func() { sharedPostgres, sharedPostgresErr = startPostgres(PostgresOptions{}) })
	if sharedPostgresErr != nil {
		tb.Fatalf("start PostgreSQL: %v", sharedPostgresErr)
	}
	return sharedPostgres.Database(tb)
}

// NewPostgres starts a separate server for the test, which may be restarted,
// killed and broken. It is removed with the test.
func NewPostgres(tb TB, o PostgresOptions) *PostgresServer {
	tb.Helper()
	s, err := startPostgres(o)
	if err != nil {
		tb.Fatalf("start PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.remove(); err != nil {
			tb.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// Database creates a new, empty database and returns its URL. It is removed
// with the test, if the server is up by then.
func (s *PostgresServer) Database(tb TB) string {
	tb.Helper()
	name := "test_" + strconv.FormatInt(s.made.Add(1), 10)
	if err := s.Exec("postgres", "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("create a database: %v", err)
	}
	tb.Cleanup(func() {
		if !s.process.running() {
			return
		}
		if err := s.Exec("postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Logf("drop database %s: %v", name, err)
		}
	})
	return s.URL(name)
}

// URL is the URL of a database over TCP.
func (s *PostgresServer) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", PostgresUser, s.Port, database)
}

// SocketURL is the URL of a database over the Unix socket.
func (s *PostgresServer) SocketURL(database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", database, url.QueryEscape(s.Socket), s.Port, PostgresUser)
}

// Exec runs statements in a database, as the superuser.
func (s *PostgresServer) Exec(database string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.SocketURL(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Query returns the first column of a statement's rows as text.
func (s *PostgresServer) Query(database, sql string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.SocketURL(database))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// settings are the settings of every test server.
func (s *PostgresServer) settings() map[string]string {
	all := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"unix_socket_directories":    s.Socket,
		"fsync":                      "on",
		"synchronous_commit":         "on",
		"max_connections":            "200",
		"shared_buffers":             "64MB",
		"dynamic_shared_memory_type": "mmap", // in the data folder: a killed server leaves nothing in /dev/shm
		"logging_collector":          "off",
		"log_timezone":               "UTC",
		"timezone":                   "UTC",
	}
	maps.Copy(all, s.options.Settings)
	return all
}

// configure writes the settings that differ from server to server.
func (s *PostgresServer) configure() error {
	text := ""
	all := s.settings()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf("%s = '%s'\n", key, all[key])
	}
	files := map[string][]byte{
		"postgresql.auto.conf": []byte(text),
		"pg_hba.conf": []byte("local all,replication all trust\n" +
			"host all,replication " + PostgresUser + " 127.0.0.1/32 trust\n" +
			"host all all 127.0.0.1/32 scram-sha-256\n"),
	}
	maps.Copy(files, s.options.Files)
	for name, text := range files {
		path := filepath.Join(s.Data, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if err := give(path); err != nil {
			return err
		}
	}
	return nil
}
