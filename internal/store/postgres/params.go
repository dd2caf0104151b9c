package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-ai/signalbox"
)

// Time limits. A process that is idle for idleTimeout while it has the lock loses it. lockTimeout is how long
// others wait for the lock: longer than that, and short enough that the leases of directors outlast it. A
// process that stops for stillTimeout in the middle of a message, which the server does not count as idle,
// then loses the lock, too (unblock).
const (
	defaultConns     = 8
	idleTimeout      = 5 * time.Second
	lockTimeout      = 6 * time.Second
	stillTimeout     = 3 * time.Second
	statementTimeout = 15 * time.Second
	connectTimeout   = 5 * time.Second
)

// params are the parts of a URL.
type params struct {
	config *pgconn.Config
	schema string
	unsafe bool
	conns  int // number of connections for reads
	limit  timeouts
}

// timeouts are replaced by tests.
type timeouts struct{ idle, lock, still time.Duration }

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// parse parses a URL. Our own settings are removed, since the server would refuse them. No error contains the
// URL, which can hold a password.
func parse(address string) (*params, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, wrongURL("it does not begin with postgres://")
	}
	front, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, wrongURL("what follows the ? cannot be read")
	}
	p := &params{schema: "signalbox", conns: defaultConns, limit: timeouts{idleTimeout, lockTimeout, stillTimeout}}
	if err := p.take(values); err != nil {
		return nil, err
	}
	if len(values) > 0 {
		front += "?" + values.Encode()
	}
	if p.config, err = pgconn.ParseConfig(front); err != nil {
		return nil, wrongURL(reasonOf(err))
	}
	if len(p.config.Fallbacks) > 0 && !values.Has("target_session_attrs") {
		// With several hosts, connect to the writable one.
		p.config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	p.config.RuntimeParams["search_path"] = `"` + p.schema + `"`
	p.config.RuntimeParams["application_name"] = cmp.Or(p.config.RuntimeParams["application_name"], "signalbox")
	p.config.ConnectTimeout = cmp.Or(p.config.ConnectTimeout, connectTimeout)
	return p, nil
}

// take removes our own settings from the query.
func (p *params) take(values url.Values) error {
	if values.Has("schema") {
		p.schema = values.Get("schema")
		if len(p.schema) > 50 || !schemaName.MatchString(p.schema) { // leaves space for the name of a channel
			return wrongURL("schema=" + strconv.Quote(p.schema) + " is no name of at most 50 small letters, digits and _")
		}
	}
	switch v := values.Get("unsafe"); v {
	case "", "off":
	case "on":
		p.unsafe = true
	default:
		return wrongURL("unsafe is on or off, not " + strconv.Quote(v))
	}
	if values.Has("pool_max_conns") {
		n, err := strconv.Atoi(values.Get("pool_max_conns"))
		if err != nil || n < 2 || n > 1000 {
			return wrongURL("pool_max_conns is a number from 2 to 1000, not " + strconv.Quote(values.Get("pool_max_conns")))
		}
		p.conns = n
	}
	for key := range values {
		if key == "schema" || key == "unsafe" || strings.HasPrefix(key, "pool_") {
			values.Del(key)
		}
	}
	return nil
}

// wantsTLS reports whether TLS is required. By default it is tried, and a server without TLS is used without.
func (p *params) wantsTLS() bool {
	for _, f := range p.config.Fallbacks {
		if f.TLSConfig == nil {
			return false
		}
	}
	return p.config.TLSConfig != nil
}

// where names the server and the database in messages.
func (p *params) where() string {
	host := p.config.Host
	if !strings.HasPrefix(host, "/") {
		host += ":" + strconv.Itoa(int(p.config.Port))
	}
	return fmt.Sprintf("PostgreSQL at %s, database %q", host, p.config.Database)
}

func wrongURL(why string) error {
	return signalbox.Invalid("store", "the address of the PostgreSQL store is wrong: %s; expected postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full", why)
}

// reasonOf is the reason of a ParseConfigError, without the address.
func reasonOf(err error) string {
	var bad *pgconn.ParseConfigError
	if !errors.As(err, &bad) {
		return "it cannot be read"
	}
	_, reason, found := strings.Cut(bad.Error(), "`: ")
	unread := strings.HasPrefix(reason, "failed to parse as URL") // that reason quotes what could not be parsed, which may be the password
	if !found || unread || bad.Unwrap() != nil && strings.Contains(bad.Unwrap().Error(), "parse \"") {
		return "it cannot be read: is there a character in user or password that must be written as %XX?"
	}
	if password := passwordOf(bad.ConnString); password != "" && strings.Contains(reason, password) {
		return "it cannot be read"
	}
	return reason
}

// passwordOf returns what is between the first : of the user's part and the last @.
func passwordOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	at := strings.LastIndex(rest, "@")
	if at < 0 {
		return ""
	}
	_, password, _ := strings.Cut(rest[:at], ":")
	return password
}
