package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// Inspect says what the server at a store's address promises, and which schema
// the store in it has (0: there is none yet). It refuses the servers that Open
// refuses, and changes nothing.
func Inspect(ctx context.Context, url string) (store.Info, error) {
	p, err := parse(url)
	if err != nil {
		return store.Info{}, err
	}
	conn, err := p.dial(ctx, func(c *pgconn.Config) { c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {} })
	if err != nil {
		return store.Info{}, err
	}
	defer func() { _ = conn.Close(ctx) }()
	have, err := p.checks(ctx, conn)
	if err != nil {
		return store.Info{}, p.unusable(err)
	}
	info := store.Info{Kind: "postgres", Durability: have.words(), Grade: have.grade()}
	there, err := query(ctx, conn, `SELECT to_regclass('"`+p.schema+`".migrations') IS NOT NULL`)
	if err != nil || there[0] != "t" {
		return info, err
	}
	got, err := query(ctx, conn, `SELECT coalesce(max(version), 0) FROM "`+p.schema+`".migrations`)
	if err != nil {
		return info, p.unusable(err)
	}
	info.Schema, err = strconv.Atoi(got[0])
	return info, err
}
