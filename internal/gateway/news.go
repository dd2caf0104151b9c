package gateway

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-ai/signalbox/toolqueue"
)

// keepTelling is the longest silence of a call that waits. Clients give up
// between 60 and 300 s without a word, some sooner.
const keepTelling = 5 * time.Second

// news tells a caller how its call fares: its place in line, then what the
// upstream says. A nil news tells nothing.
//
// A caller that is slow to take in what it is told must not hold up its call:
// the slot is used at once, whether or not the last place in line has been
// told. Only the end of the call waits for it, when the slot is free again.
type news struct {
	mu      sync.Mutex // one word at a time
	f       func(Progress)
	over    bool          // guarded by mu
	waiting atomic.Bool   // else its place in line is of no interest any more
	stop    chan struct{} // ends the goroutine that follows the place
	done    chan struct{} // nil: there is none
}

func newNews(f func(Progress)) *news {
	if f == nil {
		return nil
	}
	return &news{f: f}
}

// follow tells the place in line until waitOver: at once, when it changes, and
// every few seconds.
func (n *news) follow(w toolqueue.Waiting) {
	if n == nil {
		return
	}
	n.waiting.Store(true)
	n.stop, n.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(n.done)
		n.places(w)
	}()
}

func (n *news) places(w toolqueue.Waiting) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	told, last := time.Time{}, 0
	for {
		select {
		case <-n.stop:
			return
		case <-timer.C:
		}
		place := w.Position()
		if place == 0 {
			return
		}
		if place != last || time.Since(told) >= keepTelling {
			told, last = time.Now(), place
			n.place(place)
		}
		timer.Reset(lookAgain(place))
	}
}

// lookAgain is how soon a place is looked up again. A look walks the line up to
// there with the queue locked, so that those far back look less often.
func lookAgain(place int) time.Duration {
	switch {
	case place <= 100:
		return 100 * time.Millisecond
	case place <= 1000:
		return time.Second
	}
	return keepTelling
}

func (n *news) place(place int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting.Load() {
		n.f(Progress{Message: fmt.Sprintf("queued, position %d", place), Position: place})
	}
}

// waitOver ends the news of the place.
func (n *news) waitOver() {
	if n != nil && n.stop != nil {
		n.waiting.Store(false)
		close(n.stop)
	}
}

// upstream hands on what the upstream says, until the call is over.
func (n *news) upstream(p Progress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.over {
		p.Position = 0
		n.f(p)
	}
}

// end returns when the caller will hear no more.
func (n *news) end() {
	if n == nil {
		return
	}
	if n.done != nil {
		<-n.done
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}
