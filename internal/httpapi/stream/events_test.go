package stream_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/internal/engine"
	"github.com/signalbox-ai/signalbox/internal/httpapi/apitest"
	"github.com/signalbox-ai/signalbox/internal/httpapi/httpio"
	"github.com/signalbox-ai/signalbox/internal/httpapi/stream"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestEventsBeginNow(t *testing.T) {
	b := apitest.New(t).Serve()
	b.AddEvents(5)
	s := b.OpenStream("/api/events")
	if e := s.Next(); e.Seq(t) != 5 || e.Data != "" {
		t.Fatalf("the first thing told is not the place: %+v", e)
	}
	id := b.Submit(`{"prompt":"p"}`).QueueID
	e := s.Next()
	got := e.Decoded(t)
	if e.Name != "submit" || e.Seq(t) != 6 || got.Seq != 6 || got.QueueID != id || got.State != "pending" || got.Queue != "work" || got.Source != "api" {
		t.Errorf("%+v", e)
	}
}

// A reader that reconnects misses nothing and gets nothing twice, whether the missed entries are
// in the ring or only in the store.
func TestEventsResumeWithoutAGap(t *testing.T) {
	b := apitest.New(t).Serve()
	const all = stream.RingEntries + 2*stream.FeedBatch + 17
	var wg sync.WaitGroup
	wg.Go(func() { b.AddEvents(all) })
	last := int64(0)
	for last < all {
		// Every other time the URL has a position, too.
		s := b.OpenStream(fmt.Sprintf("/api/events?after=%d", last/2), apitest.Header("Last-Event-ID", fmt.Sprint(last)))
		if e := s.Next(); e.Seq(t) != last {
			t.Fatalf("it begins at %+v, want %d", e, last)
		}
		for range all/3 + 1 {
			if last == all {
				break
			}
			e := s.Next()
			if e.Name == "reset" || e.Seq(t) != last+1 {
				t.Fatalf("after %d comes %+v", last, e)
			}
			last++
		}
		s.Close()
	}
	wg.Wait()
}

func TestEventsOfManyReadersAreTheSame(t *testing.T) {
	b := apitest.New(t).Serve()
	const readers, entries = 20, 500
	var wg sync.WaitGroup
	for range readers {
		s := b.OpenStream("/api/events?after=0")
		s.Next()
		wg.Go(func() {
			for want := int64(1); want <= entries; want++ {
				if e, ok := s.Read(); !ok || e.ID != fmt.Sprint(want) {
					t.Errorf("want %d, got %+v", want, e)
					return
				}
			}
		})
	}
	b.AddEvents(entries)
	wg.Wait()
}

func TestEventsOfOneTask(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	s := b.OpenStream("/api/events?after=0&queue_id=" + id)
	s.Next()
	b.Submit(`{"prompt":"another"}`)
	b.AddEvents(10)
	b.FinishTask(b.Run(a), signalbox.ReasonCompleted, signalbox.Result{})
	for _, want := range []string{"submit", "claim", "accept", "finish"} {
		if e := s.Next(); e.Name != want || e.Decoded(t).QueueID != id {
			t.Errorf("want %s, got %+v", want, e)
		}
	}
}

func TestEventsReset(t *testing.T) {
	var c apitest.Clock
	b := apitest.New(t, apitest.WithClock(&c)).Serve()
	b.AddEvents(20)
	// The position of another store, ahead of this one.
	s := b.OpenStream("/api/events?after=1000000")
	e := s.Next()
	if e.Name != "reset" || e.Decoded(t).Seq != 21 || e.Seq(t) != 20 || e.Decoded(t).Message == "" {
		t.Fatalf("%+v", e)
	}
	b.AddEvents(1)
	if e := s.Next(); e.Seq(t) != 21 {
		t.Errorf("%+v", e)
	}
	// The requested entries were pruned.
	c.Advance(time.Hour)
	b.AddEvents(5)
	if _, err := b.Store.Prune(t.Context(), store.Pruning{Ended: c.Now(), Limit: 100}); err != nil {
		t.Fatal(err)
	}
	oldest, newest, err := b.Engine.Read().JournalRange(t.Context())
	if err != nil || oldest < 2 || newest != 26 {
		t.Fatalf("the journal has %d to %d, %v", oldest, newest, err)
	}
	for _, after := range []string{"0", "3"} {
		s := b.OpenStream("/api/events?after=" + after)
		if e := s.Next(); e.Name != "reset" || e.Decoded(t).Seq != oldest || e.Seq(t) != oldest-1 {
			t.Fatalf("%+v", e)
		}
		for want := oldest; want <= newest; want++ {
			if e := s.Next(); e.Seq(t) != want || e.Name == "reset" {
				t.Fatalf("want %d, got %+v", want, e)
			}
		}
	}
	if e := b.OpenStream(fmt.Sprintf("/api/events?after=%d", oldest-1)).Next(); e.Name == "reset" {
		t.Errorf("reset, though nothing is missing: %+v", e)
	}
}

// A slow reader delays no others. If entries that it has not read are pruned, it gets a reset.
func TestASlowReaderIsToldOfTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c apitest.Clock
		b := apitest.New(t, apitest.WithClock(&c))
		p, stop := apitest.ServePipes(t, b)
		slow := p.Dial(t) // an unbuffered pipe: writes block until they are read
		apitest.WriteString(t, slow, "GET /api/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		b.AddEvents(3 * stream.RingEntries)
		c.Advance(time.Hour)
		b.AddEvents(1)
		for {
			if did, err := b.Store.Prune(t.Context(), store.Pruning{Ended: c.Now(), Limit: 1000}); err != nil {
				t.Fatal(err)
			} else if did.Tasks == 0 {
				break
			}
		}
		var text strings.Builder
		read := make(chan struct{})
		go func() {
			io.Copy(&text, slow)
			close(read)
		}()
		synctest.Wait()
		stop()
		<-read
		if got := text.String(); !strings.Contains(got, "event: reset") || !strings.Contains(got, fmt.Sprintf("id: %d\nevent: agent_up", 3*stream.RingEntries+1)) {
			t.Errorf("no reset, or nothing after it: …%s", got[max(0, len(got)-300):])
		}
	})
}

// A reader that reads nothing is disconnected.
func TestAttackReaderThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		defer c.Close()
		apitest.WriteString(t, c, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		b.AddEvents(10)
		time.Sleep(httpio.WriteTimeout + httpio.KeepAliveEvery)
		synctest.Wait()
		if n := b.Server.OpenStreams(); n != 0 {
			t.Errorf("%d streams are still open", n)
		}
		stop()
	})
}

func TestEventsHeartbeatMovesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		p, stop := apitest.ServePipes(t, b)
		c := p.Dial(t)
		defer c.Close()
		apitest.WriteString(t, c, "GET /api/events?queue_id="+id+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var mu sync.Mutex
		var text strings.Builder
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				mu.Lock()
				text.Write(buf[:n])
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		time.Sleep(httpio.KeepAliveEvery)
		synctest.Wait()
		b.AddEvents(7)
		time.Sleep(httpio.KeepAliveEvery)
		synctest.Wait()
		mu.Lock()
		got := text.String()
		mu.Unlock()
		if !strings.Contains(got, "retry: ") || !strings.Contains(got, ": alive") || !strings.Contains(got, "id: 8\n\n") {
			t.Errorf("%s", got)
		}
		stop()
	})
}

// The feed runs only while there are readers.
func TestTheFeedEndsWithItsLastReader(t *testing.T) {
	b := apitest.New(t).Serve()
	for range 3 {
		s := b.OpenStream("/api/events?after=0")
		s.Next()
		before := b.NewestEvent()
		b.AddEvents(1)
		for s.Next().Seq(t) != before+1 {
		}
		s.Close()
	}
	b.HTTP.Close()
	http.DefaultClient.CloseIdleConnections()
	// goleak in TestMain fails if the feed still runs.
}

func TestOutput(t *testing.T) {
	b := apitest.New(t).Serve()
	a := b.AddAgent("coder", 1)
	id := b.Submit(`{"prompt":"p"}`).QueueID
	s := b.OpenStream("/api/queue/" + id + "/output")
	task := b.Run(a)
	b.Runs.Print(id, "one ")
	if e := s.Next(); e.Name != "output" || !strings.Contains(e.Data, `"text":"one "`) || e.ID != "4" {
		t.Fatalf("%+v", e)
	}
	b.Runs.Print(id, "two ")
	if e := s.Next(); !strings.Contains(e.Data, `"seq":4,"text":"two ","next":8`) || !strings.Contains(e.Data, `"state":"working"`) {
		t.Fatalf("%+v", e)
	}
	apitest.WantBody(t, b.Do("GET", "/api/queue/"+id+"/output?after=2", ""), 200, `{"queue_id":"`+id+`","state":"working","seq":2,"text":"e two ","next":8}`)
	b.FinishTask(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "wo ünd", TailSeq: 5, Truncated: true})
	b.Runs.End(id)
	e := s.Next()
	if !strings.Contains(e.Data, `"seq":8,"text":"ünd","next":12,"done":true`) || !strings.Contains(e.Data, `"state":"completed"`) {
		t.Fatalf("%+v", e)
	}
	if e, ok := s.Read(); ok {
		t.Fatalf("after the end: %+v", e)
	}
	for after, want := range map[string]string{
		"0": `"seq":5,"text":"wo ünd","next":12,"truncated":true,"done":true`, "9": `"seq":10,"text":"nd","next":12,"done":true`, "12": `"seq":12,"text":"","next":12,"done":true`, "99": `"seq":12,"text":"","next":12,"done":true`,
	} {
		apitest.WantBody(t, b.Do("GET", "/api/queue/"+id+"/output?after="+after, ""), 200, `{"queue_id":"`+id+`","state":"completed",`+want+`}`)
	}
	again := b.OpenStream("/api/queue/"+id+"/output?after=0", apitest.Header("Last-Event-ID", "9"))
	if e := again.Next(); !strings.Contains(e.Data, `"seq":10,"text":"nd"`) {
		t.Errorf("%+v", e)
	}
}

func TestOutputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := apitest.New(t)
		a := b.AddAgent("coder", 1)
		id := b.Submit(`{"prompt":"p"}`).QueueID
		begun := time.Now()
		b.Do("GET", "/api/queue/"+id+"/output?wait=20s", "").Want(t, 200, nil)
		if took := time.Since(begun); took != 20*time.Second {
			t.Errorf("it waited %s", took)
		}
		done := make(chan apitest.Reply)
		go func() { done <- b.Do("GET", "/api/queue/"+id+"/output?wait=5m", "") }()
		time.Sleep(time.Minute)
		task := b.Run(a)
		b.Runs.Print(id, "")
		time.Sleep(time.Minute)
		b.Runs.Print(id, "hello")
		if got := <-done; !strings.Contains(string(got.Body), `"text":"hello"`) {
			t.Errorf("%s", got.Body)
		}
		go func() { done <- b.Do("GET", "/api/queue/"+id+"/output?wait=5m&after=5", "") }()
		time.Sleep(time.Minute)
		b.Runs.End(id)
		time.Sleep(time.Second)
		if _, err := b.Engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "hello, all"}}); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !strings.Contains(string(got.Body), `"text":", all","next":10,"done":true`) {
			t.Errorf("%s", got.Body)
		}
	})
}

// A store that lost entries continues far above the last one, in the middle of a batch: readers
// get a reset for the gap, and all entries after it.
func TestAGapInTheMiddleOfABatchIsToldOf(t *testing.T) {
	const anew = 1_000_008
	for _, batches := range [][][]int64{
		{{6, 7, anew, anew + 1}, {anew + 2}},
		{{6, 7}, {anew, anew + 1, anew + 2}},
		{{6}, {7, anew}, {anew + 1, anew + 2}},
	} {
		if got, ok := stream.AfterInRing(anew, batches...); !ok || !slices.Equal(got, []int64{anew + 1, anew + 2}) {
			t.Errorf("%v: behind %d there is %v (%t)", batches, anew, got, ok)
		}
		if got, ok := stream.AfterInRing(7, batches...); ok {
			t.Errorf("%v: behind 7 it has %v, and something is missing", batches, got)
		}
	}
	got := stream.SentBehind(5, 6, 7, anew, anew+1)
	at := 0
	for _, part := range []string{"id: 6\n", "id: 7\n", "id: 1000007\nevent: reset\n", "id: 1000008\n", "id: 1000009\n"} {
		i := strings.Index(got[at:], part)
		if i < 0 {
			t.Fatalf("there is no %q where it should be: %s", part, got)
		}
		at += i
	}
	if strings.Count(got, "reset\n") != 1 {
		t.Errorf("more than one reset: %s", got)
	}
}

// A HEAD request has no body, and leaves no stream open.
func TestHeadOpensNoStream(t *testing.T) {
	b := apitest.New(t)
	task := b.Submit(`{"prompt":"p"}`).QueueID
	for _, path := range []string{"/api/events", "/api/live", "/api/queue/" + task + "/output"} {
		b.Do("HEAD", path, "", apitest.Header("Accept", "text/event-stream")).Want(t, 200, nil)
		if n := b.Server.OpenStreams(); n != 0 {
			t.Errorf("%s: %d streams are open", path, n)
		}
	}
}
