package toolqueue_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// model is a simple, slow queue: lists that are searched, and time that advances from event to
// event.
type model struct {
	config  toolqueue.Config
	now     time.Duration
	holds   []*hold
	waiters []*modelCall            // those that wait for any slot
	behind  map[string][]*modelCall // those that wait for their session's slot
}

// hold is a slot in use.
type hold struct {
	call    *modelCall // nil: a lease that is idle
	session string     // whose lease; "": none
	taken   time.Duration
	idle    time.Duration // since when
	over    bool
}

type modelCall struct {
	id, session string
	deadline    time.Duration // 0: none
	outcome     string        // "": waits; else "in", "out", or the reason
}

func (m *model) depth() int {
	n := len(m.waiters)
	for _, b := range m.behind {
		n += len(b)
	}
	return n
}

func (m *model) lease(session string) *hold {
	for _, h := range m.holds {
		if session != "" && h.session == session {
			return h
		}
	}
	return nil
}

// sessionOf is the session of a call that may hold a lease.
func (m *model) sessionOf(c *modelCall) string {
	if m.config.Lease.Idle == 0 {
		return ""
	}
	return c.session
}

func (m *model) acquire(c *modelCall) {
	s := m.sessionOf(c)
	h := m.lease(s)
	switch {
	case h != nil && h.call == nil:
		h.call, c.outcome = c, "in"
	case h == nil && len(m.waiters) == 0 && len(m.holds) < m.config.Concurrent:
		m.give(c)
	case m.config.MaxWaiters > 0 && m.depth() >= m.config.MaxWaiters:
		c.outcome = string(toolqueue.ReasonFull)
	case h != nil:
		m.behind[s] = append(m.behind[s], c)
	default:
		m.waiters = append(m.waiters, c)
	}
}

// give gives a call a new slot. The other calls of its session then wait for it.
func (m *model) give(c *modelCall) {
	h := &hold{call: c, session: m.sessionOf(c), taken: m.now}
	c.outcome = "in"
	m.holds = append(m.holds, h)
	if h.session == "" {
		return
	}
	var others []*modelCall
	for _, w := range m.waiters {
		if w.session == h.session {
			m.behind[h.session] = append(m.behind[h.session], w)
		} else {
			others = append(others, w)
		}
	}
	m.waiters = others
}

func (m *model) admit() {
	for len(m.waiters) > 0 && len(m.holds) < m.config.Concurrent {
		c := m.waiters[0]
		m.waiters = m.waiters[1:]
		m.give(c)
	}
}

func (m *model) drop(h *hold) {
	m.holds = slices.DeleteFunc(m.holds, func(x *hold) bool { return x == h })
	if h.session != "" {
		m.waiters = append(m.waiters, m.behind[h.session]...)
		delete(m.behind, h.session)
	}
	m.admit()
}

func (m *model) release(c *modelCall) {
	for _, h := range m.holds {
		if h.call != c {
			continue
		}
		c.outcome, h.call, h.idle = "out", nil, m.now
		over := h.over || m.config.Lease.MaxHold > 0 && m.now >= h.taken+m.config.Lease.MaxHold
		next := m.behind[h.session]
		switch {
		case h.session == "" || over:
			m.drop(h)
		case len(next) > 0:
			h.call, next[0].outcome = next[0], "in"
			m.behind[h.session] = next[1:]
		}
		return
	}
}

func (m *model) giveUp(c *modelCall, why toolqueue.Reason) {
	is := func(x *modelCall) bool { return x == c }
	m.waiters = slices.DeleteFunc(m.waiters, is)
	for s := range m.behind {
		m.behind[s] = slices.DeleteFunc(m.behind[s], is)
	}
	c.outcome = string(why)
}

func (m *model) endSession(s string) {
	if h := m.lease(s); h != nil && h.call != nil {
		h.over = true
	} else if h != nil {
		m.drop(h)
	}
}

func (m *model) raise(concurrent int) {
	m.config.Concurrent = max(m.config.Concurrent, concurrent)
	m.admit()
}

// update sets the capacity. What is held beyond it drains.
func (m *model) update(concurrent int) {
	m.config.Concurrent = concurrent
	m.admit()
}

// pass advances the time, event by event.
func (m *model) pass(d time.Duration) {
	for end := m.now + d; ; {
		at, happen := m.next()
		if happen == nil || at > end {
			m.now = end
			return
		}
		m.now = at
		happen()
	}
}

// next returns the next timed event.
func (m *model) next() (at time.Duration, happen func()) {
	earlier := func(t time.Duration, f func()) {
		if happen == nil || t < at {
			at, happen = t, f
		}
	}
	waiting := slices.Clone(m.waiters)
	for _, b := range m.behind {
		waiting = append(waiting, b...)
	}
	for _, c := range waiting {
		if c.deadline > 0 {
			earlier(c.deadline, func() { m.giveUp(c, toolqueue.ReasonTimeout) })
		}
	}
	for _, h := range m.holds {
		if h.call == nil {
			t := h.idle + m.config.Lease.Idle
			if hold := m.config.Lease.MaxHold; hold > 0 {
				t = min(t, h.taken+hold)
			}
			earlier(t, func() { m.drop(h) })
		}
	}
	return at, happen
}

// summary is the observable state of the queue.
func (m *model) summary() string {
	var holders, line []string
	for _, h := range m.holds {
		id := "idle"
		if h.call != nil {
			id = h.call.id
		}
		holders = append(holders, fmt.Sprintf("%s/%s+%d", id, h.session, len(m.behind[h.session])))
	}
	for _, c := range m.waiters {
		line = append(line, c.id)
	}
	slices.Sort(holders)
	return fmt.Sprint(holders, line, m.depth())
}

func summary(s toolqueue.Status) string {
	var holders, line []string
	for _, h := range s.Holders {
		id, session := h.Tool, ""
		if h.Leased {
			session = h.Session
		}
		if h.Idle {
			id = "idle"
		}
		holders = append(holders, fmt.Sprintf("%s/%s+%d", id, session, h.Behind))
	}
	for _, w := range s.Waiters {
		line = append(line, w.Tool)
	}
	slices.Sort(holders)
	return fmt.Sprint(holders, line, s.Depth)
}
