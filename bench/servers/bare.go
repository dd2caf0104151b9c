package servers

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// bareCommits is what PostgreSQL does at most for so many callers, each with a
// connection of its own: one row, one commit.
func (s *servers) bareCommits(name string, callers int) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		url := s.database()
		conns := make([]*pgx.Conn, callers)
		for i := range conns {
			c, err := pgx.Connect(ctx, url)
			if err != nil {
				return nil, err
			}
			b.Cleanup(func() { _ = c.Close(context.Background()) })
			conns[i] = c
		}
		if _, err := conns[0].Exec(ctx, "CREATE TABLE bare (id bigserial PRIMARY KEY, prompt text)"); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			return load.Run(ctx, callers, b.Span, func(ctx context.Context, i int) error {
				_, err := conns[i].Exec(ctx, "INSERT INTO bare (prompt) VALUES ($1)", load.Prompt)
				return err
			})
		}, nil
	}}
}

// bareSets is what Redis does at most: one SET.
func (s *servers) bareSets(name string, callers int) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		c := goredis.NewClient(&goredis.Options{Addr: s.redisServer().Addr(), PoolSize: callers})
		b.Cleanup(func() { _ = c.Close() })
		var n atomic.Int64
		return func(ctx context.Context) (measure.Values, error) {
			return load.Run(ctx, callers, b.Span, func(ctx context.Context, _ int) error {
				return c.Set(ctx, fmt.Sprintf("bare:%d", n.Add(1)), load.Prompt, 0).Err()
			})
		}, nil
	}}
}
