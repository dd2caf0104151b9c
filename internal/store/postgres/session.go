package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection with prepared statements.
type session struct {
	conn       *pgconn.PgConn
	statements []*pgconn.StatementDescription
	warned     bool // the server warned during the current exchange
}

// settings are required of a connection, on every server.
//
// Plans are made once and must use an index: a plan that the server bases on old statistics is wrong as soon
// as a queue has grown from nothing to a million.
const settings = `SET default_transaction_isolation = 'repeatable read';
	SET standard_conforming_strings = on;
	SET plan_cache_mode = force_generic_plan;
	SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET jit = off;
	SET max_parallel_workers_per_gather = 0;
	SET row_security = off;
	SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;
	SET lock_timeout = %d;
	SET statement_timeout = %d;
	SET idle_in_transaction_session_timeout = %d;
	SET default_transaction_read_only = %t`

// optionalSettings are settings that older servers lack.
var optionalSettings = []string{
	`SET default_toast_compression = 'lz4'`,
	`SET client_connection_check_interval = 1000`,
	`SET tcp_user_timeout = 15000`,
}

// prepare configures the connection and prepares the statements.
func (s *session) prepare(ctx context.Context, l limits) error {
	sql := fmt.Sprintf(settings, l.lock.Milliseconds(), l.statement.Milliseconds(), l.idle.Milliseconds(), l.readOnly)
	if _, err := s.conn.Exec(ctx, sql).ReadAll(); err != nil {
		return err
	}
	s.statements = make([]*pgconn.StatementDescription, len(statements))
	pipeline := s.conn.StartPipeline(ctx)
	for _, sql := range optionalSettings {
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
		pipeline.SendPipelineSync()
	}
	wanted := wantedBy(l.readOnly)
	for _, id := range wanted {
		pipeline.SendPrepare(name(id), statements[id], nil)
	}
	if err := pipeline.Sync(); err != nil {
		return errors.Join(err, pipeline.Close())
	}
	if err := s.collect(pipeline, wanted); err != nil {
		return errors.Join(err, pipeline.Close())
	}
	return pipeline.Close()
}

func name(id stmtID) string { return "s" + strconv.Itoa(int(id)) }

// wantedBy lists the statements of a session that reads, or writes.
func wantedBy(readOnly bool) (list []stmtID) {
	kind := writes
	if readOnly {
		kind = reads
	}
	for id, in := range sessions {
		if in&kind != 0 {
			list = append(list, stmtID(id))
		}
	}
	return list
}

// collect reads the server's answers to the statements of prepare.
func (s *session) collect(pipeline *pgconn.Pipeline, wanted []stmtID) error {
	for done := 0; ; {
		got, err := pipeline.GetResults()
		switch got := got.(type) {
		case *pgconn.ResultReader:
			_, _ = got.Close() // an optional setting
		case *pgconn.StatementDescription:
			got.Name = name(wanted[done])
			s.statements[wanted[done]] = got
			if done++; done == len(wanted) {
				return nil
			}
		case *pgconn.PipelineSync:
		default:
			if refused, ok := errors.AsType[*pgconn.PgError](err); ok && done == 0 && isUnsupported(refused) {
				continue
			}
			if err == nil {
				err = errors.New("the server answered fewer statements than it was asked")
			}
			return err
		}
	}
}

// isUnsupported reports whether an error says that a setting is unknown or not permitted.
func isUnsupported(err *pgconn.PgError) bool {
	return err.Code == "42704" || err.Code == "22023" || err.Code == "0A000" || err.Code == "42501"
}

// exchange is a batch of statements sent and answered together, in one transaction unless one
// is open.
type exchange struct {
	session *session
	batch   pgconn.Batch
	read    []func(row) error // reads the rows of each statement
	last    []func() error    // run after all rows were read
	sent    bool              // the server may have received some of it
}

func (s *session) exchange() *exchange { return &exchange{session: s} }

var binary1 = []int16{1} // all parameters and results are in the binary format

// do adds a statement whose rows, if any, do not matter.
func (x *exchange) do(id stmtID, params ...[]byte) { x.ask(id, nil, params...) }

// ask adds a statement. A nil parameter is NULL. read gets each row, whose bytes are valid until the next.
func (x *exchange) ask(id stmtID, read func(row) error, params ...[]byte) {
	x.batch.ExecStatement(x.session.statements[id], params, binary1, binary1)
	x.read = append(x.read, read)
}

// then runs f after all rows were read.
func (x *exchange) then(f func() error) { x.last = append(x.last, f) }

// run sends the statements and reads their answers. at is the index of the failed statement; the number of
// statements if the end of the transaction failed.
func (x *exchange) run(ctx context.Context) (at int, err error) {
	x.session.warned = false
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	// If a connection breaks during a batch, pgconn reports that nothing was sent on it, which may be wrong:
	// only this check is certain.
	x.sent = x.session.open()
	answers := x.session.conn.ExecBatch(ctx, &x.batch)
	for answers.NextResult() {
		answer := answers.ResultReader()
		for answer.NextRow() {
			if read := x.read[at]; read != nil && err == nil {
				err = read(row(answer.Values()))
			}
		}
		if _, bad := answer.Close(); bad != nil {
			break
		}
		at++
	}
	if bad := answers.Close(); bad != nil {
		return at, bad
	}
	for _, f := range x.last {
		if err == nil {
			err = f()
		}
	}
	return at, err
}

func (s *session) close(ctx context.Context) {
	if s != nil {
		_ = s.conn.Close(ctx) // the error does not matter
	}
}

// open reports whether the session may still be usable.
func (s *session) open() bool { return s != nil && !s.conn.IsClosed() }
