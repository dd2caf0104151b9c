package store

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// MaxToolClosed is the longest time that a key of a tool queue is closed. If it is closed for longer, the
// clock was set back, and that is corrected.
const MaxToolClosed = time.Hour

// ToolLine is the state of a shared tool queue.
type ToolLine struct {
	Tickets []Ticket    // holders by Fence, then waiting ones by Place
	Limits  []ToolLimit // by key
}

// ToolLimit is the state of a key of a tool queue besides its tickets. A key that is open and whose bucket is
// full has none.
type ToolLimit struct {
	Key    string        // Ticket.Key
	Full   time.Duration // when the bucket of its rate is full, since the Unix epoch
	Closed time.Time     // nothing starts before
	Since  time.Time     // since when it is closed
	Why    string        // why it is closed
}

// ToolGate closes a key of a tool queue, or opens it.
type ToolGate struct {
	Key   string
	Until time.Time // if it is closed already, the later time counts; zero: open it
	Why   string
}

// limits are the limits of a queue during a step.
type limits struct {
	of               map[string]ToolLimit
	running, waiting map[string]int // tickets, by key
}

func (t *tickets) readLimits(list []ToolLimit) {
	t.of = make(map[string]ToolLimit, len(list))
	for _, l := range list {
		if t.says(&l) {
			t.of[l.Key] = l
		}
	}
}

// says reports whether a key is closed or its bucket is not full.
func (t *tickets) says(l *ToolLimit) bool {
	now := t.step.Now
	return now.IsZero() || l.Full > time.Duration(now.UnixNano()) || l.Closed.After(now)
}

// writeLimits returns the limits of keys that are closed or whose bucket is not full.
func (t *tickets) writeLimits() []ToolLimit {
	maps.DeleteFunc(t.of, func(_ string, l ToolLimit) bool { return !t.says(&l) })
	list := slices.Collect(maps.Values(t.of))
	slices.SortFunc(list, func(a, b ToolLimit) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// gates closes and opens keys.
func (t *tickets) gates() {
	for _, g := range t.step.Gates {
		l, until := t.of[g.Key], time.Time{}
		if g.Until.After(t.step.Now) {
			until = toMS(g.Until)
		}
		if !g.Until.IsZero() && !until.After(t.closedUntil(&l)) || g.Until.IsZero() && l.Closed.IsZero() {
			continue
		}
		if !l.Closed.After(t.step.Now) {
			l.Since = t.step.Now
		}
		l.Key, l.Closed, l.Why = g.Key, until, g.Why
		if until.IsZero() {
			l.Since = until
		}
		t.of[g.Key], t.changed = l, true
	}
}

func (t *tickets) closedUntil(l *ToolLimit) time.Time {
	if most := t.step.Now.Add(MaxToolClosed); l.Closed.After(most) {
		return toMS(most)
	}
	return l.Closed
}

// mayStart takes a token for a call, unless its key is closed or has no token.
func (t *tickets) mayStart(key string) bool {
	l := t.of[key]
	if t.closedUntil(&l).After(t.step.Now) {
		return false
	}
	if t.step.Take == nil {
		return true
	}
	full, ok := t.step.Take(l.Full, time.Duration(t.step.Now.UnixNano()))
	if ok {
		l.Key, l.Full = key, full
		t.of[key], t.changed = l, true
	}
	return ok
}

// count counts the tickets of each key.
func (t *tickets) count() {
	t.running, t.waiting = map[string]int{}, map[string]int{}
	for i := range t.holders {
		t.running[t.holders[i].Key]++
	}
	for i := range t.line {
		t.waiting[t.line[i].Key]++
	}
}

// tooMany reports whether a key would exceed MaxKeys.
func (t *tickets) tooMany(key string) bool {
	if n := t.step.MaxKeys; n == 0 || t.running[key] > 0 || t.waiting[key] > 0 || len(t.of)+len(t.holders)+len(t.line) < n {
		return false
	}
	if _, known := t.of[key]; known {
		return false
	}
	all := map[string]bool{}
	for key := range t.of {
		all[key] = true
	}
	for _, of := range []map[string]int{t.running, t.waiting} {
		for key, n := range of {
			all[key] = all[key] || n > 0
		}
	}
	return len(all) >= t.step.MaxKeys
}

// awaited reports whether a call waits for the slot of an idle lease. Then the lease lasts as long as it may
// be held.
func (t *tickets) awaited(x *Ticket) bool {
	if hold := t.step.LeaseHold; hold > 0 && !t.step.Now.Before(x.Granted.Add(hold)) {
		return false
	}
	return slices.ContainsFunc(t.line, func(w Ticket) bool { return w.Leased && w.Session == x.Session && w.Key == x.Key })
}
