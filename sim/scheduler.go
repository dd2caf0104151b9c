package sim

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// scheduler lets one actor at a time go on. An actor is a goroutine that stands at a
// turn: where the dispatcher goes on after a wait, where a verb of the store is
// about to happen, where something goes out to the network or comes in. Actors
// that wake at the same moment, in whatever order, all stand at their turns
// before one of them is chosen: what is chosen depends on their names and on the
// seed, and on nothing else.
type scheduler struct {
	mu      sync.Mutex
	waiting []*actor
	now     string        // whose turn it is
	frozen  string        // actors whose name begins so get no turn; "" for none
	arrived chan struct{} // capacity 1: an actor has come
}

// actor is a goroutine that stands at a turn.
type actor struct {
	name string // no two that stand at the same time have the same
	what string // it is about to do
	goOn chan struct{}
	dead func() bool // it may go on without a turn: nothing it does counts
}

func newScheduler() *scheduler { return &scheduler{arrived: make(chan struct{}, 1)} }

// turn waits until it is the turn of the actor. An empty name is that of the
// actor whose turn it is: one goes from turn to turn under its name.
func (l *scheduler) turn(name, what string, dead func() bool) {
	if dead() {
		return
	}
	l.mu.Lock()
	if name == "" {
		name = l.now
	}
	s := &actor{name: name, what: what, goOn: make(chan struct{}), dead: dead}
	l.waiting = append(l.waiting, s)
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	<-s.goOn
}

// hand lets whoever goes on next see what was done: where a goroutine ends, the
// race detector does not know that the others waited for it.
func (l *scheduler) hand() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// current is the name of the actor whose turn it is.
func (l *scheduler) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// freeDead lets all go on that are dead, and reports whether there were any.
func (l *scheduler) freeDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(s *actor) bool {
		if s.dead() {
			close(s.goOn)
			return true
		}
		return false
	})
	return len(l.waiting) < n
}

// freeze keeps the turn from actors whose name begins so, as those of a process
// that is stopped; "" from none.
func (l *scheduler) freeze(prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = prefix
}

// able is how many actors wait for a turn that they can get.
func (l *scheduler) able() (n int) {
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

// next gives the turn to the actor that pick chooses of n, and returns it.
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

// order puts those that are still behind the others.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
