package main

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the same SQLite as ours
)

const prompt = "Read the failing test in the payment service, find out why it fails, and repair it without changing the test."

// durable makes acknowledged writes survive a power cut, as ours do.
const durable = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)&_txlock=immediate"

type job struct {
	Prompt string    `json:"prompt"`
	At     time.Time `json:"at"`
}

func (job) Kind() string { return "job" }

type worker struct {
	river.WorkerDefaults[job]
	do func(time.Time)
}

func (w *worker) Work(_ context.Context, j *river.Job[job]) error {
	w.do(j.Args.At)
	return nil
}

type queue struct {
	db     *sql.DB
	driver *riversqlite.Driver
	client *river.Client[*sql.Tx]
	ended  <-chan *river.Event // one for each end, when it is stored
	best   bool
	stop   func()
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// open opens the file with one connection, as the driver's documentation requires.
func open(ctx context.Context, o order) (*queue, error) {
	db, err := sql.Open("sqlite", "file:"+o.Path+durable)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	q := &queue{db: db, driver: riversqlite.New(db), best: o.Best, stop: func() {}}
	migrator, err := rivermigrate.New(q.driver, &rivermigrate.Config{Logger: quiet()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err == nil {
		q.client, err = river.NewClient(q.driver, &river.Config{Logger: quiet()})
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return q, nil
}

func (q *queue) submit(ctx context.Context, at time.Time) error {
	_, err := q.client.Insert(ctx, job{Prompt: prompt, At: at}, nil)
	return err
}

// many inserts a thousand at a time. (InsertManyFast of this version ends in a
// panic on SQLite.)
func (q *queue) many(ctx context.Context, n int, o *river.InsertOpts) error {
	for at := 0; at < n; at += 1000 {
		many := make([]river.InsertManyParams, min(1000, n-at))
		for i := range many {
			many[i] = river.InsertManyParams{Args: job{Prompt: prompt, At: time.Now()}, InsertOpts: o}
		}
		if _, err := q.client.InsertMany(ctx, many); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) work(ctx context.Context, workers int, do func(time.Time)) error {
	all := river.NewWorkers()
	river.AddWorker(all, &worker{do: do})
	config := &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}, Workers: all, Logger: quiet()}
	if q.best {
		config.FetchCooldown, config.FetchPollInterval = time.Millisecond, 100*time.Millisecond
	}
	client, err := river.NewClient(q.driver, config)
	if err != nil {
		return err
	}
	q.ended, _ = client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 200_000, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	if err := client.Start(ctx); err != nil {
		return err
	}
	q.client = client
	q.stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = client.Stop(ctx)
	}
	return nil
}

func (q *queue) close() {
	q.stop()
	q.db.Close()
}
