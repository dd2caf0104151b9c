package tickets

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// expiryTracker decides which tickets have expired.
//
// A ticket has expired if its row did not change for as long as a ticket lasts, by this process's monotonic
// clock; the server's clock does not matter. So a jump of that clock neither takes a slot from a running call
// nor keeps one for a dead process.
type expiryTracker struct {
	mu     sync.Mutex
	queues map[string]map[string]lastSeen // by the ticket's ID
}

// lastSeen is the state of a ticket when it last changed.
type lastSeen struct {
	expires time.Time
	changed time.Time // when this state was first seen, monotonic
}

// expired returns a function that reports whether a ticket has expired. A ticket that was not seen before has
// not.
func (s *expiryTracker) expired(queue string, lasts time.Duration) func(store.Ticket) bool {
	return func(t store.Ticket) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		was, seen := s.queues[queue][t.ID]
		return seen && was.expires.Equal(t.Expires) && time.Since(was.changed) >= lasts
	}
}

// record records the tickets of a queue after a step.
func (s *expiryTracker) record(queue string, rows []store.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after, now := s.queues[queue], make(map[string]lastSeen, len(rows)), time.Now()
	for i := range rows {
		t := &rows[i]
		was, seen := before[t.ID]
		if !seen || !was.expires.Equal(t.Expires) {
			was = lastSeen{t.Expires, now}
		}
		after[t.ID] = was
	}
	if s.queues == nil {
		s.queues = map[string]map[string]lastSeen{}
	}
	if s.queues[queue] = after; len(after) == 0 {
		delete(s.queues, queue)
	}
}
