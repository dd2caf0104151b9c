package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/verbs"
)

func storeSubmits(callers int) func(context.Context, *measure.Bench, kind, string, *verbs.Shared) (measure.Values, error) {
	return func(ctx context.Context, b *measure.Bench, _ kind, _ string, s *verbs.Shared) (measure.Values, error) {
		return load.Run(ctx, callers, b.Span, func(ctx context.Context, _ int) error { return ours.Submit(ctx, s, nil) })
	}
}

// cycles measures callers that are both submitter and agent: a caller submits its next
// task when the previous one has ended. It takes about as long as the peers' part, so
// that the beginning, with small batches, has the same weight.
func cycles(callers int) func(context.Context, *measure.Bench, kind, string, *verbs.Shared) (measure.Values, error) {
	return func(ctx context.Context, b *measure.Bench, _ kind, _ string, s *verbs.Shared) (measure.Values, error) {
		return load.Run(ctx, callers, 4*b.Span, func(ctx context.Context, i int) error {
			return ours.Cycle(ctx, s, ours.Agent(i))
		})
	}
}

// pickupAcross measures from the submit at one director to the claim by another one,
// which is notified by the server.
func pickupAcross(ctx context.Context, b *measure.Bench, k kind, url string, s *verbs.Shared) (measure.Values, error) {
	other, err := open(ctx, k, url)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	// Directors send notifications only if another director is alive.
	for i, at := range []store.Store{s, other} {
		d := store.Director{ID: fmt.Sprint(i), Run: fmt.Sprint("run ", i), StartedAt: ours.Now(), Expires: ours.Now().Add(time.Hour)}
		if _, err := at.Beat(ctx, store.Beat{Director: d, Now: ours.Now()}); err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for range 100 {
		time.Sleep(5 * time.Millisecond) // idle again
		start := time.Now()
		if err := ours.Submit(ctx, s, nil); err != nil {
			return nil, err
		}
		t, err := awaitClaim(ctx, other)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
		if err := ours.Finish(ctx, other, t); err != nil {
			return nil, err
		}
	}
	return load.Spread(took), nil
}

// awaitClaim claims at each notification, as a director does, with a poll each second as
// a fallback.
func awaitClaim(ctx context.Context, s *verbs.Shared) (signalbox.Task, error) {
	for {
		select {
		case <-s.Changed():
		case <-time.After(time.Second):
		}
		t, err := ours.Claim(ctx, s, ours.Agent(0))
		if !errors.Is(err, ours.ErrNothing) {
			return t, err
		}
	}
}

// deep measures the cycle of one caller with many waiting tasks, a tenth of them in the
// queues of busy agents. The store is filled once.
func (s *servers) deep(name string, k kind, waiting int) *measure.Side {
	return &measure.Side{Name: name, Open: func(ctx context.Context, b *measure.Bench) (measure.Trial, error) {
		var url string
		if k == postgresKind {
			url = s.database()
		} else {
			url = s.redisServer().Prefix() // shared with other sides
		}
		st, err := open(ctx, k, url)
		if err != nil {
			return nil, err
		}
		b.Cleanup(func() { st.Close() })
		before, err := s.weight(k, url)
		if err != nil {
			return nil, err
		}
		n := b.Scale(waiting)
		if err := load.Many(n, func(at int) error {
			return ours.Submit(ctx, st, func(sub *store.Submission) {
				if at < n/10 {
					sub.Task.Queue = signalbox.AgentQueue(fmt.Sprintf("busy-%d", at%1000))
				}
			})
		}); err != nil {
			return nil, err
		}
		after, err := s.weight(k, url)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			v, err := load.Run(ctx, 1, b.Span, func(ctx context.Context, _ int) error { return ours.Cycle(ctx, st, ours.Agent(0)) })
			if err == nil {
				v[load.Storage] = (after - before) / float64(n)
			}
			return v, err
		}, nil
	}}
}

// weight returns the size in bytes: of a database on the disk, or of the whole Redis in
// memory.
func (s *servers) weight(k kind, url string) (bytes float64, err error) {
	if k == postgresKind {
		name := url[strings.LastIndex(url, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		rows, err := s.postgres.Query(name, "SELECT pg_database_size(current_database())::text")
		if err == nil {
			_, err = fmt.Sscan(rows[0], &bytes)
		}
		return bytes, err
	}
	info, err := s.redis.Command("INFO", "memory")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "used_memory:")
	_, err = fmt.Sscan(rest, &bytes)
	return bytes, err
}
