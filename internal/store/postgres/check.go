package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// oldest is the oldest supported PostgreSQL version.
const oldest = 14

// guarantees are the durability settings of a server, read at start.
type guarantees struct {
	version      string
	synchronous  string // synchronous_commit
	standbys     string // synchronous_standby_names
	fsync, pages bool
	raisedSync   bool // synchronous_commit was off and is on in our sessions
}

// checks reads the server's settings, and refuses an unsuitable one.
func (p *params) checks(ctx context.Context, conn *pgconn.PgConn) (*guarantees, error) {
	// Check the version that the server reports first: an old server may not know the settings asked for.
	if said := conn.ParameterStatus("server_version"); tooOld(said) {
		return nil, p.old(said)
	}
	if err := p.enough(ctx, conn); err != nil {
		return nil, err
	}
	got, err := query(ctx, conn, `SELECT current_setting('server_version_num'), current_setting('server_version'),
		pg_is_in_recovery() OR current_setting('transaction_read_only')::bool, current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('full_page_writes')`)
	if err != nil {
		return nil, err
	}
	return p.judge(got)
}

// judge refuses a server by its settings.
func (p *params) judge(got []string) (*guarantees, error) {
	number, err := strconv.Atoi(got[0])
	if err != nil {
		return nil, err
	}
	version, _, _ := strings.Cut(got[1], " ")
	have := &guarantees{version: version, synchronous: got[3], standbys: got[4], fsync: got[5] == "on", pages: got[6] == "on"}
	why := ""
	switch {
	case number < oldest*10000:
		return nil, p.old(version)
	case got[2] == "t":
		why = readOnly
	case p.unsafe:
	case !have.fsync:
		why = "has fsync=off: a power cut would take tasks that were acknowledged. Set fsync = on in postgresql.conf and reload; for a trial add unsafe=on to the address of the store"
	case !have.pages:
		why = "has full_page_writes=off: a power cut can destroy pages of the store. Set full_page_writes = on in postgresql.conf and reload; where the file system never tears pages add unsafe=on to the address of the store"
	case have.weak() && p.config.RuntimeParams["synchronous_commit"] != "":
		why = "is asked, by the address of the store, for synchronous_commit=" + have.synchronous + ": what was acknowledged could be lost. Leave it out, or add unsafe=on"
	case have.weak():
		have.synchronous, have.raisedSync = "on", true
	}
	if why != "" {
		return nil, signalbox.Errorf(signalbox.CodeStoreFailed, "%s %s", p.where(), why)
	}
	return have, nil
}

// weak reports whether commits are acknowledged before they are on disk and at the standbys.
func (h *guarantees) weak() bool {
	return h.synchronous == "off" || (h.synchronous == "local" && h.standbys != "")
}

// grade returns the Grade.
func (h *guarantees) grade() store.Grade {
	switch {
	case !h.fsync || h.synchronous == "off":
		return store.GradeWeak
	case h.standbys == "" || h.synchronous == "local" || h.synchronous == "remote_write":
		return store.GradeDisk
	}
	return store.GradeReplicas
}

// describe says what survives which failure.
func (h *guarantees) describe() string {
	text := fmt.Sprintf("PostgreSQL %s, synchronous_commit=%s", h.version, h.synchronous)
	if h.raisedSync {
		text += " (set by this program: the server's default is weaker)"
	}
	switch {
	case !h.fsync:
		return text + ", fsync=off: NOTHING that was acknowledged is sure to survive a crash of the machine"
	case h.weak() && h.synchronous == "off":
		return text + ": what was acknowledged in the last moments is LOST with a crash"
	case !h.pages:
		text += ", full_page_writes=off: the file system must never tear a page"
	}
	text += ": what was acknowledged survives a crash and a power cut of the server"
	switch {
	case h.standbys == "":
		return text + "; a failover to a replica can lose the last moments, for synchronous_standby_names is empty"
	case h.synchronous == "local":
		return text + "; a failover to a standby can LOSE the last moments"
	case h.synchronous == "remote_write":
		return text + ", and a failover to a standby of " + strconv.Quote(h.standbys) + " unless its machine fails too"
	}
	return text + ", and a failover to a standby of " + strconv.Quote(h.standbys)
}

// tooOld reports whether a version, such as 13.16 (Debian 13.16-1) or 17beta1, is unsupported. A version that
// cannot be parsed is not too old.
func tooOld(version string) bool {
	digits := strings.TrimLeft(version, "0123456789")
	major, err := strconv.Atoi(version[:len(version)-len(digits)])
	return err == nil && major < oldest
}

func (p *params) old(version string) error {
	version, _, _ = strings.Cut(version, " ")
	return signalbox.Errorf(signalbox.CodeStoreFailed, "%s is version %s: the store needs %d or newer", p.where(), version, oldest)
}

// enough refuses a role or database with fewer connections than a busy director needs.
func (p *params) enough(ctx context.Context, conn *pgconn.PgConn) error {
	got, err := query(ctx, conn, `SELECT CASE WHEN r.rolsuper THEN -1 ELSE r.rolconnlimit END, CASE WHEN r.rolsuper THEN -1 ELSE d.datconnlimit END
		FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`)
	if err != nil || len(got) != 2 {
		return err
	}
	needs := p.conns + 3 // one stores, one holds the turn, one listens
	for i, whose := range []string{"ROLE " + p.config.User, "DATABASE " + p.config.Database} {
		n, err := strconv.Atoi(got[i])
		if err != nil || n < 0 || n >= needs {
			continue
		}
		less := ""
		if n >= 5 {
			less = fmt.Sprintf(", or add pool_max_conns=%d to the address of the store if that is enough", n-3)
		}
		return signalbox.Errorf(signalbox.CodeStoreFailed,
			"%s has CONNECTION LIMIT %d for %s, and a director makes %d connections: ALTER %s CONNECTION LIMIT %d (as many again for each further director)%s",
			p.where(), n, whose, needs, whose, needs, less)
	}
	return nil
}

// Inspect returns the guarantees of the server at a store's address, and its schema version (0:
// none yet). It refuses the servers that Open refuses, and changes nothing.
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
	info := store.Info{Kind: "postgres", Durability: have.describe(), Grade: have.grade()}
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
