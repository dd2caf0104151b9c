package tail_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/tail"
)

func TestTailKeepsTheEnd(t *testing.T) {
	l := tail.New()
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

func TestTailFollowsTheAttemptBefore(t *testing.T) {
	l := tail.New()
	l.Follow(signalbox.Result{Tail: "first\n", TailSeq: 10, Truncated: true})
	l.Append("second\n")
	if p := l.Read(t.Context(), 16, 0); p.Text != "second\n" || p.Seq != 16 || p.Next != 23 || p.Truncated {
		t.Errorf("%+v", p)
	}
	if l.Position() != 7 {
		t.Errorf("the run's own log is at %d", l.Position())
	}
	l.Add(100, "later", 105) // what lay between is gone
	var r signalbox.Result
	l.Result(&r)
	if r.Tail != "later" || r.TailSeq != 116 || !r.Truncated {
		t.Errorf("%+v", r)
	}
}

func TestTailReadWaits(t *testing.T) {
	l := tail.New()
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
	if p := tail.New().Read(ctx, 0, time.Hour); p.Text != "" || p.Done {
		t.Errorf("%+v", p)
	}
}
