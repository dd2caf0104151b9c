package verbs

import (
	"context"
	"sync"

	"github.com/signalbox-ai/signalbox/internal/store/group"
)

// direct runs verbs one by one on their callers' goroutines, for a backend whose commits
// take no time: batching would gain nothing.
type direct struct {
	mu  sync.Mutex
	job group.Job[verb]
}

// within bounds a call of the backend, unless it takes no time.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opts.Direct {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.opts.Patience)
}

func (s *Store) doDirect(ctx context.Context, v verb) error {
	if err := group.Gone(ctx); err != nil {
		return err
	}
	d := &s.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.inbox.Closed(); err != nil {
		return err
	}
	d.job = group.Job[verb]{Verb: v}
	batch := &s.writer.batch
	batch.Jobs = append(batch.Jobs[:0], &d.job)
	s.writer.runBatch()
	batch.Jobs = batch.Jobs[:0]
	return d.job.Err
}
