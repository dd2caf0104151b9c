package tickets

import (
	"sync"
	"time"

	"github.com/signalbox-ai/signalbox/internal/store"
)

// sights are the tickets of all processes as they are seen from here.
//
// A ticket ran out when nobody kept it for as long as it lasts, by our own
// clock, which never jumps: the clock of the server says nothing about that. So
// no jump of it, forth or back, takes a slot from a call under way, or keeps
// one for a process that died.
type sights struct {
	mu     sync.Mutex
	queues map[string]map[string]sight // by the ticket's ID
}

// sight is a ticket as it was seen last.
type sight struct {
	expires time.Time
	changed time.Time // when it was first seen so, by our own clock
}

// over reports of a ticket of a queue whether it ran out. One that was never
// seen before did not.
func (s *sights) over(queue string, lasts time.Duration) func(store.Ticket) bool {
	return func(t store.Ticket) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		was, seen := s.queues[queue][t.ID]
		return seen && was.expires.Equal(t.Expires) && time.Since(was.changed) >= lasts
	}
}

// see takes in the tickets of a queue after a step.
func (s *sights) see(queue string, rows []store.Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after, now := s.queues[queue], make(map[string]sight, len(rows)), time.Now()
	for i := range rows {
		t := &rows[i]
		was, seen := before[t.ID]
		if !seen || !was.expires.Equal(t.Expires) {
			was = sight{t.Expires, now}
		}
		after[t.ID] = was
	}
	if s.queues == nil {
		s.queues = map[string]map[string]sight{}
	}
	if s.queues[queue] = after; len(after) == 0 {
		delete(s.queues, queue)
	}
}
