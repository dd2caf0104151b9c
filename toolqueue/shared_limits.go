package toolqueue

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Snapshot is the state of a shared queue after a step.
type Snapshot struct {
	// Tickets are holders in the order in which they got their slots, then the waiters, in order.
	Tickets []Ticket
	// Limits are those of keys whose bucket is not full or that are closed.
	Limits []SharedLimit
	Now    time.Time // on the clock of all times of the snapshot
}

// SharedLimit is the state of a key of a queue that a backend stores in addition to the tickets.
type SharedLimit struct {
	Key    string
	Full   time.Time // when its bucket is full
	Closed Closing
}

// SharedGate closes a key of a shared queue for a time from now, or opens it.
type SharedGate struct {
	Key   string
	Close time.Duration // 0: open it
	Why   string
}

// pendingGate is a request to close or open a queue, repeated until the backend has it.
type pendingGate struct {
	key   string
	c     Closing
	until time.Time
}

// gate adds a request to the next step.
func (s *shared) gate(key string, c Closing) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.closed {
		return
	}
	if !s.queue.config.PerKey {
		key = ""
	}
	until := c.Until
	if c == (Closing{}) {
		until = time.Now().Add(s.lease)
	}
	s.gates = append(s.gates, pendingGate{key, c, until})
	s.ensureRunning()
}

// stepGates returns the gates of the next step. An expired closing is not sent.
func (s *shared) stepGates() (out []SharedGate) {
	now := time.Now()
	s.gates = slices.DeleteFunc(s.gates, func(g pendingGate) bool { return !now.Before(g.until) })
	for _, g := range s.gates {
		to := SharedGate{Key: g.key}
		if g.c != (Closing{}) {
			to.Close, to.Why = min(g.c.Until.Sub(now), MaxClosed), g.c.Why
		}
		out = append(out, to)
	}
	return out
}

// sharedNow returns the time on the clock of the newest snapshot.
func (s *shared) sharedNow() time.Time { return s.clock.Add(time.Since(s.seenAt)) }

// keyOf returns the key whose limits apply to a call.
func (s *shared) keyOf(who *Who) string {
	if !s.queue.config.PerKey {
		return ""
	}
	return who.Key
}

func (s *shared) limitOf(key string) SharedLimit {
	for _, l := range s.limits {
		if l.Key == key {
			return l
		}
	}
	return SharedLimit{Key: key}
}

// next returns when a key has its next token: now if it has one.
func (l SharedLimit) next(r Rate, now time.Time) time.Time {
	if r.N == 0 || l.Full.IsZero() {
		return now
	}
	return now.Add(r.Next(l.Full.Sub(now), 0))
}

// opensAt returns when the gate of a key opens, on the clock of the snapshot.
func (s *shared) opensAt(key string, now time.Time) time.Time {
	l := s.limitOf(key)
	at := l.next(s.queue.config.Rate, now)
	if l.Closed.Until.After(at) {
		at = l.Closed.Until
	}
	return at
}

// gateDue returns when a waiting call of this process may start, on this process's clock.
func (s *shared) gateDue() (at time.Time, any bool) {
	now := s.sharedNow()
	for _, c := range s.calls {
		if c.state != remoteWaiting {
			continue
		}
		if opens := s.opensAt(s.keyOf(&c.who), now); opens.After(now) {
			if local := time.Now().Add(opens.Sub(now)); !any || local.Before(at) {
				at, any = local, true
			}
		}
	}
	if earliest := s.steppedAt.Add(minPollDelay); any && at.Before(earliest) {
		at = earliest
	}
	return at, any
}

// held implements Waiting.Held.
func (c *remoteCall) held() Held {
	position := c.position()
	s := c.shared
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if position == 0 {
		return Held{}
	}
	return s.held(s.keyOf(&c.who), position, s.sharedNow())
}

func (s *shared) held(key string, position int, now time.Time) Held {
	at, l := s.opensAt(key, now), s.limitOf(key)
	r := s.queue.config.Rate
	switch {
	case l.Closed.Until.After(now):
		return Held{l.Closed.Until, true, l.Closed.Why}
	case !at.After(now):
		return Held{}
	}
	running := 0
	for i := range s.tickets {
		if t := &s.tickets[i]; t.Holds && t.Key == key {
			running++
		}
	}
	if running >= s.queue.config.Concurrent {
		return Held{}
	}
	return Held{Until: at.Add(time.Duration(position-1) * r.Every())}
}

// statusLimits returns the limits for Status.
func (s *shared) statusLimits(most int) (out []Limit, keys int) {
	now, r := s.sharedNow(), s.queue.config.Rate
	all := map[string]*Limit{}
	of := func(key string) *Limit {
		if all[key] == nil {
			all[key] = &Limit{Key: key}
			if r.N > 0 {
				all[key].Tokens = r.burst()
			}
		}
		return all[key]
	}
	if !s.queue.config.PerKey {
		if r.N == 0 && len(s.limits) == 0 {
			return nil, 0
		}
		of("")
	}
	for i := range s.tickets {
		t := &s.tickets[i]
		if l := of(t.Key); t.Holds {
			l.InUse++
		} else {
			l.Depth++
		}
	}
	for _, l := range s.limits {
		out := of(l.Key)
		if r.N > 0 && !l.Full.IsZero() {
			out.Tokens = r.Tokens(l.Full.Sub(now), 0)
			if next := l.next(r, now); next.After(now) {
				out.Next = next
			}
		}
		if l.Closed.Until.After(now) {
			out.Closed = l.Closed
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if len(out) < cmp.Or(most, 1) {
			out = append(out, *all[key])
		}
	}
	return out, len(all)
}
