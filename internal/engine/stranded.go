package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/store"
)

// strandedInterval is the pause between scans of a queue, unless a session task enters it.
const strandedInterval = 30 * time.Second

// strandedScan is a scan of the queue of a disconnected agent. It reads a page at a time:
// the queue may be long, and ResolveStranded is called every second.
type strandedScan struct {
	changed atomic.Bool // a session task has entered the queue since the scan started

	mu     sync.Mutex
	after  store.Cursor // end of the last page; zero: at the start
	nextAt time.Time    // start of the next scan, unless changed
}

// noteStranded starts the next scan early if a session task entered the queue.
func (e *Engine) noteStranded(a *Applied) {
	t := &a.Task
	if t.State != signalbox.Pending || (t.SessionMode == "" && !a.Partial) {
		return
	}
	if s, ok := e.stranded.Load(t.Queue); ok {
		s.(*strandedScan).changed.Store(true)
	}
}

// ResolveStranded handles tasks that wait for an agent because it holds their session, once the agent has
// been gone for the session grace. They fail with a message that says what to do. If submitted with session:
// prefer, they move to the work queue instead, unless a run of them was parked in that session. Tasks that
// named the agent keep waiting, and parked tasks until their gate opens. A call handles at most batchSize
// tasks; call it every second.
func (e *Engine) ResolveStranded(ctx context.Context, agent string, gone time.Duration) error {
	queue := signalbox.AgentQueue(agent)
	known, _ := e.stranded.LoadOrStore(queue, &strandedScan{})
	s := known.(*strandedScan)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed.Load() && e.Now().Before(s.nextAt) {
		return nil
	}
	if s.after == (store.Cursor{}) {
		s.changed.Store(false)
	}
	page, err := e.store.Waiting(ctx, queue, s.after, batchSize)
	if err != nil {
		return err
	}
	s.after, s.nextAt = store.Cursor{}, e.Now().Add(strandedInterval)
	if len(page) == batchSize {
		s.after, s.nextAt = store.CursorOf(&page[batchSize-1]), time.Time{}
	}
	for _, t := range page {
		ev := signalbox.Event{Kind: signalbox.EventMove, Queue: signalbox.QueueWork}
		switch {
		case t.SessionMode == "" || t.State == signalbox.Parked:
			continue
		case t.SessionMode == signalbox.SessionRequire || t.Parking != nil && t.Parking.Began:
			ev = signalbox.Event{Kind: signalbox.EventUndeliverable, Message: fmt.Sprintf(
				"session %s is held by agent %s, which has been gone for %s: start %s again and retry, or submit with session: prefer to go on elsewhere without the conversation",
				t.SessionID, agent, gone.Round(time.Second), agent)}
		}
		if _, err := e.tryApply(ctx, &t, ev); err != nil {
			return err
		}
	}
	return nil
}
