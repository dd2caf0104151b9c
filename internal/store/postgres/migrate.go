package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
)

// migrate creates or upgrades the schema, and returns its version. If several processes start at once, one
// does it and the others wait.
func (p *params) migrate(ctx context.Context, conn *pgconn.PgConn, steps []migration) (int, error) {
	// An advisory lock by the schema's name, held until the end of the transaction. There is one transaction
	// for all steps, so a step that fails leaves nothing behind.
	begin := fmt.Sprintf(`BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '30s';
		SELECT pg_advisory_xact_lock(hashtext('signalbox migrations'), hashtext('%s'))`, p.schema)
	if _, err := conn.Exec(ctx, begin).ReadAll(); err != nil {
		return 0, err
	}
	version, err := p.steps(ctx, conn, steps)
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	if _, bad := conn.Exec(ctx, end).ReadAll(); err == nil {
		err = bad
	}
	return version, err
}

func (p *params) steps(ctx context.Context, conn *pgconn.PgConn, steps []migration) (int, error) {
	version, err := p.version(ctx, conn)
	if err != nil {
		return 0, err
	}
	newest := steps[len(steps)-1].version
	if version > newest {
		return 0, signalbox.Errorf(signalbox.CodeStoreFailed,
			"%s has schema %d, and this program knows up to %d: it was used by a newer version; upgrade this one", p.where(), version, newest)
	}
	for _, step := range steps {
		if step.version <= version {
			continue
		}
		sql := strings.Join(append(step.sql[:len(step.sql):len(step.sql)], "INSERT INTO migrations(version) VALUES("+strconv.Itoa(step.version)+")"), ";\n")
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			return 0, fmt.Errorf("bring it from schema %d to %d: %w", version, step.version, err)
		}
		version = step.version
	}
	return version, nil
}

// maxSteps exceeds any number of steps.
const maxSteps = 100_000

// version returns the newest step done, 0 in a new schema, which it creates.
func (p *params) version(ctx context.Context, conn *pgconn.PgConn) (int, error) {
	there, err := query(ctx, conn, fmt.Sprintf(`SELECT to_regnamespace('"%[1]s"') IS NOT NULL, to_regclass('"%[1]s".migrations') IS NOT NULL`, p.schema))
	if err != nil {
		return 0, err
	}
	if there[1] == "t" {
		got, err := query(ctx, conn, "SELECT max(version) FROM migrations")
		if err != nil {
			return 0, err
		}
		version, err := strconv.Atoi(got[0])
		if err != nil || version < 1 || version > maxSteps { // the first step inserts it
			return 0, p.notOurs(err)
		}
		return version, nil
	}
	var create string
	if there[0] == "f" {
		create = fmt.Sprintf(`CREATE SCHEMA "%s"; `, p.schema)
	}
	create += "CREATE TABLE migrations(version int4 PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
	if _, err := conn.Exec(ctx, create).ReadAll(); err != nil {
		return 0, err
	}
	return 0, nil
}

// identity returns the store's ID, which is generated for a new store.
func identity(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	sql := fmt.Sprintf(`INSERT INTO meta(id, store_id, moment, generation, seq, place, fence, entry, enqueued_ms, woken_ms, in_use, in_use_isolated, cut)
		VALUES(1, '%s', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0) ON CONFLICT (id) DO NOTHING;
		DELETE FROM writers WHERE at < now() - interval '30 days'`, rand.Text())
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		return "", err
	}
	got, err := query(ctx, conn, "SELECT store_id FROM meta WHERE id = 1")
	if err != nil {
		return "", err
	}
	return got[0], nil
}
