package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/ours"
	"github.com/signalbox-ai/signalbox/bench/internal/peers"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
	"github.com/signalbox-ai/signalbox/internal/store/sqlite"
)

// Group is the figures on SQLite.
var Group = measure.Group{Name: "sqlite", Duels: duels}

const (
	callers  = 64
	slowSync = time.Millisecond
)

var files atomic.Int64

func newPath(b *measure.Bench) string {
	return filepath.Join(b.Dir, fmt.Sprintf("ours-%d.db", files.Add(1)))
}

func open(b *measure.Bench, delay time.Duration) (*sqlite.Store, error) {
	return sqlite.Open(context.Background(), sqlite.Options{Path: newPath(b), CommitDelay: delay})
}

// weighed is our queue in a file.
type weighed struct {
	*ours.Queue
	path string
}

func (w weighed) Weight() (bytes float64, err error) { return peers.SQLiteBytes(w.path) }

// fresh returns our queue in a new file.
func fresh(_ context.Context, b *measure.Bench) (queue.Queue, error) {
	path := newPath(b)
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err != nil {
		return nil, err
	}
	q, err := ours.NewQueue(s)
	return weighed{q, path}, err
}

// file is a store that is used in all rounds and filled before the first.
type file struct {
	delay time.Duration
	fill  func(b *measure.Bench, s store.Store) error
	store *sqlite.Store
}

func (f *file) open(b *measure.Bench) (*sqlite.Store, error) {
	if f.store != nil {
		return f.store, nil // another side has opened it
	}
	s, err := open(b, f.delay)
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { _ = s.Close() })
	if f.fill != nil {
		if err := f.fill(b, s); err != nil {
			return nil, err
		}
	}
	f.store = s
	return s, nil
}

// kept returns a side with its own file.
func kept(name string, workers int, delay time.Duration, fill func(b *measure.Bench, s store.Store) error, do func(ctx context.Context, s store.Store, e *engine.Engine, agent string) error) *measure.Side {
	return on(name, workers, &file{delay: delay, fill: fill}, do)
}

// on returns a side with a file that may be shared with others.
func on(name string, workers int, f *file, do func(ctx context.Context, s store.Store, e *engine.Engine, agent string) error) *measure.Side {
	return &measure.Side{Name: name, Open: func(_ context.Context, b *measure.Bench) (measure.Trial, error) {
		s, err := f.open(b)
		if err != nil {
			return nil, err
		}
		e, err := ours.NewEngine(s)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (measure.Values, error) {
			return load.Run(ctx, workers, b.Span, func(ctx context.Context, n int) error { return do(ctx, s, e, ours.Agent(n)) })
		}, nil
	}}
}

func submitBare(ctx context.Context, s store.Store, _ *engine.Engine, _ string) error {
	return ours.Submit(ctx, s, nil)
}

func submitWhole(ctx context.Context, _ store.Store, e *engine.Engine, _ string) error {
	_, err := e.Submit(ctx, engine.NewTask{Prompt: load.Prompt})
	return err
}

// cycle is submit, claim, accept and finish, each durable before the next.
func cycle(ctx context.Context, s store.Store, _ *engine.Engine, agent string) error {
	if err := ours.Submit(ctx, s, nil); err != nil {
		return err
	}
	t, err := ours.Claim(ctx, s, agent)
	if err != nil {
		return err
	}
	if t, err = ours.Accept(ctx, s, t); err != nil {
		return err
	}
	return ours.Finish(ctx, s, t)
}

func wholeCycle(ctx context.Context, _ store.Store, e *engine.Engine, agent string) error {
	return ours.WholeCycle(ctx, e, agent)
}

// waiting stores waiting tasks that could start.
func waiting(n int) func(*measure.Bench, store.Store) error { return filled(n, nil) }

func filled(n int, change func(n int, s *store.Submission)) func(*measure.Bench, store.Store) error {
	return func(b *measure.Bench, s store.Store) error {
		return load.Many(b.Scale(n), func(at int) error {
			return ours.Submit(context.Background(), s, func(sub *store.Submission) {
				if change != nil {
					change(at, sub)
				}
			})
		})
	}
}

const manyBlocked = 100_000

// behind is waiting(1000) and many more tasks that cannot start.
func behind(change func(n int, s *store.Submission)) func(*measure.Bench, store.Store) error {
	return func(b *measure.Bench, s store.Store) error {
		if err := filled(manyBlocked, change)(b, s); err != nil {
			return err
		}
		return waiting(1000)(b, s)
	}
}

func tomorrow(_ int, s *store.Submission) { s.Task.NotBefore = s.Now.Add(24 * time.Hour) }

// sessions makes a hundred conversations with a thousand turns each. No agent serves
// their queue here, so that the first turn of each blocks the others.
func sessions(n int, s *store.Submission) {
	s.Task.SessionID, s.Task.Queue = fmt.Sprintf("session-%d", n%100), signalbox.PoolQueue("other")
}

func river(r *peers.RiverSQLite, name string, o peers.Order) *measure.Side {
	return r.Side(name, func(b *measure.Bench) peers.Order {
		o := o
		if o.Do == "cycles" {
			o.N = b.Scale(o.N)
		}
		if o.Do == "half" {
			o.N = int(2 * b.Span / (2 * time.Millisecond))
		}
		return o
	})
}
