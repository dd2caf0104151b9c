package sim

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// scheduler runs one actor at a time. An actor is a goroutine at a yield point: where the
// dispatcher continues after a wait, before a store operation, before a request is sent or
// received. Actors that wake at the same moment all reach their yield points before one is
// chosen: the choice depends only on their names and the seed.
type scheduler struct {
	mu      sync.Mutex
	waiting []*actor
	now     string        // the running actor
	frozen  string        // name prefix of actors that are not scheduled; "": none
	arrived chan struct{} // capacity 1: an actor has arrived
}

// actor is a goroutine at a yield point.
type actor struct {
	name   string // unique among waiting actors
	what   string // its next operation
	resume chan struct{}
	dead   func() bool // it may continue at once: nothing it does counts
}

func newScheduler() *scheduler { return &scheduler{arrived: make(chan struct{}, 1)} }

// turn waits until the actor is chosen. An empty name is that of the running actor.
func (l *scheduler) turn(name, what string, dead func() bool) {
	if dead() {
		return
	}
	l.mu.Lock()
	if name == "" {
		name = l.now
	}
	s := &actor{name: name, what: what, resume: make(chan struct{}), dead: dead}
	l.waiting = append(l.waiting, s)
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	<-s.resume
}

// publish makes previous writes visible to the next actor: at the end of a goroutine, the race detector does
// not know that others waited for it.
func (l *scheduler) publish() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// current is the name of the running actor.
func (l *scheduler) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// freeDead releases all dead actors, and reports whether there were any.
func (l *scheduler) freeDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(s *actor) bool {
		if s.dead() {
			close(s.resume)
			return true
		}
		return false
	})
	return len(l.waiting) < n
}

// freeze stops scheduling actors with a name prefix, as of a stopped process; "": none.
func (l *scheduler) freeze(prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = prefix
}

// runnable counts the actors that can be chosen.
func (l *scheduler) runnable() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.waiting {
		if !l.still(s) {
			n++
		}
	}
	return n
}

func (l *scheduler) still(s *actor) bool {
	return l.frozen != "" && strings.HasPrefix(s.name, l.frozen)
}

// next runs the actor that pick chooses of n, and returns it.
func (l *scheduler) next(pick func(n int) int) *actor {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.waiting, func(a, b *actor) int {
		return cmp.Or(order(l.still(a), l.still(b)), cmp.Compare(a.name, b.name), cmp.Compare(a.what, b.what))
	})
	able := len(l.waiting)
	for able > 0 && l.still(l.waiting[able-1]) {
		able--
	}
	i := pick(able)
	s := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.now = s.name
	return s
}

// order sorts frozen actors last.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
