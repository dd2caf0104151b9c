package httpapi_test

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
	"github.com/signalbox-ai/signalbox/internal/engine"
)

// asking is a request that is answered in the background.
type asking struct {
	t     *testing.T
	w     *sink
	leave context.CancelFunc // its caller goes away
	done  chan struct{}
}

// ask sends a request and does not wait for its answer.
func (b *box) ask(method, path, body string, edits ...edit) *asking {
	return askOf(b.t, b.dir.Handler(), method, path, body, edits...)
}

func askOf(t *testing.T, h http.Handler, method, path, body string, edits ...edit) *asking {
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
	a := &asking{t: t, w: &sink{header: http.Header{}}, leave: leave, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		h.ServeHTTP(a.w, r)
	}()
	return a
}

// answer waits for the answer.
func (a *asking) answer() reply {
	a.t.Helper()
	select {
	case <-a.done:
	case <-time.After(4 * time.Hour): // in a bubble, where that is nothing
		a.t.Fatal("no answer")
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	resp := &http.Response{StatusCode: a.w.status, Header: a.w.header, Body: http.NoBody}
	return reply{Response: resp, body: a.w.body.Bytes()}
}

// events are those that came so far on a stream.
func (a *asking) events() []sse {
	a.w.mu.Lock()
	text := a.w.body.String()
	a.w.mu.Unlock()
	s := &reading{t: a.t, lines: bufio.NewReader(strings.NewReader(text))}
	var list []sse
	for {
		e, ok := s.next()
		if !ok {
			return list
		}
		if e.comment == "" && e.name != "" {
			list = append(list, e)
		}
	}
}

func names(list []sse) string {
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = e.name
	}
	return strings.Join(all, " ")
}

// sink takes an answer, and can be looked at while it is written.
type sink struct {
	mu     sync.Mutex
	header http.Header
	status int
	body   bytes.Buffer
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) Flush()              {}
func (s *sink) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		s.status = status
	}
}

func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body.Write(p)
}

var _ io.Writer = (*sink)(nil)

// talker makes an agent that keeps its conversations and runs two isolated
// tasks.
func (b *box) talker(name string, slots int) signalbox.Agent {
	a := b.agent(name, slots)
	b.live.set(engine.LiveAgent{Agent: a, Up: true, Sessions: true, IsolatedSlots: 2})
	return a
}

// sleeper makes an agent that is not there.
func (b *box) sleeper(name string) {
	b.t.Helper()
	b.live.set(engine.LiveAgent{Agent: b.agent(name, 1), Message: "connection refused"})
}

// accept has an agent take the next task, in the session that is known.
func (b *box) accept(a signalbox.Agent) signalbox.Task {
	b.t.Helper()
	c := b.claim(a)
	t, err := b.engine.Accept(b.t.Context(), c, "task-1", c.SessionID)
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *box) acceptIsolated(a signalbox.Agent) signalbox.Task {
	b.t.Helper()
	c, found, err := b.engine.ClaimBypass(b.t.Context(), a, 2, 0)
	if err != nil || !found {
		b.t.Fatalf("claim: found %v, %v", found, err)
	}
	t, err := b.engine.Accept(b.t.Context(), c.Task, "task-1", "")
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *box) complete(t signalbox.Task, output string) {
	b.t.Helper()
	b.finish(t, signalbox.ReasonCompleted, signalbox.Result{Output: output})
}
