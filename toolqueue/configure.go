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
// value; a smaller or zero value changes nothing (Update lowers a bound). A raised capacity admits
// waiting calls at once; a raised wait applies to later calls. A queue can be shared only from its
// creation. All mistakes are reported together, and then nothing is changed.
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
		if old := all[name]; old != nil && configs[name].PerKey != old.config.PerKey {
			return fmt.Errorf("tool queue %q has limits for each key or for all calls together, as it was configured first, and that cannot be changed", name)
		}
		if old := all[name]; old != nil && configs[name].Shared && q.sharing != nil && old.shared == nil {
			return fmt.Errorf("tool queue %q is this process's own and cannot be shared any more: say so when it is configured first", name)
		}
	}
	for _, name := range names {
		if old := all[name]; old != nil {
			old.change(func(q *queue) { q.raise(configs[name]) })
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
	} else if c.PerKey {
		in.keys = newKeys(in)
	}
	return in
}

// change applies a change of the configuration to a queue, or to those of all its keys.
func (q *queue) change(apply func(*queue)) {
	if q.keys != nil {
		q.keys.configure(apply)
	} else {
		apply(q)
	}
}

// Update changes the bounds of a queue while it is in use. change gets the configuration and sets
// Concurrent, MaxWait, MaxWaiters or Rate; this is atomic. It must be quick and must not use the
// queues. Update returns the configuration before and after.
//
// Additional slots go to the first waiters at once. With fewer slots the queue drains: a call or
// lease keeps its slot, and no slot is passed on until fewer than Concurrent are held; until then
// Status shows more slots in use than Concurrent. A new MaxWait or MaxWaiters applies to later
// calls: no waiting call is refused. With a new Rate the bucket lacks as many tokens as before; a
// first bucket is full.
//
// A queue that is shared with other processes is changed only in this process: call Update in
// each.
//
// The error is an *Error that matches ErrUnknown if there is no such queue. Otherwise it says which
// bound is out of range, or that change has set Lease, Shared or PerKey, which cannot be changed.
// After an error nothing is changed.
func (q *Queues) Update(name string, change func(*Config)) (before, after Config, err error) {
	q.mu.Lock() // Configure raises what is there now
	defer q.mu.Unlock()
	in := q.queues.Load().find(name)
	if in == nil {
		return Config{}, Config{}, &Error{Queue: name, Reason: ReasonUnknown, Err: ErrUnknown}
	}
	in.change(func(of *queue) {
		b, a, e := of.update(change)
		if of == in {
			before, after, err = b, a, e
		}
	})
	return before, after, err
}

func (q *queue) update(change func(*Config)) (before, after Config, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, after = q.config, q.config
	change(&after)
	if err = check(q.name, after); err == nil && (after.Lease != before.Lease || after.Shared != before.Shared) {
		err = fmt.Errorf("tool queue %q: its session lease and whether it is shared cannot be changed while it runs", q.name)
	}
	if err == nil && after.PerKey != before.PerKey {
		err = fmt.Errorf("tool queue %q: whether each key has limits of its own cannot be changed while it runs", q.name)
	}
	if err != nil {
		return before, before, err
	}
	q.setRate(after.Rate)
	q.config = after
	q.resized()
	return before, after, nil
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
	q.setRate(c.Rate.Greater(to.Rate))
	if c.Lease.Idle > 0 {
		q.requireLock(lockLeases)
	}
	q.resized()
}

// resized fits the slots to a new capacity.
func (q *queue) resized() {
	if q.shared == nil {
		q.fit()
		q.disarm()
		q.admit()
	} else if q.shared.running {
		q.shared.signalled = true // the next step admits waiters
		q.shared.notify()
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
	if text := c.Rate.Check(); text != "" {
		bad("%s", text)
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
