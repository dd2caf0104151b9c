package servers

import (
	"context"
	"log/slog"

	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
	"github.com/signalbox-ai/signalbox/internal/store/postgres"
	"github.com/signalbox-ai/signalbox/internal/store/redis"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
	"github.com/signalbox-ai/signalbox/internal/testserver"
)

// kind is a server that our store uses.
type kind string

const (
	postgresKind kind = "postgres"
	redisKind    kind = "redis"
)

// servers are the servers of a run, which are used in all rounds of a group.
type servers struct {
	bench    *measure.Bench
	postgres *testserver.PostgresServer
	redis    *testserver.RedisServer
}

// database returns the URL of a new database.
func (s *servers) database() string {
	if s.postgres == nil {
		s.postgres = testserver.NewPostgres(s.bench, testserver.PostgresOptions{Settings: map[string]string{"max_connections": "200", "shared_buffers": "1GB", "max_wal_size": "4GB"}})
	}
	return s.postgres.Database(s.bench)
}

func (s *servers) redisServer() *testserver.RedisServer {
	if s.redis == nil {
		s.redis = testserver.NewRedis(s.bench, testserver.RedisOptions{})
	}
	return s.redis
}

// asynq returns the address of a Redis database for Asynq's next queue, after emptying
// it, because Asynq has no key prefix.
func (s *servers) asynq() (string, int, error) {
	_, err := s.redisServer().Command("FLUSHALL")
	return s.redis.Addr(), 1, err
}

// url returns the URL of our store on a new part of the server. Redis is emptied before:
// with the data of all previous rounds it would be slower for the last side.
func (s *servers) url(k kind) (string, error) {
	if k == postgresKind {
		return s.database(), nil
	}
	_, err := s.redisServer().Command("FLUSHALL")
	return s.redis.Prefix(), err
}

// open opens a store of ours.
func open(ctx context.Context, k kind, url string) (*verbs.Shared, error) {
	log := slog.New(slog.DiscardHandler)
	var backend verbs.SharedBackend
	var err error
	if k == postgresKind {
		backend, err = postgres.Open(ctx, postgres.Options{URL: url, Log: log})
	} else {
		backend, err = redis.Open(ctx, redis.Options{URL: url, Log: log})
	}
	if err != nil {
		return nil, err
	}
	return verbs.NewShared(ctx, backend, verbs.Options{Log: log})
}

// fresh returns our queues.
func (s *servers) fresh(k kind) queue.Open {
	return func(ctx context.Context, _ *measure.Bench) (queue.Queue, error) {
		url, err := s.url(k)
		if err != nil {
			return nil, err
		}
		st, err := open(ctx, k, url)
		if err != nil {
			return nil, err
		}
		return ours.NewQueue(st)
	}
}

// on returns a side with an empty store of ours in each round.
func (s *servers) on(name string, k kind, do func(ctx context.Context, b *measure.Bench, k kind, url string, st *verbs.Shared) (measure.Values, error)) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		return func(ctx context.Context) (measure.Values, error) {
			url, err := s.url(k)
			if err != nil {
				return nil, err
			}
			st, err := open(ctx, k, url)
			if err != nil {
				return nil, err
			}
			defer st.Close()
			return do(ctx, b, k, url, st)
		}, nil
	}}
}
