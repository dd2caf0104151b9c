package tail_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

// ticking is a clock that advances by step at each reading.
func ticking(step time.Duration) func() time.Time {
	now := time.UnixMilli(0).UTC()
	return func() time.Time { now = now.Add(step); return now }
}

// A reader learns when each piece arrived, even from the middle of a piece, and the result
// keeps it.
func TestTimesOfALog(t *testing.T) {
	l := tail.New(ticking(time.Second))
	l.Append("one\n")
	l.Append("two\n")
	l.Append("three\n")
	p := l.Read(t.Context(), 5, 0)
	if got, want := tail.Pairs(p.Times), [][2]int64{{4, 2000}, {8, 3000}}; p.Text != "wo\nthree\n" || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %v", p.Text, got, want)
	}
	var r signalbox.Result
	l.Result(&r)
	next := tail.New(ticking(time.Second))
	next.Follow(r)
	next.Append("again\n")
	if got, want := tail.Pairs(next.Read(t.Context(), 0, 0).Times), [][2]int64{{0, 1000}, {4, 2000}, {8, 3000}, {14, 1000}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// However long a run prints, the number of times is bounded, and the times of the kept text
// stay in order.
func TestTimesOfALogAreBounded(t *testing.T) {
	l := tail.New(ticking(time.Second))
	line := strings.Repeat("x", 99) + "\n"
	for range 5 * signalbox.MaxLogTimes {
		l.Append(line)
	}
	var r signalbox.Result
	l.Result(&r)
	if n := len(r.LogTimes); n == 0 || n > signalbox.MaxLogTimes {
		t.Fatalf("%d times", n)
	}
	if r.LogTimes[0].Seq > r.TailSeq {
		t.Errorf("the first time is of %d, the log begins at %d", r.LogTimes[0].Seq, r.TailSeq)
	}
	if !slices.IsSortedFunc(r.LogTimes, func(a, b signalbox.LogTime) int { return int(a.Seq - b.Seq) }) {
		t.Error("out of order")
	}
	often := tail.New(ticking(time.Millisecond))
	for range 1500 {
		often.Append("x")
	}
	if p := often.Read(t.Context(), 0, 0); len(p.Times) != 2 {
		t.Errorf("1.5 s have %d times, want 2: %v", len(p.Times), p.Times)
	}
}

// A piece reports the number of its first line in the whole log, even if the beginning is
// gone, until output was lost.
func TestPiecesSayTheirLine(t *testing.T) {
	l := tail.New(time.Now)
	line := func(after int64) int64 { return l.Read(t.Context(), after, 0).Line }
	l.Append("one\ntwo\nthr")
	if got := []int64{line(0), line(3), line(4), line(8), line(9)}; !slices.Equal(got, []int64{1, 1, 2, 3, 3}) {
		t.Errorf("positions 0, 3, 4, 8 and 9 are in the lines %d", got)
	}
	for range 3 {
		l.Append(strings.Repeat("x\n", signalbox.TailBytes/2))
	}
	var r signalbox.Result
	l.Result(&r)
	if want := int64(3 + 3*signalbox.TailBytes/2 - signalbox.TailBytes/2); r.TailLine != want || line(0) != want || tail.FirstLine(&r) != want {
		t.Errorf("the tail begins in line %d, %d, want %d", r.TailLine, line(0), want)
	}
	next := tail.New(time.Now)
	next.Follow(r)
	next.Append("again\n")
	if got, want := next.Read(t.Context(), r.TailSeq+signalbox.TailBytes, 0).Line, r.TailLine+signalbox.TailBytes/2; got != want {
		t.Errorf("a second attempt begins in line %d, want %d", got, want)
	}
	l.Add(10*signalbox.TailBytes, "late\n", 10*signalbox.TailBytes+5)
	if l.Result(&r); r.TailLine != 0 || line(0) != 0 {
		t.Errorf("after missed output the line is %d", r.TailLine)
	}
}
