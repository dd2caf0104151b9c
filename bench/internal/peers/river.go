package peers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
)

// RiverSettings are settings of River; the zero value means River's defaults.
type RiverSettings struct {
	Connections    int
	Cooldown, Poll time.Duration
	Bulk           bool // cycles insert a thousand jobs at a time
}

// BestRiver are the fastest settings on this machine.
var BestRiver = RiverSettings{Connections: 32, Cooldown: time.Millisecond, Poll: 100 * time.Millisecond, Bulk: true}

// job is our payload as a River job.
type job struct {
	Prompt string    `json:"prompt"`
	At     time.Time `json:"at"`
}

func (job) Kind() string { return "job" }

type worker struct {
	river.WorkerDefaults[job]
	do queue.Work
}

func (w *worker) Work(_ context.Context, j *river.Job[job]) error {
	w.do(j.Args.At)
	return nil
}

// River returns queues on new databases.
func River(database func() string, s RiverSettings) queue.Open {
	return func(ctx context.Context, _ *measure.Bench) (queue.Queue, error) {
		config, err := pgxpool.ParseConfig(database())
		if err != nil {
			return nil, err
		}
		if s.Connections > 0 {
			config.MaxConns = int32(s.Connections)
		}
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		driver := riverpgxv5.New(pool)
		migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
		if err == nil {
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err != nil {
			pool.Close()
			return nil, err
		}
		q := &riverQueue{settings: s, driver: driver, pool: pool, stop: func() {}}
		if q.client, err = river.NewClient(driver, &river.Config{Logger: quiet()}); err != nil { // submits only
			pool.Close()
			return nil, err
		}
		if s.Bulk {
			return bulkRiver{q}, nil
		}
		return q, nil
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

type riverQueue struct {
	settings RiverSettings
	driver   *riverpgxv5.Driver
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx]
	ended    <-chan *river.Event // one for each end, when it is stored
	stop     func()
}

// mostEnds is the size of the buffer of ends to be counted; River drops further ones.
const mostEnds = 200_000

func (q *riverQueue) Submit(ctx context.Context, at time.Time) error {
	_, err := q.client.Insert(ctx, job{Prompt: load.Prompt, At: at}, nil)
	return err
}

func (q *riverQueue) Later(ctx context.Context, n int) error {
	return q.many(ctx, n, &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
}

func (q *riverQueue) many(ctx context.Context, n int, o *river.InsertOpts) error {
	for at := 0; at < n; at += 1000 {
		many := make([]river.InsertManyParams, min(1000, n-at))
		for i := range many {
			many[i] = river.InsertManyParams{Args: job{Prompt: load.Prompt, At: time.Now()}, InsertOpts: o}
		}
		if _, err := q.client.InsertManyFast(ctx, many); err != nil {
			return err
		}
	}
	return nil
}

func (q *riverQueue) Work(ctx context.Context, workers int, do queue.Work) error {
	all := river.NewWorkers()
	river.AddWorker(all, &worker{do: do})
	client, err := river.NewClient(q.driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}, Workers: all,
		FetchCooldown: q.settings.Cooldown, FetchPollInterval: q.settings.Poll, Logger: quiet(),
	})
	if err != nil {
		return err
	}
	q.ended, _ = client.SubscribeConfig(&river.SubscribeConfig{ChanSize: mostEnds, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	if err := client.Start(ctx); err != nil {
		return err
	}
	q.client = client
	q.stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := client.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			quiet().Error("river did not stop", "error", err)
		}
	}
	return nil
}

// AwaitEnds counts River's events, which it sends after storing. Its workers pass the
// ends of their jobs to a goroutine that stores many at a time, and continue.
func (q *riverQueue) AwaitEnds(ctx context.Context, n int) error {
	for range n {
		select {
		case <-q.ended:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("the end of a job was not stored for a minute")
		}
	}
	return nil
}

// Weight returns the size of the job table with its indexes.
func (q *riverQueue) Weight() (bytes float64, err error) {
	err = q.pool.QueryRow(context.Background(), "SELECT pg_total_relation_size('river_job')").Scan(&bytes)
	return bytes, err
}

func (q *riverQueue) Close() {
	q.stop()
	q.pool.Close()
}

// bulkRiver inserts in bulk, which is fastest with River.
type bulkRiver struct{ *riverQueue }

func (q bulkRiver) SubmitMany(ctx context.Context, n int) error { return q.many(ctx, n, nil) }
