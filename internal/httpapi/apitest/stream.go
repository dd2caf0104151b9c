package apitest

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

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
)

// Event is one server-sent event or comment. A comment has only Comment.
type Event struct {
	ID, Name, Data string
	Comment        string
}

// Seq returns the journal seq of an event, from its id.
func (e Event) Seq(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(e.ID, 10, 64)
	if err != nil {
		t.Fatalf("event without a place: %+v", e)
	}
	return n
}

// Decoded decodes the data of a journal event.
func (e Event) Decoded(t *testing.T) api.Event {
	t.Helper()
	var out api.Event
	if err := json.Unmarshal([]byte(e.Data), &out); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	return out
}

// Into decodes the data of an event.
func (e Event) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.Data), v); err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
}

// Stream is a client of an event stream.
type Stream struct {
	T     *testing.T
	resp  *http.Response
	lines *bufio.Reader
	Close context.CancelFunc
}

// OpenStream opens a stream over a TCP connection. Call Serve first.
func (b *Fixture) OpenStream(path string, edits ...Edit) *Stream {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.T.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, "GET", b.HTTP.URL+path, nil)
	if err != nil {
		b.T.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for _, f := range edits {
		f(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.T.Fatal(err)
	}
	s := &Stream{T: b.T, resp: resp, lines: bufio.NewReader(resp.Body), Close: func() { cancel(); resp.Body.Close() }}
	b.T.Cleanup(s.Close)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		b.T.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return s
}

// Read reads one event or comment; ok is false at the end of the stream.
func (s *Stream) Read() (e Event, ok bool) {
	s.T.Helper()
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
			if e != (Event{}) {
				return e, true
			}
		case name == "":
			e.Comment = value
		case name == "id":
			e.ID = value
		case name == "event":
			e.Name = value
		case name == "data":
			e.Data += value
		}
	}
}

// Next reads the next event and skips comments.
func (s *Stream) Next() Event {
	s.T.Helper()
	for {
		e, ok := s.Read()
		if !ok {
			s.T.Fatal("the stream ended")
		}
		if e.Comment == "" {
			return e
		}
	}
}

// AddEvents appends n entries to the journal.
func (b *Fixture) AddEvents(n int) {
	b.T.Helper()
	for i := range n {
		b.Engine.Note(b.T.Context(), signalbox.Entry{Kind: "agent_up", Agent: fmt.Sprintf("a%d", i)})
	}
}

// NewestEvent returns the seq of the newest journal entry.
func (b *Fixture) NewestEvent() int64 {
	b.T.Helper()
	_, newest, err := b.Engine.Read().JournalRange(b.T.Context())
	if err != nil {
		b.T.Fatal(err)
	}
	return newest
}

// RefreshLive refreshes the live view.
func (b *Fixture) RefreshLive() {
	b.T.Helper()
	if err := b.Server.Live().Refresh(b.T.Context()); err != nil {
		b.T.Fatal(err)
	}
}
