package servers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
)

// bareCommits measures the limit of PostgreSQL for a number of callers, each with its own
// connection: one row, one commit.
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

// idleCommits measures the limit of a pick-up whose submit and claim are separate
// commits: two commits, at the pace of a pick-up.
func (s *servers) idleCommits(name string) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		conn, err := pgx.Connect(ctx, s.database())
		if err != nil {
			return nil, err
		}
		b.Cleanup(func() { _ = conn.Close(context.Background()) })
		if _, err := conn.Exec(ctx, "CREATE TABLE bare (id bigserial PRIMARY KEY, prompt text)"); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			took := make([]time.Duration, 0, pickupTimes)
			for range min(pickupTimes, b.Scale(10*pickupTimes)) {
				time.Sleep(pause)
				began := time.Now()
				for range 2 {
					if _, err := conn.Exec(ctx, "INSERT INTO bare (prompt) VALUES ($1)", load.Prompt); err != nil {
						return nil, err
					}
				}
				took = append(took, time.Since(began))
			}
			return load.Spread(took), nil
		}, nil
	}}
}

// bareSets measures the limit of Redis: one SET.
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
