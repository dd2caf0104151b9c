package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox/api"
)

// sse is one event of a stream; comments have only text.
type sse struct {
	id, name, data string
	comment        string
}

func (e sse) seq(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(e.id, 10, 64)
	if err != nil {
		t.Fatalf("event without a place: %+v", e)
	}
	return n
}

func (e sse) event(t *testing.T) api.Event {
	t.Helper()
	var out api.Event
	if err := json.Unmarshal([]byte(e.data), &out); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return out
}

// reading reads events off a stream.
type reading struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Reader
	close context.CancelFunc
}

// open opens a stream over a real connection.
func (b *box) open(path string, edits ...edit) *reading {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, "GET", b.server.URL+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for _, f := range edits {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	s := &reading{t: b.t, resp: resp, lines: bufio.NewReader(resp.Body), close: func() { cancel(); resp.Body.Close() }}
	b.t.Cleanup(s.close)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		b.t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return s
}

// next reads one event or comment; ok is false at the end of the stream.
func (s *reading) next() (e sse, ok bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if e != (sse{}) {
				return e, true
			}
		case name == "":
			e.comment = value
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data += value
		}
	}
}

// must reads the next event that is more than a comment.
func (s *reading) must() sse {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatal("the stream ended")
		}
		if e.comment == "" {
			return e
		}
	}
}

// notes writes n entries into the journal.
func (b *box) notes(n int) {
	b.t.Helper()
	for i := range n {
		b.engine.NoteAgent(b.t.Context(), "agent_up", fmt.Sprintf("a%d", i), "")
	}
}

func (b *box) newest() int64 {
	b.t.Helper()
	_, newest, err := b.engine.Read().JournalRange(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return newest
}
