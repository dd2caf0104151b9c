package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

// Options are the settings of a backend.
type Options struct {
	// URL is redis://user:password@host:6379/db, or rediss:// for TLS. Its query may contain prefix=NAME, the
	// hash tag of all keys (default signalbox: {signalbox}:…), and what rueidis.ParseURL supports, such as
	// master_set=NAME if the hosts are Sentinels.
	URL string
	Log *slog.Logger
}

// schema is the version of the keys (doc.go). Stores of other versions are refused, except sameKeys: version
// 3 added parked tasks, which a program that knows version 2 would take for damaged.
const schema, sameKeys = 3, 2

type backend struct {
	option  rueidis.ClientOption
	address string // for messages: never with a password
	prefix  string // {name}:
	info    store.Info
	log     *slog.Logger

	clients atomic.Pointer[clients]
	dialing sync.Mutex
	name    atomic.Pointer[string] // of this process among those that write
	changed chan struct{}
	moved   chan struct{}
	listens atomic.Bool // receives the signals of others

	closing    context.Context // done when the store is closed
	stop       context.CancelFunc
	closed     sync.Once
	background sync.WaitGroup // goroutines that Close waits for
}

var _ verbs.SharedBackend = (*backend)(nil)

// Open connects, and checks the server's guarantees.
func Open(ctx context.Context, o Options) (verbs.SharedBackend, error) {
	g := &backend{log: o.Log, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
	g.log = cmp.Or(g.log, slog.New(slog.DiscardHandler))
	if err := g.parse(o.URL); err != nil {
		return nil, err
	}
	g.closing, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.connect(ctx); err != nil {
		g.stop()
		return nil, err
	}
	if err := g.inspect(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.background.Go(g.watch)
	return g, nil
}

// startTime bounds how long a starting server may load its data.
const startTime = 30 * time.Second

// connect waits for a starting server.
func (g *backend) connect(ctx context.Context) error {
	late, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		c, err := dial(g.option)
		if err == nil {
			g.clients.Store(c)
			return nil
		}
		if refused, ok := rueidis.IsRedisErr(err); !ok || !strings.HasPrefix(refused.Error(), "LOADING") {
			return g.unopened(err)
		}
		pause := time.NewTimer(startTime / 100)
		select {
		case <-pause.C:
		case <-late.Done():
			pause.Stop()
			return g.unopened(err)
		}
	}
}

// begin initializes a new store, or checks an existing one.
func (g *backend) begin(ctx context.Context, d rueidis.DedicatedClient) error {
	key := g.prefix + "head"
	for field, value := range map[string]string{"id": "redis-" + strings.ToLower(rand.Text()), "schema": decimal(schema)} {
		if err := d.Do(ctx, d.B().Hsetnx().Key(key).Field(field).Value(value).Build()).Error(); err != nil {
			return refuse(explain(g.address, err), err)
		}
	}
	found, err := d.Do(ctx, d.B().Hmget().Key(key).Field("id", "schema").Build()).AsStrSlice()
	if err != nil || len(found) != 2 {
		return refuse(explain(g.address, err), err)
	}
	if found[1] == decimal(sameKeys) {
		if err := d.Do(ctx, d.B().Hset().Key(key).FieldValue().FieldValue("schema", decimal(schema)).Build()).Error(); err != nil {
			return refuse(explain(g.address, err), err)
		}
		found[1] = decimal(schema)
	}
	if found[1] != decimal(schema) {
		return refuse("the store under "+g.prefix+" in Redis was written by another version of signalbox (schema "+found[1]+", this one knows "+decimal(schema)+"): use that one, and signalbox export to take its tasks along, or another prefix in the store's URL (?prefix=NAME)", nil)
	}
	g.info = store.Info{Kind: "redis", ID: found[0], Schema: schema}
	return nil
}

func refuse(message string, err error) error {
	return &signalbox.Error{Code: signalbox.CodeStoreFailed, Message: message, Err: err}
}

// DefaultPrefix is the hash tag of all keys where the URL names none.
const DefaultPrefix = "signalbox"

var prefixes = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// settings are the settings that the query of a URL may have.
var settings = []string{"prefix", "db", "addr", "dial_timeout", "write_timeout", "skip_verify", "protocol", "client_name", "master_set"}

// parse parses the URL. Errors do not contain it, since it may have a password.
func (g *backend) parse(text string) error {
	const form = "the store's URL must be redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS, with ?prefix=NAME where several stores share a server"
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Opaque != "" {
		return refuse(form, nil)
	}
	query := u.Query()
	for key := range query {
		if u.Hostname() == "" && !isKnownSetting(key) {
			return refuse(form, nil) // a ? in the password: what follows it is not the name of a setting
		}
		if !isKnownSetting(key) {
			return refuse("the store's URL has an unknown setting "+key+": there are "+strings.Join(settings, ", "), nil)
		}
	}
	prefix := DefaultPrefix
	if query.Has("prefix") {
		prefix = query.Get("prefix")
	}
	if len(prefix) > 64 || !prefixes.MatchString(prefix) {
		return refuse("the prefix in the store's URL must be of letters, digits, dots, dashes and underscores, 64 at most", nil)
	}
	g.prefix = "{" + prefix + "}:"
	if g.option, err = rueidis.ParseURL(text); err != nil {
		return refuse(form+": its port, database number and settings must be readable", nil)
	}
	g.address = strings.Join(g.option.InitAddress, ", ")
	g.option.ClientName = cmp.Or(g.option.ClientName, "signalbox")
	g.option.Dialer.Timeout = cmp.Or(g.option.Dialer.Timeout, dialTime)
	g.option.ConnWriteTimeout = cmp.Or(g.option.ConnWriteTimeout, answerTime)
	return nil
}

func isKnownSetting(key string) bool { return slices.Contains(settings, key) }
