package peers

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite" // the same SQLite as ours

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
)

// DurableSQLite are the settings for every peer on SQLite: acknowledged writes survive a
// power cut, as with ours.
const DurableSQLite = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)&_txlock=immediate"

// Config makes a job a backlite task; ended tasks are kept, as with ours.
func (job) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "job", MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second, Retention: &backlite.Retention{Data: &backlite.RetainData{}}}
}

var files atomic.Int64

// Backlite returns queues in new files. SQLite has one writer, so one connection is
// faster than many that wait for each other.
func Backlite(_ context.Context, b *measure.Bench) (queue.Queue, error) {
	path := filepath.Join(b.Dir, fmt.Sprintf("backlite-%d.db", files.Add(1)))
	db, err := sql.Open("sqlite", "file:"+path+DurableSQLite)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	q := &backliteQueue{db: db, path: path, stop: func() {}}
	if q.client, err = q.open(1, func(time.Time) {}); err == nil {
		err = q.client.Install()
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return q, nil
}

type backliteQueue struct {
	db     *sql.DB
	path   string
	client *backlite.Client
	stop   func()
}

func (q *backliteQueue) open(workers int, do queue.Work) (*backlite.Client, error) {
	c, err := backlite.NewClient(backlite.ClientConfig{DB: q.db, NumWorkers: workers, ReleaseAfter: 10 * time.Minute})
	if err == nil {
		c.Register(backlite.NewQueue(func(_ context.Context, j job) error {
			do(j.At)
			return nil
		}))
	}
	return c, err
}

func (q *backliteQueue) Submit(ctx context.Context, at time.Time) error {
	_, err := q.client.Add(job{Prompt: load.Prompt, At: at}).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) Later(ctx context.Context, n int) error {
	for at := 0; at < n; at += 1000 {
		many := make([]backlite.Task, min(1000, n-at))
		for i := range many {
			many[i] = job{Prompt: load.Prompt, At: time.Now()}
		}
		if _, err := q.client.Add(many...).Ctx(ctx).Wait(24 * time.Hour).Save(); err != nil {
			return err
		}
	}
	return nil
}

func (q *backliteQueue) Work(ctx context.Context, workers int, do queue.Work) (err error) {
	if q.client, err = q.open(workers, do); err != nil {
		return err
	}
	c, end := context.WithCancel(ctx)
	q.client.Start(c)
	q.stop = func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		q.client.Stop(stopping)
		end()
	}
	return nil
}

// Weight returns the size of the file.
func (q *backliteQueue) Weight() (float64, error) { return SQLiteBytes(q.path) }

func (q *backliteQueue) Close() {
	q.stop()
	_ = q.db.Close()
}
