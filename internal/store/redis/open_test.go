package redis_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/chaos"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// refused wants Open to fail with the texts, and without the password.
func refused(t *testing.T, url string, parts ...string) {
	t.Helper()
	g, err := redis.Open(context.Background(), redis.Options{URL: url})
	if err == nil {
		_ = g.Close()
		t.Fatal("it opened")
	}
	if signalbox.CodeOf(err) != signalbox.CodeStoreFailed {
		t.Errorf("code %q", signalbox.CodeOf(err))
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%q has the password in it", err)
	}
}

func TestOpenRefusesWrongURL(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"scheme":   {"http://:s3cret@localhost:6379", "redis://USER:PASSWORD@HOST:PORT"},
		"opaque":   {"redis:localhost", "redis://USER:PASSWORD@HOST:PORT"},
		"broken":   {"redis://u:s3cret@local host", "redis://USER:PASSWORD@HOST:PORT"},
		"database": {"redis://:s3cret@localhost/one", "database number"},
		"unknown":  {"redis://:s3cret@localhost?prefx=a", "unknown setting prefx"},
		"prefix":   {"redis://:s3cret@localhost?prefix=a%7Bb", "letters, digits"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, c.url, c.says) })
	}
}

func TestOpenFailsWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	refused(t, "redis://:s3cret@"+address, address, "is it running")
}

func TestOpenRefusesWrongPassword(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{Password: "s3cret-right"})
	refused(t, "redis://"+s.Addr(), "wants a password")
	refused(t, "redis://:s3cret-wrong@"+s.Addr(), "user or the password")
	refused(t, "redis://nobody:s3cret-right@"+s.Addr(), "user or the password")
	open(t, s.Prefix())
}

func TestOpenRefusesUnknownDatabase(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	refused(t, s.URL()+"/99", "no database of that number")
}

// command runs a command that must succeed.
func command(t testing.TB, s *testserver.RedisServer, args ...string) string {
	t.Helper()
	got, err := s.Command(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return got
}

func TestOpenNamesMissingRight(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	as := func(user string) string { return "redis://" + user + ":s3cret@" + s.Addr() + "?prefix=box" }
	command(t, s, "ACL", "SETUSER", "keys", "on", ">s3cret", "~{other}:*", "&*", "+@all")
	command(t, s, "ACL", "SETUSER", "commands", "on", ">s3cret", "~{box}:*", "&*", "+@all", "-zadd")
	command(t, s, "ACL", "SETUSER", "scripts", "on", ">s3cret", "~{box}:*", "&*", "+@all", "-@scripting")
	command(t, s, "ACL", "SETUSER", "channels", "on", ">s3cret", "~{box}:*", "resetchannels", "+@all")
	refused(t, as("keys"), "does not allow", "ACL SETUSER")
	refused(t, as("commands"), "zadd", "ACL SETUSER")
	refused(t, as("scripts"), "evalsha", "ACL SETUSER")
	refused(t, as("channels"), "channel", "ACL SETUSER")
}

// TestDocumentedRightsSuffice opens with exactly the permissions that the error about a missing permission
// asks for.
func TestDocumentedRightsSuffice(t *testing.T) {
	s := testserver.NewRedis(t, testserver.RedisOptions{})
	command(t, s, "ACL", "SETUSER", "box", "on", ">s3cret", "~{box}:*", "&{box}:*", "+@all", "-@admin", "-@dangerous", "+info")
	var log bytes.Buffer
	g, err := redis.Open(context.Background(), redis.Options{
		URL: "redis://box:s3cret@" + s.Addr() + "?prefix=box", Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if d := g.Info().Durability; !strings.Contains(d, "could not be checked") || !strings.Contains(log.String(), "could not be checked") {
		t.Errorf("durability %q, log %q", d, log.String())
	}
}

func TestOpenRefusesUnsuitableServers(t *testing.T) {
	primary := testserver.NewRedis(t, testserver.RedisOptions{})
	t.Run("replica", func(t *testing.T) {
		_, port, _ := net.SplitHostPort(primary.Addr())
		replica := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"replicaof 127.0.0.1 " + port}})
		refused(t, replica.URL(), "read-only replica of 127.0.0.1:"+port, "primary")
	})
	t.Run("cache", func(t *testing.T) {
		cache := testserver.NewRedis(t, testserver.RedisOptions{Settings: []string{"maxmemory-policy allkeys-lru"}})
		refused(t, cache.URL(), "allkeys-lru", "maxmemory-policy noeviction")
	})
	t.Run("newer or older keys", func(t *testing.T) {
		for _, schema := range []string{"1", "99"} {
			command(t, primary, "HSET", "{other}:head", "schema", schema)
			refused(t, primary.URL()+"?prefix=other", "another version of signalbox", "schema "+schema)
		}
	})
	t.Run("the same keys without parked tasks", func(t *testing.T) {
		command(t, primary, "HSET", "{same}:head", "id", "redis-1", "schema", "2")
		g, err := redis.Open(t.Context(), redis.Options{URL: primary.URL() + "?prefix=same"})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if info := g.Info(); info.Schema != 3 || info.ID != "redis-1" {
			t.Errorf("%+v", info)
		}
		if got := command(t, primary, "HGET", "{same}:head", "schema"); !strings.Contains(got, "3") {
			t.Errorf("schema %v", got)
		}
	})
	t.Run("older", func(t *testing.T) { refused(t, "redis://"+fakeServer(t), "version 6.2.7", "Redis 7 or newer") })
	t.Run("something else", func(t *testing.T) {
		command(t, primary, "SET", "{taken}:head", "mine")
		refused(t, primary.URL()+"?prefix=taken", "another prefix")
	})
}

// fakeServer answers like a Redis of an older version.
func fakeServer(t *testing.T) string {
	t.Helper()
	real := testserver.NewRedis(t, testserver.RedisOptions{})
	p := chaos.New(t, real.Addr(), chaos.Options{})
	p.Rewrite("redis_version:7", "redis_version:6.2.7\r\nx:")
	return p.Addr
}

func TestDurabilityIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		says     string
		warns    bool
	}{
		"always":   {nil, "survives a power cut", false},
		"everysec": {[]string{"appendfsync everysec"}, "may lose the last second", true},
		"no":       {[]string{"appendfsync no"}, "half minute", true},
		"snapshot": {[]string{"appendonly no", "save 60 100"}, "last snapshot", true},
		"nothing":  {[]string{"appendonly no"}, "a restart of the server loses all", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testserver.NewRedis(t, testserver.RedisOptions{Settings: c.settings})
			var log bytes.Buffer
			g, err := redis.Open(context.Background(), redis.Options{URL: s.URL(), Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if d := g.Info().Durability; !strings.Contains(d, c.says) || !strings.HasPrefix(d, "Redis 7") {
				t.Errorf("durability is %q, want it to say %q", d, c.says)
			}
			if warned := strings.Contains(log.String(), "level=WARN"); warned != c.warns {
				t.Errorf("warned: %v, log: %s", warned, log.String())
			}
		})
	}
}

func TestStoreIDIsStable(t *testing.T) {
	url := testserver.Redis(t)
	one := open(t, url).Info()
	if two := open(t, url).Info(); one.ID == "" || one != two || one.Kind != "redis" || one.Schema != 3 {
		t.Errorf("%+v, then %+v", one, two)
	}
	if other := open(t, testserver.Redis(t)).Info(); other.ID == one.ID {
		t.Error("two stores have one identity")
	}
}
