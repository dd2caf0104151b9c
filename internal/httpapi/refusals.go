package httpapi

import (
	"context"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// refused counts a submit that did not reach the engine.
func refused(m Metrics, err error) error {
	m.Refused(signalbox.CodeOf(err))
	return err
}

// Bounds of the Retry-After of a full queue, in seconds. The seed's answer
// is 30.
const (
	defaultRetryAfter = 30
	maxRetryAfter     = 300
)

// retryAfter estimates in seconds when the first waiting task of a queue
// starts, which makes room; the seed's 30 where that is not known.
func retryAfter(ctx context.Context, e *engine.Engine, queue string) int {
	eta := e.ETA(ctx, &signalbox.Task{State: signalbox.Pending, Queue: queue}, store.Position{N: 1})
	if eta == nil {
		return defaultRetryAfter
	}
	return min(max(1, int(eta.High/time.Second)), maxRetryAfter)
}
