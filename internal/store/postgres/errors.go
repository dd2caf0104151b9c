package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
)

// The server's error codes that are handled here.
const (
	codeZeroDivision  = "22012" // of stMetaStep: another process's batch came first
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeLockTimeout   = "55P03"
	codeIdleTimeout   = "25P03"
	codeReadOnly      = "25006"
	codeCancelled     = "57014"
	codeDiskFull      = "53100"
)

// isServer returns the code of an error of the server.
func isServer(err error) (*pgconn.PgError, bool) {
	var refused *pgconn.PgError
	ok := errors.As(err, &refused)
	return refused, ok
}

// isFatal reports whether the connection ends with err. In the middle of a transaction its
// outcome is unknown.
func isFatal(err *pgconn.PgError) bool {
	severity := err.SeverityUnlocalized
	return severity == "FATAL" || severity == "PANIC"
}

// failed describes an error of a write or a read; nothing was stored.
func failed(err error, doing string) error {
	if _, ok := errors.AsType[*signalbox.Error](err); ok {
		return err
	}
	refused, said := isServer(err)
	switch {
	case !said:
		return unreachable(err, doing)
	case isTransient(refused):
		return &signalbox.Error{Code: signalbox.CodeUnavailable, Err: serverMessage(refused), Message: doing + " must wait: PostgreSQL is starting, stopping, or changing over to another server"}
	}
	code := signalbox.CodeStoreFailed
	if refused.Code == codeDiskFull {
		code = signalbox.CodeStoreFull
	}
	return &signalbox.Error{Code: code, Err: serverMessage(refused), Message: doing + " failed, nothing was stored: " + hint(refused)}
}

// isTransient reports whether a retry may succeed.
func isTransient(err *pgconn.PgError) bool {
	switch {
	case strings.HasPrefix(err.Code, "57P"), // shutting down, starting
		strings.HasPrefix(err.Code, "08"),
		err.Code == "53300",      // too many connections
		err.Code == codeReadOnly, // after a failover: this server was the primary
		err.Code == codeIdleTimeout:
		return true
	}
	return false
}

// hint says what to do about a refusal of the server.
func hint(err *pgconn.PgError) string {
	switch {
	case err.Code == codeDiskFull:
		return "the disk of PostgreSQL is full; make room and try again"
	case err.Code == "53200":
		return "PostgreSQL is out of memory"
	case strings.HasPrefix(err.Code, "58"), strings.HasPrefix(err.Code, "XX"):
		return "PostgreSQL reports an error of its disk or of itself; look into its log"
	case err.Code == "42501":
		return "the user of the store lacks a right; give it all rights on the schema and what is in it"
	case err.Code == "42P01", err.Code == "3F000":
		return "a table of the store is gone; restore it from a backup"
	case err.Code == codeLockTimeout:
		return "another process holds the lock of the store; look for one that stands still, or for an open transaction in psql"
	case err.Code == codeCancelled:
		return "it took too long, or someone cancelled it"
	}
	return "PostgreSQL refused it"
}

// serverMessage is the server's message without its detail, which can hold values of a row.
func serverMessage(err *pgconn.PgError) error {
	return errors.New(err.Severity + ": " + err.Message + " (SQLSTATE " + err.Code + ")")
}

// unreachable is the error without a connection.
func unreachable(err error, doing string) error {
	return &signalbox.Error{Code: signalbox.CodeUnavailable, Err: withoutAddresses(err), Message: doing + " must wait: PostgreSQL cannot be reached"}
}

// withoutAddresses removes the addresses and users that pgconn adds to an error.
func withoutAddresses(err error) error {
	if refused, ok := isServer(err); ok {
		return serverMessage(refused)
	}
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errors.New("it did not answer in time")
	case errors.As(err, &op):
		return op
	}
	return errors.New("the connection broke")
}

// unopened explains why a connection could not be made, and what to do.
func unopened(err error, p *params) error {
	code, message := signalbox.CodeUnavailable, "cannot be reached; is it running, and are host and port right?"
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	refused, said := isServer(err)
	switch {
	case said:
		code, message = refusal(refused, p)
	case errors.As(err, &name):
		message = "cannot be found: there is no host of that name"
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &verification):
		code, message = signalbox.CodeStoreFailed, "shows a certificate that does not hold: set sslrootcert to the certificate of who signed it, and use the name that it is for"
	case strings.Contains(err.Error(), "read only connection"):
		code, message = signalbox.CodeUnavailable, readOnly
	case p.wantsTLS() && (errors.As(err, &record) || strings.Contains(err.Error(), "server refused TLS connection")):
		code, message = signalbox.CodeStoreFailed, "does not speak TLS, which sslmode asks for: set ssl=on there, or sslmode=disable here where the network is your own"
	case errors.Is(err, context.DeadlineExceeded):
		message = "does not answer; is a firewall in between?"
	}
	return &signalbox.Error{Code: code, Message: p.where() + " " + message, Err: withoutAddresses(err)}
}

const readOnly = "is a replica, or takes no writes: name the primary (or all servers, HOST1:5432,HOST2:5432)"

// refusal describes why a server refuses the login.
func refusal(err *pgconn.PgError, p *params) (signalbox.Code, string) {
	switch err.Code {
	case "28P01":
		return signalbox.CodeStoreFailed, "refuses the password of user " + p.config.User + ": set the right one in the address of the store"
	case "28000":
		return signalbox.CodeStoreFailed, "refuses user " + p.config.User + ": make the user, and allow it in pg_hba.conf; if TLS is wanted there, set sslmode=require"
	case "3D000":
		return signalbox.CodeStoreFailed, "is not there: create the database (createdb " + p.config.Database + ")"
	case "53300":
		return signalbox.CodeUnavailable, "has as many connections as it takes: raise max_connections there, or lower pool_max_conns here"
	case "42704", "22023":
		return signalbox.CodeStoreFailed, "does not know a setting that the address of the store names"
	}
	if isTransient(err) {
		return signalbox.CodeUnavailable, "is starting or stopping"
	}
	return signalbox.CodeStoreFailed, "lets nobody in"
}
