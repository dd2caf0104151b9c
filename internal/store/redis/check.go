package redis

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// inspect checks whether the server is suitable, and its guarantees, on one connection to the
// node that has the keys.
func (g *backend) inspect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return g.clients.Load().writer.Dedicated(func(d rueidis.DedicatedClient) error {
		// A command with a key comes first, so that the client finds the key's node.
		if err := d.Do(ctx, d.B().Hget().Key(g.prefix+"head").Field("moment").Build()).Error(); err != nil && !rueidis.IsRedisNil(err) {
			return refuse(explain(g.address, err), err)
		}
		text, err := d.Do(ctx, d.B().Arbitrary("INFO").Build()).ToString()
		if err != nil {
			return refuse(explain(g.address, err), err)
		}
		said := parseInfo(text)
		if err := g.checkServer(said); err != nil {
			return err
		}
		if err := g.checkRights(ctx); err != nil {
			return err
		}
		if err := g.begin(ctx, d); err != nil {
			return err
		}
		g.grade(ctx, d, said)
		return nil
	})
}

// parseInfo parses INFO.
func parseInfo(text string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			said[name] = value
		}
	}
	return said
}

// checkServer refuses an unsuitable server.
func (g *backend) checkServer(said map[string]string) error {
	major, _, _ := strings.Cut(said["redis_version"], ".")
	version, _ := strconv.Atoi(major)
	policy := said["maxmemory_policy"]
	switch {
	case said["redis_mode"] == "sentinel":
		return refuse("at "+g.address+" there is a Sentinel, not the server that it watches: add ?master_set=NAME to the store's URL", nil)
	case version < 7 && said["valkey_version"] == "":
		return refuse(fmt.Sprintf("Redis at %s is version %s: signalbox needs Redis 7 or newer, or Valkey", g.address, said["redis_version"]), nil)
	case said["role"] != "" && said["role"] != "master":
		return refuse("Redis at "+g.address+" is a read-only replica of "+said["master_host"]+":"+said["master_port"]+": give the address of the primary", nil)
	case policy != "" && policy != "noeviction":
		return refuse("Redis at "+g.address+" has maxmemory-policy "+policy+": it would drop tasks when its memory is full. Set maxmemory-policy noeviction, or use a server that is no cache", nil)
	}
	return nil
}

// checkRights tries all commands of the scripts on temporary keys, so that missing permissions are found at
// start.
func (g *backend) checkRights(ctx context.Context) error {
	for _, script := range []struct {
		lua  *rueidis.Lua
		args []string
	}{
		{trialScript, []string{g.prefix + "trial:"}},
		{lockScript, []string{g.prefix + "trial:", "trial"}},
		{unlockScript, []string{g.prefix + "trial:", "trial"}},
		{readScript, []string{g.prefix + "trial:", "call", "4", "XRANGE", "journal", "-", "+"}},
	} {
		if err := script.lua.Exec(ctx, g.clients.Load().writer, script.args[:1], script.args[1:]).Error(); err != nil {
			return refuse(explain(g.address, err), err)
		}
	}
	return nil
}

// grade sets the guarantees in Info and logs them.
func (g *backend) grade(ctx context.Context, d rueidis.DedicatedClient, said map[string]string) {
	fsync, saves, checked := "", "", true
	config, err := d.Do(ctx, d.B().ConfigGet().Parameter("appendfsync", "save").Build()).AsStrMap()
	if err != nil {
		checked = false
	}
	fsync, saves = config["appendfsync"], config["save"]
	words, warn := durability(said["aof_enabled"] == "1", fsync, saves, checked)
	version := "Redis " + said["redis_version"]
	if v := said["valkey_version"]; v != "" {
		version = "Valkey " + v
	}
	g.info.Durability, g.info.Grade = version+": "+words, store.GradeDisk
	if n, _ := strconv.Atoi(said["connected_slaves"]); n > 0 {
		g.info.Durability += "; a failover to a replica may lose the last writes, which is noticed"
	}
	if warn {
		g.info.Grade = store.GradeWeak
		g.log.Warn("the store can lose what it acknowledged", "server", g.address, "durability", g.info.Durability)
	}
}

// durability describes what survives which failure; warn if that is less than a queue should promise.
func durability(appendOnly bool, fsync, saves string, checked bool) (words string, warn bool) {
	switch {
	case !appendOnly && !checked:
		return "no append-only file: after a crash there is what the last snapshot has, if there are any (CONFIG is not allowed: it could not be checked). Ask for appendonly yes with appendfsync always", true
	case !appendOnly && saves == "":
		return "nothing is written to disk (appendonly no, no snapshots): a restart of the server loses all. Set appendonly yes and appendfsync always", true
	case !appendOnly:
		return "no append-only file: after a crash there is what the last snapshot has (save " + saves + "). Set appendonly yes and appendfsync always", true
	case !checked:
		return "append-only file; how often it is synced could not be checked (CONFIG is not allowed): with everysec, which is the default, a power cut may lose the last second", true
	case fsync == "always":
		return "append-only file, synced before each answer (appendfsync always): what was acknowledged survives a power cut", false
	case fsync == "everysec":
		return "append-only file, synced every second (appendfsync everysec): what was acknowledged survives a crash of the server, but a power cut may lose the last second. Set appendfsync always", true
	}
	return "append-only file, synced when the operating system likes (appendfsync " + fsync + "): a power cut may lose the last half minute. Set appendfsync always", true
}

// Inspect returns the guarantees of the server at a store's address, and its schema version (0: none yet). It
// refuses the servers that Open refuses, except for permissions that only a write would show, and changes
// nothing.
func Inspect(ctx context.Context, url string) (store.Info, error) {
	g := &backend{log: slog.New(slog.DiscardHandler), changed: make(chan struct{}, 1), moved: make(chan struct{}, 1)}
	if err := g.parse(url); err != nil {
		return store.Info{}, err
	}
	g.closing, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := g.connect(ctx); err != nil {
		g.stop()
		return store.Info{}, err
	}
	defer func() { _ = g.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	err := g.clients.Load().writer.Dedicated(func(d rueidis.DedicatedClient) error {
		text, err := d.Do(ctx, d.B().Hget().Key(g.prefix+"head").Field("schema").Build()).ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return refuse(explain(g.address, err), err)
		}
		g.info = store.Info{Kind: "redis"}
		g.info.Schema, _ = strconv.Atoi(text)
		if text, err = d.Do(ctx, d.B().Arbitrary("INFO").Build()).ToString(); err != nil {
			return refuse(explain(g.address, err), err)
		}
		said := parseInfo(text)
		if err := g.checkServer(said); err != nil {
			return err
		}
		g.grade(ctx, d, said)
		return nil
	})
	return g.info, err
}
