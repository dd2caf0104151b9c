package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/httpapi"
	"github.com/signalbox-ai/signalbox/internal/store"
)

func TestEventsBeginNow(t *testing.T) {
	b := newBox(t).serve()
	b.notes(5)
	s := b.open("/api/events")
	if e := s.must(); e.seq(t) != 5 || e.data != "" {
		t.Fatalf("the first thing told is not the place: %+v", e)
	}
	id := b.submit(`{"prompt":"p"}`).QueueID
	e := s.must()
	got := e.event(t)
	if e.name != "submit" || e.seq(t) != 6 || got.Seq != 6 || got.QueueID != id || got.State != "pending" || got.Queue != "work" || got.Source != "api" {
		t.Errorf("%+v", e)
	}
}

// A reader that goes away and comes back misses nothing and gets nothing
// twice, whether what it missed lies in the ring or in the store only.
func TestEventsResumeWithoutAGap(t *testing.T) {
	b := newBox(t).serve()
	const all = httpapi.RingEntries + 2*httpapi.FeedBatch + 17
	var wg sync.WaitGroup
	wg.Go(func() { b.notes(all) })
	last := int64(0)
	for last < all {
		// Every other time the place comes in the URL of the first time too.
		s := b.open(fmt.Sprintf("/api/events?after=%d", last/2), header("Last-Event-ID", fmt.Sprint(last)))
		if e := s.must(); e.seq(t) != last {
			t.Fatalf("it begins at %+v, want %d", e, last)
		}
		for range all/3 + 1 {
			if last == all {
				break
			}
			e := s.must()
			if e.name == "reset" || e.seq(t) != last+1 {
				t.Fatalf("after %d comes %+v", last, e)
			}
			last++
		}
		s.close()
	}
	wg.Wait()
}

func TestEventsOfManyReadersAreTheSame(t *testing.T) {
	b := newBox(t).serve()
	const readers, entries = 20, 500
	var wg sync.WaitGroup
	for range readers {
		s := b.open("/api/events?after=0")
		s.must()
		wg.Go(func() {
			for want := int64(1); want <= entries; want++ {
				if e, ok := s.next(); !ok || e.id != fmt.Sprint(want) {
					t.Errorf("want %d, got %+v", want, e)
					return
				}
			}
		})
	}
	b.notes(entries)
	wg.Wait()
}

func TestEventsOfOneTask(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	id := b.submit(`{"prompt":"p"}`).QueueID
	s := b.open("/api/events?after=0&queue_id=" + id)
	s.must()
	b.submit(`{"prompt":"another"}`)
	b.notes(10)
	b.finish(b.work(a), signalbox.ReasonCompleted, signalbox.Result{})
	for _, want := range []string{"submit", "claim", "accept", "finish"} {
		if e := s.must(); e.name != want || e.event(t).QueueID != id {
			t.Errorf("want %s, got %+v", want, e)
		}
	}
}

func TestEventsReset(t *testing.T) {
	var c clock
	b := newBox(t, fixed(&c)).serve()
	b.notes(20)
	// The place of another store, ahead of this one.
	s := b.open("/api/events?after=1000000")
	e := s.must()
	if e.name != "reset" || e.event(t).Seq != 21 || e.seq(t) != 20 || e.event(t).Message == "" {
		t.Fatalf("%+v", e)
	}
	b.notes(1)
	if e := s.must(); e.seq(t) != 21 {
		t.Errorf("%+v", e)
	}
	// What was asked for has been pruned.
	c.pass(time.Hour)
	b.notes(5)
	if _, err := b.store.Prune(t.Context(), store.Pruning{Ended: c.now(), Limit: 100}); err != nil {
		t.Fatal(err)
	}
	oldest, newest, err := b.engine.Read().JournalRange(t.Context())
	if err != nil || oldest < 2 || newest != 26 {
		t.Fatalf("the journal has %d to %d, %v", oldest, newest, err)
	}
	for _, after := range []string{"0", "3"} {
		s := b.open("/api/events?after=" + after)
		if e := s.must(); e.name != "reset" || e.event(t).Seq != oldest || e.seq(t) != oldest-1 {
			t.Fatalf("%+v", e)
		}
		for want := oldest; want <= newest; want++ {
			if e := s.must(); e.seq(t) != want || e.name == "reset" {
				t.Fatalf("want %d, got %+v", want, e)
			}
		}
	}
	if e := b.open(fmt.Sprintf("/api/events?after=%d", oldest-1)).must(); e.name == "reset" {
		t.Errorf("reset, though nothing is missing: %+v", e)
	}
}

// A reader that is slow holds up nobody; when entries that it has not read
// are pruned it is told so.
func TestASlowReaderIsToldOfTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		b := newBox(t, fixed(&c))
		p, stop := serving(t, b)
		slow := p.dial(t) // an unbuffered pipe: nothing is taken unless it is read
		write(t, slow, "GET /api/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		b.notes(3 * httpapi.RingEntries)
		c.pass(time.Hour)
		b.notes(1)
		for {
			if did, err := b.store.Prune(t.Context(), store.Pruning{Ended: c.now(), Limit: 1000}); err != nil {
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
		if got := text.String(); !strings.Contains(got, "event: reset") || !strings.Contains(got, fmt.Sprintf("id: %d\nevent: agent_up", 3*httpapi.RingEntries+1)) {
			t.Errorf("no reset, or nothing after it: …%s", got[max(0, len(got)-300):])
		}
	})
}

// A reader that takes nothing is let go of.
func TestAttackReaderThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		p, stop := serving(t, b)
		c := p.dial(t)
		defer c.Close()
		write(t, c, "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		b.notes(10)
		time.Sleep(httpapi.WriteTimeout + httpapi.Heartbeat)
		synctest.Wait()
		if n := b.dir.Streams(); n != 0 {
			t.Errorf("%d streams are still open", n)
		}
		stop()
	})
}

func TestEventsHeartbeatMovesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		id := b.submit(`{"prompt":"p"}`).QueueID
		p, stop := serving(t, b)
		c := p.dial(t)
		defer c.Close()
		write(t, c, "GET /api/events?queue_id="+id+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
		time.Sleep(httpapi.Heartbeat)
		synctest.Wait()
		b.notes(7)
		time.Sleep(httpapi.Heartbeat)
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

// The feed runs while someone reads, and only then.
func TestTheFeedEndsWithItsLastReader(t *testing.T) {
	b := newBox(t).serve()
	for range 3 {
		s := b.open("/api/events?after=0")
		s.must()
		before := b.newest()
		b.notes(1)
		for s.must().seq(t) != before+1 {
		}
		s.close()
	}
	b.server.Close()
	http.DefaultClient.CloseIdleConnections()
	// goleak in TestMain fails if the feed still runs.
}

func TestOutput(t *testing.T) {
	b := newBox(t).serve()
	a := b.agent("coder", 1)
	id := b.submit(`{"prompt":"p"}`).QueueID
	s := b.open("/api/queue/" + id + "/output")
	task := b.work(a)
	b.runs.print(id, "one ")
	if e := s.must(); e.name != "output" || !strings.Contains(e.data, `"text":"one "`) || e.id != "4" {
		t.Fatalf("%+v", e)
	}
	b.runs.print(id, "two ")
	if e := s.must(); !strings.Contains(e.data, `"seq":4,"text":"two ","next":8`) || !strings.Contains(e.data, `"state":"working"`) {
		t.Fatalf("%+v", e)
	}
	wantBody(t, b.do("GET", "/api/queue/"+id+"/output?after=2", ""), 200, `{"queue_id":"`+id+`","state":"working","seq":2,"text":"e two ","next":8}`)
	b.finish(task, signalbox.ReasonCompleted, signalbox.Result{Tail: "wo ünd", TailSeq: 5, Truncated: true})
	b.runs.end(id)
	e := s.must()
	if !strings.Contains(e.data, `"seq":8,"text":"ünd","next":12,"done":true`) || !strings.Contains(e.data, `"state":"completed"`) {
		t.Fatalf("%+v", e)
	}
	if e, ok := s.next(); ok {
		t.Fatalf("after the end: %+v", e)
	}
	for after, want := range map[string]string{
		"0": `"seq":5,"text":"wo ünd","next":12,"truncated":true,"done":true`, "9": `"seq":10,"text":"nd","next":12,"done":true`, "12": `"seq":12,"text":"","next":12,"done":true`, "99": `"seq":12,"text":"","next":12,"done":true`,
	} {
		wantBody(t, b.do("GET", "/api/queue/"+id+"/output?after="+after, ""), 200, `{"queue_id":"`+id+`","state":"completed",`+want+`}`)
	}
	again := b.open("/api/queue/"+id+"/output?after=0", header("Last-Event-ID", "9"))
	if e := again.must(); !strings.Contains(e.data, `"seq":10,"text":"nd"`) {
		t.Errorf("%+v", e)
	}
}

func TestOutputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		a := b.agent("coder", 1)
		id := b.submit(`{"prompt":"p"}`).QueueID
		begun := time.Now()
		b.do("GET", "/api/queue/"+id+"/output?wait=20s", "").want(t, 200, nil)
		if took := time.Since(begun); took != 20*time.Second {
			t.Errorf("it waited %s", took)
		}
		done := make(chan reply)
		go func() { done <- b.do("GET", "/api/queue/"+id+"/output?wait=5m", "") }()
		time.Sleep(time.Minute)
		task := b.work(a)
		b.runs.print(id, "")
		time.Sleep(time.Minute)
		b.runs.print(id, "hello")
		if got := <-done; !strings.Contains(string(got.body), `"text":"hello"`) {
			t.Errorf("%s", got.body)
		}
		go func() { done <- b.do("GET", "/api/queue/"+id+"/output?wait=5m&after=5", "") }()
		time.Sleep(time.Minute)
		b.runs.end(id)
		time.Sleep(time.Second)
		if _, err := b.engine.Finish(t.Context(), task, engine.Outcome{Reason: signalbox.ReasonCompleted, Result: &signalbox.Result{Output: "hello, all"}}); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !strings.Contains(string(got.body), `"text":", all","next":10,"done":true`) {
			t.Errorf("%s", got.body)
		}
	})
}

// A store that lost something goes on far above what it had, in the middle of
// what is read at once: readers are told of the gap, and of all that is behind
// it.
func TestAGapInTheMiddleOfABatchIsToldOf(t *testing.T) {
	const anew = 1_000_008
	for _, batches := range [][][]int64{
		{{6, 7, anew, anew + 1}, {anew + 2}},
		{{6, 7}, {anew, anew + 1, anew + 2}},
		{{6}, {7, anew}, {anew + 1, anew + 2}},
	} {
		if got, ok := httpapi.AfterInRing(anew, batches...); !ok || !slices.Equal(got, []int64{anew + 1, anew + 2}) {
			t.Errorf("%v: behind %d there is %v (%t)", batches, anew, got, ok)
		}
		if got, ok := httpapi.AfterInRing(7, batches...); ok {
			t.Errorf("%v: behind 7 it has %v, and something is missing", batches, got)
		}
	}
	got := httpapi.SentBehind(5, 6, 7, anew, anew+1)
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
