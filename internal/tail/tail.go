// Package tail keeps the end of what a run prints, for those who read it while
// the task runs, and for its result.
package tail

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Tail keeps the end of a task's log, at most signalbox.TailBytes. The log of a
// later attempt follows that of the one before, so that positions only grow.
// Its methods are safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte // the end of the log, behind gone bytes, which are removed many at a time
	gone int
	next int64 // position behind text in the task's log
	base int64 // position in the task's log at which the run's own begins
	cut  bool  // something before kept is gone
	done bool
	more chan struct{} // closed at the next change
}

// New returns an empty tail.
func New() *Tail { return &Tail{more: make(chan struct{})} }

// Piece is what lies behind a position of a log.
type Piece struct {
	Text      string
	Seq       int64 // position of Text
	Next      int64 // position behind it
	Truncated bool  // what was asked for before Seq is gone
	Done      bool  // nothing will follow
}

// Follow puts the log of an earlier attempt before this one's.
func (l *Tail) Follow(earlier signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.gone, l.cut = []byte(earlier.Tail), 0, earlier.Truncated
	l.base = earlier.TailSeq + int64(len(earlier.Tail))
	l.next = l.base
}

// Append adds what the run printed next.
func (l *Tail) Append(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(text, l.next+int64(len(text)))
}

// Add appends a piece of the run's log that begins at position seq of it.
func (l *Tail) Add(seq int64, text string, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, next = seq+l.base, next+l.base
	if seq != l.next { // whoever has the log no longer had what lay between
		l.text, l.gone, l.cut = nil, 0, true
	}
	l.put(text, next)
}

// kept is the end of the log.
func (l *Tail) kept() []byte { return l.text[l.gone:] }

func (l *Tail) put(text string, next int64) {
	l.text = append(l.text, text...)
	l.next = next
	if over := len(l.kept()) - signalbox.TailBytes; over > 0 {
		l.gone, l.cut = l.gone+over, true
		for l.gone < len(l.text) && !utf8.RuneStart(l.text[l.gone]) {
			l.gone++
		}
	}
	if l.gone >= signalbox.TailBytes/4 {
		l.text, l.gone = l.text[:copy(l.text, l.kept())], 0
	}
	l.wake()
}

// End says that nothing will follow.
func (l *Tail) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.done = true
		l.wake()
	}
}

func (l *Tail) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// Position is where the next piece of the run's log is expected to begin.
func (l *Tail) Position() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - l.base
}

// Read returns what lies behind position after. While there is nothing it waits
// until there is, the log is at its end, wait is over or ctx ends.
func (l *Tail) Read(ctx context.Context, after int64, wait time.Duration) Piece {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		p, more := l.read(after)
		if p.Done || p.Text != "" {
			return p
		}
		select {
		case <-more:
		case <-timer.C:
			return p
		case <-ctx.Done():
			return p
		}
	}
}

func (l *Tail) read(after int64) (p Piece, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := l.next - int64(len(l.kept()))
	p = Piece{Seq: max(after, begin), Next: l.next, Truncated: after < begin, Done: l.done}
	if p.Seq >= l.next {
		p.Seq = l.next
		return p, l.more
	}
	p.Text = string(l.kept()[p.Seq-begin:])
	return p, l.more
}

// Result writes the log into a result.
func (l *Tail) Result(r *signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Tail, r.TailSeq, r.Truncated = string(l.kept()), l.next-int64(len(l.kept())), l.cut
}
