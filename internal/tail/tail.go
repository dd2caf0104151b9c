// Package tail keeps the end of a run's output, for readers while the task
// runs and for its result.
package tail

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/signalbox-ai/signalbox"
)

// Tail keeps the end of a task's log, at most signalbox.TailBytes. The log of a
// later attempt follows that of the earlier one, so that positions only grow.
// Its methods are safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	text []byte // the end of the log after the first gone bytes, which are removed many at a time
	gone int
	next int64 // position after text in the task's log
	base int64 // position in the task's log at which the run's own log begins
	cut  bool  // something before kept is lost
	line int64 // number of the line in which kept begins, from 1; 0: unknown
	now  func() time.Time
	came []signalbox.LogTime // when the kept text arrived; see note
	done bool
	more chan struct{} // closed at the next change
}

// New returns an empty tail. It records arrival times with now.
func New(now func() time.Time) *Tail { return &Tail{now: now, line: 1, more: make(chan struct{})} }

// Piece is a part of a log.
type Piece struct {
	Text      string
	Seq       int64               // position of Text
	Next      int64               // position after it
	Truncated bool                // text before Seq that was asked for is gone
	Done      bool                // nothing more will follow
	Line      int64               // number of the line in which Text begins, from 1; 0: unknown
	Times     []signalbox.LogTime // when the text arrived, beginning with the time that applies at Seq
}

// Follow puts the log of an earlier attempt before this run's.
func (l *Tail) Follow(earlier signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.gone, l.cut = []byte(earlier.Tail), 0, earlier.Truncated
	l.line, l.came = FirstLine(&earlier), slices.Clone(earlier.LogTimes)
	l.base = earlier.TailSeq + int64(len(earlier.Tail))
	l.next = l.base
}

// Append adds the run's next output.
func (l *Tail) Append(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(text, l.next+int64(len(text)))
}

// Add appends a piece of the run's log that begins at position seq.
func (l *Tail) Add(seq int64, text string, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, next = seq+l.base, next+l.base
	if seq != l.next { // the text in between is lost at its source
		l.text, l.gone, l.cut, l.line = nil, 0, true, 0
	}
	l.put(text, next)
}

// FirstLine is the number of the line in which the tail of a result begins, from 1; 0 if
// unknown.
func FirstLine(r *signalbox.Result) int64 {
	if r.TailSeq == 0 {
		return 1
	}
	return r.TailLine
}

// LineAfter is the line number after text, which begins in line; 0 if line is 0.
func LineAfter(line int64, text []byte) int64 {
	if line == 0 {
		return 0
	}
	return line + int64(bytes.Count(text, []byte("\n")))
}

// kept is the kept end of the log.
func (l *Tail) kept() []byte { return l.text[l.gone:] }

func (l *Tail) put(text string, next int64) {
	if text != "" {
		l.note(next - int64(len(text)))
	}
	l.text = append(l.text, text...)
	l.next = next
	if over := len(l.kept()) - signalbox.TailBytes; over > 0 {
		from := l.gone
		l.gone, l.cut = l.gone+over, true
		for l.gone < len(l.text) && !utf8.RuneStart(l.text[l.gone]) {
			l.gone++
		}
		l.line = LineAfter(l.line, l.text[from:l.gone])
	}
	if l.gone >= signalbox.TailBytes/4 {
		l.text, l.gone = l.text[:copy(l.text, l.kept())], 0
	}
	l.wake()
}

// timeEvery is the minimum interval between two times of a log.
const timeEvery = time.Second

// note records the arrival time of the text at position seq. If the list is full, it
// drops every second time.
func (l *Tail) note(seq int64) {
	at := l.now()
	if n := len(l.came); n > 0 && at.Sub(l.came[n-1].At) < timeEvery && at.After(l.came[n-1].At) {
		return
	}
	if len(l.came) >= signalbox.MaxLogTimes {
		kept := l.came[:0]
		for i := 0; i < len(l.came); i += 2 {
			kept = append(kept, l.came[i])
		}
		l.came = kept
	}
	l.came = append(l.came, signalbox.LogTime{Seq: seq, At: at.UTC().Truncate(time.Millisecond)})
}

// times returns the times of the text from position seq on.
func (l *Tail) times(seq int64) []signalbox.LogTime {
	first, exact := slices.BinarySearchFunc(l.came, seq, func(t signalbox.LogTime, seq int64) int { return cmp.Compare(t.Seq, seq) })
	if !exact {
		first = max(0, first-1)
	}
	return slices.Clone(l.came[first:])
}

// Pairs converts times to the API's form: position, milliseconds since 1970.
func Pairs(times []signalbox.LogTime) (pairs [][2]int64) {
	for _, t := range times {
		pairs = append(pairs, [2]int64{t.Seq, t.At.UnixMilli()})
	}
	return pairs
}

// End marks the end of the log.
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

// Position is where the run's next piece should begin.
func (l *Tail) Position() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - l.base
}

// Read returns the text after position after. If there is none, it waits until
// there is some, the log has ended, wait is over or ctx ends.
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
	p.Text, p.Times = string(l.kept()[p.Seq-begin:]), l.times(p.Seq)
	p.Line = LineAfter(l.line, l.kept()[:p.Seq-begin])
	return p, l.more
}

// Result stores the log in a result.
func (l *Tail) Result(r *signalbox.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Tail, r.TailSeq, r.Truncated = string(l.kept()), l.next-int64(len(l.kept())), l.cut
	r.LogTimes = l.times(r.TailSeq)
	if r.TailLine = l.line; r.TailSeq == 0 {
		r.TailLine = 0
	}
}
