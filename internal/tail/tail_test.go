package tail_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

func TestTailKeepsTheEnd(t *testing.T) {
	l := tail.New(time.Now)
	l.Append(strings.Repeat("é", signalbox.TailBytes/2)) // full to the byte
	l.Append("x")
	var r signalbox.Result
	l.Result(&r)
	if len(r.Tail) != signalbox.TailBytes-1 || r.TailSeq != 2 || !r.Truncated || !strings.HasSuffix(r.Tail, "éx") {
		t.Errorf("%d bytes at %d, truncated %v", len(r.Tail), r.TailSeq, r.Truncated)
	}
	p := l.Read(t.Context(), 0, 0)
	if p.Seq != 2 || p.Next != signalbox.TailBytes+1 || !p.Truncated || p.Text != r.Tail {
		t.Errorf("read %d to %d, truncated %v", p.Seq, p.Next, p.Truncated)
	}
}

// The cost of an endless output is proportional to the output: a piece does not
// copy the tail.
func TestTailOfALongLog(t *testing.T) {
	l := tail.New(time.Now)
	var all strings.Builder
	for i := range 20_000 {
		piece := strings.Repeat(strconv.Itoa(i%10)+"é", 1+i%13)
		all.WriteString(piece)
		l.Append(piece)
		if i%997 != 0 {
			continue
		}
		var r signalbox.Result
		l.Result(&r)
		if !strings.HasSuffix(all.String(), r.Tail) || r.TailSeq+int64(len(r.Tail)) != int64(all.Len()) || r.Truncated != (r.TailSeq > 0) ||
			r.Truncated && len(r.Tail) < signalbox.TailBytes-1 {
			t.Fatalf("after %d bytes: %d at %d, truncated %v", all.Len(), len(r.Tail), r.TailSeq, r.Truncated)
		}
		if p := l.Read(t.Context(), int64(all.Len()-len(piece)), 0); p.Text != piece {
			t.Fatalf("the last piece is %q, want %q", p.Text, piece)
		}
	}
	piece := strings.Repeat("y\n", 16<<10)
	const pieces = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range pieces {
		l.Append(piece)
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / pieces; per > 4<<10 {
		t.Errorf("a piece of %d bytes costs %d more", len(piece), per)
	}
}

func TestTailFollowsTheAttemptBefore(t *testing.T) {
	l := tail.New(time.Now)
	l.Follow(signalbox.Result{Tail: "first\n", TailSeq: 10, Truncated: true})
	l.Append("second\n")
	if p := l.Read(t.Context(), 16, 0); p.Text != "second\n" || p.Seq != 16 || p.Next != 23 || p.Truncated {
		t.Errorf("%+v", p)
	}
	if l.Position() != 7 {
		t.Errorf("the run's own log is at %d", l.Position())
	}
	l.Add(100, "later", 105) // the text in between is lost
	var r signalbox.Result
	l.Result(&r)
	if r.Tail != "later" || r.TailSeq != 116 || !r.Truncated {
		t.Errorf("%+v", r)
	}
}

func TestTailReadWaits(t *testing.T) {
	l := tail.New(time.Now)
	got := make(chan tail.Piece, 1)
	go func() { got <- l.Read(context.Background(), 0, time.Hour) }()
	l.Append("a")
	if p := <-got; p.Text != "a" || p.Done {
		t.Errorf("%+v", p)
	}
	go func() { got <- l.Read(context.Background(), 1, time.Hour) }()
	l.End()
	l.End()
	if p := <-got; p.Text != "" || !p.Done || p.Seq != 1 {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p := tail.New(time.Now).Read(ctx, 0, time.Hour); p.Text != "" || p.Done {
		t.Errorf("%+v", p)
	}
}
