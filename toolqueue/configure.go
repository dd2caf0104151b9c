package toolqueue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxConcurrent is the maximum capacity of a queue.
const MaxConcurrent = 1_000_000

// Configure adds queues and raises the bounds of existing ones: each field takes the greater
// value; a smaller or zero value changes nothing. A raised capacity admits waiting calls at
// once; a raised wait applies to later calls. A queue is shared from its creation or not at
// all. All mistakes are reported together, and then nothing is changed.
func (q *Queues) Configure(configs map[string]Config) error {
	var mistakes []error
	names := slices.Sorted(maps.Keys(configs))
	for _, name := range names {
		mistakes = append(mistakes, check(name, configs[name]))
	}
	if err := errors.Join(mistakes...); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all := map[string]*queue{}
	for _, in := range q.queues.Load().list {
		all[in.name] = in
	}
	for _, name := range names {
		if old := all[name]; old != nil && configs[name].Shared && q.sharing != nil && old.shared == nil {
			return fmt.Errorf("tool queue %q is this process's own and cannot be shared any more: say so when it is configured first", name)
		}
	}
	for _, name := range names {
		if old := all[name]; old != nil {
			old.raise(configs[name])
		} else {
			all[name] = q.newQueue(name, configs[name])
		}
	}
	q.queues.Store(newDirectory(all))
	return nil
}

func (q *Queues) newQueue(name string, c Config) *queue {
	in := newQueue(name, &q.hooks, q.start, c)
	if c.Shared && q.sharing != nil {
		in.shared = newShared(in, q.sharing, q.process)
		in.requireLock(lockShared)
	}
	return in
}

// raise raises the bounds and admits waiters.
func (q *queue) raise(to Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := &q.config
	c.Concurrent = max(c.Concurrent, to.Concurrent)
	c.MaxWait = max(c.MaxWait, to.MaxWait)
	c.MaxWaiters = max(c.MaxWaiters, to.MaxWaiters)
	c.Lease.Idle = max(c.Lease.Idle, to.Lease.Idle)
	c.Lease.MaxHold = max(c.Lease.MaxHold, to.Lease.MaxHold)
	c.Shared = c.Shared || to.Shared
	if c.Lease.Idle > 0 {
		q.requireLock(lockLeases)
	}
	for i := range min(c.Concurrent, fastSlots) {
		if s := &q.fast[i]; s.state.Load() == absent {
			s.state.Store(nextUse)
		}
	}
	q.admit()
	if s := q.shared; s != nil && s.running {
		s.signalled = true // the next step admits waiters
		s.notify()
	}
}

// check returns all mistakes of a configuration.
func check(name string, c Config) error {
	var mistakes []error
	bad := func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("tool queue %q: "+format, append([]any{name}, args...)...))
	}
	if !validName(name) {
		bad("a name is 1 to 64 letters, digits, dots, underscores and hyphens")
	}
	if c.Concurrent < 1 || c.Concurrent > MaxConcurrent {
		bad("concurrent is %d; it must be from 1 to %d", c.Concurrent, MaxConcurrent)
	}
	if c.MaxWaiters < 0 {
		bad("the maximum number of waiters is %d; it must be 0, for any number, or more", c.MaxWaiters)
	}
	for _, d := range []struct {
		what string
		is   time.Duration
	}{{"the maximum wait", c.MaxWait}, {"the idle time of the session lease", c.Lease.Idle}, {"the maximum hold of the session lease", c.Lease.MaxHold}} {
		if d.is < 0 {
			bad("%s is %s; it must be 0, for none, or more", d.what, d.is)
		}
	}
	if c.Lease.MaxHold > 0 && c.Lease.Idle == 0 {
		bad("the session lease has a maximum hold but no idle time, without which there is no lease; set both")
	}
	return errors.Join(mistakes...)
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 64
}
