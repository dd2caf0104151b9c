package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// password is what no error may contain.
const password = "hunter2%21"

// refused wants Open to fail with an error that contains the texts.
func refused(t *testing.T, address string, code signalbox.Code, said ...string) {
	t.Helper()
	refusedWith(t, Options{URL: address}, code, said...)
}

func refusedWith(t *testing.T, o Options, code signalbox.Code, said ...string) {
	t.Helper()
	g, err := Open(t.Context(), o)
	if err == nil {
		g.Close()
		t.Errorf("%s was opened, want an error that says %q", o.URL, said)
		return
	}
	if got := signalbox.CodeOf(err); got != code {
		t.Errorf("the code is %s, want %s: %v", got, code, err)
	}
	for _, part := range said {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	for e := err; e != nil; {
		if strings.Contains(e.Error(), "hunter2") {
			t.Errorf("%q holds the password", e)
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = u.Unwrap()
	}
}

func TestInvalidURLsAreRefused(t *testing.T) {
	for address, said := range map[string]string{
		"":                                "postgres://",
		"mysql://u:" + password + "@h/db": "postgres://",
		"postgres://u:" + password + "@h:port/db":               "postgres://USER",
		"postgres://u:hunter2%zz@h/db":                          "postgres://USER",
		"postgres://u:hunter2/x@h/db":                           "postgres://USER",
		"postgres://u:hunter2@h:77777/db":                       "port",
		"postgres://u:" + password + "@h/db?sslmode=perhaps":    "sslmode",
		"postgres://u:" + password + "@h/db?schema=A-b":         "schema",
		"postgres://u:" + password + "@h/db?unsafe=maybe":       "unsafe",
		"postgres://u:" + password + "@h/db?pool_max_conns=1":   "pool_max_conns",
		"postgres://u:" + password + "@h/db?pool_max_conns=all": "pool_max_conns",
		"postgres://u:" + password + "@h/db?%zz":                "?",
	} {
		refused(t, address, signalbox.CodeValidation, said, "address of the PostgreSQL store")
	}
}

func TestUnreachableServerIsNamed(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	refused(t, "postgres://u:"+password+"@"+address+"/tasks", signalbox.CodeUnavailable, address, `"tasks"`, "cannot be reached")
	refused(t, "postgres://u:"+password+"@no-such-host.invalid/tasks", signalbox.CodeUnavailable, "no-such-host.invalid")
}

func TestServerErrorsHaveHints(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{})
	if err := s.Exec("postgres", "CREATE ROLE secured LOGIN PASSWORD 'hunter2!'", "CREATE DATABASE tasks"); err != nil {
		t.Fatal(err)
	}
	as := func(user, database, query string) string {
		return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?%s", user, s.Port, database, query)
	}
	refused(t, as("secured:hunter2wrong", "tasks", "sslmode=disable"), signalbox.CodeStoreFailed, "refuses the password of user secured")
	refused(t, as("nobody:"+password, "tasks", "sslmode=disable"), signalbox.CodeStoreFailed, "user nobody")
	refused(t, as("secured:"+password, "other", "sslmode=disable"), signalbox.CodeStoreFailed, "create the database")
	refused(t, as("secured:"+password, "tasks", "sslmode=require"), signalbox.CodeStoreFailed, "does not speak TLS", "sslmode=disable")
	refused(t, as("secured:"+password, "tasks", "sslmode=disable"), signalbox.CodeStoreFailed, "GRANT CREATE ON DATABASE tasks TO secured")
	refused(t, as("secured:"+password, "tasks", "sslmode=disable&colour=red"), signalbox.CodeStoreFailed, "does not know a setting")
	if err := s.Exec("tasks", "CREATE SCHEMA signalbox", "GRANT USAGE ON SCHEMA signalbox TO secured"); err != nil {
		t.Fatal(err)
	}
	refused(t, as("secured:"+password, "tasks", "sslmode=disable"), signalbox.CodeStoreFailed, "all rights on the schema signalbox")
	if err := s.Exec("tasks", "GRANT ALL ON SCHEMA signalbox TO secured"); err != nil {
		t.Fatal(err)
	}
	openTest(t, as("secured:"+password, "tasks", "sslmode=disable"))
	if err := s.Exec("postgres", "ALTER ROLE secured SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	refused(t, as("secured:"+password, "tasks", "sslmode=disable"), signalbox.CodeStoreFailed, "takes no writes")
	refused(t, as("secured:"+password, "tasks", ""), signalbox.CodeUnavailable, "takes no writes")
}

func TestReplicaIsRefused(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{Files: map[string][]byte{"standby.signal": nil}})
	refused(t, s.URL("postgres"), signalbox.CodeStoreFailed, "is a replica")
	// Without an sslmode TLS is tried first: that the server has no TLS is not the error.
	refused(t, strings.TrimSuffix(s.URL("postgres"), "?sslmode=disable"), signalbox.CodeUnavailable, "is a replica")
}

// A server is accepted or refused by its guarantees, with a message.
func TestUnsafeServersAreRefused(t *testing.T) {
	for setting, said := range map[string]string{"fsync": "fsync=off", "full_page_writes": "full_page_writes=off"} {
		s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{setting: "off"}})
		refused(t, s.URL("postgres"), signalbox.CodeStoreFailed, said, "unsafe=on")
		var log strings.Builder
		g, err := Open(t.Context(), Options{URL: s.URL("postgres") + "&unsafe=on", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		if got := g.Info().Durability; !strings.Contains(got, said) {
			t.Errorf("%q does not say %q", got, said)
		}
		if setting == "fsync" && !strings.Contains(log.String(), "NOTHING") {
			t.Errorf("the log says only %q", log.String())
		}
	}
}

func TestSynchronousCommitIsEnabled(t *testing.T) {
	s := testserver.NewPostgres(t, testserver.PostgresOptions{Settings: map[string]string{"synchronous_commit": "off"}})
	g := openTest(t, s.URL("postgres"))
	if got := g.Info().Durability; !strings.Contains(got, "synchronous_commit=on (set by this program") {
		t.Errorf("it says %q", got)
	}
	p := newProcess(t, g, "one")
	if got, err := query(t.Context(), p.writer.session.conn, "SHOW synchronous_commit"); err != nil || got[0] != "on" {
		t.Errorf("the writer has synchronous_commit=%q (%v)", got, err)
	}
	refused(t, s.URL("postgres")+"&synchronous_commit=off", signalbox.CodeStoreFailed, "synchronous_commit=off", "unsafe=on")
	g = openTest(t, s.URL("postgres")+"&synchronous_commit=off&unsafe=on")
	if got := g.Info().Durability; !strings.Contains(got, "LOST") {
		t.Errorf("it says %q", got)
	}
}

func TestGuarantees(t *testing.T) {
	p, err := parse("postgres://u@h/db")
	if err != nil {
		t.Fatal(err)
	}
	const fine = "150015|15.15 (Debian 15.15-0)|f|on||on|on"
	row := func(text string, changes ...string) []string {
		return strings.Split(strings.NewReplacer(changes...).Replace(text), "|")
	}
	for _, c := range []struct {
		name string
		row  []string
		said string
	}{
		{"an ordinary server", row(fine), "survives a crash and a power cut of the server; a failover to a replica can lose"},
		{"with a standby", row(fine, "|on||", `|on|FIRST 1 (b)|`), `and a failover to a standby of "FIRST 1 (b)"`},
		{"that only receives", row(fine, "|on||", "|remote_write|b|"), "unless its machine fails too"},
		{"that is not waited for", row(fine, "|on||", "|local|b|"), "synchronous_commit=on (set by this program"},
		{"local without standbys", row(fine, "|on||", "|local||"), "synchronous_commit=local: what was acknowledged survives"},
	} {
		have, err := p.judge(c.row)
		if err != nil || !strings.Contains(have.describe(), c.said) {
			t.Errorf("%s: %+v (%v), want %q", c.name, have, err, c.said)
		}
	}
	if _, err := p.judge(row(fine, "150015", "130009", "15.15", "13.9")); err == nil || !strings.Contains(err.Error(), "is version 13.9: the store needs 14 or newer") {
		t.Errorf("an older server: %v", err)
	}
}

func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	s := testserver.NewPostgres(t, testserver.PostgresOptions{
		Settings: map[string]string{"ssl": "on"}, Files: map[string][]byte{"server.crt": certificate, "server.key": key},
	})
	root := filepath.Join(t.TempDir(), "root.crt")
	if err := os.WriteFile(root, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSuffix(s.URL("postgres"), "disable")
	g := openTest(t, address+"verify-full&sslrootcert="+root)
	if got, err := query(t.Context(), newProcess(t, g, "one").writer.session.conn, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"); err != nil || got[0] != "t" {
		t.Errorf("ssl is %q (%v)", got, err)
	}
	other, _ := selfSigned(t)
	if err := os.WriteFile(root, other, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, address+"verify-full&sslrootcert="+root, signalbox.CodeStoreFailed, "certificate", "sslrootcert")
}

func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	for i, m := range migrations {
		if m.version != i+1 {
			t.Errorf("step %d has the number %d", i+1, m.version)
		}
	}
}

func TestSchemaOfANewerVersionIsRefused(t *testing.T) {
	address := testserver.Postgres(t)
	later := append(migrations[:len(migrations):len(migrations)], migration{len(migrations) + 1, []string{"ALTER TABLE tasks ADD COLUMN colour text"}})
	old := newProcess(t, openTest(t, address), "old")
	g, err := Open(t.Context(), Options{URL: address, migrations: later})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	if got := g.Info(); got.Schema != len(later) || got.ID != old.Info().ID {
		t.Errorf("%+v", got)
	}
	refused(t, address, signalbox.CodeStoreFailed, "newer version", "upgrade")
	d := old.delta() // a running process continues beside it
	old.submit(d, 1)
	old.commit(d)
}

func TestFailedMigrationLeavesNothing(t *testing.T) {
	address := testserver.Postgres(t)
	id := openTest(t, address).Info().ID
	broken := append(migrations[:len(migrations):len(migrations)], migration{len(migrations) + 1, []string{"CREATE TABLE notes(a text)", "ALTER TABLE letters ADD COLUMN a text"}})
	refusedWith(t, Options{URL: address, migrations: broken}, signalbox.CodeStoreFailed, "opening the store")
	if got := openTest(t, address).Info(); got.ID != id || got.Schema != len(migrations) {
		t.Errorf("%+v", got)
	}
}

func TestConcurrentOpenOfNewStore(t *testing.T) {
	address := testserver.Postgres(t)
	ids := make(chan string)
	const n = 8
	for range n {
		go func() {
			g, err := Open(context.Background(), Options{URL: address})
			if err != nil {
				t.Error(err)
				ids <- ""
				return
			}
			defer g.Close()
			ids <- g.Info().ID
		}()
	}
	seen := map[string]bool{}
	for range n {
		seen[<-ids] = true
	}
	if len(seen) != 1 {
		t.Errorf("they see %d stores", len(seen))
	}
}

func TestPrimaryOfSeveralServersIsUsed(t *testing.T) {
	standby := testserver.NewPostgres(t, testserver.PostgresOptions{Files: map[string][]byte{"standby.signal": nil}})
	primary := testserver.NewPostgres(t, testserver.PostgresOptions{})
	g := openTest(t, fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable", testserver.PostgresUser, standby.Port, primary.Port))
	p := newProcess(t, g, "one")
	d := p.delta()
	p.submit(d, 1)
	p.commit(d)
}
