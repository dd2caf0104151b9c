package apitest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-ai/signalbox"
	"github.com/signalbox-ai/signalbox/api"
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// Pending is a request that is served in the background.
type Pending struct {
	t      *testing.T
	w      *recorder
	Cancel context.CancelFunc // ends the request as if its caller disconnected
	done   chan struct{}
}

// Start calls the handler with a request and does not wait for its response.
func (b *Fixture) Start(method, path, body string, edits ...Edit) *Pending {
	return StartOn(b.T, b.Server.Handler(), method, path, body, edits...)
}

// StartOn is Start for any handler.
func StartOn(t *testing.T, h http.Handler, method, path, body string, edits ...Edit) *Pending {
	ctx, leave := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(leave)
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edits {
		f(r)
	}
	a := &Pending{t: t, w: &recorder{header: http.Header{}}, Cancel: leave, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		h.ServeHTTP(a.w, r)
	}()
	return a
}

// Reply waits for the response.
func (a *Pending) Reply() Reply {
	a.t.Helper()
	select {
	case <-a.done:
	case <-time.After(4 * time.Hour): // in a synctest bubble: no real time
		a.t.Fatal("no answer")
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	resp := &http.Response{StatusCode: a.w.status, Header: a.w.header, Body: http.NoBody}
	return Reply{Response: resp, Body: a.w.body.Bytes()}
}

// Events returns the events written so far, without comments.
func (a *Pending) Events() []Event {
	a.w.mu.Lock()
	text := a.w.body.String()
	a.w.mu.Unlock()
	s := &Stream{T: a.t, lines: bufio.NewReader(strings.NewReader(text))}
	var list []Event
	for {
		e, ok := s.Read()
		if !ok {
			return list
		}
		if e.Comment == "" && e.Name != "" {
			list = append(list, e)
		}
	}
}

// EventNames joins the names of events with spaces.
func EventNames(list []Event) string {
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.Name
	}
	return strings.Join(all, " ")
}

// recorder is a ResponseWriter that can be read while the handler still writes.
type recorder struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   bytes.Buffer
}

func (s *recorder) Header() http.Header { return s.header }
func (s *recorder) Flush()              {}
func (s *recorder) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		s.status = status
	}
}

func (s *recorder) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.Write(p)
}

var _ io.Writer = (*recorder)(nil)

// AddChatAgent adds an agent that lists its sessions and has two isolated slots.
func (b *Fixture) AddChatAgent(name string, slots int) signalbox.Agent {
	a := b.AddAgent(name, slots)
	b.Live.Set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	return a
}

// AddDownAgent adds an agent that is down.
func (b *Fixture) AddDownAgent(name string) {
	b.T.Helper()
	b.Live.Set(engine.LiveAgent{Agent: b.AddAgent(name, 1), Message: "connection refused"})
}

// Accept has an agent claim and accept the next task, in the session of the task.
func (b *Fixture) Accept(a signalbox.Agent) signalbox.Task {
	b.T.Helper()
	c := b.Claim(a)
	t, err := b.Engine.Accept(b.T.Context(), c, "task-1", c.SessionID)
	if err != nil {
		b.T.Fatal(err)
	}
	return t
}

// AcceptIsolated has an agent claim and accept the next isolated task.
func (b *Fixture) AcceptIsolated(a signalbox.Agent) signalbox.Task {
	b.T.Helper()
	c, found, err := b.Engine.ClaimBypass(b.T.Context(), a, 2, 0)
	if err != nil || !found {
		b.T.Fatalf("claim: found %v, %v", found, err)
	}
	t, err := b.Engine.Accept(b.T.Context(), c.Task, "task-1", "")
	if err != nil {
		b.T.Fatal(err)
	}
	return t
}

// Complete ends a task in flight as completed.
func (b *Fixture) Complete(t signalbox.Task, output string) {
	b.T.Helper()
	b.FinishTask(t, signalbox.ReasonCompleted, signalbox.Result{Output: output})
}

// Moments returns the events with a name, which must be transient: they have no id.
func Moments(t *testing.T, list []Event, name string) []api.Event {
	t.Helper()
	var got []api.Event
	for _, e := range list {
		if e.Name == name {
			if e.ID != "" {
				t.Errorf("an event of the moment has a place: %+v", e)
			}
			got = append(got, e.Decoded(t))
		}
	}
	return got
}
