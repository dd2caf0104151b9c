package peers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"

	"github.com/signalbox-ai/signalbox/bench/internal/load"
	"github.com/signalbox-ai/signalbox/bench/internal/measure"
	"github.com/signalbox-ai/signalbox/bench/internal/queue"
)

const asynqKind = "job"

// Asynq returns queues on a Redis that empty has cleared, because Asynq has no key prefix.
// check is the poll interval while there are no tasks; 0: Asynq's default.
func Asynq(empty func() (addr string, db int, err error), check time.Duration) queue.Open {
	return func(context.Context, *measure.Bench) (queue.Queue, error) {
		addr, db, err := empty()
		if err != nil {
			return nil, err
		}
		at := asynq.RedisClientOpt{Addr: addr, DB: db, PoolSize: 300}
		return &asynqQueue{at: at, client: asynq.NewClient(at), check: check, stop: func() {}}, nil
	}
}

type asynqQueue struct {
	at     asynq.RedisClientOpt
	client *asynq.Client
	check  time.Duration
	stop   func()
}

func (q *asynqQueue) Submit(ctx context.Context, at time.Time) error {
	body, err := json.Marshal(job{Prompt: load.Prompt, At: at})
	if err == nil {
		_, err = q.client.EnqueueContext(ctx, asynq.NewTask(asynqKind, body))
	}
	return err
}

func (q *asynqQueue) Later(ctx context.Context, n int) error {
	body, err := json.Marshal(job{Prompt: load.Prompt, At: time.Now()})
	if err != nil {
		return err
	}
	return load.Many(n, func(int) error {
		_, err := q.client.EnqueueContext(ctx, asynq.NewTask(asynqKind, body), asynq.ProcessIn(24*time.Hour))
		return err
	})
}

func (q *asynqQueue) Work(_ context.Context, workers int, do queue.Work) error {
	server := asynq.NewServer(q.at, asynq.Config{Concurrency: workers, TaskCheckInterval: q.check, LogLevel: asynq.FatalLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc(asynqKind, func(_ context.Context, t *asynq.Task) error {
		var j job
		if err := json.Unmarshal(t.Payload(), &j); err != nil {
			return err
		}
		do(j.At)
		return nil
	})
	if err := server.Start(mux); err != nil {
		return err
	}
	q.stop = server.Shutdown
	return nil
}

func (q *asynqQueue) Close() {
	q.stop()
	_ = q.client.Close()
}
