package stream

import (
	"context"
	"net/http/httptest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
)

func framesOf(seqs []int64) []frame {
	list := make([]frame, len(seqs))
	for i, seq := range seqs {
		b, _ := httpio.Event(seq, "note", struct{}{})
		list[i] = frame{seq: seq, bytes: b}
	}
	return list
}

// AfterInRing returns what the feed has after seq once it has received batches.
func AfterInRing(seq int64, batches ...[]int64) (got []int64, ok bool) {
	f := &Feed{lines: map[string]int64{}}
	for _, b := range batches {
		f.wake(context.Background(), framesOf(b))
	}
	list, ok := f.fromRing(seq)
	for _, e := range list {
		got = append(got, e.seq)
	}
	return got, ok
}

// SentBehind returns what a reader at a position is sent of a batch.
func SentBehind(at int64, seqs ...int64) string {
	answer := httptest.NewRecorder()
	s, _ := httpio.BeginStream(answer)
	answer.Body.Reset()
	e := &eventReader{stream: s, at: at, now: time.Now, filter: eventFilter{who: signalbox.Principal{Scopes: signalbox.Scopes()}}}
	_ = e.send(framesOf(seqs))
	return answer.Body.String()
}
