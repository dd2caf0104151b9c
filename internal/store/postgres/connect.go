package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
)

// limits bound the statements of a connection.
type limits struct {
	statement, lock, idle time.Duration
	readOnly              bool
}

// limits for readers: their statements are short. A writer's commit must not be cancelled by
// the server: if a wait for a standby is cancelled, the standby lacks the commit.
func (p *params) limits(reads bool) limits {
	l := limits{lock: p.limit.lock, idle: p.limit.idle, readOnly: reads}
	if reads {
		l.statement = statementTimeout
	}
	return l
}

// dial makes a connection.
func (p *params) dial(ctx context.Context, change func(c *pgconn.Config)) (*pgconn.PgConn, error) {
	config := p.config.Copy()
	if change != nil {
		change(config)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, unopened(err, p)
	}
	return conn, nil
}

// session opens a session, and checks that the server still has the same store, since the server may have
// been replaced.
func (g *Backend) session(ctx context.Context, l limits) (*session, error) {
	s := &session{}
	conn, err := g.params.dial(ctx, func(c *pgconn.Config) {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { s.warned = s.warned || n.SeverityUnlocalized == "WARNING" }
	})
	if err != nil {
		return nil, err
	}
	s.conn = conn
	if err := g.prepareSession(ctx, s, l); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// prepareSession checks the server, and prepares the statements.
func (g *Backend) prepareSession(ctx context.Context, s *session, l limits) error {
	got, err := query(ctx, s.conn, `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
		CASE WHEN pg_is_in_recovery() THEN '' ELSE (SELECT store_id FROM meta WHERE id = 1) END`)
	switch {
	case err != nil:
		return failed(err, "the connection to the store")
	case got[0] == "t":
		return signalbox.Errorf(signalbox.CodeUnavailable, "%s %s", g.params.where(), readOnly)
	case got[1] != g.info.ID:
		return signalbox.Errorf(signalbox.CodeStoreFailed, "%s has another store now: end this process, and look at what became of the database", g.params.where())
	}
	if g.raise {
		if _, err := s.conn.Exec(ctx, "SET synchronous_commit = on").ReadAll(); err != nil {
			return failed(err, "the connection to the store")
		}
	}
	if err := s.prepare(ctx, l); err != nil {
		return failed(err, "the connection to the store")
	}
	return nil
}

// query returns the first row of a statement as text.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) ([]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	var row []string
	for _, r := range results {
		for _, values := range r.Rows[:min(1, len(r.Rows))] {
			for _, v := range values {
				row = append(row, string(v))
			}
		}
	}
	return row, nil
}
