package postgres

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Options are the settings of a backend.
type Options struct {
	// URL is a libpq connection string, postgres://user:password@host:5432/db, including TLS (sslmode,
	// sslrootcert, …). Further settings are schema=NAME, the schema of the tables (default signalbox);
	// pool_max_conns=N, the number of connections for reads (default 8; one more writes and one listens); and
	// unsafe=on, which accepts a server that can lose acknowledged data.
	URL string
	Log *slog.Logger

	// For tests.
	migrations []migration
	limit      timeouts
}

// Backend is a verbs.SharedBackend in PostgreSQL.
type Backend struct {
	params *params
	log    *slog.Logger
	info   store.Info
	raise  bool // synchronous_commit must be set

	writer   writer
	readers  readers
	listener listener
}

var _ verbs.SharedBackend = (*Backend)(nil)

// Open connects, checks the server's guarantees, and upgrades the schema to this version.
func Open(ctx context.Context, o Options) (verbs.SharedBackend, error) {
	p, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.migrations == nil {
		o.migrations = migrations
	}
	if o.limit != (timeouts{}) {
		p.limit = o.limit
	}
	g := &Backend{params: p, log: o.Log}
	if err := g.open(ctx, o.migrations); err != nil {
		return nil, err
	}
	g.writer.backend = g
	g.readers.init(g.params.conns)
	g.listener.init(g)
	return g, nil
}

// open migrates the schema, on a connection that is closed afterwards.
func (g *Backend) open(ctx context.Context, steps []migration) error {
	p := g.params
	conn, err := p.dial(ctx, func(c *pgconn.Config) { c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {} })
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	have, err := p.checks(ctx, conn)
	if err != nil {
		return p.unusable(err)
	}
	g.raise = have.raisedSync
	version, err := p.migrate(ctx, conn, steps)
	if err != nil {
		return p.unusable(err)
	}
	id, err := identity(ctx, conn)
	if err != nil {
		return p.unusable(err)
	}
	g.info = store.Info{Kind: "postgres", ID: id, Durability: have.describe(), Grade: have.grade(), Schema: version}
	if !have.fsync || have.weak() {
		g.log.Warn("the store is not safe", "durability", g.info.Durability)
	}
	return nil
}

// unusable explains why a server that accepts our login cannot be used.
func (p *params) unusable(err error) error {
	refused, said := isServer(err)
	if said && refused.Code == "42501" {
		return &signalbox.Error{
			Code: signalbox.CodeStoreFailed, Err: serverMessage(refused),
			Message: p.where() + " refuses user " + p.config.User + " a right that the store needs: GRANT CREATE ON DATABASE " +
				p.config.Database + " TO " + p.config.User + ", and all rights on the schema " + p.schema + " if it is there",
		}
	}
	if said && slices.Contains(foreign, refused.Code) {
		return p.notOurs(serverMessage(refused))
	}
	return failed(err, "opening the store in "+p.where())
}

// foreign are error codes for tables that are not ours: no such column, another type, or an
// existing table.
var foreign = []string{"42703", "42804", "42883", "42P07", "42710", "22P02", "42809", "23502"}

// notOurs is the error if another program has tables in our schema.
func (p *params) notOurs(why error) error {
	return &signalbox.Error{
		Code: signalbox.CodeStoreFailed, Err: why,
		Message: p.where() + " has tables of another program in the schema " + p.schema + ": give the store a schema of its own with ?schema=NAME in its address",
	}
}

// Info describes the server as of Open.
func (g *Backend) Info() store.Info { return g.info }

// Changed signals that another process may have committed.
func (g *Backend) Changed() <-chan struct{} { return g.listener.changed }

// Close closes all connections.
func (g *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	g.listener.close()
	g.writer.drop()
	g.writer.session.close(ctx)
	g.writer.turn.session.close(ctx)
	g.readers.close(ctx)
	return nil
}
