package dispatch

import (
	"sync"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// tail keeps the end of a task's log, at most signalbox.TailBytes, for those
// who read it while the task runs, and for its result. The log of a later
// attempt follows that of the one before, so that positions only grow.
type tail struct {
	mu   sync.Mutex
	text string
	next int64 // position behind text in the task's log
	base int64 // position in the task's log at which the agent's own begins
	cut  bool  // something before text is gone
	done bool
	more chan struct{} // closed at the next change
}

func newTail() *tail { return &tail{more: make(chan struct{})} }

// follow puts the log of an earlier attempt before this one's.
func (l *tail) follow(earlier signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.cut = earlier.Tail, earlier.Truncated
	l.base = earlier.TailSeq + int64(len(earlier.Tail))
	l.next = l.base
}

// add appends a piece of the agent's log that begins at position seq of it.
func (l *tail) add(seq int64, text string, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, next = seq+l.base, next+l.base
	if seq != l.next { // the agent no longer had what lay between
		l.text, l.cut = "", true
	}
	l.text += text
	l.next = next
	if over := len(l.text) - signalbox.TailBytes; over > 0 {
		for over < len(l.text) && !utf8.RuneStart(l.text[over]) {
			over++
		}
		l.text, l.cut = l.text[over:], true
	}
	l.wake()
}

// end says that nothing will follow.
func (l *tail) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.done = true
		l.wake()
	}
}

func (l *tail) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// position is where the next piece of the agent's log is expected to begin.
func (l *tail) position() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - l.base
}

// read returns what lies behind position after, and a channel that is closed
// when there is more.
func (l *tail) read(after int64) (out api.Output, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin := l.next - int64(len(l.text))
	out = api.Output{Seq: max(after, begin), Next: l.next, Truncated: after < begin, Done: l.done}
	if out.Seq >= l.next {
		out.Seq = l.next
		return out, l.more
	}
	out.Text = l.text[out.Seq-begin:]
	return out, l.more
}

// result writes the log into a result.
func (l *tail) result(r *signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Tail, r.TailSeq, r.Truncated = l.text, l.next-int64(len(l.text)), l.cut
}
